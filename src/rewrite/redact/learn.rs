//! Who and where: users and hosts that a trace names somewhere, to be found everywhere in it.

use regex::bytes::Regex;

use super::key::KeyFacts;
use super::pattern::{is_identity, pattern_in_bytes};
use super::pseudonym::{Pseudonyms, Subject};
use crate::ingest::decode_into;
use crate::rewrite::document::{Edit, Fate};
use crate::rewrite::json::{Kind, Tokens, inner};

/// No more words of one kind are looked for: each is looked for in every string.
const MOST: usize = 256;

/// Looks for users and hosts.
pub(super) struct Learn {
    users: Vec<String>,
    hosts: Vec<String>,
    home: Regex,
    trace_name: Regex,
}

impl Learn {
    /// Starts with what is known from other files.
    pub(super) fn new(pseudonyms: &Pseudonyms) -> Self {
        let known = |subject| {
            let mut known = pseudonyms.originals(subject);
            known.retain(|word| is_word(word));
            known.truncate(MOST);
            known
        };
        Self {
            users: known(Subject::User),
            hosts: known(Subject::Host),
            home: pattern_in_bytes(r"[/\\](?:home|Users)[/\\]{1,4}([A-Za-z0-9][A-Za-z0-9._-]*)"),
            // `{host}_{pid}.{time}.pt.trace.json`, as PyTorch calls files.
            trace_name: pattern_in_bytes(
                r"([A-Za-z0-9][A-Za-z0-9.-]*)_\d+\.(?:\d+\.)?pt\.trace\.json",
            ),
        }
    }

    /// The words found: users, then hosts.
    pub(super) fn words(self) -> (Vec<String>, Vec<String>) {
        (self.users, self.hosts)
    }

    fn homes(&mut self, text: &[u8]) {
        if memchr::memmem::find(text, b"home").is_none()
            && memchr::memmem::find(text, b"Users").is_none()
        {
            return;
        }
        for found in self.home.captures_iter(text) {
            if let Some(name) = found.get(1) {
                add(&mut self.users, &String::from_utf8_lossy(name.as_bytes()));
            }
        }
    }
}

fn add(words: &mut Vec<String>, word: &str) {
    let word = word.trim_end_matches('.');
    if words.len() < MOST && is_word(word) && !words.iter().any(|known| known == word) {
        words.push(word.to_owned());
    }
}

/// True for what can be looked for in other strings.
fn is_word(text: &str) -> bool {
    text.len() >= 3
        && is_identity(text)
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        && !text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

impl Edit for Learn {
    fn event(&mut self, _: u64, text: &[u8], _: &mut Vec<u8>) -> Fate {
        self.homes(text);
        Fate::Keep
    }

    fn member(&mut self, key: &str, text: &[u8], _: &mut Vec<u8>) -> Fate {
        self.homes(text);
        if key == "traceName"
            && let Some(found) = self.trace_name.captures(text)
            && let Some(host) = found.get(1)
        {
            add(&mut self.hosts, &String::from_utf8_lossy(host.as_bytes()));
        }
        let mut facts = KeyFacts::of(key);
        let mut decoded = String::new();
        for token in Tokens::new(text) {
            let is_key = token.kind == Kind::Key;
            if !is_key && (token.kind != Kind::Text || !(facts.user || facts.host)) {
                continue;
            }
            decoded.clear();
            decode_into(inner(text, token), &mut decoded);
            if is_key {
                facts = KeyFacts::of(&decoded);
            } else if facts.user {
                add(&mut self.users, &decoded);
            } else {
                add(&mut self.hosts, &decoded);
            }
        }
        Fate::Keep
    }
}
