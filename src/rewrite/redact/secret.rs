//! Which keys name secrets, and which of their values are ones.
//!
//! ```text
//! password, secret, api_key, cookie     any string and any number
//! token, hf_token                       any string, and numbers of nine digits and more
//! tokens                                any string; numbers are counts
//! num_tokens, eos_token                 nothing: a language model counts and names such tokens
//! ```
//! A key is read by its last word, in the singular or plural, alone or at the end of a longer word
//! (`PGPASSWORD`), before words like `value` and behind nothing but a number (`token_2`). What stands
//! below such a key is as secret as its own value.

use super::pattern::is_placeholder;

/// How secret the values of a key are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Secret {
    /// Not by their key.
    #[default]
    No,
    /// Strings; numbers are counts.
    Counted,
    /// Strings, and numbers that are too long for a count of anything or an entry of a vocabulary.
    Token,
    /// Whatever they look like.
    Certain,
}

const CERTAIN: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "credential",
    "cookie",
    "authorization",
    "jwt",
];
/// The same, but not at the end of longer words.
const CERTAIN_ALONE: &[&str] = &["creds", "auth", "bearer", "dsn", "otp", "totp"];

/// Words before `key` that make it a secret one.
const KEYS: &[&str] = &[
    "account",
    "admin",
    "anthropic",
    "api",
    "app",
    "aws",
    "azure",
    "clearml",
    "client",
    "cohere",
    "comet",
    "consumer",
    "databricks",
    "datadog",
    "deploy",
    "encryption",
    "gcp",
    "github",
    "gitlab",
    "gpg",
    "groq",
    "hf",
    "hmac",
    "huggingface",
    "jwt",
    "kaggle",
    "license",
    "master",
    "minio",
    "mistral",
    "mlflow",
    "neptune",
    "ngc",
    "openai",
    "pgp",
    "replicate",
    "rsa",
    "s3",
    "sentry",
    "service",
    "session",
    "shared",
    "signing",
    "slack",
    "snowflake",
    "ssl",
    "storage",
    "stripe",
    "subscription",
    "tls",
    "together",
    "wandb",
    "webhook",
];
/// The same, also at the end of a longer word: `wandbapikey`.
const KEY_ENDS: &[&str] = &["access", "api", "auth", "private", "secret", "ssh"];

/// Words before `pass` that make it a password: a compiler has passes, too.
const PASSES: &[&str] = &[
    "admin", "database", "db", "email", "ftp", "http", "login", "mail", "mongo", "mysql", "pg",
    "postgres", "proxy", "redis", "root", "smtp", "ssh", "sudo", "user", "wifi",
];

/// Words before `token` that make it one of somebody, and no part of a text.
const ACCESS: &[&str] = &[
    "access",
    "account",
    "admin",
    "api",
    "app",
    "auth",
    "aws",
    "azure",
    "bearer",
    "bot",
    "ci",
    "client",
    "csrf",
    "deploy",
    "discord",
    "gh",
    "github",
    "gitlab",
    "hf",
    "hub",
    "huggingface",
    "id",
    "jupyter",
    "login",
    "notebook",
    "npm",
    "oauth",
    "personal",
    "private",
    "pypi",
    "refresh",
    "secret",
    "security",
    "service",
    "session",
    "slack",
    "telegram",
    "user",
    "vault",
    "wandb",
    "xsrf",
];
/// Words before `token` that make it a part of a text.
const VOCABULARY: &[&str] = &[
    "accepted",
    "all",
    "audio",
    "avg",
    "batch",
    "batched",
    "begin",
    "bos",
    "cached",
    "cls",
    "completion",
    "context",
    "count",
    "decode",
    "draft",
    "end",
    "eos",
    "expert",
    "extra",
    "first",
    "generated",
    "image",
    "in",
    "input",
    "last",
    "mask",
    "max",
    "mean",
    "min",
    "multi",
    "n",
    "new",
    "next",
    "num",
    "out",
    "output",
    "pad",
    "padded",
    "padding",
    "per",
    "prefill",
    "prev",
    "previous",
    "prompt",
    "reasoning",
    "response",
    "sampled",
    "scheduled",
    "sep",
    "seq",
    "source",
    "special",
    "speculative",
    "src",
    "start",
    "stop",
    "sub",
    "target",
    "text",
    "tgt",
    "total",
    "train",
    "unk",
    "valid",
    "video",
    "vocab",
];

/// Words behind that say nothing more.
const FORMS: &[&str] = &[
    "b64",
    "base64",
    "hash",
    "plain",
    "plaintext",
    "str",
    "string",
    "value",
];

/// Numbers of so many digits count nothing, and no vocabulary is that large.
const LONG: usize = 9;

