//! What is wrong or unusual, and which files are not in the numbers.

use super::super::document::Note;
use super::super::name::{shortened, visible};
use super::super::number::{count, ms};
use crate::attribute::{Attribution, SkippedInput};
use crate::health::{HealthEntry, Severity};
use crate::units::Ns;

/// How many files of a kind are named.
const NAMED_FILES: usize = 3;
/// Columns of the name of the first event of a kind.
const LONGEST_NAME: usize = 80;

/// Files left out and findings; never empty.
pub(in super::super) fn notes(attribution: &Attribution, verbose: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    let (failed, other): (Vec<&SkippedInput>, Vec<&SkippedInput>) =
        attribution.skipped.iter().partition(|input| input.failed);
    if verbose {
        let each = |label, input: &&SkippedInput| Note::new(label, described(input));
        notes.extend(failed.iter().map(|input| each("failed", input)));
        notes.extend(other.iter().map(|input| each("skipped", input)));
    } else {
        notes.extend(
            failed
                .iter()
                .take(NAMED_FILES)
                .map(|input| Note::new("failed", described(input))),
        );
        if let Some(more) = failed.len().checked_sub(NAMED_FILES + 1) {
            notes.push(Note::new(
                "failed",
                format!("{} more; -v names them", more + 1),
            ));
        }
        if !other.is_empty() {
            notes.push(Note::new("skipped", no_traces(&other)));
        }
    }
    let before = notes.len();
    let shown = |entry: &&HealthEntry| verbose || entry.severity > Severity::Info;
    notes.extend(
        attribution
            .health
            .iter()
            .filter(shown)
            .map(|entry| Note::new("health", finding(attribution, entry))),
    );
    if notes.len() == before {
        let hidden = attribution.health.len();
        let text = match hidden {
            0 => "nothing unusual".to_owned(),
            _ => format!(
                "nothing unusual; -v shows {} for information",
                remarks(hidden)
            ),
        };
        notes.push(Note::new("health", text));
    }
    notes
}

fn remarks(number: usize) -> String {
    if number == 1 {
        "1 remark".to_owned()
    } else {
        format!("{number} remarks")
    }
}

fn described(input: &SkippedInput) -> String {
    format!("{}: {}", input.path, input.reason)
}

fn no_traces(skipped: &[&SkippedInput]) -> String {
    let named: Vec<&str> = skipped
        .iter()
        .take(NAMED_FILES)
        .map(|input| input.path.as_str())
        .collect();
    let more = if skipped.len() > NAMED_FILES {
        ", …; -v names all"
    } else {
        ""
    };
    let files = if skipped.len() == 1 {
        "file that is no trace"
    } else {
        "files that are no traces"
    };
    format!(
        "{} {files}: {}{more}",
        count(skipped.len() as u64),
        named.join(", ")
    )
}

/// `severity code ×count: what it means (first: where)`.
fn finding(attribution: &Attribution, entry: &HealthEntry) -> String {
    let file = entry
        .first_input
        .filter(|_| attribution.inputs.len() > 1)
        .map_or(String::new(), |input| {
            format!(" of {}", attribution.inputs[input].path)
        });
    let name = entry.first_name.as_deref().map(visible);
    let name = name.as_deref().map(|name| shortened(name, LONGEST_NAME));
    let place = match (name, entry.first_offset) {
        (Some(name), Some(offset)) => format!(" (such as {name}; first at byte {offset}{file})"),
        (Some(name), None) => format!(" ({name})"),
        (None, Some(offset)) => format!(" (first at byte {offset}{file})"),
        (None, None) => String::new(),
    };
    let repair = match (entry.raw_ns, entry.repaired_ns) {
        (Some(raw), Some(repaired)) => {
            format!("; {} ms of {} ms taken away", ms(Ns(repaired)), ms(Ns(raw)))
        }
        _ => String::new(),
    };
    let HealthEntry { code, help, .. } = entry;
    let severity = entry.severity.as_str();
    format!(
        "{severity} {code} ×{}: {help}{place}{repair}",
        count(entry.count)
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn texts(attribution: &Attribution, verbose: bool) -> Vec<String> {
        let notes = notes(attribution, verbose).into_iter();
        notes
            .map(|note| format!("{}: {}", note.label, note.text))
            .collect()
    }

    #[test]
    fn findings_are_located_and_information_is_hidden() {
        let attribution = sample::one_rank();
        let found = "health: data_loss negative_duration ×3: complete events with a negative dur: \
                     not in the numbers (such as gemm\\u{1b}; first at byte 1234)";
        assert_eq!(texts(&attribution, false), [found]);
        assert_eq!(texts(&attribution, true).len(), 2);
    }

    #[test]
    fn there_is_always_a_health_line() {
        let mut attribution = sample::one_rank();
        attribution.health.remove(0);
        assert_eq!(
            texts(&attribution, false),
            ["health: nothing unusual; -v shows 1 remark for information"]
        );
        attribution.health.clear();
        assert_eq!(texts(&attribution, false), ["health: nothing unusual"]);
    }

    #[test]
    fn files_left_out_are_named() {
        let mut attribution = sample::host_only();
        attribution.health.clear();
        for (name, failed) in [
            ("a", true),
            ("b", false),
            ("c", false),
            ("d", false),
            ("e", false),
        ] {
            attribution.skipped.push(SkippedInput {
                path: name.to_owned(),
                reason: "why".to_owned(),
                failed,
            });
        }
        assert_eq!(
            texts(&attribution, false)[..2],
            [
                "failed: a: why",
                "skipped: 4 files that are no traces: b, c, d, …; -v names all"
            ]
        );
        assert_eq!(texts(&attribution, true).len(), 6);
    }
}
