//! A string without secrets, names and places.

use std::borrow::Cow;

use regex::{Captures, Regex};

use super::assignment;
use super::dump::{decode_base64, variables};
use super::key::{self, DUMP, KeyFacts};
use super::names::Names;
use super::path;
use super::pattern::{
    ASSIGNMENT, BASE64, BEARER, EMAIL, FRAME, IP, LOGIN, MAC, PATHS, PRIVATE_KEY, TOKENS, URL,
    USER_AT_HOST, VARIABLE, is_identity, is_placeholder, pattern,
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
    login: Regex,
    user_at_host: Regex,
    base64: Regex,
    /// Variables that every process has.
    common: Regex,
    variable: Regex,
    /// Users and hosts.
    names: Names,
    pseudonyms: Pseudonyms,
    /// By subject: in how many strings one was replaced.
    strings: [u64; Subject::ALL.len()],
    /// The subjects replaced in the current string, one bit each.
    subjects: u16,
    removed: u64,
}

impl Rules {
    /// The rules, with names of users and hosts to look for.
    pub(super) fn new(names: Names, pseudonyms: Pseudonyms) -> Self {
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
            login: pattern(LOGIN),
            user_at_host: pattern(USER_AT_HOST),
            base64: pattern(BASE64),
            common: pattern(&key::common()),
            variable: pattern(VARIABLE),
            names,
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
        let has_words = !self.names.is_empty();
        let special = |byte: &u8| matches!(byte, b'/' | b'\\' | b'@' | b'=' | b'.' | b':');
        raw.len() >= 16 || (has_words && raw.len() >= 3) || raw.iter().any(special)
    }

    /// What stands for `original`, which is the whole of a string.
    pub(super) fn replace(&mut self, subject: Subject, original: &str) -> String {
        self.strings[subject as usize] += 1;
        let original = match subject {
            Subject::User | Subject::Host => self.names.spelled(original),
            _ => original,
        };
        self.pseudonyms.replace(subject, original)
    }

