//! What the doctor finds: a small trace for every code, the verdicts on them, and how much they concern.

pub(crate) mod codes;
mod notes;
mod ranks;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use tracekit::doctor::{
    Diagnosis, Examination, FileDiagnosis, Finding, Use, Verdict, diagnose_paths,
};
use tracekit::ingest::IngestOptions;

/// An event from `KIND ROW START DURATION NAME [key=value …]`, times in µs; rows are `pid/tid`.
fn event(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [kind, row, start, dur, rest @ ..] = words.as_slice() else {
        panic!("a short line: {line}")
    };
    let (pid, tid) = row.split_once('/').unwrap();
    let named = rest.iter().take_while(|word| !word.contains('='));
    let name: Vec<&str> = named.copied().collect();
    let args: Vec<String> = rest[name.len()..]
        .iter()
        .map(|word| {
            let (key, value) = word.split_once('=').unwrap();
            let key = match key {
                "corr" => "correlation",
                "seq" => "Sequence number",
                key => key,
            };
            format!("\"{key}\":{value}")
        })
        .collect();
    let (ph, cat) = match *kind {
        "note" => ("X", "user_annotation"),
        "op" => ("X", "cpu_op"),
        "launch" => ("X", "cuda_runtime"),
        "kernel" => ("X", "kernel"),
        "begin" => ("B", "user_annotation"),
        "end" => ("E", "user_annotation"),
        "instant" => ("i", "Trace"),
        other => (other, "cpu_op"),
    };
    let number = |key: &str, value: &str| match value {
        "-" => String::new(),
        value => format!("\"{key}\":{value},"),
    };
    let (ts, dur) = (number("ts", start), number("dur", dur));
    let (name, args) = (name.join(" "), args.join(","));
    format!(
        "{{\"ph\":\"{ph}\",\"cat\":\"{cat}\",\"name\":\"{name}\",\"pid\":{pid},\"tid\":{tid},\
         {ts}{dur}\"args\":{{{args}}}}}"
    )
}

/// A trace with `head` before its events.
pub(crate) fn trace_with(head: &str, lines: &str) -> Vec<u8> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let events: Vec<String> = lines.map(event).collect();
    format!(
        "{{\"schemaVersion\":1,{head}\"traceEvents\":[{}]}}",
        events.join(",")
    )
    .into_bytes()
}

/// A step of training without any fault.
pub(crate) const STEP: &str = "
    note   1/1 0   100 forward
    op     1/1 5   80  aten::mm
    launch 1/1 10  5   cudaLaunchKernel corr=100
    kernel 0/7 20  60  gemm corr=100
";

pub(crate) fn trace(lines: &str) -> Vec<u8> {
    trace_with("", &format!("{STEP}{lines}"))
}

/// The diagnosis of a folder with these files.
fn of_files(files: &[(&str, Vec<u8>)]) -> Diagnosis {
    let folder = tempfile::TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    diagnose(folder.path()).unwrap_or_else(|error| panic!("{error}"))
}

fn diagnose(path: &Path) -> tracekit::Result<Diagnosis> {
    let examination = Examination {
        paths: &[path.to_owned()],
        ingest: IngestOptions::default(),
        salvage: None,
    };
    diagnose_paths(&examination, &|_| {})
}

fn of_trace(content: Vec<u8>) -> FileDiagnosis {
    of_files(&[("trace.json", content)]).files.remove(0)
}

fn found(findings: &[Finding]) -> Vec<(&'static str, u64)> {
    findings
        .iter()
        .map(|finding| (finding.code, finding.count))
        .collect()
}

/// `trustworthy`, `not usable`, or `not for A, B; care for C`.
fn words(verdict: &Verdict) -> String {
    let named = |what: &str, uses: &[Use]| {
        let uses: Vec<&str> = uses.iter().map(|it| it.as_str()).collect();
        (!uses.is_empty()).then(|| format!("{what} for {}", uses.join(", ")))
    };
    let not = named("not", &verdict.not_usable_for);
    let parts: Vec<String> = not
        .into_iter()
        .chain(named("care", &verdict.care_for))
        .collect();
    if verdict.not_usable_for.len() == Use::ALL.len() {
        "not usable".to_owned()
    } else if parts.is_empty() {
        "trustworthy".to_owned()
    } else {
        parts.join("; ")
    }
}

/// A trace, its findings as `code count, code count`, and the verdict on it.
type Case = (Vec<u8>, &'static str, &'static str);