impl Secret {
    /// By the `words` of a key, in lower case.
    pub(super) fn of(words: &[&str]) -> Self {
        let mut words = words;
        match words {
            [.., "connection", "string" | "str"] => return Self::Certain,
            [.., "session", "id"] | [.., "sessionid"] => return Self::Token,
            _ => {}
        }
        let last = loop {
            let [before @ .., last] = words else {
                return Self::No;
            };
            let word = last.trim_end_matches(|letter: char| letter.is_ascii_digit());
            if !before.is_empty() && (word.is_empty() || FORMS.contains(&word)) {
                words = before;
                continue;
            }
            break word;
        };
        let before = words.len().checked_sub(2).map_or("", |place| words[place]);
        let one = last.strip_suffix('s').unwrap_or(last);
        // Where a process is and was.
        let is_folder = matches!((before, one), ("old", "pwd") | (_, "oldpwd"));
        if !is_folder && CERTAIN.iter().any(|word| one.ends_with(word)) {
            return Self::Certain;
        }
        if CERTAIN_ALONE.contains(&last) {
            return Self::Certain;
        }
        if let Some(start) = last.strip_suffix("pass") {
            let kind = if start.is_empty() { before } else { start };
            return if PASSES.contains(&kind) {
                Self::Certain
            } else {
                Self::No
            };
        }
        if let Some(start) = one.strip_suffix("key") {
            let kind = if start.is_empty() { before } else { start };
            let is_secret = KEYS.contains(&kind) || KEY_ENDS.iter().any(|end| kind.ends_with(end));
            return if is_secret { Self::Certain } else { Self::No };
        }
        if let Some(start) = one.strip_suffix("token") {
            let kind = if start.is_empty() { before } else { start };
            return match (ACCESS.contains(&kind), one.len() < last.len()) {
                _ if VOCABULARY.contains(&kind) => Self::No,
                (true, false) => Self::Certain,
                (true, true) | (false, false) => Self::Token,
                (false, true) => Self::Counted,
            };
        }
        Self::No
    }

    /// True when the string `value` is to go.
    pub(super) fn is(self, value: &str) -> bool {
        const NONE: &[&str] = &["", "none", "null", "true", "false", "unset", "undefined"];
        let value = value.trim();
        if self == Self::No
            || is_placeholder(value)
            || NONE.iter().any(|none| none.eq_ignore_ascii_case(value))
        {
            return false;
        }
        if self == Self::Certain {
            return true;
        }
        // `</s>` and `[CLS]` are entries of vocabularies.
        let is_entry = value
            .strip_prefix('<')
            .is_some_and(|rest| rest.ends_with('>'))
            || value.strip_prefix('[').is_some_and(|rest| {
                let name = rest.strip_suffix(']').unwrap_or_default();
                !name.is_empty()
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            });
        let is_number = value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".,-+".contains(&byte));
        !is_entry && (!is_number || self.is_number(value))
    }

    /// True when the number `value` is to go.
    pub(super) fn is_number(self, value: &str) -> bool {
        match self {
            Self::No | Self::Counted => false,
            Self::Token => value.len() >= LONG && value.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Certain => true,
        }
    }

    /// True when `value` behind such a key in the middle of a text is to go: words like `token` come
    /// in many texts, so that it has to look like one.
    pub(super) fn is_in_text(self, value: &str) -> bool {
        if !self.is(value) {
            return false;
        }
        let typical = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_.~:-".contains(&byte);
        let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
        let looks = (value.len() >= 8 && value.bytes().all(typical)) || value.len() >= 20;
        match self {
            Self::No => false,
            Self::Counted => looks && has_digit,
            Self::Token => looks,
            Self::Certain => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::KeyFacts;
    use super::*;

    #[test]
    fn keys_are_secret_by_their_last_word() {
        for key in [
            "password",
            "passwords",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PWD",
            "pwd",
            "dbpassword",
            "clientSecret",
            "secretkey",
            "secrets",
            "credentials",
            "accesstoken",
            "api-keys",
            "apikey",
            "AWS_SECRET_ACCESS_KEY",
            "wandb.api_key",
            "wandb_key",
            "wandbapikey",
            "HF_TOKEN",
            "set-cookie",
            "SMTP_PASS",
            "password_2",
            "secret_value",
            "connection_string",
            "auth",
        ] {
            assert_eq!(KeyFacts::of(key).secret, Secret::Certain, "{key}");
        }
        for key in ["token", "my_token", "token2", "access_tokens", "sessionId"] {
            assert_eq!(KeyFacts::of(key).secret, Secret::Token, "{key}");
        }
        assert_eq!(KeyFacts::of("tokens").secret, Secret::Counted);
        for key in [
            "PWD",
            "OLDPWD",
            "max_tokens",
            "numTokens",
            "num_tokens",
            "maxtokens",
            "eos_token",
            "tokenizer",
            "token_ids",
            "tokens_per_second",
            "key",
            "cache_key",
            "sort_key",
            "monkey",
            "forward_pass",
            "authority",
            "bypass",
            "External id",
            "keys",
            "",
        ] {
            assert_eq!(KeyFacts::of(key).secret, Secret::No, "{key}");
        }
    }

    #[test]
    fn counts_and_vocabularies_are_no_secrets() {
        for value in ["abc$123!xyz", "sid=ab12; x=1", "[x]hunter2", "a", "7"] {
            assert!(Secret::Certain.is(value), "{value}");
        }
        for value in ["", "None", "[token-1]", "[removed]"] {
            assert!(!Secret::Certain.is(value), "{value}");
        }
        for value in ["abc", "[x]hunter2", "123456789012"] {
            assert!(Secret::Token.is(value), "{value}");
        }
        for value in ["</s>", "<|endoftext|>", "[CLS]", "[MASK_1]", "4096", "1.5"] {
            assert!(!Secret::Token.is(value) || value == "[MASK_1]", "{value}");
        }
        assert!(Secret::Certain.is_number("1"));
        assert!(Secret::Token.is_number("123456789012") && !Secret::Token.is_number("128000"));
        assert!(!Secret::Counted.is_number("123456789012"));
        assert!(!Secret::Counted.is("123456789012") && Secret::Counted.is("abc"));
    }
}