    /// True when a user or host is named in `text`.
    pub(super) fn has_names(&self, text: &str) -> bool {
        self.names.are_in(text)
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
            && let Some(without) = self.dump(text)
        {
            now = Cow::Owned(without);
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

    /// The same for text with enough variables in it that every process has, whatever joins them.
    fn dump(&mut self, text: &str) -> Option<String> {
        if self.common.find_iter(text).take(DUMP).count() < DUMP {
            return None;
        }
        let variables = variables(&self.variable, text)?;
        let mut changed = String::with_capacity(text.len());
        let mut copied = 0;
        for variable in variables {
            let before = &text[copied..variable.name.start];
            if copied == 0 {
                changed.push_str(&self.cleaned(before));
            } else {
                changed.push_str(before);
            }
            changed.push_str(&text[variable.name.start..variable.value.start]);
            let value = &text[variable.value.clone()];
            if KeyFacts::of(&text[variable.name.clone()]).tuning {
                changed.push_str(&self.cleaned(value));
            } else if !value.is_empty() {
                self.removed += u64::from(value != "[removed]");
                changed.push_str("[removed]");
            }
            copied = variable.value.end;
        }
        changed.push_str(&text[copied..]);
        Some(changed)
    }

    /// `text` without secrets, places and names.
    fn cleaned(&mut self, text: &str) -> String {
        let mut now = Cow::Borrowed(text);
        self.secrets(&mut now, Context::Text);
        self.places(&mut now);
        self.names(&mut now);
        now.into_owned()
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
                    lines.extend([name, "=", &self.cleaned(value)]);
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
            login,
            email,
            base64,
            variable,
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
        if (text.contains([':', '=']) || text.contains("--"))
            && let Some(changed) = assignment::replace(assignment, text, &mut token)
        {
            *text = Cow::Owned(changed);
        }
        if text.contains('@') && text.contains(':') {
            change(text, login, |found| {
                let (scheme, user, password, host) =
                    (found.get(1), &found[2], &found[3], &found[4]);
                // `layer:12@cuda` is something of a program, and `mailto:a@b.org` an address.
                let has_no = |text: &str, letter: fn(char) -> bool| !text.contains(letter);
                let is_plain = has_no(password, |letter| !letter.is_ascii_digit())
                    || [password, host]
                        .iter()
                        .all(|text| has_no(text, |letter| !letter.is_ascii_alphabetic()));
                let is_mail = email.is_match(&format!("x@{host}"));
                let is_login = !is_plain && !is_mail && is_identity(host) && !is_device(host);
                if scheme.is_none() && !is_login {
                    return found[0].to_owned();
                }
                let scheme = scheme.map_or("", |scheme| scheme.as_str());
                format!("{scheme}{user}:{}@{host}", token(password))
            });
        }
        if text.len() >= 40 {
            change(text, base64, |found| {
                let tells = decode_base64(&found[0]).is_some_and(|decoded| {
                    tokens.is_match(&decoded)
                        || private_key.is_match(&decoded)
                        || variables(variable, &decoded).is_some()
                });
                if tells {
                    token(&found[0])
                } else {
                    found[0].to_owned()
                }
            });
        }
    }

    fn places(&mut self, text: &mut Cow<'_, str>) {
        let Self {
            url,
            email,
            frame,
            paths,
            user_at_host,
            names,
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
                let scheme = &found[1];
                if is_placeholder(&found[0][scheme.len()..]) {
                    return found[0].to_owned();
                }
                format!("{scheme}{}", replace(Subject::Url, &found[0]))
            });
        }
        if text.contains('@') {
            change(text, email, |found| replace(Subject::Email, &found[0]));
            change(text, user_at_host, |found| {
                let (before, user, password, host) = (&found[1], &found[2], &found[3], &found[4]);
                let is_certain = !before.is_empty() || !password.is_empty();
                if is_device(host) || !(is_certain || (host.contains('-') && is_identity(host))) {
                    return found[0].to_owned();
                }
                let mut name = |subject, name| {
                    // Addresses are found as such.
                    let is_name = is_identity(name) && name.contains(char::is_alphabetic);
                    if is_name {
                        replace(subject, names.spelled(name))
                    } else {
                        name.to_owned()
                    }
                };
                let user = name(Subject::User, user);
                format!("{before}{user}{password}@{}", name(Subject::Host, host))
            });
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
        let mut changed = String::new();
        let (mut at, mut copied) = (0, 0);
        while let Some(found) = paths.captures_at(text, at) {
            let Some(all) = found.get(0) else {
                break;
            };
            let Some(path) = (1..5).find_map(|group| found.get(group)) else {
                at = all.end();
                continue;
            };
            // In quotes, spaces are in it already.
            let is_quoted = path.end() < all.end();
            let end = if is_quoted {
                path.end()
            } else {
                path::end(text, path.range())
            };
            changed.push_str(&text[copied..path.start()]);
            changed.push_str(&place(&text[path.start()..end]));
            copied = end;
            at = end.max(all.end());
        }
        if copied > 0 {
            changed.push_str(&text[copied..]);
            *text = Cow::Owned(changed);
        }
    }

    fn names(&mut self, text: &mut Cow<'_, str>) {
        let Self {
            ip,
            mac,
            names,
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
        if let Some(changed) = names.replace(text, replace) {
            *text = Cow::Owned(changed);
        }
    }
}

/// Replaces what `pattern` finds.
fn change(text: &mut Cow<'_, str>, pattern: &Regex, replace: impl FnMut(&Captures<'_>) -> String) {
    if let Cow::Owned(changed) = pattern.replace_all(text, replace) {
        *text = Cow::Owned(changed);
    }
}

/// True for what is behind an `@` in programs: `matmul@cuda`, `memcpy@plt`.
fn is_device(text: &str) -> bool {
    let name = text.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
    [
        "cpu", "cuda", "gpu", "xpu", "hip", "mps", "meta", "sm", "rank", "stage", "step", "plt",
        "device",
    ]
    .iter()
    .any(|device| device.eq_ignore_ascii_case(name))
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
