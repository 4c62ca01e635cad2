//! Reports as annotations of GitHub Actions: workflow commands on standard output.
//!
//! The verdict is a notice; findings are notices, warnings or errors by their severity. Lines are few: GitHub
//! shows ten of a kind for a step.

use std::fmt::Write as _;

use super::name::visible;
use crate::health::{HealthEntry, Severity};

/// Findings that are told.
const MOST: usize = 9;

/// The verdict `lead` under `title`, and `findings` other than information.
pub fn render(title: &str, lead: &str, level: Level, findings: &[HealthEntry]) -> String {
    let mut out = String::new();
    push(&mut out, level, title, lead);
    let told = findings
        .iter()
        .filter(|entry| entry.severity > Severity::Info);
    for entry in told.take(MOST) {
        let level = match entry.severity {
            Severity::Info | Severity::Notice => Level::Notice,
            Severity::DataLoss => Level::Warning,
            Severity::Error => Level::Error,
        };
        let text = format!("{} ({}): {}", entry.code, entry.count, entry.help);
        push(&mut out, level, title, &text);
    }
    out
}

/// How an annotation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For information.
    Notice,
    /// In yellow.
    Warning,
    /// In red.
    Error,
}

fn push(out: &mut String, level: Level, title: &str, text: &str) {
    let level = match level {
        Level::Notice => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "::{level} title={}::{}", property(title), data(text));
}

/// The text of a command: line breaks and `%` are escaped; what is invisible is written out before.
fn data(text: &str) -> String {
    visible(text).replace('%', "%25")
}

/// A property of a command: `:` and `,` end it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_start_commands_of_their_own() {
        let text = render("a,b::c", "50 %\n::error::x", Level::Notice, &[]);
        assert_eq!(
            text,
            "::notice title=a%2Cb%3A%3Ac::50 %25\\u{a}::error::x\n"
        );
    }
}
