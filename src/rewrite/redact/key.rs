//! What the keys of metadata and arguments say about their values.

use foldhash::{HashMap, HashSet};
use regex::bytes::Regex;

use super::pattern::{is_identity, neutral};
use super::secret::Secret;
use crate::ingest::decode_into;
use crate::rewrite::json::{Kind, Token, Tokens, inner};

/// What a key says about its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
// Copied for every key: as a whole.
#[repr(align(16))]
pub(super) struct KeyFacts {
    /// How secret it is.
    pub(super) secret: Secret,
    /// Somebody's name.
    pub(super) user: bool,
    /// A machine's name.
    pub(super) host: bool,
    /// Somebody's or a machine's name, or that of something else in a program: `owner`, `node`.
    pub(super) vague: bool,
    /// It names users and hosts also where keys are those of programs.
    pub(super) teaches: bool,
    /// The variables of a process.
    pub(super) environment: bool,
    /// A version, which may look like an address.
    pub(super) version: bool,
    /// A variable that tunes libraries and tells of nobody.
    pub(super) tuning: bool,
    /// `name`.
    pub(super) is_name: bool,
    /// `name` and others that stand for what the key around them is.
    pub(super) is_inner: bool,
    /// `value`.
    pub(super) is_value: bool,
    /// In capitals, as names of variables are.
    pub(super) is_variable: bool,
    /// `cat` or `ph`: what kind of event it is.
    pub(super) is_kind: bool,
    /// Short and of letters only: there is nothing to replace in the key itself.
    pub(super) is_plain: bool,
}

const USERS: &[&str] = &[
    "user",
    "username",
    "user name",
    "login",
    "logname",
    "owner",
    "job owner",
    "author",
    "created by",
    "submitted by",
    "full name",
];
const HOSTS: &[&str] = &[
    "host",
    "hostname",
    "host name",
    "node",
    "nodename",
    "node name",
    "machine",
    "machine name",
    "server",
    "server name",
    "fqdn",
    "master addr",
    "pod",
    "pod name",
    "slurmd nodename",
    "slurm nodelist",
    "slurm job nodelist",
    "worker name",
    "worker hostname",
];
/// Ends of words that name users: `PGUSER`, `loginname`.
const USER_ENDS: &[&str] = &["username", "loginname", "pguser", "dbuser"];
/// Of the users and hosts, those that are something else in some programs.
const VAGUE: &[&str] = &[
    "owner",
    "author",
    "node",
    "node name",
    "nodename",
    "machine",
    "server",
    "pod",
    "worker name",
    "server name",
];
const ENVIRONMENTS: &[&str] = &[
    "env",
    "environ",
    "environment",
    "env vars",
    "envvars",
    "environment variables",
    "os environ",
    "process env",
    "env variables",
    "environment vars",
];

/// Variables that every process has: a few of them make a dump of the environment.
const VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "PWD",
    "OLDPWD",
    "SHELL",
    "LANG",
    "TERM",
    "SHLVL",
    "HOSTNAME",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "TMPDIR",
    "SSH_CONNECTION",
    "SSH_CLIENT",
    "MAIL",
    "DISPLAY",
    "XDG_RUNTIME_DIR",
    "MASTER_ADDR",
    "MASTER_PORT",
    "USERPROFILE",
    "COMPUTERNAME",
    "APPDATA",
    "TEMP",
    "HF_HOME",
    "LESSOPEN",
    "LS_COLORS",
    "EDITOR",
];

/// How variables begin that tune libraries.
const TUNING: &[&str] = &[
    "CUDA_",
    "CUDNN_",
    "CUBLAS_",
    "NCCL_",
    "RCCL_",
    "HIP_",
    "ROCR_",
    "HSA_",
    "OMP_",
    "MKL_",
    "KMP_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "TORCHDYNAMO_",
    "PYTORCH_",
    "TRITON_",
    "XLA_",
    "NVTE_",
    "CCL_",
];
const RANKS: &[&str] = &[
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "MASTER_PORT",
];