/// Checks `cases` and gives the codes found in them.
fn check(cases: Vec<Case>) -> BTreeSet<&'static str> {
    let mut codes = BTreeSet::new();
    let mut wrong = Vec::new();
    for (content, findings, verdict) in cases {
        let shown = String::from_utf8_lossy(&content[..content.len().min(900)]).into_owned();
        let file = of_trace(content);
        let got: Vec<String> = found(&file.findings)
            .iter()
            .map(|(code, count)| format!("{code} {count}"))
            .collect();
        let got = (got.join(", "), words(&file.verdict));
        if got != (findings.to_owned(), verdict.to_owned()) {
            wrong.push(format!(
                "want {findings:?}, {verdict:?}\ngot  {got:?}\nin   {shown}\n"
            ));
        }
        codes.extend(file.findings.iter().map(|finding| finding.code));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    codes
}

fn contents() -> Vec<Case> {
    let host = "note 1/1 0 9 forward\nop 1/1 1 2 aten::mm";
    let device = "launch 1/1 1 2 cudaLaunchKernel corr=5\nkernel 0/7 3 4 gemm corr=5";
    let empty = "instant 0/0 3 - Iteration Start: PyTorch Profiler\nnote 1/1 1 2 ProfilerStep#3";
    let foreign = br#"[{"ph":"B","name":"a","tid":1,"ts":1},{"ph":"E","tid":1,"ts":2},{"ph":"M"}]"#;
    let other = event("X 1/1 90 2 odd").replace("cpu_op", "my_tool");
    vec![
        (trace(""), "", "trustworthy"),
        (trace_with("", host), "no_device_work 1", "trustworthy"),
        (
            trace_with("", &format!("op 1/1 0 9 aten::mm\n{device}")),
            "phases_inferred 1",
            "trustworthy",
        ),
        (
            trace_with("", device),
            "no_operators 1",
            "not for phases, recompute",
        ),
        (
            trace_with("", empty),
            "empty_capture 1, no_device_work 1",
            "not usable",
        ),
        (
            b"[]".to_vec(),
            "empty_capture 1, no_device_work 1",
            "not usable",
        ),
        (
            foreign.to_vec(),
            "foreign_trace 2, no_device_work 1",
            "not usable",
        ),
        (
            b"[1, 2]".to_vec(),
            "foreign_trace 2, non_object_event 2, no_device_work 1",
            "not usable",
        ),
        (with(&other), "unknown_category 1", "trustworthy"),
    ]
}

fn launches() -> Vec<Case> {
    let capture = "
        launch 1/1 90 1 cudaStreamBeginCapture corr=101
        launch 1/1 92 1 cudaLaunchKernel corr=102
        launch 2/1 93 1 cudaLaunchKernel corr=103
        launch 1/1 95 1 cudaStreamEndCapture corr=104
    ";
    let replay = "
        launch 1/1 97 1 cudaGraphLaunch corr=105
        kernel 0/7 110 20 gemm corr=105
        kernel 0/7 130 20 gemm corr=105
    ";
    let unknown =
        "op 1/1 1 9 aten::mm\nlaunch 1/1 2 1 cudaGraphLaunch corr=5\nkernel 0/7 5 9 gemm corr=5";
    let shared = "
        launch 1/1 1 2 cudaLaunchKernel corr=107
        launch 2/1 1 2 cudaLaunchKernel corr=107
        kernel 0/7 90 9 gemm corr=107
    ";
    let early = "launch 1/1 95 2 cudaLaunchKernel corr=101\nkernel 0/7 85 3 gemm corr=101";
    vec![
        (
            trace("launch 1/1 90 2 cudaLaunchKernel corr=101"),
            "launches_without_work 1",
            "not for device time, phases, recompute",
        ),
        (
            trace(
                "launch 1/1 88 2 cudaLaunchKernel corr=101\nlaunch 1/1 90 2 cuLaunchKernelEx corr=102\nkernel 0/7 90 1 gemm corr=101",
            ),
            "launches_without_work 1",
            "care for device time, phases, recompute",
        ),
        // Launches of one correlation id share their work, and fills of nothing have none.
        (
            trace("launch 1/1 90 2 cudaLaunchKernel corr=100"),
            "",
            "trustworthy",
        ),
        // Ids that no event has say nothing: other calls had them.
        (
            trace("launch 1/1 90 2 cudaLaunchKernel corr=90000\nkernel 0/7 92 3 gemm corr=90000"),
            "",
            "trustworthy",
        ),
        (
            trace("launch 1/1 90 2 cudaMemsetAsync corr=101"),
            "",
            "trustworthy",
        ),
        (
            trace("kernel 0/7 90 20 lost corr=170"),
            "unlinked_device_work 1",
            "care for phases, recompute",
        ),
        (
            trace("kernel 0/7 90 20 early corr=7"),
            "pre_window 1",
            "care for phases, recompute",
        ),
        (
            trace("kernel 0/7 90 900 early corr=7"),
            "pre_window 1",
            "not for phases, recompute",
        ),
        (
            trace(shared),
            "ambiguous_launch 1, unlinked_device_work 1",
            "not for phases, recompute",
        ),
        (
            trace(early),
            "work_before_launch 1",
            "care for launch delays",
        ),
        (
            trace(capture),
            "capture_only 2",
            "not for device time, phases, recompute",
        ),
        (
            trace(&format!("{capture}{replay}")),
            "graph_replay 2, recompute_not_observable 1",
            "care for phases",
        ),
        (
            trace_with("", unknown),
            "graph_replay 1, recompute_not_observable 1, phases_inferred 1",
            "not for phases, recompute",
        ),
        (
            trace("op 1/1 90 2 Torch-Compiled Region: 0/0"),
            "recompute_not_observable 1",
            "trustworthy",
        ),
        (
            trace(
                "op 1/1 90 2 Torch-Compiled Region: 0/0\nnote 1/1 110 9 backward\nop 1/1 111 5 aten::mm seq=4",
            ),
            "recompute_not_observable 1",
            "care for recompute",
        ),
    ]
}

