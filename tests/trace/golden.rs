//! Hand-written traces with the right answers beside them: every folder of `fixtures/golden` is a
//! test, so adding a folder adds a test.
//!
//! `expected.toml` has `about` (what the case shows and how its numbers come about), `[options]`,
//! `[health]` (every finding above nothing, with its count) and `[expect]` (values of the JSON
//! answer; what is left out may be anything).

use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value};
use tracekit::HealthCode;
use tracekit::attribute::{AttributeOptions, RecomputeEvidence};

use crate::doctor::codes::of_several_files;
use crate::support::answer::{attribution, json, unmet};
use crate::support::{folders_in, laws, package};

#[test]
fn every_golden_trace_gives_the_values_computed_by_hand() {
    let folders = folders_in(&package("fixtures/golden"));
    assert!(folders.len() >= 20, "the golden fixtures are gone");
    let failed: Vec<String> = folders.iter().flat_map(|folder| check(folder)).collect();
    assert!(
        failed.is_empty(),
        "{} values are wrong:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn every_finding_has_a_fixture() {
    let mut seen = std::fs::read_to_string(package("fixtures/hostile/outcomes.txt")).unwrap();
    for folder in folders_in(&package("fixtures/golden")) {
        let text = std::fs::read_to_string(folder.join("expected.toml")).unwrap();
        let health = toml::from_str::<Value>(&text).unwrap()["health"].take();
        for code in health.as_object().into_iter().flat_map(Map::keys) {
            seen.extend([" ", code, " "]);
        }
    }
    for code in of_several_files() {
        seen.extend([" ", code, " "]);
    }
    // It takes hundreds of events: tests/trace/doctor.rs makes them.
    seen.push_str(" unpadded_fractions ");
    let missing: Vec<&str> = HealthCode::ALL
        .iter()
        .map(|code| code.as_str())
        .filter(|code| !seen.contains(&format!(" {code} ")))
        .collect();
    assert!(missing.is_empty(), "no fixture has {missing:?}");
}

fn check(folder: &Path) -> Vec<String> {
    let case = folder.file_name().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(folder.join("expected.toml")).unwrap();
    let expected: Value = toml::from_str(&text).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(
        expected["about"]
            .as_str()
            .is_some_and(|about| about.len() > 40),
        "{case} says nothing"
    );
    for key in expected.as_object().unwrap().keys() {
        assert!(
            ["about", "options", "health", "expect"].contains(&key.as_str()),
            "{case}: {key}?"
        );
    }
    let trace = folder.join("trace");
    let input = if trace.is_dir() {
        trace
    } else {
        folder.join("trace.json")
    };
    let answer = match attribution(&input, &options(&expected["options"])) {
        Ok(attribution) => json(&attribution),
        Err(error) => return vec![format!("{case}: {error}")],
    };
    let mut failed = unmet(&expected["expect"], &answer);
    failed.extend(laws::broken(&answer));
    let findings: Map<String, Value> = answer["health"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            (
                finding["code"].as_str().unwrap().to_owned(),
                finding["count"].clone(),
            )
        })
        .collect();
    let want = expected
        .get("health")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    if findings != want {
        failed.push(format!(
            "/health: want {}, got {}",
            Value::from(want),
            Value::from(findings)
        ));
    }
    failed
        .into_iter()
        .map(|line| format!("{case}: {line}"))
        .collect()
}

fn options(table: &Value) -> AttributeOptions {
    let mut options = AttributeOptions::default();
    for (key, value) in table.as_object().into_iter().flatten() {
        match key.as_str() {
            "communication" => {
                let patterns = value.as_array().unwrap();
                options.communication = patterns
                    .iter()
                    .map(|pattern| Regex::new(pattern.as_str().unwrap()).unwrap())
                    .collect();
            }
            "ignore_annotations" => options.ignore_annotations = value.as_bool().unwrap(),
            "recompute_evidence" => {
                options.recompute_evidence = match value.as_str().unwrap() {
                    "annotation" => RecomputeEvidence::Annotation,
                    "stack" => RecomputeEvidence::Stack,
                    "sequence" => RecomputeEvidence::Sequence,
                    other => panic!("no evidence called {other}"),
                }
            }
            other => panic!("no option called {other}"),
        }
    }
    options
}
