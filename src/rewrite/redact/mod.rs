//! A trace without secrets, names and places.
//!
//! ```text
//! learn      who and where: users and hosts that metadata or home folders name   (key)
//! text       a string without tokens, paths, addresses, users and hosts    (pattern, path)
//! pseudonym  the same replacement for the same original
//! ```
//! What is replaced becomes `[path-1]`, `[token-2]` and so on. The names of kernels and operators
//! stay, as do the ends of paths that every machine has (`torch/utils/checkpoint.py`), so that the
//! attribution of the result is that of the original.

use std::io::Write;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

mod key;
mod learn;
mod path;
mod pattern;
mod pseudonym;
mod text;

pub use pseudonym::Pseudonyms;

use super::Progress;
use super::document::{Edit, Fate, Tour};
use super::json::{Kind, Token, Tokens, inner, says};
use super::repair::{NOTE, Repaired};
use crate::error::Result;
use crate::ingest::{decode_into, quote_into};
use crate::model::ActivityType;
use key::KeyFacts;
use learn::Learn;
use pseudonym::Subject;
use text::{Context, Rules};

/// What the caller may ask of a redaction.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RedactOptions {
    /// Leave the names of events as they are, but for tokens and keys in them.
    pub keep_names: bool,
    /// What was replaced in other files, and by what.
    pub pseudonyms: Pseudonyms,
}

/// What a redaction replaced.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Redacted {
    /// How many events the trace has.
    pub events: u64,
    /// In how many strings something was replaced, by kind: `token`, `user`, `host`, `path`, ….
    pub replaced: Vec<(&'static str, u64)>,
    /// Values of environment dumps that were removed.
    pub removed: u64,
    /// What was no JSON or in no number, and is gone or written as JSON now, as by
    /// [`repair`](super::repair()).
    pub repaired: Repaired,
    /// What was replaced in this file and those before, and by what.
    pub pseudonyms: Pseudonyms,
}

/// In place of a value of an environment dump.
const REMOVED: &[u8] = b"\"[removed]\"";

/// Writes the trace that is stored as `stored` (compressed or not) to `out` without secrets (tokens,
/// keys, environment dumps), names (of users and hosts) and places (paths, addresses). What is
/// repaired on the way is noted in the result as [`repair`](super::repair()) does it.
///
/// # Errors
/// When the trace cannot be read or writing fails. Only the last happens after something was
/// written.
pub fn redact(
    stored: &[u8],
    out: &mut dyn Write,
    options: &RedactOptions,
    progress: Progress<'_>,
) -> Result<Redacted> {
    let tour = |pass| Tour {
        stored,
        salvage: false,
        pass: (pass, 2),
        progress,
    };
    let pseudonyms = options.pseudonyms.clone();
    let mut learn = Learn::new(&pseudonyms);
    let found = tour(0).survey(&mut learn)?;
    let repaired = Repaired::new(&found);
    let mut clean = Clean {
        note: (!found.is_clean()).then(|| repaired.note().to_string()),
        rules: Rules::new(learn.words(), pseudonyms),
        keep_names: options.keep_names,
        keys: FxHashMap::default(),
        seen: Default::default(),
        seen_bytes: 0,
        removed: 0,
        decoded: String::new(),
        changes: Vec::new(),
    };
    tour(1).copy(&mut clean, &found.repeated, out)?;
    let (pseudonyms, strings) = clean.rules.finish();
    let strings = Subject::ALL.map(|subject| (subject.as_str(), strings[subject as usize]));
    Ok(Redacted {
        events: found.events,
        repaired,
        replaced: strings
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect(),
        removed: clean.removed,
        pseudonyms,
    })
}

/// Results for this many bytes of different strings are remembered.
const REMEMBER: usize = 32 << 20;

/// A replacement and in which kinds of originals it differs; `None` when nothing changes.
type Remembered = Option<(Box<[u8]>, u16)>;

struct Clean {
    /// What is noted about repairs, as JSON.
    note: Option<String>,
    rules: Rules,
    keep_names: bool,
    /// What keys say, by their text.
    keys: FxHashMap<Box<[u8]>, KeyFacts>,
    /// What strings become, by context and text.
    seen: [FxHashMap<Box<[u8]>, Remembered>; Context::COUNT],
    seen_bytes: usize,
    removed: u64,
    decoded: String,
    changes: Vec<(Range<usize>, Vec<u8>)>,
}