impl KeyFacts {
    pub(super) fn of(key: &str) -> Self {
        // A key in which something was replaced is the key that it was.
        let key = &*neutral(key);
        let words = words(key);
        let list: Vec<&str> = words.split(' ').collect();
        let last = list.last().copied().unwrap_or_default();
        let several = |names: &[&str]| {
            let one = words.strip_suffix('s').unwrap_or_default();
            matches!(
                one,
                "user" | "username" | "user name" | "host" | "hostname" | "host name"
            ) && names.contains(&one)
        };
        // `PWD` is where a process is, `pwd` may also be what lets it in.
        let secret = if key == "PWD" {
            Secret::No
        } else {
            Secret::of(&list)
        };
        let tunes = RANKS.contains(&key) || TUNING.iter().any(|start| key.starts_with(start));
        Self {
            secret,
            user: USERS.contains(&words.as_str())
                || several(USERS)
                || (list.len() == 2 && last == "user")
                || USER_ENDS.iter().any(|end| last.ends_with(end)),
            host: HOSTS.contains(&words.as_str())
                || several(HOSTS)
                || last == "hostname"
                || key.ends_with("_HOST"),
            vague: VAGUE.contains(&words.as_str()),
            teaches: ["user", "host", "login", "logname", "fqdn"]
                .iter()
                .any(|word| words.contains(word)),
            environment: ENVIRONMENTS.contains(&words.as_str()),
            version: last == "version",
            tuning: tunes && secret == Secret::No,
            is_name: key == "name",
            is_inner: matches!(key, "name" | "value" | "id" | "key" | "variable"),
            is_value: matches!(key, "value" | "Value"),
            is_variable: key.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
                && key
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'),
            is_kind: matches!(key, "cat" | "ph"),
            is_plain: key.len() < 24
                && key
                    .bytes()
                    .all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_')),
        }
    }
}

impl KeyFacts {
    /// True when `value` names the user or host that the key announces. Events have keys of
    /// programs, among which vaguer words mean other things, too, and their values are no names of
    /// machines by their shape.
    pub(super) fn is_named(self, value: &str, in_event: bool) -> bool {
        if !(self.user || self.host) || !is_identity(value) {
            return false;
        }
        let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let plain = |byte: u8| lower(byte) || b".-\\@".contains(&byte);
        let has_letter = value.chars().any(char::is_alphabetic) && !value.starts_with("0x");
        if !in_event {
            return true;
        }
        let shaped = value.bytes().all(plain) && (self.user || value.contains(['-', '.']));
        has_letter && (!self.vague || shaped)
    }

    /// The same key inside of one with the facts `around`: what is inside of a secret is secret, and
    /// the name of a user is the user.
    #[inline]
    pub(super) fn inside(mut self, around: Self) -> Self {
        // Nearly always.
        if around.secret == Secret::No && !around.user && !around.host {
            return self;
        }
        self.secret = self.secret.max(around.secret);
        if self.is_inner {
            self.user |= around.user;
            self.host |= around.host;
            self.vague |= around.vague;
            self.teaches |= around.teaches;
        }
        self
    }
}

/// What keys say, remembered by their text.
#[derive(Default)]
pub(super) struct Keys {
    known: HashMap<Box<[u8]>, KeyFacts>,
}

impl Keys {
    /// What the key `token` says; `refine` may add to it.
    pub(super) fn facts(
        &mut self,
        text: &[u8],
        token: Token,
        refine: impl FnOnce(&str, &mut KeyFacts),
    ) -> KeyFacts {
        const MOST: usize = 10_000;
        let raw = inner(text, token);
        if let Some(facts) = self.known.get(raw) {
            return *facts;
        }
        let mut decoded = String::new();
        decode_into(raw, &mut decoded);
        let mut facts = KeyFacts::of(&decoded);
        refine(&decoded, &mut facts);
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(raw.into(), facts);
        facts
    }
}

/// The words of a key in lower case, with a space between them: `hostName`, `HOST_NAME` and
/// `host-name` are `host name`.
fn words(key: &str) -> String {
    let mut words = String::with_capacity(key.len() + 4);
    let mut lower = false;
    for letter in key.chars() {
        if !letter.is_alphanumeric() {
            lower = false;
            if !words.is_empty() && !words.ends_with(' ') {
                words.push(' ');
            }
            continue;
        }
        if letter.is_uppercase() && lower {
            words.push(' ');
        }
        lower = letter.is_lowercase();
        words.extend(letter.to_lowercase());
    }
    words.truncate(words.trim_end().len());
    words
}

