//! Who and where: users and hosts that a trace names somewhere, to be found everywhere in it.

use regex::bytes::Regex;

use super::DEEPEST;
use super::key::{KeyFacts, Keys, common, has_variables, is_common};
use super::names::Names;
use super::pattern::{HINTS, HOME, NAMED, TRACE_NAME, pattern_in_bytes};
use super::pseudonym::{Pseudonyms, Subject};
use crate::ingest::decode_into;
use crate::rewrite::document::{Edit, Fate};
use crate::rewrite::json::{Kind, Tokens, inner};

/// Looks for users and hosts.
pub(super) struct Learn {
    pub(super) names: Names,
    /// Some event may have an environment dump in it.
    pub(super) variables: bool,
    /// How many top-level keys are variables that every process has.
    pub(super) top_variables: usize,
    keys: Keys,
    hints_or_homes: Regex,
    hints: Regex,
    common: Regex,
    home: Regex,
    named: Regex,
    trace_name: Regex,
}

impl Learn {
    /// Starts with what is known from other files.
    pub(super) fn new(pseudonyms: &Pseudonyms) -> Self {
        let mut names = Names::default();
        for subject in [Subject::User, Subject::Host] {
            for name in pseudonyms.originals(subject) {
                names.add(subject, &name);
            }
        }
        Self {
            names,
            variables: false,
            top_variables: 0,
            keys: Keys::default(),
            hints_or_homes: pattern_in_bytes(&format!("{HINTS}|home")),
            hints: pattern_in_bytes(HINTS),
            common: pattern_in_bytes(&common()),
            home: pattern_in_bytes(HOME),
            named: pattern_in_bytes(NAMED),
            trace_name: pattern_in_bytes(TRACE_NAME),
        }
    }

    /// Learns from JSON `text`; `facts` are those of its key.
    fn read(&mut self, text: &[u8], facts: KeyFacts, in_event: bool) {
        self.assigned(text);
        if memchr::memmem::find(text, b"\\u").is_some() {
            let mut decoded = String::new();
            decode_into(text, &mut decoded);
            self.assigned(decoded.as_bytes());
        }
        let mut open = vec![facts];
        let mut deeper = 0_usize;
        let mut key = facts;
        let mut decoded = String::new();
        for token in Tokens::new(text) {
            match token.kind {
                Kind::Open if open.len() > DEEPEST => deeper += 1,
                Kind::Open => open.push(key),
                Kind::Close if deeper > 0 => deeper -= 1,
                // Behind a bracket comes a key, or another value of the array.
                Kind::Close => {
                    open.pop();
                    key = open.last().copied().unwrap_or_default();
                }
                Kind::Key => {
                    let around = open.last().copied().unwrap_or_default();
                    key = self.keys.facts(text, token, |_, _| {}).inside(around);
                }
                Kind::Text if (key.user || key.host) && (key.teaches || !in_event) => {
                    decoded.clear();
                    decode_into(inner(text, token), &mut decoded);
                    if key.is_named(&decoded, in_event) {
                        let subject = if key.user {
                            Subject::User
                        } else {
                            Subject::Host
                        };
                        for name in decoded.split([',', ';', '\n']) {
                            learn(&mut self.names, subject, name, in_event);
                        }
                    }
                }
                Kind::Text | Kind::Plain => {}
            }
        }
    }

    /// Home folders, which show in any text.
    fn homes(&mut self, text: &[u8]) {
        let mut decoded = String::new();
        let text = if memchr::memmem::find(text, b"\\u").is_some() {
            decode_into(text, &mut decoded);
            decoded.as_bytes()
        } else {
            text
        };
        if memchr::memmem::find(text, b"home").is_none()
            && memchr::memmem::find(text, b"Users").is_none()
        {
            return;
        }
        for found in self.home.captures_iter(text) {
            let Some(name) = found.get(1) else {
                continue;
            };
            self.names
                .add(Subject::User, &String::from_utf8_lossy(name.as_bytes()));
            if let Some(more) = found.get(2) {
                let all = &text[name.start()..more.end()];
                self.names.add(Subject::User, &String::from_utf8_lossy(all));
            }
        }
    }

    /// What text says by `USER=alice`.
    fn assigned(&mut self, text: &[u8]) {
        let Self { named, names, .. } = self;
        for found in named.captures_iter(text) {
            for (group, subject) in [(1, Subject::User), (2, Subject::Host)] {
                let Some(name) = found.get(group) else {
                    continue;
                };
                // What is not there as a whole is another name.
                let before = text[..name.start()].last();
                let is_quoted = matches!(before, Some(b'"' | b'\''));
                let is_whole = match text.get(name.end()) {
                    None | Some(b'"' | b'\'' | b'\\') => true,
                    Some(next) => !is_quoted && *next != b'_',
                };
                if is_whole {
                    let name = String::from_utf8_lossy(name.as_bytes());
                    learn(names, subject, &name, false);
                }
            }
        }
    }
}

/// Learns a name, and that without the domain around it. Events also name servers that all use, like
/// `news.example.org`, so that the first part has to look like the name of one machine.
fn learn(names: &mut Names, subject: Subject, name: &str, in_event: bool) {
    let name = name.trim();
    let short = if subject == Subject::Host {
        name.split_once('.').map(|(short, _)| short)
    } else {
        let behind = name.rsplit_once('\\').map(|(_, user)| user);
        behind.or_else(|| name.split_once('@').map(|(user, _)| user))
    };
    let is_machine =
        |short: &str| short.contains('-') || short.contains(|letter: char| letter.is_ascii_digit());
    names.add(subject, name);
    if let Some(short) = short
        && (!in_event || subject == Subject::User || is_machine(short))
    {
        names.add(subject, short);
    }
}

impl Edit for Learn {
    fn event(&mut self, _: u64, text: &[u8], _: &mut Vec<u8>) -> Fate {
        // Nearly all events name nobody.
        if !self.hints_or_homes.is_match(text) {
            return Fate::Keep;
        }
        self.homes(text);
        if self.hints.is_match(text) {
            self.variables |= has_variables(&self.common, text);
            self.read(text, KeyFacts::default(), true);
        }
        Fate::Keep
    }

    fn member(&mut self, key: &str, text: &[u8], _: &mut Vec<u8>) -> Fate {
        if key == "traceName"
            && let Some(found) = self.trace_name.captures(text)
            && let Some(host) = found.get(1)
        {
            learn(
                &mut self.names,
                Subject::Host,
                &String::from_utf8_lossy(host.as_bytes()),
                false,
            );
        }
        self.top_variables += usize::from(is_common(key));
        self.homes(text);
        self.read(text, KeyFacts::of(key), false);
        Fate::Keep
    }
}
