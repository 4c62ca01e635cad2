//! Decisions in reports: every format says what the record says, and pictures have its numbers.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracekit::gate::Json;

use super::chain::{BUDGET, CLOSURE, Chain, HANDOFF};
use super::fixture;
use super::program::{run, run_in};

const REAL: &str = "fixtures/gate/results/76_real_gpu_memory.json";

/// The verdict of the grid of the stored report, in a file.
fn grid_verdict(folder: &Path) -> PathBuf {
    let path = folder.join("grid.json");
    let found = run(&[
        "gate",
        "sensitivity",
        REAL,
        "--record",
        path.to_str().unwrap(),
    ]);
    assert_eq!(found.code, 3, "{}", found.err);
    path
}

fn report(arguments: &[&str]) -> String {
    let found = run(&[&["report"], arguments].concat());
    assert_eq!((found.code, found.err.as_str()), (0, ""), "{arguments:?}");
    found.out
}

/// Every table of a JSON report whose caption starts so, as rows of cells.
fn rows(report: &str, caption: &str) -> Vec<Vec<Value>> {
    let report: Value = serde_json::from_str(report).unwrap();
    let mut found = Vec::new();
    for section in report["sections"].as_array().unwrap() {
        for block in section["blocks"].as_array().unwrap() {
            let table = &block["table"];
            if table["caption"]
                .as_str()
                .is_some_and(|text| text.starts_with(caption))
            {
                let rows = table["rows"].as_array().unwrap().iter();
                found.extend(rows.map(|row| row["cells"].as_array().unwrap().clone()));
            }
        }
    }
    found
}

#[test]
fn a_grid_is_shown_in_every_format_with_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let verdict = grid_verdict(folder.path());
    let verdict = verdict.to_str().unwrap();
    let headline = "tune: selection_is_threshold_sensitive; next: collect_boundary_evidence";
    let text = report(&["--decision", verdict, "--format", "text"]);
    assert_eq!(text.lines().next().unwrap(), headline);
    let page = report(&["--decision", verdict]);
    assert!(page.contains(headline) && page.contains("id=\"gate-sensitivity\""));
    let markdown = report(&["--decision", verdict, "--format", "markdown"]);
    assert!(markdown.replace('\\', "").contains(headline));
    let github = report(&["--decision", verdict, "--format", "github"]);
    assert_eq!(
        github,
        format!("::warning title=Gate sensitivity::{headline}\n")
    );

    // The table of the JSON report has the numbers of the record.
    let told = report(&["--decision", verdict, "--format", "json"]);
    let cells = rows(&told, "Decisions over a grid of thresholds");
    let golden = fixture("sensitivity.json");
    let wanted = golden.at(&["grid75_18", "rows"]).items();
    assert_eq!((cells.len(), wanted.len()), (18, 18));
    for (cell, wanted) in cells.iter().zip(wanted) {
        for (place, key) in ["memory_cap_mb", "min_samples_per_s", "max_val_loss"]
            .into_iter()
            .enumerate()
        {
            assert_eq!(cell[place].as_f64(), wanted.at(&[key]).as_f64());
        }
        assert_eq!(cell[3].as_str(), wanted.at(&["decision"]).as_str());
        let best = wanted.at(&["best_candidate"]).as_str().unwrap_or("none");
        assert_eq!(cell[4].as_str(), Some(best));
    }
    // And so has its picture.
    let json: Value = serde_json::from_str(&told).unwrap();
    let blocks = json["sections"][0]["blocks"].as_array().unwrap();
    let chart = blocks.iter().find(|block| block.get("chart").is_some());
    let chart = &chart.unwrap()["chart"];
    assert_eq!(chart["kind"], "grid");
    let cells: Vec<&Value> = chart["rows"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row[1].as_array().unwrap())
        .collect();
    assert_eq!(cells.len(), 18);
    let count = |decision: &str| {
        cells
            .iter()
            .filter(|cell| cell["decision"] == decision)
            .count()
    };
    assert_eq!(
        (count("reject"), count("tune"), count("accept")),
        (8, 10, 0)
    );
}

