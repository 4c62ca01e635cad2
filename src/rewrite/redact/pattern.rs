//! What tokens, paths and addresses look like, and which words name nobody.

use regex::Regex;

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

/// `key = value` and `--key value`, with the words that make a key secret.
pub(super) const ASSIGNMENT: &str = r#"(?xi)
    ( [A-Z0-9_.-]* (?: password | passwd | passphrase | secret | token | credentials? | cookie
        | authorization | (?: api | access | private | secret | auth | account ) [_-]? key ) )
    ( ["']? \s* (?: => | [=:] ) \s* ["']? (?: (?: basic | token ) \s+ )? | ["']? \s+ )
    ( [^\s"',;&(){}\[\]]+ )"#;

pub(super) const URL: &str = r#"(?i)\b([a-z][a-z0-9+.-]{1,15}://)[^\s"'<>\\^`{|}\[\]]+"#;

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

/// True for the value of a secret key that is a secret.
pub(super) fn is_secret(value: &str, certainly: bool) -> bool {
    const NONE: &[&str] = &["", "none", "null", "true", "false", "unset", "undefined"];
    let value = value.trim();
    if is_placeholder(value) || NONE.iter().any(|none| none.eq_ignore_ascii_case(value)) {
        return false;
    }
    let typical = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_.~:-".contains(&byte);
    certainly || (value.len() >= 8 && value.bytes().all(typical)) || value.len() >= 20
}

/// True for text that stands for something replaced.
fn is_placeholder(text: &str) -> bool {
    text.starts_with('[') && text.contains(']')
}