fn times() -> Vec<Case> {
    let unpadded = |ns: u64| format!(".{ns}");
    let padded = |ns: u64| format!(".{ns:03}");
    let quarters =
        |number: u64| [".0", ".2", ".5", ".8"][usize::try_from(number % 4).unwrap()].to_owned();
    let ticks = |ns: u64| format!(".{:03}", ns / 100 * 100);
    vec![
        (
            trace("kernel 0/7 70 20 gemm corr=100"),
            "lane_overlap_repaired 1, lane_overlap 1",
            "care for device time",
        ),
        (
            trace("kernel 0/7 79 2 gemm corr=100"),
            "lane_overlap 1",
            "trustworthy",
        ),
        (
            trace("kernel 0/7 0 0 gemm corr=100"),
            "zero_timestamp 1",
            "not for device time, phases, recompute",
        ),
        // As a program has it that joins a file with itself.
        (
            trace("kernel 0/7 80 10 gemm corr=100\nkernel 0/7 80 10 gemm corr=100"),
            "repeated_work 1",
            "care for device time, phases, recompute",
        ),
        (
            trace("kernel 0/7 82 0 gemm corr=100\nkernel 0/7 90 5 gemm corr=100"),
            "work_without_length 1",
            "care for device time, phases, recompute",
        ),
        (
            trace("X 1/1 90 -4 odd"),
            "negative_duration 1",
            "care for device time, host time, phases",
        ),
        (
            trace("X 1/1 - 4 odd"),
            "missing_timestamp 1",
            "care for device time, host time, phases",
        ),
        (
            trace("X 1/1 9999999999999999 4 odd"),
            "invalid_timestamp 1",
            "care for device time, host time, phases",
        ),
        (
            trace("X 1/1 99999999999 4 odd"),
            "absurd_time 1",
            "care for device time, host time, phases",
        ),
        (
            trace("X 1/1 90 - odd"),
            "missing_duration 1",
            "care for device time, host time, phases",
        ),
        (
            trace("begin 1/1 90 - open"),
            "unclosed_begin 1",
            "care for host time",
        ),
        (trace("end 1/1 90 - gone"), "unmatched_end 1", "trustworthy"),
        (
            trace("op 1/1 50 50 aten::mm finished=false"),
            "unfinished_operation 1",
            "care for host time",
        ),
        // Frames of the program itself are open when a capture ends.
        (
            with(&event("op 1/1 50 50 main finished=false").replace("cpu_op", "python_function")),
            "unfinished_operation 1",
            "trustworthy",
        ),
        (
            from_epoch(700, unpadded),
            "unpadded_fractions 699, no_device_work 1",
            "care for device time, host time, phases",
        ),
        (
            from_epoch(40, quarters),
            "rounded_timestamps 30, no_device_work 1",
            "trustworthy",
        ),
        (from_epoch(700, padded), "no_device_work 1", "trustworthy"),
        (from_epoch(700, ticks), "no_device_work 1", "trustworthy"),
        (
            from_epoch(700, |_| String::new()),
            "no_device_work 1",
            "trustworthy",
        ),
        // With a base time, short fractions are just short.
        (
            from_epoch_with(
                r#""baseTimeNanoseconds":1712195490000000000,"#,
                700,
                unpadded,
            ),
            "no_device_work 1",
            "trustworthy",
        ),
    ]
}