/// An open bracket.
#[derive(Clone, Copy)]
struct Level {
    /// The key whose value the bracket opens.
    parent: KeyFacts,
    /// The key whose value is here.
    key: KeyFacts,
    /// The string before was an option of a command, which says what its value is.
    option: KeyFacts,
    /// Inside a dump of the environment.
    environment: bool,
    /// Directly inside one that is a list of `NAME=value`.
    assignments: bool,
}

/// Brackets deeper than this are like the one around them: a file may have as many as it has bytes.
const DEEPEST: usize = 1000;

impl Edit for Clean {
    fn event(&mut self, _: u64, text: &[u8], out: &mut Vec<u8>) -> Fate {
        let name = self.context_of_name(text);
        self.walk(text, KeyFacts::default(), Some(name));
        self.write(text, out)
    }

    fn member(&mut self, key: &str, text: &[u8], out: &mut Vec<u8>) -> Fate {
        self.walk(text, KeyFacts::of(key), None);
        self.write(text, out)
    }

    fn extra_member(&mut self) -> Option<(String, String)> {
        Some((NOTE.to_owned(), self.note.take()?))
    }
}

impl Clean {
    /// What kind of name an event has.
    fn context_of_name(&self, text: &[u8]) -> Context {
        let mut category = None;
        let mut is_category = false;
        for token in Tokens::new(text).filter(|token| token.depth == 1) {
            match token.kind {
                Kind::Key => is_category = says(text, token, "cat"),
                Kind::Text if is_category => category = Some(token),
                _ => {}
            }
        }
        let activity = category.map_or(ActivityType::Missing, |category| {
            let category = String::from_utf8_lossy(inner(text, category));
            ActivityType::from_cat(&category)
        });
        let is_operator = activity.is_device_work()
            || activity.is_launch()
            || matches!(
                activity,
                ActivityType::CpuOp
                    | ActivityType::Overhead
                    | ActivityType::CudaSync
                    | ActivityType::CudaEvent
            );
        match (is_operator, self.keep_names) {
            (_, true) => Context::KeptName,
            (true, false) => Context::Operator,
            (false, false) => Context::Text,
        }
    }

    /// Finds what changes in the value `text` of a top-level key with these `facts`, or in an event
    /// whose name is of the kind `name`.
    fn walk(&mut self, text: &[u8], facts: KeyFacts, name: Option<Context>) {
        self.changes.clear();
        let is_metadata = name.is_none();
        let dumps = if is_metadata {
            key::environments(text, DEEPEST)
        } else {
            FxHashSet::default()
        };
        let mut levels = vec![Level {
            parent: KeyFacts::default(),
            key: facts,
            option: KeyFacts::default(),
            environment: is_metadata && facts.environment,
            assignments: is_metadata && facts.environment,
        }];
        let mut deeper = 0_usize;
        for token in Tokens::new(text) {
            let Some(level) = levels.last_mut() else {
                return;
            };
            match token.kind {
                Kind::Open if token.depth >= DEEPEST => deeper += 1,
                Kind::Open => {
                    let key = level.key;
                    let starts = (is_metadata && key.environment) || dumps.contains(&token.start);
                    let environment = level.environment || starts;
                    levels.push(Level {
                        parent: key,
                        key,
                        option: KeyFacts::default(),
                        environment,
                        assignments: starts && text[token.start] == b'[',
                    });
                }
                Kind::Close if deeper > 0 => deeper -= 1,
                Kind::Close => {
                    levels.pop();
                }
                Kind::Key => {
                    let facts = facts_of(&mut self.keys, text, token);
                    level.key = facts;
                    level.key.user |= facts.is_name && level.parent.user;
                    if !facts.is_plain {
                        self.string(text, token, Context::Text);
                    }
                }
                Kind::Text | Kind::Plain => {
                    if level.environment && !level.key.tuning {
                        let assignments = level.assignments;
                        self.variable(text, token, assignments);
                        continue;
                    }
                    let mut key = level.key;
                    if level.option.password || level.option.token {
                        key = level.option;
                    }
                    level.option = KeyFacts::default();
                    if text[token.start..].starts_with(b"\"-") {
                        level.option = facts_of(&mut self.keys, text, token);
                    }
                    let context = match name {
                        Some(name) if token.depth == 1 && key.is_name => name,
                        Some(_) if token.depth == 1 && key.is_kind => Context::Operator,
                        _ if key.version => Context::Operator,
                        _ => Context::Text,
                    };
                    self.value(text, token, key, is_metadata, context);
                }
            }
        }
    }

    /// Removes the value of a variable of an environment.
    fn variable(&mut self, text: &[u8], token: Token, is_assignment: bool) {
        if is_assignment && token.kind == Kind::Text && self.assignment(text, token) {
            return;
        }
        if &text[token.start..token.end] != REMOVED {
            self.removed += 1;
            self.changes
                .push((token.start..token.end, REMOVED.to_vec()));
        }
    }

