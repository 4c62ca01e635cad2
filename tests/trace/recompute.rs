//! Recompute on our own runs of two PyTorch versions, operation by operation, against truths that
//! were recorded independently: an annotation inside the checkpointed body, Python frames, or the
//! wall clock around the body.

use std::collections::{BTreeMap, BTreeSet};

use tracekit::Trace;
use tracekit::attribute::{AttributeOptions, Phase, RecomputeEvidence, host_operations};
use tracekit::ingest::IngestOptions;
use tracekit::model::{ActivityType, EventId, TrackId};

use crate::support::answer::attribution;
use crate::support::corpus::{self, Run};
use crate::support::package;

/// Spans of true re-runs, by thread; no thread means any.
type Spans = BTreeMap<Option<TrackId>, Vec<(i64, i64)>>;

fn open(run: &Run) -> Trace {
    Trace::open(&run.path, &IngestOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn options(evidence: RecomputeEvidence) -> AttributeOptions {
    let mut options = AttributeOptions::default();
    options.recompute_evidence = evidence;
    options
}

/// The operators that the library calls recompute.
fn found(trace: &Trace, evidence: RecomputeEvidence) -> BTreeSet<EventId> {
    host_operations(trace, &options(evidence))
        .into_iter()
        .filter(|operation| operation.phase == Phase::Recompute)
        .map(|operation| operation.event)
        .collect()
}

/// The operators that lie in one of `spans`.
fn operators_in(trace: &Trace, spans: &Spans) -> BTreeSet<EventId> {
    let events = &trace.events;
    events
        .ids()
        .filter(|id| events.activity(*id) == ActivityType::CpuOp && events.is_complete(*id))
        .filter(|id| {
            let start = events.ts(*id).unwrap().0;
            let end = start + events.dur(*id).unwrap().0;
            [Some(events.track(*id)), None]
                .iter()
                .filter_map(|track| spans.get(track))
                .flatten()
                .any(|(from, to)| *from <= start && end <= *to)
        })
        .collect()
}

/// Spans of events whose name `is` accepts, by thread.
fn spans_of(trace: &Trace, activity: ActivityType, is: impl Fn(&str) -> bool) -> Spans {
    let events = &trace.events;
    let mut spans = Spans::new();
    for id in events.ids() {
        if events.activity(id) == activity && events.is_complete(id) && is(trace.name(id)) {
            let start = events.ts(id).unwrap().0;
            let span = (start, start + events.dur(id).unwrap().0);
            spans.entry(Some(events.track(id))).or_default().push(span);
        }
    }
    spans
}

/// Spans that the wall clock around checkpointed bodies gave, in the time of the trace.
fn spans_of_clock(trace: &Trace, run: &Run) -> Spans {
    let folder = run.path.parent().unwrap();
    let truth = [
        folder.join("truth.json"),
        folder.parent().unwrap().join("truth.json"),
    ];
    let text = truth
        .iter()
        .find_map(|path| std::fs::read(path).ok())
        .expect("truth.json is beside the trace");
    let truth: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let base = trace.metadata.base_time_ns.unwrap_or(0);
    let mut spans = Vec::new();
    for step in truth["steps"].as_array().unwrap() {
        for block in step["blocks"].as_array().unwrap() {
            if block["in_backward"] == true {
                spans.push((
                    block["t0"].as_i64().unwrap() - base,
                    block["t1"].as_i64().unwrap() - base,
                ));
            }
        }
    }
    BTreeMap::from([(None, spans)])
}

fn truth(trace: &Trace, run: &Run) -> BTreeSet<EventId> {
    let spans = match run.truth.as_str() {
        "annotation" => spans_of(trace, ActivityType::UserAnnotation, |name| {
            name == "TRUTH.recompute"
        }),
        "pystack" => spans_of(trace, ActivityType::PythonFunction, |name| {
            name.contains("torch/utils/checkpoint.py") && name.ends_with(": recompute_fn")
        }),
        _ => spans_of_clock(trace, run),
    };
    operators_in(trace, &spans)
}

fn checked_runs() -> Option<Vec<Run>> {
    let corpus = corpus::folder()?;
    let runs = corpus::runs(&corpus);
    assert!(runs.len() >= 100, "the manifest lists {} runs", runs.len());
    Some(runs.into_iter().filter(|run| run.strict_json).collect())
}

#[expect(clippy::print_stdout, reason = "the measured values are worth reading")]
fn precision_and_recall(evidence: RecomputeEvidence) {
    let Some(runs) = checked_runs() else { return };
    let (mut right, mut wrong, mut missed) = (0, 0, 0);
    for run in runs {
        let trace = open(&run);
        let truth = truth(&trace, &run);
        assert_eq!(
            truth.len() as u64,
            run.truth_ops,
            "the truth of {}",
            run.name
        );
        let found = found(&trace, evidence);
        let hits = found.intersection(&truth).count();
        if found.len() != hits || truth.len() != hits {
            println!(
                "{}: {} wrong, {} missed of {}",
                run.name,
                found.len() - hits,
                truth.len() - hits,
                truth.len()
            );
        }
        right += hits;
        wrong += found.len() - hits;
        missed += truth.len() - hits;
    }
    let precision = right as f64 / (right + wrong) as f64;
    let recall = right as f64 / (right + missed) as f64;
    println!(
        "{evidence:?}: {right} right, {wrong} wrong, {missed} missed: precision {precision:.5}, recall {recall:.5}"
    );
    assert!(right > 30_000, "only {right} operators were found");
    assert!(precision >= 0.999, "precision {precision}");
    assert!(recall >= 0.995, "recall {recall}");
}

#[test]
fn sequence_numbers_find_recompute_operation_by_operation() {
    precision_and_recall(RecomputeEvidence::Sequence);
}

#[test]
fn the_strongest_evidence_finds_recompute_operation_by_operation() {
    precision_and_recall(RecomputeEvidence::Auto);
}

#[test]
fn counts_in_the_answer_are_the_operations_found() {
    let Some(runs) = checked_runs() else { return };
    for run in runs {
        for evidence in [RecomputeEvidence::Auto, RecomputeEvidence::Sequence] {
            let found = found(&open(&run), evidence).len() as u64;
            let answer = attribution(&run.path, &options(evidence)).unwrap();
            assert_eq!(answer.recompute.ops, found, "{} by {evidence:?}", run.name);
        }
    }
}

#[test]
fn runs_without_checkpointing_have_no_recompute() {
    let Some(runs) = checked_runs() else { return };
    let mut checked = 0;
    for run in runs.iter().filter(|run| run.truth_ops == 0) {
        checked += 1;
        let answer = attribution(&run.path, &AttributeOptions::default()).unwrap();
        assert_eq!(
            (answer.recompute.ops, answer.recompute.regions),
            (0, 0),
            "{}",
            run.name
        );
        assert_eq!(answer.recompute.evidence, "none", "{}", run.name);
        assert_eq!(answer.inputs[0].events, run.events, "{}", run.name);
    }
    assert!(checked >= 50, "only {checked} runs have no checkpointing");
}

#[test]
fn compiled_runs_say_that_recompute_may_be_hidden() {
    let Some(runs) = checked_runs() else { return };
    for run in runs.iter().filter(|run| run.variant.ends_with("_ingraph")) {
        let answer = attribution(&run.path, &AttributeOptions::default()).unwrap();
        assert_ne!(answer.recompute.observable, "yes", "{}", run.name);
    }
}

#[test]
fn files_that_are_not_json_are_refused_at_a_byte() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut refused = 0;
    for run in corpus::runs(&corpus).iter().filter(|run| !run.strict_json) {
        let error = attribution(&run.path, &AttributeOptions::default()).expect_err(&run.name);
        assert!(error.offset().is_some(), "{error}");
        assert_eq!(error.path(), Some(run.path.as_path()), "{error}");
        refused += 1;
    }
    assert!(refused > 0, "the corpus has no broken file");
}

#[test]
fn the_checkpointed_sample_is_found_operation_by_operation() {
    let folder = package("fixtures/traces/checkpoint");
    let path = std::fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let trace = Trace::open(&path, &IngestOptions::default()).unwrap();
    let spans = spans_of(&trace, ActivityType::UserAnnotation, |name| {
        name == "TRUTH.recompute"
    });
    let truth = operators_in(&trace, &spans);
    assert_eq!(truth.len(), 720);
    assert_eq!(found(&trace, RecomputeEvidence::Sequence), truth);
    assert_eq!(found(&trace, RecomputeEvidence::Auto), truth);
}
