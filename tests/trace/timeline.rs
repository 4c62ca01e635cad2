//! Device timelines of public traces to the nanosecond, against values that an independent program
//! computed (`oracles/timeline_exact.json` beside the corpus).

use serde_json::Value;
use tracekit::attribute::AttributeOptions;

use crate::support::answer::{attribution, json};
use crate::support::corpus;

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn oracle() -> Option<(std::path::PathBuf, Value)> {
    let corpus = corpus::folder()?;
    let path = corpus.parent().unwrap().join("oracles/timeline_exact.json");
    let Ok(text) = std::fs::read(&path) else {
        eprintln!("skipped: there is no {}", path.display());
        return None;
    };
    Some((
        corpus.join("public"),
        serde_json::from_slice(&text).unwrap(),
    ))
}

#[test]
fn device_timelines_are_exact_on_public_traces() {
    let Some((public, oracle)) = oracle() else {
        return;
    };
    let traces = oracle["traces"].as_object().unwrap();
    assert!(!traces.is_empty());
    let mut wrong = Vec::new();
    for (name, want) in traces {
        let answer = json(&attribution(&public.join(name), &AttributeOptions::default()).unwrap());
        let devices = answer["ranks"][0]["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 1, "{name}");
        let (line, total) = (&devices[0]["timeline"], &devices[0]["totals"]["total"]);
        let int = |value: &Value| value.as_i64().unwrap();
        for (what, got, key) in [
            ("events", int(&total["events"]), "n_gpu"),
            ("window", int(&line["window_ns"]), "span_ns"),
            ("busy", int(&total["busy_ns"]), "busy_ns"),
            ("idle", int(&line["idle_ns"]), "idle_ns"),
            ("compute", int(&line["compute_ns"]), "compute_ns"),
            ("communication", int(&line["communication_ns"]), "comm_ns"),
            ("overlap", int(&line["overlap_ns"]), "comm_comp_overlap_ns"),
            (
                "not compute",
                int(&total["busy_ns"]) - int(&line["compute_ns"]),
                "non_compute_ns",
            ),
            ("sum", int(&total["sum_ns"]), "sum_dur_ns"),
        ] {
            if got != int(&want[key]) {
                wrong.push(format!("{name}: {what} is {got}, want {}", want[key]));
            }
        }
    }
    println!("{} timelines compared", traces.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_checkpointed_mi300_trace_has_its_known_recompute() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let path =
        corpus.join("public/AMD-AGI+TraceLens/tests/traces/mi300/resnet_act_checkpoint.json.gz");
    let answer = attribution(&path, &AttributeOptions::default()).unwrap();
    assert_eq!(answer.totals.total.events, 3_653);
    let table = json(&answer);
    assert_eq!(table["totals"]["pre_window"]["events"], 968);
    assert_eq!(
        table["totals"]["pre_window"]["sum_ns"].as_i64().unwrap() / 1000,
        31_834
    );
    assert_eq!(table["totals"]["recompute"]["events"], 615);
    assert_eq!(table["totals"]["recompute"]["sum_ns"], 4_209_958);
    assert_eq!(answer.recompute.device_sum_ns.0, 4_209_958);
}