    fn value(
        &mut self,
        text: &[u8],
        token: Token,
        key: KeyFacts,
        is_metadata: bool,
        context: Context,
    ) {
        if token.kind == Kind::Plain {
            let is_number = text[token.start].is_ascii_digit() || text[token.start] == b'-';
            if key.password && is_number {
                let number = String::from_utf8_lossy(&text[token.start..token.end]);
                let replaced = self.rules.replace(Subject::Token, &number);
                self.change(token, &replaced);
            }
            return;
        }
        let subject = if key.password || key.token {
            Some(Subject::Token)
        } else if is_metadata && key.user {
            Some(Subject::User)
        } else if is_metadata && key.host {
            Some(Subject::Host)
        } else {
            None
        };
        if let Some(subject) = subject {
            self.decode(text, token);
            let value = std::mem::take(&mut self.decoded);
            let secret = match subject {
                Subject::Token => pattern::is_secret(&value, key.password),
                _ => pattern::is_identity(&value),
            };
            let replaced = secret.then(|| self.rules.replace(subject, &value));
            self.decoded = value;
            if let Some(replaced) = replaced {
                self.change(token, &replaced);
                return;
            }
        }
        self.string(text, token, context);
    }

    /// Keeps the name, and the value of what only tunes, in a `NAME=value` of an environment dump.
    fn assignment(&mut self, text: &[u8], token: Token) -> bool {
        self.decode(text, token);
        let value = std::mem::take(&mut self.decoded);
        let replaced = self.rules.environment(&value);
        self.decoded = value;
        match replaced {
            Some((replaced, removed)) => {
                self.removed += removed;
                self.change(token, &replaced);
                true
            }
            None => false,
        }
    }

    fn decode(&mut self, text: &[u8], token: Token) {
        self.decoded.clear();
        decode_into(inner(text, token), &mut self.decoded);
    }

    fn change(&mut self, token: Token, text: &str) {
        let mut quoted = Vec::with_capacity(text.len() + 2);
        quote_into(text, &mut quoted);
        self.changes.push((token.start..token.end, quoted));
    }

    /// Replaces what has to be in a string token.
    fn string(&mut self, text: &[u8], token: Token, context: Context) {
        let raw = inner(text, token);
        if !self.rules.may_change(raw) {
            return;
        }
        if let Some(seen) = self.seen[context as usize].get(raw) {
            if let Some((replaced, subjects)) = seen {
                self.changes
                    .push((token.start..token.end, replaced.to_vec()));
                self.rules.count(*subjects);
            }
            return;
        }
        self.decode(text, token);
        let (replaced, subjects, removed) = self.rules.apply(&self.decoded, context);
        self.removed += removed;
        self.rules.count(subjects);
        let replaced = replaced.map(|replaced| {
            let mut quoted = Vec::with_capacity(replaced.len() + 2);
            quote_into(&replaced, &mut quoted);
            (quoted.into_boxed_slice(), subjects)
        });
        if let Some((quoted, _)) = &replaced {
            self.changes.push((token.start..token.end, quoted.to_vec()));
        }
        self.seen_bytes += raw.len() + replaced.as_ref().map_or(0, |(text, _)| text.len()) + 64;
        if self.seen_bytes > REMEMBER {
            self.seen.iter_mut().for_each(FxHashMap::clear);
            self.seen_bytes = 0;
        }
        self.seen[context as usize].insert(raw.into(), replaced);
    }

    fn write(&mut self, text: &[u8], out: &mut Vec<u8>) -> Fate {
        if self.changes.is_empty() {
            return Fate::Keep;
        }
        let mut at = 0;
        for (range, replacement) in self.changes.drain(..) {
            out.extend_from_slice(&text[at..range.start]);
            out.extend_from_slice(&replacement);
            at = range.end;
        }
        out.extend_from_slice(&text[at..]);
        Fate::Replace
    }
}

/// What the key `token` says, remembered by its text.
fn facts_of(known: &mut FxHashMap<Box<[u8]>, KeyFacts>, text: &[u8], token: Token) -> KeyFacts {
    const MOST: usize = 10_000;
    let raw = inner(text, token);
    if let Some(facts) = known.get(raw) {
        return *facts;
    }
    let mut decoded = String::new();
    decode_into(raw, &mut decoded);
    let facts = KeyFacts::of(&decoded);
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(raw.into(), facts);
    facts
}
