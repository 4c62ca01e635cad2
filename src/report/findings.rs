//! What is wrong or unusual in what was read, in brief.

use super::document::Note;
use super::number::count;
use crate::attribute::SkippedInput;
use crate::compare::SideFinding;
use crate::health::{HealthEntry, Severity};

/// A kind of finding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finding<'a> {
    /// How grave it is, as in JSON.
    pub(crate) severity: &'a str,
    /// Its code.
    pub(crate) code: &'a str,
    /// How often it is there.
    pub(crate) count: u64,
}

impl<'a> From<&'a HealthEntry> for Finding<'a> {
    fn from(entry: &'a HealthEntry) -> Self {
        Self {
            severity: entry.severity.as_str(),
            code: entry.code,
            count: entry.count,
        }
    }
}

impl<'a> From<&'a SideFinding> for Finding<'a> {
    fn from(finding: &'a SideFinding) -> Self {
        Self {
            severity: &finding.severity,
            code: &finding.code,
            count: finding.count,
        }
    }
}

/// All in one line; `None` when there is nothing, or but information that is told only when `verbose`.
pub(crate) fn in_brief<'a>(
    findings: impl IntoIterator<Item = impl Into<Finding<'a>>>,
    verbose: bool,
) -> Option<String> {
    let parts: Vec<String> = findings
        .into_iter()
        .map(Into::into)
        .filter(|finding| verbose || finding.severity != Severity::Info.as_str())
        .map(|finding| {
            let number = count(finding.count);
            format!("{} {} ×{number}", finding.severity, finding.code)
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "{} (tracekit doctor tells what that means)",
            parts.join(", ")
        )
    })
}

/// A note on each file that was left out; on those that are no traces only when `verbose`.
pub(super) fn left_out(skipped: &[SkippedInput], verbose: bool) -> Vec<Note> {
    let told = skipped.iter().filter(|input| input.failed || verbose);
    told.map(|input| {
        let label = if input.failed { "failed" } else { "skipped" };
        Note::new(label, format!("{}: {}", input.path, input.reason))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_one_line_and_information_is_for_those_who_ask() {
        let finding = |severity: Severity, code, count| Finding {
            severity: severity.as_str(),
            code,
            count,
        };
        let findings = [
            finding(Severity::DataLoss, "salvaged", 1),
            finding(Severity::Notice, "sliced", 2000),
            finding(Severity::Info, "lane_overlap", 3),
        ];
        assert_eq!(
            in_brief(findings, false).as_deref(),
            Some(
                "data_loss salvaged ×1, notice sliced ×2,000 (tracekit doctor tells what that means)"
            )
        );
        assert_eq!(in_brief(findings[2..].to_vec(), false), None);
        assert!(in_brief(findings[2..].to_vec(), true).is_some());
    }
}
