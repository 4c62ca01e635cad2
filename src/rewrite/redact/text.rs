//! A string without secrets, names and places.

use std::borrow::Cow;

use regex::{Captures, Regex};

use super::key::{self, DUMP, KeyFacts};
use super::path;
use super::pattern::{
    ASSIGNMENT, BEARER, EMAIL, FRAME, IP, MAC, PATHS, PRIVATE_KEY, TOKENS, URL, is_secret, pattern,
};
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
        let mut place = |path: &str| {
            *subjects |= 1 << Subject::Path as u16;
            if let Some(end) = path::public_end(path) {
                return end.to_owned();
            }
            let whole = path.trim_end_matches(['/', '\\']);
            pseudonyms.replace(Subject::Path, whole) + path::kind(path)
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
mod tests;
