//! Verdicts of gates for JUnit readers and for the log of a workflow; what codes mean.

use std::fmt::Write as _;

use super::document::{Block, Document, Note, Section};
use super::name::visible;
use crate::gate::{Decision, Explanation, Verdict};

/// What codes mean.
pub fn explanations_document(explanations: &[Explanation]) -> Document {
    let (title, lead, notes) = match explanations {
        [only] => (
            format!("Reason {}", only.code),
            format!("{}: {}", only.code, only.meaning),
            vec![Note::new("what to do", only.action)],
        ),
        all => (
            "Reasons".to_owned(),
            format!(
                "{} reasons; --explain CODE tells what to do about one",
                all.len()
            ),
            all.iter()
                .map(|one| Note::new(one.code, one.meaning))
                .collect(),
        ),
    };
    Document {
        title,
        lead,
        sections: vec![Section {
            title: None,
            blocks: vec![Block::Notes(notes)],
        }],
    }
}

/// `verdict` as JUnit XML: the verdict and every check is a test case. What stands against the candidate
/// is a failure when the verdict is one, and else only told.
pub fn verdict_junit(verdict: &Verdict) -> String {
    let suite = format!("tracekit gate {}", verdict.gate);
    let bad = verdict.decision != Decision::Accept;
    let failed = verdict.checks.iter().filter(|check| check.failed && bad);
    let failures = failed.count() + usize::from(bad);
    let tests = verdict.checks.len() + 1;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<testsuites>\n  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\">",
        xml(&suite)
    );
    let headline = verdict.headline();
    case(
        &mut out,
        &suite,
        "verdict",
        bad,
        verdict.word.as_str(),
        &headline,
    );
    for check in &verdict.checks {
        let told = [
            check.status.as_str(),
            &check.codes.join(", "),
            &check.detail,
        ]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
        case(
            &mut out,
            &suite,
            &check.subject,
            bad && check.failed,
            &check.status,
            &told,
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn case(out: &mut String, suite: &str, name: &str, failed: bool, kind: &str, text: &str) {
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\">",
        xml(suite),
        xml(name)
    );
    if failed {
        let _ = write!(
            out,
            "<failure type=\"{}\" message=\"{}\"/>",
            xml(kind),
            xml(text)
        );
    } else {
        let _ = write!(out, "<system-out>{}</system-out>", xml(text));
    }
    out.push_str("</testcase>\n");
}

/// `text` fit for XML: characters that XML cannot hold are written out.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// `verdict` as commands for the log of a GitHub workflow: an error, warning or notice with the verdict,
/// then one line a check that stands against the candidate.
pub fn verdict_github(verdict: &Verdict) -> String {
    let level = match verdict.decision {
        Decision::Accept => "notice",
        Decision::Tune => "warning",
        Decision::Reject => "error",
    };
    let title = format!("tracekit gate {}", verdict.gate);
    let mut out = command(level, &title, &verdict.headline());
    if verdict.decision != Decision::Accept {
        for check in verdict.checks.iter().filter(|check| check.failed) {
            let mut text = format!("{}: {}", check.subject, check.status);
            for more in [check.codes.join(", "), check.detail.clone()] {
                if !more.is_empty() {
                    let _ = write!(text, "; {more}");
                }
            }
            out.push_str(&command(level, &title, &text));
        }
    }
    out
}

fn command(level: &str, title: &str, text: &str) -> String {
    let escaped = |text: &str| visible(text).replace('%', "%25");
    let title = escaped(title).replace(':', "%3A").replace(',', "%2C");
    format!("::{level} title={title}::{}\n", escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Json, Thresholds, judge_strategies};

    fn hostile() -> Verdict {
        let report = Json::parse(
            "{\"candidates\":[{\"name\":\"<a href=\\\"x\\\">&\\u001b[31m\\n::error::100%\",\"status\":\"oom\"}]}",
        );
        let thresholds = Thresholds::read("", &["budget.max_val_loss=1.0".to_owned()]).unwrap();
        judge_strategies(&report.unwrap(), &thresholds).unwrap()
    }

    #[test]
    fn names_cannot_break_out_of_a_format() {
        let junit = verdict_junit(&hostile());
        assert!(
            junit.contains(
                "name=\"&lt;a href=&quot;x&quot;&gt;&amp;\\u{1b}[31m\\u{a}::error::100%\""
            )
        );
        assert!(junit.contains("tests=\"2\" failures=\"2\""));
        let github = verdict_github(&hostile());
        assert_eq!(github.lines().count(), 2);
        assert!(
            github
                .lines()
                .all(|line| line.starts_with("::error title=tracekit gate strategies::"))
        );
        assert!(github.contains("100%25"));
        let text = super::super::text::render(
            &super::super::decision::verdict_document(&hostile()),
            super::super::text::TextOptions::default(),
        );
        assert!(text.starts_with("reject: baseline_missing_or_invalid; next: rerun"));
        assert!(!text.contains('\u{1b}'));
    }
}
