//! `tracekit compare` from outside.

use std::path::Path;

use crate::snapshot::bless_or_compare;
use crate::{Folder, tracekit};

fn snapshot(name: &str, got: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    bless_or_compare(&folder.join(name), got);
}

const SAMPLES: &str = "fixtures/traces/baseline fixtures/traces/checkpoint";

/// A trace with `steps` steps of about `length` microseconds on the host.
fn steps(steps: u64, length: u64) -> String {
    let events: Vec<String> = (0..steps)
        .map(|step| {
            format!(
                r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","pid":1,"tid":1,"ts":{},"dur":{}}}"#,
                step * 10_000,
                length + step
            )
        })
        .collect();
    format!(r#"{{"traceEvents": [{}]}}"#, events.join(","))
}

#[test]
fn the_text_report_of_the_samples() {
    snapshot(
        "compare.txt",
        &tracekit(&format!("compare {SAMPLES} --top 4")).out,
    );
}

#[test]
fn a_slower_candidate_fails_when_asked_to() {
    let folder = Folder::new();
    let (fast, slow) = (
        folder.write("fast.json", steps(8, 1000)),
        folder.write("slow.json", steps(8, 1500)),
    );
    let (fast, slow) = (fast.display(), slow.display());
    let run = |arguments: String| tracekit(&format!("compare {arguments}"));
    let slower = run(format!("{fast} {slow} --fail-on slower"));
    assert_eq!(slower.code, 1);
    assert!(
        slower
            .out
            .starts_with("slower: median step 1.004 → 1.504 ms (+49.8 %)"),
        "{}",
        slower.out
    );
    assert_eq!(run(format!("{fast} {slow}")).code, 0);
    let faster = run(format!("{slow} {fast} --fail-on slower"));
    assert_eq!(faster.code, 0);
    assert!(faster.out.starts_with("faster: "), "{}", faster.out);
    // The change is surely smaller than that.
    let large = run(format!("{fast} {slow} --fail-on slower --min-effect 60%"));
    assert_eq!(large.code, 0);
    assert!(large.out.starts_with("no difference: "), "{}", large.out);
    let strict = run(format!(
        "{fast} {slow} --alpha 0.0001 --fail-on inconclusive"
    ));
    assert_eq!(strict.code, 1, "{}", strict.out);
}

#[test]
fn sides_may_have_several_paths() {
    let folder = Folder::new();
    let write = |name: &str, length| folder.write(name, steps(3, length)).display().to_string();
    let base: Vec<String> = (0..5)
        .map(|at| write(&format!("a{at}/t.json"), 1000 + at))
        .collect();
    let candidate: Vec<String> = (0..5)
        .map(|at| write(&format!("b{at}/t.json"), 900 + at))
        .collect();
    let answer = tracekit(&format!(
        "compare --base {} --cand {} --format json",
        base.join(" --base "),
        candidate.join(" --cand ")
    ))
    .json(0);
    assert_eq!(answer["schema_version"], "tracekit.compare/v1");
    assert_eq!(answer["step"]["units"], "repeats");
    assert_eq!(answer["step"]["verdict"], "faster");
}

#[test]
fn a_saved_attribution_can_be_a_side() {
    let folder = Folder::new();
    let saved = folder.path().join("saved.json");
    let saved = saved.display();
    let run = tracekit(&format!(
        "attribute fixtures/traces/baseline --format json -o {saved}"
    ));
    assert_eq!(run.code, 0);
    let answer = tracekit(&format!(
        "compare {saved} fixtures/traces/baseline --format json"
    ))
    .json(0);
    assert_eq!(answer["step"]["verdict"], "no_difference");
    assert_eq!(answer["base"]["source"], "attribution");
    let several = tracekit(&format!(
        "compare --base {saved} --base fixtures/traces/baseline --cand {saved}"
    ));
    assert!(several.refused().contains("whole side"), "{}", several.err);
    let other = folder.write("other.json", r#"{"schema_version": "tracekit.doctor/v1"}"#);
    let other = tracekit(&format!("compare {} {saved}", other.display()));
    assert!(
        other.refused().contains("tracekit.doctor/v1"),
        "{}",
        other.err
    );
}

#[test]
fn tables_can_be_had_as_csv_and_markdown() {
    let csv = tracekit(&format!(
        "compare {SAMPLES} --format csv --table cost_shift"
    ));
    assert_eq!(csv.code, 0, "{}", csv.err);
    assert!(
        csv.out
            .starts_with("cost,place,base_ns,candidate_ns,delta_ns,"),
        "{}",
        csv.out
    );
    let markdown = tracekit(&format!("compare {SAMPLES} --format markdown"));
    assert!(markdown.out.contains("## phases"), "{}", markdown.out);
    let unknown = tracekit(&format!("compare {SAMPLES} --format csv --table x"));
    assert!(
        unknown.refused().contains("phases, cost_shift"),
        "{}",
        unknown.err
    );
}

#[test]
fn a_comparison_is_a_page_too() {
    let folder = Folder::new();
    let to = folder.path().join("compared.html");
    let run = tracekit(&format!(
        "compare {SAMPLES} --format html -o {}",
        to.display()
    ));
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
    let page = std::fs::read_to_string(&to).unwrap();
    assert!(page.to_lowercase().starts_with("<!doctype html>"));
    assert!(page.contains("<svg"), "a picture of the changes");
    let verdict = page.find("median step").unwrap();
    assert!(verdict < page.find("<table").unwrap(), "the verdict first");
    assert!(page.contains("recompute") && page.contains("</html>"));
}

#[test]
fn strategies_in_one_folder_are_told() {
    let run = tracekit("compare fixtures/traces fixtures/traces/baseline");
    let told: Vec<&str> = run.out.split_whitespace().collect();
    let told = told.join(" ");
    let expected =
        "NOT repeats of one program: baseline, checkpoint, offload differ in operators, recompute";
    assert!(told.contains(expected), "{}", run.out);
    assert!(told.contains("(not the same work)"), "{}", run.out);
    let strict = tracekit("compare fixtures/traces fixtures/traces/baseline --fail-on other-work");
    assert_eq!(strict.code, 1, "{}", strict.out);
}

#[test]
fn wrong_usage_is_told_in_one_line() {
    for arguments in ["", "fixtures/traces/baseline", "a b c"] {
        let run = tracekit(&format!("compare {arguments}"));
        assert!(run.refused().contains("compare BASE CAND"), "{}", run.err);
    }
    let missing = tracekit("compare missing.json fixtures/traces/baseline");
    assert!(missing.refused().contains("missing.json"));
    assert!(
        tracekit("compare a b --alpha 2")
            .refused()
            .contains("0.0001 to 0.5")
    );
    assert!(
        tracekit("compare a b --min-effect x")
            .refused()
            .contains("3% or 0.03")
    );
}

#[test]
fn a_saved_attribution_that_somebody_changed_is_refused() {
    let folder = Folder::new();
    let saved = tracekit("attribute fixtures/golden/two-steps/trace.json --format json").out;
    let base = folder.write("base.json", &saved);
    let against = |name: &str, text: String| {
        assert_ne!(text, saved, "{name}");
        let changed = folder.write(name, text);
        tracekit(&format!("compare {} {}", base.display(), changed.display()))
    };
    let negative = saved.replace("\"wall_ns\": 1", "\"wall_ns\": -1");
    let absurd = saved.replace("\"wall_ns\": 1", "\"wall_ns\": 50000000000001");
    let sum = saved.rfind("\"sum_ns\": 1").unwrap() + "\"sum_ns\": ".len();
    let mut more = saved.clone();
    more.insert(sum, '1');
    for (name, text, reason) in [
        ("negative.json", negative, "negative or absurd"),
        ("absurd.json", absurd, "negative or absurd"),
        ("more.json", more, "add up"),
    ] {
        let run = against(name, text);
        let line = run.refused();
        assert!(line.contains(name) && line.contains(reason), "{line}");
    }
}