#[test]
fn pictures_of_decisions_are_files_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let verdict = grid_verdict(folder.path());
    let chain = Chain::whole();
    chain.closure().close(&chain.label).unwrap();
    let pictures = folder.path().join("pictures");
    let (closure, budget) = (chain.at(CLOSURE), chain.at(BUDGET));
    report(&[
        "--decision",
        verdict.to_str().unwrap(),
        "--decision",
        budget.to_str().unwrap(),
        "--decision",
        closure.to_str().unwrap(),
        "--svg",
        pictures.to_str().unwrap(),
    ]);
    let read = |name: &str| std::fs::read_to_string(pictures.join(name)).unwrap();
    for name in ["sensitivity-grid.svg", "sensitivity-grid-2.svg"] {
        let grid = read(name);
        assert!(
            grid.starts_with("<svg ") && grid.contains("<title>"),
            "{name}"
        );
        // Nothing is told by colour alone: each cell says its decision and best candidate.
        assert_eq!(grid.matches("reject: none").count(), 8, "{name}");
        assert_eq!(grid.matches("\ntune: checkpoint\n").count(), 8, "{name}");
        assert!(
            grid.contains("at most 9,600 MiB, at least 1 samples/s, loss at most 12.2: reject")
        );
    }
    let scopes = read("decision-scopes.svg");
    for told in [
        "accept_for_activation_memory_scope",
        "global_peak_memory_saving_below_threshold",
        "fails: 331.980 of at least 512.000 MiB",
        "checkpoint: memory saved",
    ] {
        assert!(scopes.contains(told), "{told} in {scopes}");
    }
    assert_eq!(std::fs::read_dir(&pictures).unwrap().count(), 3);
    // A gate draws its own.
    let found = run(&["gate", "sensitivity", REAL, "--format", "svg"]);
    assert_eq!((found.code, found.out), (3, read("sensitivity-grid.svg")));
    let page = run(&["gate", "sensitivity", REAL, "--format", "html"]);
    assert!(page.code == 3 && page.out.contains("<figure"));
    assert_eq!(
        run(&["gate", "strategies", REAL, "--format", "svg"]).refused(),
        "--format svg is of gate sensitivity, qualify and activation-scope only"
    );
}

#[test]
fn a_closing_record_is_shown_with_its_scopes_apart() {
    let chain = Chain::whole();
    chain.closure().close(&chain.label).unwrap();
    let closure = chain.record(CLOSURE);
    let place = chain.at(CLOSURE);
    let told = report(&["--decision", place.to_str().unwrap(), "--format", "json"]);
    let scopes = rows(&told, "Decisions by scope");
    let said: Vec<[&str; 2]> = scopes
        .iter()
        .map(|row| [0, 1].map(|place| row[place].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            ["full_training_adoption", "tune"],
            [
                "activation_memory_isolation",
                "accept_for_activation_memory_scope"
            ],
        ]
    );
    let gates = rows(&told, "Gates");
    let metrics = closure.at(&["candidates"]).items()[0]
        .at(&["metrics"])
        .clone();
    assert_eq!(
        gates[0][2].as_f64(),
        metrics.at(&["memory_saving_mb"]).as_f64()
    );
    assert_eq!(gates[0][6].as_str(), Some("fails"));
    assert_eq!(gates.len(), 6);
    let hypotheses = rows(&told, "Hypotheses, for attribution only");
    assert_eq!(hypotheses.len(), 5);
    assert_eq!(hypotheses[4][2].as_str(), Some("not_applicable"));
    // The hand-off, the budget and the checklist say theirs.
    for (name, line) in [
        (HANDOFF, "tune: global_peak_memory_saving_below_threshold"),
        (BUDGET, "tune: memory_saving_below_meaningful_threshold"),
        ("73_real_gpu_training", "tune: 至少有一项收益成立"),
    ] {
        let place = chain.at(name);
        let told = report(&["--decision", place.to_str().unwrap(), "--format", "text"]);
        assert!(told.starts_with(line), "{name}: {told}");
    }
    let folder = chain.folder.path();
    let checklist = run_in(
        folder,
        &[
            "evidence",
            "checklist",
            "benchmarks/results",
            "--format",
            "json",
        ],
    );
    std::fs::write(folder.join("checklist.json"), &checklist.out).unwrap();
    let found = run_in(
        folder,
        &["report", "--decision", "checklist.json", "--format", "text"],
    );
    assert!(
        found.out.starts_with("chain incomplete; tune: "),
        "{}{}",
        found.out,
        found.err
    );
    // An edited record is shown, with what does not hold.
    chain.change(CLOSURE, |record| {
        record
            .get_mut("decision")
            .unwrap()
            .set("decision", "accept");
    });
    let told = report(&["--decision", place.to_str().unwrap(), "--format", "text"]);
    assert!(
        told.contains("invalid: decision must be that of decision_scopes"),
        "{told}"
    );
    // An edited decision is none for the checklist.
    chain.change(BUDGET, |record| {
        record
            .get_mut("decision")
            .unwrap()
            .set("decision", "accept");
    });
    let told = run_in(
        folder,
        &[
            "evidence",
            "checklist",
            "benchmarks/results",
            "--format",
            "json",
        ],
    );
    let told = told.json(3);
    assert!(told.at(&["decision"]).is_null());
    let missing = |place: usize| {
        told.at(&["answers"]).items()[place]
            .at(&["missing"])
            .to_line()
    };
    assert!(
        missing(2).contains(
            "a decision that follows from its summary in 75_memory_budget_decision_t.json"
        )
    );
    assert!(
        missing(3)
            .contains("a closing record that holds: decision must be that of decision_scopes")
    );
}

