//! What a result does not tell itself, on standard error: files left out, and what is wrong with those read.

use super::args::Format;
use super::exit::Exit;
use super::output::say;
use crate::attribute::{Attribution, SkippedInput};
use crate::health::{HealthEntry, Severity};
use crate::report::findings::{Finding, in_brief};

/// What a format has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Numbers alone.
    Numbers,
    /// Everything, files left out among it; they are named all the same, for JSON is read by programs.
    ForPrograms,
    /// Everything.
    ForPeople,
}

impl From<Format> for Told {
    fn from(format: Format) -> Self {
        match format {
            Format::Text | Format::Markdown | Format::Html | Format::Github => Self::ForPeople,
            Format::Json => Self::ForPrograms,
            Format::Csv | Format::Svg => Self::Numbers,
        }
    }
}

/// How far a result can be trusted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remarks<'a> {
    pub(super) skipped: &'a [SkippedInput],
    pub(super) health: &'a [HealthEntry],
}

impl<'a> From<&'a Attribution> for Remarks<'a> {
    fn from(attribution: &'a Attribution) -> Self {
        Self {
            skipped: &attribution.skipped,
            health: &attribution.health,
        }
    }
}

impl Remarks<'_> {
    /// Says what a format that has `told` so much does not.
    pub(super) fn say(self, told: Told) {
        say_remarks(told, self.skipped, self.health);
    }

    /// How the program ends; `strict` makes lost data a failure.
    pub(super) fn exit(self, strict: bool) -> Exit {
        let worst = self.health.iter().map(|entry| entry.severity).max();
        if strict && worst >= Some(Severity::DataLoss) {
            Exit::Strict
        } else if self.skipped.iter().any(|input| input.failed) {
            Exit::SomeInputsFailed
        } else {
            Exit::Done
        }
    }
}

/// Says which files were left out, and in one line what was found, as far as it was not `told`.
pub(super) fn say_remarks<'a>(
    told: Told,
    skipped: &[SkippedInput],
    findings: impl IntoIterator<Item = impl Into<Finding<'a>>>,
) {
    if told == Told::ForPeople {
        return;
    }
    for input in skipped.iter().filter(|input| input.failed) {
        say(&format!("skipped {}: {}", input.path, input.reason));
    }
    if told == Told::Numbers
        && let Some(line) = in_brief(findings, false)
    {
        say(&format!("health: {line}"));
    }
}
