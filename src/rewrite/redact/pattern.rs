//! What tokens, paths and addresses look like, and which words name nobody.

use std::borrow::Cow;

use regex::Regex;

use super::pseudonym::Subject;

/// Tokens that show by themselves what they are.
pub(super) const TOKENS: &str = r"(?x) \b (?:
      (?: AKIA | ASIA | ABIA | ACCA ) [A-Z0-9]{16}
    | gh[pousr]_ [A-Za-z0-9]{30,}
    | github_pat_ [A-Za-z0-9_]{20,}
    | glpat- [A-Za-z0-9_-]{16,}
    | hf_ [A-Za-z0-9]{24,}
    | api_org_ [A-Za-z0-9]{24,}
    | sk- [A-Za-z0-9_-]{16,}
    | [rs]k_ (?: live | test ) _ [A-Za-z0-9]{16,}
    | xox[abeprs]- [A-Za-z0-9-]{10,}
    | AIza [A-Za-z0-9_-]{35}
    | ya29\. [A-Za-z0-9_-]{20,}
    | eyJ [A-Za-z0-9_-]{8,} \. [A-Za-z0-9_-]{8,} (?: \. [A-Za-z0-9_-]* )?
    | npm_ [A-Za-z0-9]{30,}
    | pypi- [A-Za-z0-9_-]{16,}
    | dapi [0-9a-f]{32}
    | dop_v1_ [0-9a-f]{32,}
)";

pub(super) const PRIVATE_KEY: &str =
    r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)";

pub(super) const BEARER: &str = r"(?i)\b(bearer\s+)([A-Za-z0-9._~+/=-]{8,})";

