//! A trace without secrets, names and places.
//!
//! ```text
//! learn      who and where: users and hosts that keys, variables or home folders name   (key, names)
//! text       a string without tokens, paths, addresses, users and hosts
//!            (pattern, assignment, dump, path)
//! secret     which keys name secrets, and which values are ones
//! pseudonym  the same replacement for the same original
//! ```
//! What is replaced becomes `[path-1]`, `[token-2]` and so on. The names of kernels and operators
//! stay, as do the ends of paths that every machine has (`torch/utils/checkpoint.py`), so that the
//! attribution of the result is that of the original.

use std::io::Write;
use std::ops::Range;

use foldhash::{HashMap, HashSet};
use regex::bytes::Regex;

mod assignment;
mod dump;
mod key;
mod learn;
mod names;
mod path;
mod pattern;
mod pseudonym;
mod secret;
mod text;

pub use pseudonym::Pseudonyms;

use super::Progress;
use super::document::{Edit, Fate, Tour};
use super::json::{Kind, Token, Tokens, inner, says};
use super::repair::{NOTE, Repaired};
use crate::error::Result;
use crate::ingest::{decode_into, quote_into};
use crate::model::ActivityType;
use key::{DUMP, KeyFacts, Keys};
use learn::Learn;
use pattern::pattern_in_bytes;
use pseudonym::Subject;
use secret::Secret;
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
        top_dump: learn.top_variables >= DUMP,
        variables: learn.variables.then(|| pattern_in_bytes(&key::common())),
        rules: Rules::new(learn.names, pseudonyms),
        keep_names: options.keep_names,
        keys: Keys::default(),
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
    /// The top-level keys are those of an environment, besides those of a trace.
    top_dump: bool,
    /// The variables that every process has, when events may have environments in them.
    variables: Option<Regex>,
    keys: Keys,
    /// What strings become, by context and text.
    seen: [HashMap<Box<[u8]>, Remembered>; Context::COUNT],
    seen_bytes: usize,
    removed: u64,
    decoded: String,
    changes: Vec<(Range<usize>, Vec<u8>)>,
}

/// An open bracket.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Copy, Default)]
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
    /// An event or its arguments, where other keys may stand beside the variables.
    mixed: bool,
    /// The `name` in this object is that of a variable that only tunes.
    tuning: bool,
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

    fn key(&mut self, text: &[u8], out: &mut Vec<u8>) -> Fate {
        self.changes.clear();
        if let Some(key) = Tokens::new(text).next() {
            self.string(text, key, Context::Text);
        }
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
        let may_dump = match &self.variables {
            _ if is_metadata => true,
            Some(common) => key::has_variables(common, text),
            None => false,
        };
        let dumps = if may_dump {
            key::environments(text, DEEPEST)
        } else {
            HashSet::default()
        };
        let mut levels = vec![Level {
            key: facts,
            environment: facts.environment || (is_metadata && self.top_dump && facts.is_variable),
            assignments: facts.environment,
            mixed: !facts.environment,
            ..Level::default()
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
                    let starts = key.environment || dumps.contains(&token.start);
                    // Of top-level values of which only some are variables, just strings are removed.
                    let around = level.environment && !(level.mixed && token.depth == 0);
                    levels.push(Level {
                        parent: key,
                        key,
                        environment: around || starts,
                        assignments: starts && text[token.start] == b'[',
                        mixed: !is_metadata && token.depth <= 1 && !key.environment,
                        ..Level::default()
                    });
                }
                Kind::Close if deeper > 0 => deeper -= 1,
                Kind::Close => {
                    levels.pop();
                }
                Kind::Key => {
                    let rules = &self.rules;
                    let facts = self.keys.facts(text, token, |key, facts| {
                        facts.is_plain &= !rules.has_names(key);
                    });
                    level.key = facts.inside(level.parent);
                    if !facts.is_plain {
                        self.string(text, token, Context::Text);
                    }
                }
                Kind::Text | Kind::Plain => {
                    let mut key = level.key;
                    if level.environment && (key.is_variable || !level.mixed) {
                        let is_text = token.kind == Kind::Text;
                        if key.is_inner && !key.is_value && is_text {
                            let name = KeyFacts::of(&String::from_utf8_lossy(inner(text, token)));
                            if name.is_variable {
                                level.tuning = name.tuning;
                                continue;
                            }
                        }
                        if !(key.tuning || (key.is_value && level.tuning)) {
                            let assignments = level.assignments;
                            self.variable(text, token, assignments);
                            continue;
                        }
                    }
                    if level.option.secret != Secret::No {
                        key = level.option;
                    }
                    level.option = KeyFacts::default();
                    if text[token.start..].starts_with(b"\"-") {
                        level.option = self.keys.facts(text, token, |_, _| {});
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
            if key.secret == Secret::No {
                return;
            }
            let is_number = text[token.start].is_ascii_digit() || text[token.start] == b'-';
            let number = String::from_utf8_lossy(&text[token.start..token.end]);
            if is_number && key.secret.is_number(&number) {
                let replaced = self.rules.replace(Subject::Token, &number);
                self.change(token, &replaced);
            }
            return;
        }
        if key.secret != Secret::No || key.user || key.host {
            self.decode(text, token);
            let value = std::mem::take(&mut self.decoded);
            let subject = if key.secret.is(&value) {
                Some(Subject::Token)
            } else if key.is_named(&value, !is_metadata) {
                Some(if key.user {
                    Subject::User
                } else {
                    Subject::Host
                })
            } else {
                None
            };
            let replaced = subject.map(|subject| self.rules.replace(subject, &value));
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
            self.seen.iter_mut().for_each(HashMap::clear);
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