/// True for a `NAME=value` line of an environment.
pub(super) fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    (starts && name.bytes().all(letter)).then_some((name, value))
}

/// True for a variable that every process has.
pub(super) fn is_common(name: &str) -> bool {
    VARIABLES.contains(&name)
}

/// The pattern of all of them.
pub(super) fn common() -> String {
    VARIABLES.join("|")
}

/// How many common variables make a dump of the environment.
pub(super) const DUMP: usize = 3;

/// False for JSON in which there is no dump of an environment: it has not enough of the `common`
/// variables, and no escapes that hide them.
pub(super) fn has_variables(common: &Regex, text: &[u8]) -> bool {
    common.find_iter(text).take(DUMP).count() == DUMP
        || memchr::memmem::find(text, b"\\u").is_some()
}

/// Where the opening brackets of environment dumps are, whatever their keys are called: objects
/// with some of the common variables as keys, and arrays with `NAME=value` strings of them, with pairs of
/// a name and a value, or with objects that have a name and a value. Brackets from the depth `deepest`
/// on are passed over.
pub(super) fn environments(text: &[u8], deepest: usize) -> HashSet<usize> {
    /// An open bracket, and how many variables are in it.
    struct Open {
        start: usize,
        count: usize,
        /// The next string is the first of an array, or the value of a key like `name`.
        is_name: bool,
    }
    let mut dumps = HashSet::default();
    let mut open: Vec<Open> = Vec::new();
    let mut decoded = String::new();
    for token in Tokens::new(text).filter(|token| token.depth < deepest) {
        let raw = match token.kind {
            Kind::Open => {
                open.push(Open {
                    start: token.start,
                    count: 0,
                    is_name: text[token.start] == b'[',
                });
                continue;
            }
            Kind::Close => {
                open.pop();
                continue;
            }
            Kind::Plain => continue,
            Kind::Key | Kind::Text => inner(text, token),
        };
        let Some(innermost) = open.len().checked_sub(1) else {
            continue;
        };
        let is_name = std::mem::take(&mut open[innermost].is_name);
        if raw.len() > 1 << 16 {
            continue;
        }
        decoded.clear();
        decode_into(raw, &mut decoded);
        let (name, place) = if token.kind == Kind::Key {
            open[innermost].is_name = matches!(
                &*decoded.to_ascii_lowercase(),
                "name" | "key" | "variable" | "var" | "k"
            );
            (Some(decoded.as_str()), Some(innermost))
        } else if is_name && is_common(&decoded) {
            (Some(decoded.as_str()), innermost.checked_sub(1))
        } else {
            (variable(&decoded).map(|(name, _)| name), Some(innermost))
        };
        if let Some(place) = place
            && name.is_some_and(is_common)
        {
            open[place].count += 1;
            if open[place].count >= DUMP {
                dumps.insert(open[place].start);
            }
        }
    }
    dumps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_every_spelling() {
        for key in [
            "hostName",
            "HOST_NAME",
            "host-name",
            "Host Name",
            "hostname",
        ] {
            assert!(KeyFacts::of(key).host, "{key}");
        }
        for key in ["username", "PGUSER", "db_user", "users", "user"] {
            assert!(KeyFacts::of(key).user, "{key}");
        }
        for key in [
            "UserData",
            "nodes",
            "user_annotation",
            "num_nodes",
            "machine_model",
        ] {
            let facts = KeyFacts::of(key);
            assert!(!facts.user && !facts.host, "{key}");
        }
        assert!(KeyFacts::of("NCCL_DEBUG").tuning && !KeyFacts::of("NCCL_SECRET").tuning);
        assert!(KeyFacts::of("nccl_version").version);
    }

    #[test]
    fn variables_have_names() {
        assert_eq!(variable("A_1=b=c"), Some(("A_1", "b=c")));
        assert_eq!(variable("1=b"), None);
        assert_eq!(variable("a b=c"), None);
        assert_eq!(variable("=c"), None);
    }
}
