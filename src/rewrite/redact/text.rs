//! A string without secrets, names and places.

use std::borrow::Cow;

use regex::{Captures, Regex};

use super::key::{self, DUMP, KeyFacts};
use super::path;
use super::pseudonym::{Pseudonyms, Subject};

/// What kind of text a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// The name of a kernel, operator or call: nobody is named there, and much looks like an address.
    Operator,
    /// A name to keep: only secrets go.
    KeptName,
    /// Any other text.
    Text,
}

impl Context {
    pub(super) const COUNT: usize = 3;
}

/// Tokens that show by themselves what they are.
const TOKENS: &str = r"(?x) \b (?:
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

const PRIVATE_KEY: &str =
    r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)";

const BEARER: &str = r"(?i)\b(bearer\s+)([A-Za-z0-9._~+/=-]{8,})";

/// `key = value` and `--key value`, with the words that make a key secret.
const ASSIGNMENT: &str = r#"(?xi)
    ( [A-Z0-9_.-]* (?: password | passwd | passphrase | secret | token | credentials? | cookie
        | authorization | (?: api | access | private | secret | auth | account ) [_-]? key ) )
    ( ["']? \s* (?: => | [=:] ) \s* ["']? (?: (?: basic | token ) \s+ )? | ["']? \s+ )
    ( [^\s"',;&(){}\[\]]+ )"#;

const URL: &str = r#"(?i)\b([a-z][a-z0-9+.-]{1,15}://)[^\s"'<>\\^`{|}\[\]]+"#;

const EMAIL: &str =
    r"[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b";

const IP: &str = r"(?x)
      \b (?: \d{1,3} \. ){3} \d{1,3} \b
    | \b (?: [0-9A-Fa-f]{1,4} : ){7} [0-9A-Fa-f]{1,4} \b
    | \b (?i: fe80 | f[cd][0-9a-f]{2} | 2[0-9a-f]{3} ) : (?: [0-9A-Fa-f]{0,4} : ){1,6} [0-9A-Fa-f]{0,4}";

const MAC: &str = r"\b(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b";

/// Paths in text: behind something that is no part of a path, or in a home folder. One in quotes
/// may have spaces.
const PATHS: &str = r#"(?x)
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
const FRAME: &str = r"^(\s*)((?:/|~|[A-Za-z]:[\\/]|\\\\).*?)(\(\d+\): .*)$";

/// The pattern of a constant, which the tests compile.
fn pattern(text: &str) -> Regex {
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

/// The rules and what they have replaced.
pub(super) struct Rules {
    private_key: Regex,
    tokens: Regex,
    bearer: Regex,
    assignment: Regex,
    url: Regex,
    email: Regex,
    ip: Regex,
    mac: Regex,
    frame: Regex,
    paths: Regex,
    /// Users and hosts.
    words: [Option<Regex>; 2],
    pseudonyms: Pseudonyms,
    /// By subject: in how many strings one was replaced.
    strings: [u64; Subject::ALL.len()],
    /// The subjects replaced in the current string, one bit each.
    subjects: u16,
    removed: u64,
}

impl Rules {
    /// The rules, with names of users and hosts to look for.
    pub(super) fn new(words: (Vec<String>, Vec<String>), pseudonyms: Pseudonyms) -> Self {
        let any = |mut words: Vec<String>| {
            // The longest first: one may be the start of another.
            words.sort_by_key(|word| std::cmp::Reverse(word.len()));
            let words: Vec<String> = words.iter().map(|word| regex::escape(word)).collect();
            (!words.is_empty()).then(|| pattern(&words.join("|")))
        };
        Self {
            private_key: pattern(PRIVATE_KEY),
            tokens: pattern(TOKENS),
            bearer: pattern(BEARER),
            assignment: pattern(ASSIGNMENT),
            url: pattern(URL),
            email: pattern(EMAIL),
            ip: pattern(IP),
            mac: pattern(MAC),
            frame: pattern(FRAME),
            paths: pattern(PATHS),
            words: [any(words.0), any(words.1)],
            pseudonyms,
            strings: [0; Subject::ALL.len()],
            subjects: 0,
            removed: 0,
        }
    }

    pub(super) fn finish(self) -> (Pseudonyms, [u64; Subject::ALL.len()]) {
        (self.pseudonyms, self.strings)
    }

    /// False for strings in which no rule can find anything.
    pub(super) fn may_change(&self, raw: &[u8]) -> bool {
        let has_words = self.words.iter().any(Option::is_some);
        let special = |byte: &u8| matches!(byte, b'/' | b'\\' | b'@' | b'=' | b'.' | b':');
        raw.len() >= 16 || (has_words && raw.len() >= 3) || raw.iter().any(special)
    }

    /// What stands for `original`, which is the whole of a string.
    pub(super) fn replace(&mut self, subject: Subject, original: &str) -> String {
        self.strings[subject as usize] += 1;
        self.pseudonyms.replace(subject, original)
    }

    /// Counts a string in which `subjects` were replaced.
    pub(super) fn count(&mut self, subjects: u16) {
        for (bit, count) in self.strings.iter_mut().enumerate() {
            *count += u64::from(subjects >> bit & 1);
        }
    }

    /// `text` as it is to be, `None` for unchanged; which subjects were replaced, one bit each; and
    /// how many values of an environment were removed.
    pub(super) fn apply(&mut self, text: &str, context: Context) -> (Option<String>, u16, u64) {
        (self.subjects, self.removed) = (0, 0);
        let mut now = Cow::Borrowed(text);
        if context == Context::Text
            && let Some(lines) = self.dump(text)
        {
            now = Cow::Owned(lines);
        } else {
            self.secrets(&mut now, context);
            if context != Context::KeptName {
                self.places(&mut now);
            }
            if context == Context::Text {
                self.names(&mut now);
            }
        }
        let changed = (now != text).then(|| now.into_owned());
        (changed, self.subjects, self.removed)
    }

    /// A `NAME=value` of an environment dump, or several lines of them: the values go, except of what
    /// only tunes libraries. Also how many went.
    pub(super) fn environment(&mut self, text: &str) -> Option<(String, u64)> {
        key::variable(text.split(['\n', '\0']).next()?)?;
        (self.subjects, self.removed) = (0, 0);
        let lines = self.without_values(text);
        let subjects = self.subjects;
        self.count(subjects);
        Some((lines, self.removed))
    }

    /// The same for text with enough variables in it that every process has.
    fn dump(&mut self, text: &str) -> Option<String> {
        let common = text
            .split(['\n', '\0'])
            .filter(|line| key::variable(line).is_some_and(|(name, _)| key::is_common(name)));
        (common.take(DUMP).count() == DUMP).then(|| self.without_values(text))
    }

    fn without_values(&mut self, text: &str) -> String {
        let mut lines = String::with_capacity(text.len());
        for line in text.split_inclusive(['\n', '\0']) {
            let (content, end) = match line.strip_suffix(['\n', '\0']) {
                Some(content) => (content, &line[content.len()..]),
                None => (line, ""),
            };
            match key::variable(content) {
                Some((name, value)) if KeyFacts::of(name).tuning => {
                    let mut now = Cow::Borrowed(value);
                    self.secrets(&mut now, Context::Text);
                    self.places(&mut now);
                    self.names(&mut now);
                    lines.extend([name, "=", &now]);
                }
                Some((name, value)) => {
                    self.removed += u64::from(value != "[removed]");
                    lines.extend([name, "=[removed]"]);
                }
                // A further line of the value before.
                None if content.is_empty() => {}
                None => lines.push_str("[removed]"),
            }
            lines.push_str(end);
        }
        lines
    }

    fn secrets(&mut self, text: &mut Cow<'_, str>, context: Context) {
        let Self {
            private_key,
            tokens,
            bearer,
            assignment,
            pseudonyms,
            subjects,
            ..
        } = self;
        let mut token = |original: &str| {
            *subjects |= 1 << Subject::Token as u16;
            pseudonyms.replace(Subject::Token, original)
        };
        if text.contains("-----BEGIN") {
            change(text, private_key, |found| token(&found[0]));
        }
        change(text, tokens, |found| token(&found[0]));
        if context == Context::Operator {
            return;
        }
        change(text, bearer, |found| {
            format!("{}{}", &found[1], token(&found[2]))
        });
        change(text, assignment, |found| {
            let (key, between, value) = (&found[1], &found[2], &found[3]);
            let facts = KeyFacts::of(key);
            let spaced = between.trim().is_empty();
            // Only an option has its value behind a space.
            let is_key = (facts.password || facts.token) && (!spaced || key.starts_with("--"));
            // `token::type` is a name.
            let is_value = !value.starts_with([':', '/', '~']) && value.len() > 3;
            if is_key && is_value && is_secret(value, facts.password) {
                format!("{key}{between}{}", token(value))
            } else {
                found[0].to_owned()
            }
        });
    }

    fn places(&mut self, text: &mut Cow<'_, str>) {
        let Self {
            url,
            email,
            frame,
            paths,
            pseudonyms,
            subjects,
            ..
        } = self;
        let mut replace = |subject: Subject, original: &str| {
            *subjects |= 1 << subject as u16;
            pseudonyms.replace(subject, original)
        };
        if text.contains("://") {
            change(text, url, |found| {
                format!("{}{}", &found[1], replace(Subject::Url, &found[0]))
            });
        }
        if text.contains('@') {
            change(text, email, |found| replace(Subject::Email, &found[0]));
        }
        if !text.contains(['/', '\\']) {
            return;
        }
        let mut place = |path: &str| match path::public_end(path) {
            Some(end) => {
                *subjects |= 1 << Subject::Path as u16;
                end.to_owned()
            }
            None => {
                let kind = path::kind(path);
                let whole = path.trim_end_matches(['/', '\\']);
                *subjects |= 1 << Subject::Path as u16;
                pseudonyms.replace(Subject::Path, whole) + kind
            }
        };
        if text.contains("): ") {
            // Frames of a stack are joined by semicolons, or are lines.
            let frames = text.split_inclusive([';', '\n']).map(|part| {
                let (content, end) = match part.strip_suffix([';', '\n']) {
                    Some(content) => (content, &part[content.len()..]),
                    None => (part, ""),
                };
                match frame.captures(content) {
                    Some(found) => {
                        format!("{}{}{}{end}", &found[1], place(&found[2]), &found[3])
                    }
                    None => part.to_owned(),
                }
            });
            let frames: String = frames.collect();
            if frames != **text {
                *text = Cow::Owned(frames);
            }
        }
        if is_one_path(text) {
            *text = Cow::Owned(place(text));
            return;
        }
        change(text, paths, |found| {
            let whole = &found[0];
            match (1..5).find_map(|group| found.get(group)) {
                Some(path) => {
                    let start = path.start() - found.get(0).map_or(0, |all| all.start());
                    let end = start + path.len();
                    let place = place(path.as_str());
                    format!("{}{place}{}", &whole[..start], &whole[end..])
                }
                None => whole.to_owned(),
            }
        });
    }

    fn names(&mut self, text: &mut Cow<'_, str>) {
        let Self {
            ip,
            mac,
            words,
            pseudonyms,
            subjects,
            ..
        } = self;
        let mut replace = |subject: Subject, original: &str| {
            *subjects |= 1 << subject as u16;
            pseudonyms.replace(subject, original)
        };
        if text.contains(':') {
            change(text, mac, |found| replace(Subject::Mac, &found[0]));
        }
        if text.contains(['.', ':']) {
            let all = text.clone().into_owned();
            change(text, ip, |found| {
                let Some(whole) = found.get(0) else {
                    return String::new();
                };
                let (before, behind) = (&all[..whole.start()], &all[whole.end()..]);
                if is_address(whole.as_str(), before, behind) {
                    replace(Subject::Ip, whole.as_str())
                } else {
                    whole.as_str().to_owned()
                }
            });
        }
        for (words, subject) in words.iter().zip([Subject::User, Subject::Host]) {
            if let Some(words) = words {
                whole_words(text, words, |word| replace(subject, word));
            }
        }
    }
}

/// Replaces what `pattern` finds.
fn change(text: &mut Cow<'_, str>, pattern: &Regex, replace: impl FnMut(&Captures<'_>) -> String) {
    if let Cow::Owned(changed) = pattern.replace_all(text, replace) {
        *text = Cow::Owned(changed);
    }
}

/// Replaces what `pattern` finds with no letter or digit on either side.
fn whole_words(text: &mut Cow<'_, str>, pattern: &Regex, mut replace: impl FnMut(&str) -> String) {
    let mut changed = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = pattern.find_at(text, at) {
        let before = text[..found.start()].chars().next_back();
        let behind = text[found.end()..].chars().next();
        let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        // What stands in brackets was put there.
        if inside(before) || inside(behind) {
            at = found.start()
                + text[found.start()..]
                    .chars()
                    .next()
                    .map_or(1, char::len_utf8);
            continue;
        }
        changed.push_str(&text[copied..found.start()]);
        changed.push_str(&replace(found.as_str()));
        (at, copied) = (found.end(), found.end());
    }
    if copied > 0 {
        changed.push_str(&text[copied..]);
        *text = Cow::Owned(changed);
    }
}

/// True when all of `text` is one path, which may have spaces in it.
fn is_one_path(text: &str) -> bool {
    let text = text.trim_end();
    let drive = match text.as_bytes() {
        [letter, b':', b'/' | b'\\', ..] => letter.is_ascii_alphabetic(),
        _ => false,
    };
    let starts = drive
        || ["/", "~/", r"\\"]
            .iter()
            .any(|start| text.starts_with(start));
    let rest = if drive { &text[2..] } else { text };
    let parts = rest.split(['/', '\\']).filter(|part| !part.is_empty());
    // A command has options or several paths.
    let is_command = rest.contains(" -") || rest.contains(" /");
    starts
        && !is_command
        && parts.count() >= 2
        && !rest.contains([':', ';', '\n', '"', '\'', '[', ','])
}

/// True for an address that tells where something is, and no version (`a==1.2.3.4`, `1.2.3.4-1`).
fn is_address(text: &str, before: &str, behind: &str) -> bool {
    if text.contains(':') {
        return true;
    }
    let mut parts = text.split('.');
    let small = parts.all(|part| part.parse::<u8>().is_ok());
    let mut next = behind.chars();
    let goes_on = matches!(next.next(), Some('.' | '-' | '+'))
        && next.next().is_some_and(char::is_alphanumeric);
    small
        && !goes_on
        && !before.ends_with("==")
        && !matches!(text, "127.0.0.1" | "0.0.0.0" | "255.255.255.255")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let words = (vec!["alice".to_owned()], vec!["gpu-box-7".to_owned()]);
        Rules::new(words, Pseudonyms::default())
    }

    fn redacted(text: &str, context: Context) -> String {
        let (replaced, ..) = rules().apply(text, context);
        replaced.unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn secrets_go_wherever_they_stand() {
        let github = format!("ghp_{}", "a1".repeat(18));
        let jwt = format!(
            "eyJ{}.{}.{}",
            "a".repeat(20),
            "b".repeat(20),
            "c".repeat(20)
        );
        for (text, expected) in [
            (format!("x {github} y"), "x [token-1] y"),
            (format!("key=AKIA{}", "A1".repeat(8)), "key=[token-1]"),
            (format!("hf_{}", "Ab".repeat(17)), "[token-1]"),
            (format!("sk-proj-{}", "Ab1_".repeat(8)), "[token-1]"),
            (jwt, "[token-1]"),
            (
                "Authorization: Bearer abcdef123456".to_owned(),
                "Authorization: Bearer [token-1]",
            ),
            (
                "--password hunter2 --lr 0.1".to_owned(),
                "--password [token-1] --lr 0.1",
            ),
            (
                "DB_PASSWORD='hunter2'".to_owned(),
                "DB_PASSWORD='[token-1]'",
            ),
            (
                "{\"WANDB_API_KEY\": \"0123456789abcdef\"}".to_owned(),
                "{\"WANDB_API_KEY\": \"[token-1]\"}",
            ),
            (
                "a -----BEGIN RSA PRIVATE KEY-----\nxyz\n-----END RSA PRIVATE KEY----- b"
                    .to_owned(),
                "a [token-1] b",
            ),
        ] {
            assert_eq!(redacted(&text, Context::Text), expected, "{text}");
        }
        for text in [
            "max_tokens=4096",
            "token::type",
            "eos_token: </s>",
            "password=None",
            "tokens per second",
            "the secret life of models",
            "risk-adjusted-returns-of-2024-models",
        ] {
            assert_eq!(redacted(text, Context::Text), text);
        }
    }

    #[test]
    fn paths_go_and_what_every_machine_has_stays() {
        for (text, expected) in [
            (
                "/home/alice/proj/train.py(12): main",
                "[path-1].py(12): main",
            ),
            (
                "/home/alice/my proj/train.py(12): main",
                "[path-1].py(12): main",
            ),
            (
                "/home/alice/.venv/lib/python3.11/site-packages/torch/utils/checkpoint.py(1116): recompute_fn",
                "torch/utils/checkpoint.py(1116): recompute_fn",
            ),
            (
                "torch/utils/checkpoint.py(1116): recompute_fn",
                "torch/utils/checkpoint.py(1116): recompute_fn",
            ),
            (
                "/a/b.py(1): f;/a/c.py(2): g;/a/b.py(3): h",
                "[path-1].py(1): f;[path-2].py(2): g;[path-1].py(3): h",
            ),
            (r"C:\Users\alice\My Proj\x.py(3): f", "[path-1].py(3): f"),
            ("/home/alice/My Project/run 1", "[path-1]"),
            (
                "python /data/x/train.py --out=/data/y/",
                "python [path-1].py --out=[path-2]",
            ),
            ("PATHS=/usr/bin:/opt/a/bin", "PATHS=[path-1]:[path-2]"),
            ("-I/home/alice/include", "-I[path-1]"),
            (
                "/usr/bin/python /srv/a/x.py --lr 1",
                "[path-1] [path-2].py --lr 1",
            ),
            ("../../home/alice/x.py(3): f", "[path-1].py(3): f"),
            (
                "see \"/mnt/a b/c\" and '~/x y'",
                "see \"[path-1]\" and '[path-2]'",
            ),
            (r"\\server\share\x y", "[path-1]"),
            (
                "s3://bucket/a b https://u:p@host/x?y=1",
                "s3://[url-1] b https://[url-2]",
            ),
            (
                "(lambda at /src/acme/x.cu:12:3)",
                "(lambda at [path-1].cu:12:3)",
            ),
        ] {
            assert_eq!(redacted(text, Context::Text), expected, "{text}");
        }
        for text in [
            "aten::add",
            "int8/fp16/bf16",
            "N/A",
            "tokens/s",
            "a / b / c",
            "./traces/rank0.json",
            "1/2",
            "<built-in method add>",
            "nn.Module: Linear_0",
            "## forward ##",
            "Memcpy HtoD (Pageable -> Device)",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "ProfilerStep#3",
        ] {
            assert_eq!(redacted(text, Context::Text), text);
        }
    }

    #[test]
    fn people_and_machines_go() {
        for (text, expected) in [
            ("alice", "[user-1]"),
            ("run_alice_2", "run_[user-1]_2"),
            ("malice and alicea", "malice and alicea"),
            ("gpu-box-7_123.pt", "[host-1]_123.pt"),
            ("mail a.b@example.org now", "mail [email-1] now"),
            ("tcp 10.1.2.3:29500", "tcp [ip-1]:29500"),
            ("127.0.0.1 and 1.2.3.400", "127.0.0.1 and 1.2.3.400"),
            ("a==9.1.0.70 b 12.8.4.1-1", "a==9.1.0.70 b 12.8.4.1-1"),
            ("fe80::1ff:fe23:4567:890a", "[ip-1]"),
            ("aa:bb:cc:dd:ee:ff", "[mac-1]"),
            ("FSDP::all_gather", "FSDP::all_gather"),
        ] {
            assert_eq!(redacted(text, Context::Text), expected, "{text}");
        }
    }

    #[test]
    fn names_of_kernels_and_operators_stay() {
        for text in [
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int, float)",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "Cijk_Alik_Bljk_HHS_BH_MT64x64x32_MI32x32x8x1_SN_1LDSB0_alice",
            "triton_poi_fused_add_0d1d2d3d4de_1.2.3.4",
            "aten::add; token = abcdefghijklmnop",
        ] {
            assert_eq!(redacted(text, Context::Operator), text);
        }
        assert_eq!(
            redacted("/home/alice/x.py(1): f", Context::KeptName),
            "/home/alice/x.py(1): f"
        );
    }

    #[test]
    fn environments_lose_their_values() {
        let dump = "PATH=/usr/bin\nHOME=/home/alice\nNCCL_DEBUG=INFO\nSHELL=bash\nX=1\n";
        let expected =
            "PATH=[removed]\nHOME=[removed]\nNCCL_DEBUG=INFO\nSHELL=[removed]\nX=[removed]\n";
        assert_eq!(redacted(dump, Context::Text), expected);
        assert_eq!(redacted(expected, Context::Text), expected);
        let (text, removed) = rules().environment("SECRET=x").expect("a variable");
        assert_eq!((text.as_str(), removed), ("SECRET=[removed]", 1));
    }

    #[test]
    fn what_was_replaced_is_not_replaced_again() {
        for text in [
            "token=abcdefghijklmnop at /home/alice/x.py by alice on gpu-box-7 (10.1.2.3)",
            "https://user:pw@example.org/x mail a@b.org",
            "--password hunter2 C:\\Users\\alice\\x 'a' \"/a/b c\"",
        ] {
            let once = redacted(text, Context::Text);
            assert_ne!(once, text);
            assert_eq!(redacted(&once, Context::Text), once);
        }
    }
}
