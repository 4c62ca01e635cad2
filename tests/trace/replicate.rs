//! The benchmark generator: copies of a trace, with every link renumbered, are as many times the trace.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::answer::{answer, comparable, differences, stored};
use crate::support::{content, files_under, laws, package};

#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../benchmarks/replicate.rs"]
mod generator;

use generator::{Amount, Layout};

const COPIES: i64 = 3;

fn copies(trace: &Path, layout: Layout) -> Value {
    let text = String::from_utf8(content(trace)).unwrap();
    let mut copies = Vec::new();
    let amount = Amount::Copies(COPIES.unsigned_abs());
    generator::replicate(&text, layout, amount, &mut copies).unwrap();
    let folder = TempDir::new().unwrap();
    comparable(answer(&stored(
        folder.path(),
        "copies",
        "rank0.json",
        &copies,
    )))
}

#[test]
fn copies_have_as_many_times_the_sums_of_the_trace_in_every_layout() {
    let golden = [
        "two-steps",
        "checkpoint-non-reentrant",
        "fallback-links",
        "cuda-graph",
        "shared-correlation",
    ];
    let mut traces = files_under(&package("fixtures/traces"));
    traces.extend(golden.map(|case| package("fixtures/golden").join(case).join("trace.json")));
    for trace in traces {
        let one = answer(&trace);
        let many = copies(&trace, Layout::Native);
        assert_eq!(
            laws::broken(&many),
            Vec::<String>::new(),
            "{}",
            trace.display()
        );
        let mut checked = 0;
        for pointer in [
            "/totals/total/sum_ns",
            "/totals/total/busy_ns",
            "/totals/total/launches",
            "/totals/forward/sum_ns",
            "/totals/backward/sum_ns",
            "/totals/recompute/sum_ns",
            "/totals/optimizer/sum_ns",
            "/totals/unlinked/events",
            "/coverage/linked_by/correlation",
            "/coverage/linked_by/flow",
            "/coverage/linked_by/external_id",
            "/recompute/regions",
            "/recompute/ops",
            "/runs/0/host_phases/forward/self_ns",
            "/runs/0/host_phases/backward/self_ns",
            "/runs/0/host_phases/optimizer/wall_ns",
            "/runs/0/step_time/steps",
        ] {
            let value =
                |answer: &Value| answer.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
            assert_eq!(
                value(&many),
                COPIES * value(&one),
                "{pointer} of {}",
                trace.display()
            );
            checked += i64::from(value(&one) > 0);
        }
        assert!(checked >= 4, "{} has nothing to copy", trace.display());
        for layout in [Layout::Minified, Layout::Pretty] {
            let found = differences(&many, &copies(&trace, layout));
            assert!(
                found.is_empty(),
                "{}: {}",
                trace.display(),
                found.join("\n")
            );
        }
    }
}
