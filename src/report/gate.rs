//! Verdicts of gates: as a document, for JUnit readers and for the log of a workflow.

use std::fmt::Write as _;

use super::document::{Block, Column, Document, Note, Row, Section, Table, Value};
use super::name::visible;
use crate::gate::{Decision, Explanation, Json, Verdict};

/// `verdict` as a report: the verdict first, then what was looked at.
pub fn verdict_document(verdict: &Verdict) -> Document {
    let mut blocks = Vec::new();
    if !verdict.checks.is_empty() {
        let rows = verdict.checks.iter().map(|check| {
            Row::new(vec![
                Value::text(&check.subject),
                Value::text(&check.status),
                Value::text(check.codes.join(", ")),
                Value::text(&check.detail),
            ])
        });
        blocks.push(Block::Table(Table {
            caption: "Checks".to_owned(),
            keys: 1,
            columns: ["subject", "status", "reasons", "numbers"]
                .map(Column::text)
                .to_vec(),
            rows: rows.collect(),
        }));
    }
    let mut sections = vec![Section {
        title: None,
        blocks,
    }];
    sections.extend(verdict.statistics.as_ref().map(statistics_section));
    let inputs = verdict.inputs.iter().map(|input| {
        let text = |key| input.at(&[key]).as_str().unwrap_or_default().to_owned();
        Note::new(
            "input",
            format!("{} (sha256 {})", text("path"), text("sha256")),
        )
    });
    sections.push(Section {
        title: None,
        blocks: vec![Block::Notes(inputs.collect())],
    });
    Document {
        title: format!("Gate {}", verdict.gate),
        lead: verdict.headline(),
        sections,
    }
}

/// What repeats say as samples.
fn statistics_section(statistics: &Json) -> Section {
    let rows = statistics.at(&["metrics"]).items().iter().map(|metric| {
        let text = |key| metric.at(&[key]).as_str().unwrap_or_default().to_owned();
        let number = |path: &[&str]| {
            metric
                .at(path)
                .as_f64()
                .map_or(Value::Missing, Value::Number)
        };
        let codes: Vec<&str> = metric
            .at(&["codes"])
            .items()
            .iter()
            .filter_map(Json::as_str)
            .collect();
        Row::new(vec![
            Value::text(text("subject")),
            Value::text(text("metric")),
            number(&["difference"]),
            number(&["interval", "low"]),
            number(&["interval", "high"]),
            number(&["threshold"]),
            Value::text(text("decision")),
            Value::text(codes.join(", ")),
        ])
    });
    let text = |key| {
        statistics
            .at(&[key])
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    Section {
        title: Some("Repeats as samples".to_owned()),
        blocks: vec![
            Block::Paragraph(format!("{}: {}", text("decision"), text("reason"))),
            Block::Table(Table {
                caption: "Gain of the candidate, with its confidence interval".to_owned(),
                keys: 2,
                columns: vec![
                    Column::text("subject"),
                    Column::text("metric"),
                    Column::number("gain"),
                    Column::number("low"),
                    Column::number("high"),
                    Column::number("wanted"),
                    Column::text("decision"),
                    Column::text("remarks"),
                ],
                rows: rows.collect(),
            }),
        ],
    }
}

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
    use crate::gate::{Thresholds, judge_strategies};

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
            &verdict_document(&hostile()),
            super::super::text::TextOptions::default(),
        );
        assert!(text.starts_with("reject: baseline_missing_or_invalid; next: rerun"));
        assert!(!text.contains('\u{1b}'));
    }
}