#[test]
fn decisions_stand_behind_the_verdict_on_traces() {
    let folder = tempfile::tempdir().unwrap();
    let verdict = grid_verdict(folder.path());
    let verdict = verdict.to_str().unwrap();
    let trace = "fixtures/golden/checkpoint-non-reentrant/trace.json";
    let told = report(&[trace, "--decision", verdict, "--format", "json"]);
    let json: Value = serde_json::from_str(&told).unwrap();
    let titles: Vec<&str> = json["sections"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|section| section["title"].as_str())
        .collect();
    assert_eq!(titles[..2], ["Verdict", "Gate sensitivity"]);
    let markdown = report(&[trace, "--decision", verdict, "--format", "markdown"]);
    assert!(markdown.contains("Decisions over a grid of thresholds"));
    let github = report(&[trace, "--decision", verdict, "--format", "github"]);
    assert!(github.contains("::warning title=Gate sensitivity::tune"));
}

#[test]
fn what_decides_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (path, told) in [
        (
            "fixtures/gate/chain/measurements/76_baseline.json".to_owned(),
            "holds no decision",
        ),
        (
            "fixtures/golden/two-steps/trace.json".to_owned(),
            "is no result of the chain",
        ),
        (
            save("gate.json", "{\"schema_version\":\"tracekit.gate/v1\"}"),
            "holds no decision",
        ),
        (
            save("other.json", "{\"schema_version\":\"x\"}"),
            "is not known",
        ),
        (save("empty.json", "{}"), "is no result of the chain"),
    ] {
        let found = run(&["report", "--decision", &path]);
        let line = found.refused();
        assert!(line.contains(told) && line.starts_with(&path), "{line}");
    }
    // A decision is an input, and is not overwritten.
    let verdict = grid_verdict(folder.path());
    let verdict = verdict.to_str().unwrap();
    let found = run(&["report", "--decision", verdict, "-o", verdict]);
    assert!(
        found
            .refused()
            .contains("is an input and is not overwritten")
    );
}

#[test]
fn names_of_a_record_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = Json::read_object(&grid_verdict(folder.path())).unwrap();
    let evil = "</title><script>alert(1)</script>\u{202e}\u{1b}[31m";
    record.set("reason", evil);
    record.set("gate", evil);
    let rows = record
        .get_mut("result")
        .unwrap()
        .get_mut("sensitivity")
        .unwrap();
    for row in rows.items_mut() {
        row.set("best_candidate", evil);
        row.set("feasible_names", vec![evil]);
    }
    let path = folder.path().join("evil.json");
    std::fs::write(&path, record.to_text()).unwrap();
    for format in ["html", "json", "markdown", "text", "github"] {
        let told = report(&["--decision", path.to_str().unwrap(), "--format", format]);
        assert!(!told.contains('\u{202e}') || format == "json", "{format}");
        assert!(!told.contains('\u{1b}'), "{format}");
        assert!(
            format == "json"
                || format == "text"
                || format == "github"
                || !told.contains("<script>alert"),
            "{format}"
        );
    }
}

#[test]
fn a_record_of_any_size_is_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = Json::read_object(&grid_verdict(folder.path())).unwrap();
    let rows = record.at(&["result", "sensitivity"]).items().to_vec();
    let many: Vec<Json> = rows.iter().cycle().take(5_000).cloned().collect();
    record.get_mut("result").unwrap().set("sensitivity", many);
    let path = folder.path().join("many.json");
    std::fs::write(&path, record.to_text()).unwrap();
    let told = report(&["--decision", path.to_str().unwrap(), "--format", "json"]);
    let cells = rows_of(&told);
    assert_eq!(cells, 2_000);
    assert!(told.contains("(the first 2000 of 5000 rows)"));
    // A grid with more lines than a picture can show is a table only.
    for (place, row) in record
        .get_mut("result")
        .unwrap()
        .get_mut("sensitivity")
        .unwrap()
        .items_mut()
        .iter_mut()
        .enumerate()
    {
        row.set("memory_cap_mb", place);
    }
    std::fs::write(&path, record.to_text()).unwrap();
    let told = report(&["--decision", path.to_str().unwrap(), "--format", "json"]);
    assert!(!told.contains("\"chart\""));
    assert_eq!(rows_of(&told), 2_000);
}

fn rows_of(report: &str) -> usize {
    rows(report, "Decisions over a grid of thresholds").len()
}