/// Words that make a key secret, in front of what separates keys from values: `key = value`,
/// `"key": "value"` and `--key value`.
pub(super) const ASSIGNMENT: &str = r#"(?xi)
    ( [A-Z0-9_.-]* (?: passwords? | passwd | passphrases? | passcodes? | pwd | secrets? | tokens? | credentials?
        | creds | cookies? | authorization | auth | bearer | jwt | [a-z]pass | _pass | dsn | t?otp | session[_-]?id
        | connection[_-]?string | (?: (?: api | access | private | secret | auth | account | encryption ) [\x20_-]? )? keys? )
      (?: _? [0-9]+ | _ (?: value | string | str | hash | plain | base64 | b64 ) )? )
    ( \\* ["']? \s* (?: => | [=:] ) \s* | \\* ["']? [\x20\t]+ )"#;

/// `user:password@host`, also in the address of something.
pub(super) const LOGIN: &str =
    r#"(://)?([A-Za-z0-9._%+-]*):([^\s:@/'"\[\]()<>,;]{2,})@([A-Za-z0-9][A-Za-z0-9.-]*)"#;

/// `user@host` and `user:[token-1]@host`, which is no mail address.
pub(super) const USER_AT_HOST: &str = r"((?:\b(?:ssh|scp|sftp|rsync)\s(?:.*\s)?)?)\b([A-Za-z_][A-Za-z0-9._-]*)((?::\[token-\d+\])?)@([A-Za-z0-9][A-Za-z0-9.-]*)\b";

/// Text that is encoded: long runs of base64, which may go over several lines.
pub(super) const BASE64: &str = r"[A-Za-z0-9+/_-]{40,}(?:(?:\r?\n|\\n)[A-Za-z0-9+/_-]+)*={0,2}";

/// A name of a variable of an environment in front of its value, as lines, joined by something, in JSON or
/// as Python writes it.
pub(super) const VARIABLE: &str =
    r#"(?:^|[\s;,{(\[\x00]|\\n|\\0)(?:\\*["'])?([A-Za-z_][A-Za-z0-9_]*)(?:\\*["'])?\s*[=:]"#;

/// What events may have in them that name users or hosts, dump an environment (of any three variables that
/// every process has, one has one of these words in its name) or hide that by escapes. Plain words of four
/// letters and more, and few: they are found nearly at the speed of memory.
pub(super) const HINTS: &str = "user|User|USER|host|Host|HOST|login|Login|LOGIN|logname|LOGNAME|fqdn|FQDN|\\\\u00|\
    PATH|HOME|PWD=|PWD\"|SHELL|LANG|TERM|SHLVL|VIRTUAL_ENV|CONDA_|TMPDIR|SSH_C|MAIL|XDG_|MASTER_|\
    COMPUTERNAME|APPDATA|TEMP|LESSOPEN|LS_COLORS";

/// A user's folder, and more words of its name when a folder is in that.
pub(super) const HOME: &str =
    r"[/\\](?:home|Users)[/\\]{1,4}([\pL0-9][\pL0-9._-]*)(?:((?:\x20[\pL0-9._-]+){1,2})[/\\])?";

/// Variables and options of users (1) and hosts (2).
pub(super) const NAMED: &str = r#"(?x)
    (?: \b | _ ) (?: (?: USER | LOGNAME | USERNAME | SUDO_USER | PGUSER | username | user_name | logname )
        \\* ["']? \s* [=:] \s* \\* ["']? ( [\pL0-9] [\pL0-9._-]* )
      | (?: HOSTNAME | NODENAME | COMPUTERNAME | hostname | host_name | nodename )
        \\* ["']? \s* [=:] \s* \\* ["']? ( [A-Za-z0-9] [A-Za-z0-9.-]* ) )"#;

/// `{host}_{pid}.{time}.pt.trace.json`, as PyTorch calls files.
pub(super) const TRACE_NAME: &str = r"([A-Za-z0-9][A-Za-z0-9.-]*)_\d+\.(?:\d+\.)?pt\.trace\.json";

pub(super) const URL: &str =
    r#"(?i)\b([a-z][a-z0-9+.-]{1,15}://)(?:[^\s"'<>\\^`{|}\[\]]|\[[a-z]+-\d+\])+"#;

pub(super) const EMAIL: &str =
    r"[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b";

pub(super) const IP: &str = r"(?x)
      \b (?: \d{1,3} \. ){3} \d{1,3} \b
    | \b (?: [0-9A-Fa-f]{1,4} : ){7} [0-9A-Fa-f]{1,4} \b
    | \b (?i: fe80 | f[cd][0-9a-f]{2} | 2[0-9a-f]{3} ) : (?: [0-9A-Fa-f]{0,4} : ){1,6} [0-9A-Fa-f]{0,4}";

pub(super) const MAC: &str = r"\b(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b";

/// Paths in text: behind something that is no part of a path, or in a home folder. One in quotes
/// may have spaces.
pub(super) const PATHS: &str = r#"(?x)
      " ( (?: / | ~ [\w.-]* / | [A-Za-z]:[\\/] | \\\\ ) [^"\n]+ ) "
    | ' ( (?: / | ~ [\w.-]* / | [A-Za-z]:[\\/] | \\\\ ) [^'\n]+ ) '
    | ( (?: / | \\ )? (?: home | Users ) [/\\]+ [^\s"'`,;:()<>\[\]{}|]+ )
    | (?: ^ | [^\w./~\\-] ) (
          (?: (?: \.\./ )* \.\. )? (?: / [^\s/"'`,;:()<>\[\]{}|]+ ){2,} /?
        | ~ [\w.-]* (?: / [^\s/"'`,;:()<>\[\]{}|]+ )+ /?
        | [A-Za-z]: [\\/] [^\s"'`,;:()<>\[\]{}|*?]+
        | \\\\ [\w.-]+ \\ [^\s"'`,;:()<>\[\]{}|*?]+
      )"#;

/// A Python frame: `PATH(LINE): FUNCTION`.
pub(super) const FRAME: &str = r"^(\s*)((?:/|~|[A-Za-z]:[\\/]|\\\\).*?)(\(\d+\): .*)$";

/// The pattern of a constant, which the tests compile.
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

/// The pattern of a constant, for bytes.
pub(super) fn pattern_in_bytes(text: &str) -> regex::bytes::Regex {
    regex::bytes::Regex::new(text).expect("the pattern is valid")
}

/// Words that name nobody, though some user or host is called so.
const COMMON: &[&str] = &[
    "root",
    "user",
    "users",
    "admin",
    "ubuntu",
    "runner",
    "worker",
    "workers",
    "nobody",
    "default",
    "localhost",
    "torch",
    "pytorch",
    "python",
    "cuda",
    "nvidia",
    "amd",
    "intel",
    "node",
    "nodes",
    "host",
    "main",
    "train",
    "trainer",
    "training",
    "test",
    "tests",
    "model",
    "models",
    "data",
    "forward",
    "backward",
    "optimizer",
    "recompute",
    "update",
    "step",
    "phase",
    "loss",
    "rank",
    "trace",
    "traces",
    "profiler",
    "gpu",
    "cpu",
    "jupyter",
    "docker",
    "container",
    "vscode",
    "app",
    "work",
    "workspace",
    "none",
    "null",
    "true",
    "false",
    "unknown",
    "nccl",
    "gloo",
    "mpi",
    "kernel",
    "stream",
    "thread",
    "home",
    "aten",
    "autograd",
    "public",
    "shared",
    "local",
    "master",
    "server",
    "cluster",
    "slurm",
    "ray",
    "conda",
    "opt",
    "tmp",
    "var",
    "usr",
    "lib",
    "lib64",
    "bin",
    "src",
    "project",
    "code",
    "ops",
    "nn",
    "shared_data",
    "ec2-user",
    "sagemaker-user",
    "all",
    "name",
    "cat",
    "x86_64",
    "aarch64",
    "arm64",
    "add",
    "mul",
    "copy",
    "func",
];

/// True for a value that names a user or host and is no word that everybody uses.
pub(super) fn is_identity(value: &str) -> bool {
    let value = value.trim();
    !value.is_empty()
        && !is_placeholder(value)
        && !COMMON.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// `text` with an `x` for each word that stands for something replaced.
pub(super) fn neutral(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut neutral = String::new();
    while let Some((open, close)) = rest.find('[').zip(rest.find(']'))
        && open < close
    {
        let end = close + 1;
        if is_placeholder(&rest[open..end]) {
            neutral.push_str(&rest[..open]);
            neutral.push('x');
        } else {
            neutral.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    neutral.push_str(rest);
    Cow::Owned(neutral)
}

/// True for text that stands for something replaced: `[path-1]`, and perhaps what ends a sentence.
pub(super) fn is_placeholder(text: &str) -> bool {
    let Some((inside, behind)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']'))
    else {
        return false;
    };
    let is_numbered = inside.split_once('-').is_some_and(|(kind, number)| {
        Subject::ALL.iter().any(|subject| subject.as_str() == kind)
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    (is_numbered || inside == "removed")
        && behind
            .bytes()
            .all(|byte| byte.is_ascii_punctuation() && byte != b'[')
}
