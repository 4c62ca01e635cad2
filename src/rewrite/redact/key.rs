//! What the keys of metadata and arguments say about their values.

use rustc_hash::FxHashSet;

use crate::ingest::decode_into;
use crate::rewrite::json::{Kind, Tokens, inner};

/// What a key says about its value.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KeyFacts {
    /// A password, whatever it looks like.
    pub(super) password: bool,
    /// A token or key, if it looks like one.
    pub(super) token: bool,
    /// Somebody's name.
    pub(super) user: bool,
    /// A machine's name.
    pub(super) host: bool,
    /// The variables of a process.
    pub(super) environment: bool,
    /// A version, which may look like an address.
    pub(super) version: bool,
    /// A variable that tunes libraries and tells of nobody.
    pub(super) tuning: bool,
    /// `name`.
    pub(super) is_name: bool,
    /// `cat` or `ph`: what kind of event it is.
    pub(super) is_kind: bool,
    /// Short and of letters only: there is nothing to replace in the key itself.
    pub(super) is_plain: bool,
}

const PASSWORDS: &[&str] = &["password", "passwd", "passphrase", "secret"];
const TOKENS: &[&str] = &[
    "token",
    "apikey",
    "credential",
    "credentials",
    "cookie",
    "authorization",
    "jwt",
];
/// Words before `key` that make it a secret one.
const KEYS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "ssh",
    "signing",
    "encryption",
    "account",
    "shared",
    "subscription",
    "license",
    "app",
];
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
        let words = words(key);
        let list: Vec<&str> = words.split(' ').collect();
        let last = list.last().copied().unwrap_or_default();
        let before = list.len().checked_sub(2).map_or("", |place| list[place]);
        let password = PASSWORDS.contains(&last);
        let token = TOKENS.contains(&last)
            || (last == "key" && KEYS.contains(&before))
            || (last == "id" && before == "session");
        let tunes = RANKS.contains(&key) || TUNING.iter().any(|start| key.starts_with(start));
        Self {
            password,
            token,
            user: USERS.contains(&words.as_str()),
            host: HOSTS.contains(&words.as_str()),
            environment: ENVIRONMENTS.contains(&words.as_str()),
            version: last == "version",
            tuning: tunes && !password && !token,
            is_name: key == "name",
            is_kind: matches!(key, "cat" | "ph"),
            is_plain: key.len() < 24
                && key
                    .bytes()
                    .all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_')),
        }
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

/// How many common variables make a dump of the environment.
pub(super) const DUMP: usize = 3;

/// Where the opening brackets of environment dumps are, whatever their keys are called: objects
/// with some of the common variables as keys, and arrays with `NAME=value` strings of them. Brackets
/// from the depth `deepest` on are passed over.
pub(super) fn environments(text: &[u8], deepest: usize) -> FxHashSet<usize> {
    let mut dumps = FxHashSet::default();
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut decoded = String::new();
    for token in Tokens::new(text).filter(|token| token.depth < deepest) {
        match token.kind {
            Kind::Open => open.push((token.start, 0)),
            Kind::Close => {
                open.pop();
            }
            Kind::Plain => {}
            Kind::Key | Kind::Text => {
                let Some((bracket, count)) = open.last_mut() else {
                    continue;
                };
                let raw = inner(text, token);
                if raw.len() > 1 << 16 {
                    continue;
                }
                decoded.clear();
                decode_into(raw, &mut decoded);
                let name = if token.kind == Kind::Key {
                    Some(decoded.as_str())
                } else {
                    variable(&decoded).map(|(name, _)| name)
                };
                if name.is_some_and(is_common) {
                    *count += 1;
                    if *count >= DUMP {
                        dumps.insert(*bracket);
                    }
                }
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
        for key in [
            "HF_TOKEN",
            "apiKey",
            "AWS_SECRET_ACCESS_KEY",
            "wandb.api_key",
            "sessionId",
        ] {
            assert!(KeyFacts::of(key).token, "{key}");
        }
        for key in ["password", "DB_PASSWORD", "clientSecret"] {
            assert!(KeyFacts::of(key).password, "{key}");
        }
        for key in [
            "max_tokens",
            "tokenizer",
            "key",
            "External id",
            "cache_key",
            "authority",
        ] {
            let facts = KeyFacts::of(key);
            assert!(!facts.token && !facts.password, "{key}");
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