fn captures() -> Vec<Case> {
    let log = r#""INFO":["Record counts: Out-of-range = 38, Blocklisted runtime = 5"],"#;
    let steps = "note 1/1 0 30 ProfilerStep#3\nnote 1/1 30 30 ProfilerStep#6";
    let alone = "note 1/1 0 30 ProfilerStep#3 finished=false";
    vec![
        (
            trace(steps),
            "missing_steps 2, partial_steps 1",
            "care for step times",
        ),
        (
            trace(alone),
            "partial_steps 1, unfinished_operation 1",
            "not for step times; care for host time",
        ),
        // What was out of range was of no launch in the file.
        (trace_with(log, STEP), "lost_records 38", "trustworthy"),
        (
            trace_with(log, "note 1/1 0 9 forward\nop 1/1 1 2 aten::mm"),
            "lost_records 38, no_device_work 1",
            "care for device time, phases, recompute",
        ),
        (nccl(&[8, 9, 7, 9]), "", "trustworthy"),
        (
            nccl(&[8, 9, 7, 9, 400]),
            "outlier_collective 1",
            "care for device time, comparison across ranks",
        ),
        // Two large ones are no outliers.
        (nccl(&[8, 9, 90, 7, 9, 90]), "", "trustworthy"),
    ]
}

