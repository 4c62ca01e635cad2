//! Phases without annotations against phases with them, on our own annotated runs: the share of
//! host self time on which both agree.

use tracekit::Trace;
use tracekit::attribute::{AttributeOptions, host_operations};
use tracekit::ingest::IngestOptions;
use tracekit::model::ActivityType;

use crate::support::corpus;

/// The share of self time that has the same phase with and without the annotations; `None` when
/// the trace has none.
fn agreement(trace: &Trace) -> Option<f64> {
    let annotated = trace.events.ids().any(|id| {
        trace.events.activity(id) == ActivityType::UserAnnotation
            && trace.name(id) == "phase.backward"
    });
    if !annotated {
        return None;
    }
    let mut blind = AttributeOptions::default();
    blind.ignore_annotations = true;
    let with = host_operations(trace, &AttributeOptions::default());
    let without = host_operations(trace, &blind);
    assert_eq!(with.len(), without.len());
    let (mut same, mut all) = (0, 0);
    for (with, without) in with.iter().zip(&without) {
        assert_eq!((with.event, with.self_ns), (without.event, without.self_ns));
        all += with.self_ns.0;
        if with.phase == without.phase {
            same += with.self_ns.0;
        }
    }
    Some(same as f64 / all as f64)
}

#[test]
fn inferred_phases_agree_with_annotated_ones() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut shares: Vec<(f64, String)> = Vec::new();
    for run in corpus::runs(&corpus).iter().filter(|run| run.strict_json) {
        let trace = Trace::open(&run.path, &IngestOptions::default()).unwrap();
        if let Some(share) = agreement(&trace) {
            shares.push((share, run.name.clone()));
        }
    }
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (share, name) in shares.iter().take(8) {
        println!("{share:.5} {name}");
    }
    assert!(
        shares.len() >= 80,
        "only {} runs are annotated",
        shares.len()
    );
    let (median, _) = shares[shares.len() / 2];
    println!("median {median:.5} over {} runs", shares.len());
    assert!(median >= 0.999, "median agreement {median}");
    let (least, name) = &shares[0];
    assert!(*least >= 0.95, "{name} agrees on {least}");
}
