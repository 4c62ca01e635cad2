//! Small traces as text, for the tests of this stage.

use super::file::{FileAttribution, attribute_file};
use super::options::AttributeOptions;
use super::phase::Phase;
use super::table::Bucket;
use crate::ingest::IngestOptions;
use crate::model::Trace;

/// A trace from lines of `KIND ROW START DURATION NAME [key=value …]`, times in µs.
///
/// Kinds are `note` (annotation), `op`, `launch`, `kernel`, `memcpy`, `frame` (Python), `flow_s`
/// and `flow_f`; rows are `pid/tid`. Keys are `seq`, `fwd`, `dims`, `corr`, `ext`, `id`.
pub(crate) fn trace(lines: &str) -> Trace {
    Trace::from_bytes(json(lines).as_bytes(), &IngestOptions::default()).unwrap()
}

/// The same trace as the text of a file.
pub(crate) fn json(lines: &str) -> String {
    let events: Vec<String> = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(event)
        .collect();
    format!(
        "{{\"schemaVersion\":1,\"traceEvents\":[{}]}}",
        events.join(",")
    )
}

fn event(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [kind, row, start, dur, rest @ ..] = words.as_slice() else {
        panic!("short line: {line}")
    };
    let (pid, tid) = row.split_once('/').unwrap();
    let name: Vec<&str> = rest
        .iter()
        .take_while(|word| !word.contains('='))
        .copied()
        .collect();
    let mut args = Vec::new();
    let mut id = String::new();
    for word in &rest[name.len()..] {
        let (key, value) = word.split_once('=').unwrap();
        let key = match key {
            "seq" => "Sequence number",
            "fwd" => "Fwd thread id",
            "dims" => "Input Dims",
            "corr" => "correlation",
            "ext" => "External id",
            "id" => {
                id = format!("\"id\":{value},");
                continue;
            }
            other => panic!("unknown key {other}"),
        };
        args.push(format!("\"{key}\":{value}"));
    }
    let (ph, cat) = match *kind {
        "note" => ("X", "user_annotation"),
        "op" => ("X", "cpu_op"),
        "launch" => ("X", "cuda_runtime"),
        "kernel" => ("X", "kernel"),
        "memcpy" => ("X", "gpu_memcpy"),
        "frame" => ("X", "python_function"),
        "flow_s" => ("s", "ac2g"),
        "flow_f" => ("f", "ac2g"),
        other => panic!("unknown kind {other}"),
    };
    if matches!(*kind, "kernel" | "memcpy") {
        args.push(format!("\"device\":{pid},\"stream\":{tid}"));
    }
    format!(
        "{{\"ph\":\"{ph}\",\"cat\":\"{cat}\",\"name\":\"{}\",\"pid\":{pid},\"tid\":{tid},{id}\
         \"ts\":{start},\"dur\":{dur},\"args\":{{{}}}}}",
        name.join(" "),
        args.join(",")
    )
}

pub(crate) fn attribute(lines: &str) -> FileAttribution {
    attribute_file(&trace(lines), &AttributeOptions::default()).unwrap()
}

/// Device sums in µs: forward, backward, recompute, optimizer, other, pre-window, unlinked.
pub(crate) fn sums(file: &FileAttribution) -> [i64; 7] {
    Bucket::ALL.map(|bucket| file.totals.bucket(bucket).sum_ns.0 / 1000)
}

/// Phases of the operators called `name`, in order of start.
pub(crate) fn phases_of(lines: &str, name: &str) -> Vec<Phase> {
    let trace = trace(lines);
    let mut found: Vec<_> = super::file::host_operations(&trace, &AttributeOptions::default())
        .into_iter()
        .filter(|operation| trace.name(operation.event) == name)
        .map(|operation| (trace.events.ts(operation.event), operation.phase))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, phase)| phase).collect()
}