fn quirks() -> Vec<Case> {
    let open = br#"[{"ph":"X","cat":"user_annotation","name":"forward","tid":1,"ts":1,"dur":2}"#;
    let named = |name: &[u8]| {
        let content = String::from_utf8(with(r#"{"ph":"M","name":"Q"}"#)).unwrap();
        let (before, after) = content.split_once("\"Q\"").unwrap();
        [before.as_bytes(), b"\"", name, b"\"", after.as_bytes()].concat()
    };
    vec![
        (
            open.to_vec(),
            "unterminated_array 1, no_device_work 1",
            "trustworthy",
        ),
        (with(r#"{"ph":"M",}"#), "trailing_comma 1", "trustworthy"),
        (named(b"a\tb"), "control_characters 1", "trustworthy"),
        (named(b"\xff\xfe"), "invalid_utf8 1", "trustworthy"),
        (named(br"C:\cuda"), "invalid_escape 1", "trustworthy"),
        (
            with(r#"{"ph":"M","args":{"a":NaN}}"#),
            "nonfinite_number 1",
            "trustworthy",
        ),
        (
            trace_with(r#""schemaVersion":1,"#, STEP),
            "duplicate_key 1",
            "trustworthy",
        ),
        (
            trace_with(r#""traceEvents":[{"ph":"M"},{"ph":"M"}],"#, STEP),
            "replaced_events 2, duplicate_key 1",
            "care for device time, host time, phases, recompute, step times, launch delays, \
             comparison across ranks",
        ),
        (
            [b"\xef\xbb\xbf".to_vec(), trace("")].concat(),
            "byte_order_mark 1",
            "trustworthy",
        ),
        (with(r#"{"name":"a"}"#), "missing_ph 1", "trustworthy"),
        (with("7"), "non_object_event 1", "trustworthy"),
        (
            with(r#"{"ph":"?","name":"a"}"#),
            "unknown_ph 1",
            "trustworthy",
        ),
    ]
}

#[test]
fn what_is_in_a_file_is_told() {
    check(contents());
}

#[test]
fn launches_and_their_work_are_told() {
    check(launches());
}

#[test]
fn impossible_times_are_told() {
    check(times());
}

#[test]
fn captures_that_miss_something_are_told() {
    check(captures());
}

#[test]
fn what_is_no_json_is_told_and_harms_nothing() {
    check(quirks());
}

/// A clean trace with one more event, as text.
pub(crate) fn with(event: &str) -> Vec<u8> {
    let clean = String::from_utf8(trace("")).unwrap();
    let open = clean.strip_suffix("]}").unwrap();
    format!("{open},{event}]}}").into_bytes()
}

/// Operators at timestamps that count from the epoch, with fractions of nanoseconds as `fraction`
/// writes them.
fn from_epoch(operators: u64, fraction: impl Fn(u64) -> String) -> Vec<u8> {
    from_epoch_with("", operators, fraction)
}

fn from_epoch_with(head: &str, operators: u64, fraction: impl Fn(u64) -> String) -> Vec<u8> {
    let mut lines = String::from("note 1/1 1712195495505000 9000 forward\n");
    for number in 0..operators {
        let fraction = fraction(number * 37 % 1000);
        let at = 1_712_195_495_505_001 + number;
        writeln!(lines, "op 1/1 {at}{fraction} 0.5 aten::mm").unwrap();
    }
    trace_with(head, &lines)
}

/// A trace with all-reduces of these durations.
fn nccl(durations: &[u64]) -> Vec<u8> {
    let mut lines = String::new();
    for (number, dur) in (0..).zip(durations) {
        let at = 200 + 500 * number;
        writeln!(lines, "launch 1/1 {} 2 cudaLaunchKernel corr={at}", at - 50).unwrap();
        writeln!(
            lines,
            "kernel 0/20 {at} {dur} ncclDevKernel_AllReduce corr={at}"
        )
        .unwrap();
    }
    trace(&lines)
}

#[test]
fn a_damaged_trace_gets_a_verdict_and_other_files_are_listed() {
    let mut cut = trace("");
    cut.truncate(300);
    let diagnosis = of_files(&[
        ("a.pt.trace.json", trace("")),
        ("b.json", cut),
        (
            "et.json",
            br#"{"schema":"1.0","pid":1,"nodes":[]}"#.to_vec(),
        ),
        ("notes.txt", b"notes".to_vec()),
        ("settings.json", b"{\"batch\":".to_vec()),
    ]);
    let damaged = &diagnosis.files[1];
    assert_eq!(words(&damaged.verdict), "not usable");
    assert_eq!(found(&damaged.findings), [("failed_input", 1)]);
    assert_eq!(damaged.findings[0].first_offset, Some(300));
    assert_eq!(
        damaged.findings[0].first_name.as_deref(),
        Some("unexpected end of input")
    );
    assert_eq!((damaged.run, &damaged.facts), (None, &None));
    let skipped: Vec<_> = diagnosis
        .skipped
        .iter()
        .map(|file| (file.kind, file.failed))
        .collect();
    assert_eq!(
        skipped,
        [
            (Some("execution_trace"), false),
            (None, false),
            (Some("json"), false)
        ]
    );
}

#[test]
fn findings_tell_how_much_they_concern() {
    let lines = "
        note   1/1 0 50  ProfilerStep#1
        note   1/1 50 50 ProfilerStep#2
        launch 1/1 60 2  cudaLaunchKernel corr=101
        kernel 0/7 90 30 early corr=7
        kernel 0/9 93 10 gemm corr=100
        launch 1/1 99 1  cudaLaunchKernel corr=102
        kernel 0/8 95 5  gemm corr=102
    ";
    let file = of_trace(trace(lines));
    let get = |code: &str| {
        let found = file.findings.iter().find(|finding| finding.code == code);
        found.unwrap_or_else(|| panic!("no {code} in {:?}", found_codes(&file)))
    };
    let lost = get("launches_without_work");
    assert_eq!((lost.share, lost.time_ns), (Some(1.0 / 3.0), None));
    let steps: Vec<(&str, u64)> = lost
        .by_step
        .iter()
        .map(|(step, n)| (step.as_str(), *n))
        .collect();
    assert_eq!(steps, [("ProfilerStep#2", 1)]);
    let before = get("pre_window");
    assert_eq!(before.time_ns.unwrap().0, 30_000);
    assert_eq!(before.share, Some(30.0 / 105.0));
    let early = get("work_before_launch");
    assert_eq!((early.count, early.worst_ns.unwrap().0), (1, 4_000));
    assert_eq!(early.time_ns.unwrap().0, 5_000);
    let facts = file.facts.as_ref().unwrap();
    assert_eq!(
        (facts.launches, facts.steps, facts.device_events),
        (3, 2, 4)
    );
    assert_eq!(facts.host_window_ns.unwrap().0, 100_000);
}

fn found_codes(file: &FileDiagnosis) -> Vec<&'static str> {
    file.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn attribution_counts_what_the_doctor_counts() {
    for cases in [contents(), launches(), times(), captures()] {
        for (content, findings, _) in cases {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("trace.json");
            std::fs::write(&path, content).unwrap();
            let answer = crate::support::answer::answer(&path);
            let mut got: Vec<String> = answer["health"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| format!("{} {}", entry["code"].as_str().unwrap(), entry["count"]))
                .collect();
            let mut want: Vec<&str> = findings.split(", ").filter(|it| !it.is_empty()).collect();
            got.sort();
            want.sort_unstable();
            assert_eq!(got, want);
        }
    }
}
