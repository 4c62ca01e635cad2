//! The two readers against each other, and whole documents against what they should give.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::health::HealthCode;
use crate::model::{EventId, Ident, Ph};

fn read_with(content: &[u8], reader: Reader, chunk: usize, segment: usize) -> Result<Trace> {
    let options = IngestOptions {
        reader,
        chunk_bytes: chunk,
        segment_bytes: segment,
        ..IngestOptions::default()
    };
    Trace::from_bytes(content, &options)
}

fn trace(content: &str) -> Trace {
    Trace::from_bytes(content.as_bytes(), &IngestOptions::default()).expect("a readable trace")
}

fn refusal(content: &[u8]) -> (ErrorKind, String) {
    let error = Trace::from_bytes(content, &IngestOptions::default()).expect_err("no trace");
    (error.kind(), error.reason())
}

/// Everything that an answer says, without the numbers of strings and tracks.
pub(super) fn describe(answer: &Result<Trace>) -> String {
    let trace = match answer {
        Ok(trace) => trace,
        Err(error) => return format!("{:?} {error}", error.kind()),
    };
    let mut text = format!("{:?}\n", trace.metadata);
    let ident = |ident| match ident {
        Ident::Text(id) => format!("{:?}", trace.strings.get(id)),
        other => format!("{other:?}"),
    };
    for id in trace.events.ids() {
        let events = &trace.events;
        let track = trace.tracks.get(events.track(id));
        let op = events.op_args(id).map(|args| {
            (
                args.external,
                args.sequence,
                args.fwd_thread,
                args.index,
                trace.strings.get(args.dims),
            )
        });
        let _ = writeln!(
            text,
            "{} {:?} {:?} {:?} {:?} {:?} {} {} {} {} {op:?} {:?} {:?}",
            events.offset(id),
            events.ph(id),
            events.activity(id),
            events.flags(id),
            trace.name(id),
            trace.strings.get(events.cat(id)),
            ident(track.pid),
            ident(track.tid),
            events.ts[id.index()],
            events.length(id),
            events.launch_args(id),
            events.device_args(id),
        );
    }
    for entry in trace.health.entries() {
        let _ = writeln!(text, "{entry:?}");
    }
    text
}

/// Reads `content` in every way and demands one answer.
fn same_answer(content: &[u8]) -> String {
    let expected = describe(&read_with(content, Reader::Text, usize::MAX, usize::MAX));
    for (reader, chunk, segment) in [
        (Reader::Auto, 128 << 10, 16 << 20),
        (Reader::Auto, 1, usize::MAX),
        (Reader::Auto, 1, 1),
        (Reader::Auto, 60, 150),
        (Reader::Auto, 300, 301),
        (Reader::Simd, 128 << 10, 16 << 20),
        (Reader::Simd, 1, usize::MAX),
        (Reader::Simd, 60, 150),
        (Reader::Text, 1, 1),
        (Reader::Text, 100, 100),
    ] {
        let answer = describe(&read_with(content, reader, chunk, segment));
        assert!(
            answer == expected,
            "{reader:?} {chunk} {segment} of {}\n{answer}\ninstead of\n{expected}",
            String::from_utf8_lossy(content),
        );
    }
    expected
}

fn count(trace: &Trace, code: HealthCode) -> u64 {
    trace.health.get(code)
}

#[test]
fn every_field_of_an_event_finds_its_column() {
    let trace = trace(concat!(
        r#"{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,"#,
        r#" "ts": 1.5, "dur": 2, "args": {"External id": 3, "correlation": 4, "device": 1,"#,
        r#" "stream": 7}}, {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9,"#,
        r#" "tid": "t", "ts": 1, "dur": 1, "args": {"Sequence number": 5, "Fwd thread id": 1,"#,
        r#" "Ev Idx": 6, "Input Dims": [[2, 3], []], "finished": "false"}},"#,
        r#" {"ph": "s", "cat": "ac2g", "id": 4, "ts": 1, "pid": 9, "tid": "t"}]}"#,
    ));
    let [kernel, op, flow] = trace.events.ids().collect::<Vec<_>>()[..] else {
        panic!("three")
    };
    let device = trace.events.device_args(kernel).expect("device arguments");
    assert_eq!((device.correlation, device.external), (4, 3));
    assert_eq!((device.device, device.stream), (Some(1), Some(7)));
    assert_eq!(trace.events.ts(kernel), Some(crate::units::Ns(1500)));
    assert_eq!(trace.events.dur(kernel), Some(crate::units::Ns(2000)));
    let args = trace.events.op_args(op).expect("arguments");
    assert_eq!((args.sequence, args.fwd_thread, args.index), (5, 1, 6));
    assert_eq!(trace.strings.get(args.dims), "[[2,3],[]]");
    assert_eq!(count(&trace, HealthCode::UnfinishedOperation), 1);
    assert_eq!(
        trace.events.launch_args(flow).map(|args| args.correlation),
        Some(4)
    );
    assert_eq!(trace.events.ph(flow), Ph::FLOW_START);
}

#[test]
fn the_last_of_two_equal_keys_counts_and_a_second_args_replaces_the_first() {
    let trace = trace(
        r#"[{"ph":"B","ph":"X","cat":"kernel","ts":1,"ts":2,"dur":3,
            "args":{"correlation":1,"stream":1},"args":{"correlation":2,"correlation":3}}]"#,
    );
    let id = EventId(0);
    assert_eq!(trace.events.ph(id), Ph::COMPLETE);
    assert_eq!(trace.events.ts(id), Some(crate::units::Ns(2000)));
    let args = trace.events.device_args(id).expect("device arguments");
    assert_eq!((args.correlation, args.stream), (3, None));
}

#[test]
fn keys_on_both_sides_of_the_events_are_read_and_decoys_are_not() {
    let trace = trace(
        r#"{"schemaVersion": 1, "note": "\"traceEvents\": [1, 2]",
        "traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "args": {"traceEvents": [{}, {"ph": 1}]}}],
        "extra": {"traceEvents": [{"ph": "X"}, {"ph": "X"}], "distributedInfo": {"rank": 5}},
        "distributedInfo": {"rank": "3", "world_size": 8, "backend": "nccl", "pg": [{"rank": 1}]},
        "baseTimeNanoseconds": 1790857026000000000, "traceName": "a\u0062c",
        "deviceProperties": [{"id": 0, "name": "H100", "blocks": inf}, 7, {"id": 1}],
        "WARNING": ["x Out-of-range = 3, y", "Out-of-range = 0", "Out-of-range = 39"]}"#,
    );
    assert_eq!(trace.events.len(), 1);
    let metadata = &trace.metadata;
    assert_eq!(metadata.schema_version, Some(1));
    assert_eq!(metadata.base_time_ns, Some(1_790_857_026_000_000_000));
    assert_eq!(
        (metadata.distributed.rank, metadata.distributed.world_size),
        (Some(3), Some(8))
    );
    assert_eq!(metadata.distributed.backend.as_deref(), Some("nccl"));
    assert_eq!(metadata.trace_name.as_deref(), Some("abc"));
    assert_eq!(metadata.devices.len(), 2);
    assert_eq!(metadata.devices[0].name.as_deref(), Some("H100"));
    assert_eq!(metadata.out_of_range_records, 42);
    assert_eq!(count(&trace, HealthCode::LostRecords), 42);
    assert_eq!(count(&trace, HealthCode::NonFiniteNumber), 1);
}

#[test]
fn the_last_of_two_top_level_keys_counts() {
    let trace = trace(r#"{"traceEvents":[{"ph":"X"},{}],"a":1,"a":2,"traceEvents":[{"ph":"M"}]}"#);
    assert_eq!(trace.events.len(), 1);
    assert_eq!(count(&trace, HealthCode::ReplacedEvents), 2);
    assert_eq!(count(&trace, HealthCode::DuplicateKey), 2);
    assert_eq!(count(&trace, HealthCode::MissingTimestamp), 0);
    let (kind, reason) = refusal(br#"{"traceEvents":[{"ph":"X"}],"traceEvents":null}"#);
    assert_eq!(kind, ErrorKind::NotATrace);
    assert!(
        reason.ends_with("traceEvents is null, not an array"),
        "{reason}"
    );
}

#[test]
fn what_is_no_trace_is_refused_with_the_reason() {
    for (content, why) in [
        ("", "empty file"),
        (" \n", "nothing but white space"),
        ("\u{feff}", "nothing but white space"),
        ("\"hello\"", "a bare string"),
        ("12", "a bare number"),
        ("%PDF", "neither JSON, gzip nor zstd"),
        ("{}", "no traceEvents array"),
        (r#"{"a":{"traceEvents":[]}}"#, "no traceEvents array"),
        (
            r#"{"traceEvents":{"a":1}}"#,
            "traceEvents is an object, not an array",
        ),
        (
            r#"{"traceEvents":"[]"}"#,
            "traceEvents is a string, not an array",
        ),
    ] {
        let (kind, reason) = refusal(content.as_bytes());
        let wanted = match why {
            "empty file" | "nothing but white space" => ErrorKind::Truncated,
            "neither JSON, gzip nor zstd" => ErrorKind::Json,
            _ => ErrorKind::NotATrace,
        };
        assert_eq!(kind, wanted, "{content}");
        assert_eq!(reason, format!("not a Chrome/Kineto trace: {why}"));
    }
}

#[test]
fn invalid_json_is_refused_with_its_exact_offset() {
    for (content, at, kind) in [
        (
            r#"{"traceEvents":[{"ph":"X","name":"a "b" c"}]}"#,
            37,
            ErrorKind::Json,
        ),
        (
            r#"{"traceEvents":[{"ph":"X"} {"ph":"X"}]}"#,
            27,
            ErrorKind::Json,
        ),
        (r#"{"traceEvents":[{"ph":"X"}],}x"#, 29, ErrorKind::Json),
        (r#"{"traceEvents":[{"ph":01}]}"#, 23, ErrorKind::Json),
        (r#"{"traceEvents":[{"ph" "X"}]}"#, 22, ErrorKind::Json),
        (r#"{"traceEvents":[{ph:"X"}]}"#, 17, ErrorKind::Json),
        (r#"{"traceEvents":[{"a":[1,2}]}"#, 25, ErrorKind::Json),
        (r#"{"traceEvents":[{"a":{"b":1]}]}"#, 27, ErrorKind::Json),
        (r#"{"traceEvents":[{"a":tru}]}"#, 21, ErrorKind::Json),
        (r#"{"traceEvents":[,{}]}"#, 16, ErrorKind::Json),
        (r#"{"traceEvents":[{}]"#, 19, ErrorKind::Truncated),
        (r#"{"traceEvents":[{"name":"abc"#, 28, ErrorKind::Truncated),
        (r#"{"traceEvents":[{"name":"abc\"#, 29, ErrorKind::Truncated),
        (r#"{"traceEvents":[{"name":tr"#, 26, ErrorKind::Truncated),
        (r#"{"traceEvents":[{"name":-"#, 25, ErrorKind::Truncated),
        (r#"{"traceEvents":[{"name":1."#, 26, ErrorKind::Truncated),
        (r#"{"traceEvents":[{}],"a""#, 23, ErrorKind::Truncated),
        (r#"[{"ph":"X"},{"ph":"#, 18, ErrorKind::Truncated),
        ("[{}]\0", 4, ErrorKind::Json),
    ] {
        let error = Trace::from_bytes(content.as_bytes(), &IngestOptions::default())
            .expect_err("invalid JSON");
        assert_eq!(
            (error.offset(), error.kind()),
            (Some(at), kind),
            "{content}: {error}"
        );
        same_answer(content.as_bytes());
    }
}

#[test]
fn an_array_may_lack_its_end() {
    for content in ["[", "[ ", "[{}", "[{},", "[{}, ", "[1,2", "[{}\n"] {
        let trace = trace(content);
        assert_eq!(count(&trace, HealthCode::UnterminatedArray), 1, "{content}");
        assert_eq!(count(&trace, HealthCode::TrailingComma), 0, "{content}");
        same_answer(content.as_bytes());
    }
}

#[test]
fn known_departures_from_json_are_read_and_counted() {
    let trace = Trace::from_bytes(
        b"[{\"name\": \"a\nb\x01\", \"cat\": \"\xff\", \"args\": {\"f\": \"C:\\code\\User\", \
          \"v\": [nan, -inf, N/A, Infinity, -Infinity, NaN, -nan,], }, }, ]",
        &IngestOptions::default(),
    )
    .expect("readable");
    assert_eq!(trace.name(EventId(0)), "a\nb\u{1}");
    assert_eq!(trace.strings.get(trace.events.cat(EventId(0))), "\u{fffd}");
    assert_eq!(count(&trace, HealthCode::ControlCharacters), 1);
    assert_eq!(count(&trace, HealthCode::InvalidUtf8), 1);
    assert_eq!(count(&trace, HealthCode::InvalidEscape), 1);
    assert_eq!(count(&trace, HealthCode::NonFiniteNumber), 7);
    assert_eq!(count(&trace, HealthCode::TrailingComma), 4);
}

#[test]
fn nesting_costs_no_stack() {
    let deep = 1_000_000;
    let content = format!(
        r#"{{"a":{}{},"traceEvents":[{{"args":{}0{}}}]}}"#,
        "[".repeat(deep),
        "]".repeat(deep),
        r#"{"a":"#.repeat(deep),
        "}".repeat(deep),
    );
    assert_eq!(trace(&content).events.len(), 1);
}

#[test]
fn gzip_is_known_by_its_content() {
    use std::io::Write as _;
    let member = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let mut bytes = member(r#"{"traceEvents":[{"ph":"X","ts":1,"dur":1},"#);
    bytes.extend(member(""));
    bytes.extend(member(r#"{"ph":"X","ts":1,"dur":1}]}"#));
    let whole = bytes.len();
    bytes.extend([0; 600]);
    let trace = Trace::from_bytes(&bytes, &IngestOptions::default()).expect("readable");
    assert_eq!((trace.events.len(), trace.compressed), (2, true));
    assert_eq!(trace.bytes, bytes.len() as u64);

    let (kind, reason) = refusal(&bytes[..whole - 5]);
    assert_eq!(kind, ErrorKind::Gzip, "{reason}");
    bytes[whole] = 1;
    let (kind, reason) = refusal(&bytes);
    assert_eq!(kind, ErrorKind::Gzip);
    assert_eq!(
        reason,
        format!("gzip: garbage behind the compressed data at byte {whole}")
    );
    bytes.truncate(whole);
    bytes[20] ^= 0xff;
    assert_eq!(refusal(&bytes).0, ErrorKind::Gzip);
}

#[test]
fn the_fast_reader_is_really_used() {
    let event = r#"{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1.25,"dur":2},"#;
    let content = format!("[{}]", event.repeat(3000).trim_end_matches(','));
    let mut decoder = decode::Decoder::default();
    let mut rows = row::Rows::default();
    let next = 1 + 2999 * event.len();
    assert!(decoder.chunk(content.as_bytes(), 1, next, &mut rows));
    assert_eq!(rows.events.len(), 2999);
    assert_eq!(rows.events.ts[2998], 1250);
}

#[test]
fn names_may_be_more_than_a_worker_keeps() {
    let long = "n".repeat(1000);
    let mut content = String::from("[");
    for number in 0..12_000 {
        // Some names are old, some tracks and spellings new.
        let (name, tid, ts) = (number / 2 * 3, number % 700, number * 10);
        let _ = write!(
            content,
            r#"{{"ph":"X","cat":"cpu_op","name":"{long}{name}","pid":1,"tid":{tid},"ts":{ts},"dur":2,"args":{{"Input Dims":[[{name}]]}}}},"#
        );
    }
    content.push_str(r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}]"#);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let answer = |segment| {
        let read = || read_with(content.as_bytes(), Reader::Auto, 1000, segment);
        describe(&pool.as_ref().expect("a thread").install(read))
    };
    let whole = describe(&read_with(
        content.as_bytes(),
        Reader::Text,
        1000,
        usize::MAX,
    ));
    assert!(whole == answer(100_000), "other rows in small segments");
    assert!(whole == answer(1_000_000), "other rows in large segments");
}

#[test]
fn a_chunk_is_refused_when_it_is_more_than_a_list_of_events() {
    for content in [
        r#"[{"ph":"X"}],[{"ph":"X"} , {"ph":"X"}]"#,
        r#"[{"ph":"X"}] {"ph":"X"} , {"ph":"X"}]"#,
        r#"[{"ph":"X"},{} , {"ph":"X"}]"#,
        r#"[{"ph":"X"},[{"ph":1}],{"ph":1} , {"ph":"X"}]"#,
        r#"[{"\u0070h":"X"},{"ph":1},{"d\u0075r":1.5} , {"ph":"X"}]"#,
    ] {
        let next = content.rfind('{').unwrap();
        let mut rows = row::Rows::default();
        let used = decode::Decoder::default().chunk(content.as_bytes(), 1, next, &mut rows);
        assert!(!used && rows.events.is_empty(), "{content}");
        same_answer(content.as_bytes());
    }
}

#[test]
fn wrong_guesses_change_nothing() {
    let nested = r#"{"ph":"X","ts":1,"dur":1,"args":{"l":[{"ph":"X"},{"ph":"Y"},{"id":1}]}}"#;
    let string = r#"{"name":"}, {\"ph\":\"X\"}, {","ph":"M"}"#;
    let content = format!(
        "{{\"traceEvents\":[{nested},{string},{nested}, {nested} ],\"a\":[{nested},{nested}]}}"
    );
    same_answer(content.as_bytes());
}

/// Text that is JSON, or nearly, in all the spellings that matter to a reader.
fn value() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec![
            "0", "-0", "1", "7", "-3", "12", "4096", "1.5", "0.001", "-0.5", "1e3", "1E+2", "2e-1",
            "123456789012345678", "1712195495505582.988", "9223372036854775807",
            "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
            "18446744073709551615", "18446744073709551616", "99999999999999999999999", "1e400",
            "-1e400", "1e-400", "5.0", "5110123456789.1235", "0.0005", "0.0015", "1e15", "1e16",
        ]).prop_map(str::to_owned),
        4 => prop::sample::select(vec![
            r#""X""#, r#""B""#, r#""E""#, r#""""#, r#""XX""#, r#""s""#, r#""f""#, r#""M""#, r#""i""#,
            r#""kernel""#, r#""cpu_op""#, r#""cuda_runtime""#, r#""ac2g""#, r#""12""#, r#""0x1F""#,
            r#""1.5""#, r#"" 7 ""#, r#""false""#, r#""CPU functions""#, r#""CUDA functions""#,
            r#""a b""#, r#""\u0058""#, r#""q\"q\\""#, r#""\ud83d\ude00""#, r#""é€😀""#, r#""\/\b\f\n\r\t""#,
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["true", "false", "null"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "NaN", "inf", "-inf", "N/A", "nan", "-nan", "Infinity", "nul", "01", "1.", "-", ".5",
            "+1", "1e", "\"\\c\"", "\"\\ud800\"", "\"\\u12\"", "\"a\nb\"", "\"a\\\u{1}\"", "tru", "truex",
        ]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((key(), inner), 0..4).prop_map(|members| object(&members, ", ")),
        ]
    })
    .boxed()
}

fn key() -> BoxedStrategy<String> {
    prop::sample::select(vec![
        "ph",
        "ph",
        "cat",
        "name",
        "pid",
        "tid",
        "ts",
        "dur",
        "id",
        "args",
        "bp",
        "s",
        "\\u0074s",
        "t\\u0073",
        "du\\u0072",
        "é",
        "",
        "External id",
        "correlation",
        "device",
        "inDevice",
        "stream",
        "Sequence number",
        "Fwd thread id",
        "Ev Idx",
        "Input Dims",
        "finished",
    ])
    .prop_map(str::to_owned)
    .boxed()
}

fn object(members: &[(String, String)], comma: &str) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("\"{key}\": {value}"))
        .collect();
    format!("{{{}}}", members.join(comma))
}

fn event() -> BoxedStrategy<String> {
    let odd = prop::collection::vec((key(), value()), 0..8);
    let time = prop::sample::select(vec!["1", "2.5", "3.125", "1712195495505582.988", "4", "9"]);
    let plain = (
        prop::sample::select(vec!["X", "X", "X", "B", "E", "M", "s"]),
        prop::sample::select(vec![
            "kernel",
            "cpu_op",
            "cuda_runtime",
            "ac2g",
            "fwdbwd",
            "odd",
        ]),
        prop::sample::select(vec!["forward", "aten::mm", "a\\\"b", "}, {", "ü"]),
        time.clone(),
        time,
        prop::collection::vec((key(), value()), 0..5),
    )
        .prop_map(|(ph, cat, name, ts, dur, args)| {
            format!(
                "{{\"ph\": \"{ph}\", \"cat\": \"{cat}\", \"name\": \"{name}\", \"pid\": 1, \
                 \"tid\": 2, \"ts\": {ts}, \"dur\": {dur}, \"args\": {}}}",
                object(&args, ",")
            )
        });
    prop_oneof![
        6 => plain,
        3 => odd.prop_map(|members| object(&members, ",\n  ")),
        1 => value(),
    ]
    .boxed()
}

pub(super) fn document() -> BoxedStrategy<String> {
    let comma = prop::sample::select(vec![",", ", ", " ,\n  ", ",\n"]);
    let head = prop::sample::select(vec![
        "[",
        " [\n",
        "{\"traceEvents\": [",
        "{\"schemaVersion\": 1,\n\"traceEvents\":[",
        "{\"x\": [{\"ph\": 1}, {\"ph\": 2}], \"traceEvents\": [ ",
    ]);
    let tail = prop::sample::select(vec![
        "]",
        "]}",
        " ]\n}\n",
        ",]}",
        "",
        ",",
        "], \"a\": [{\"ph\": 1}, {\"ph\": 2}, {\"ph\": 3}]}",
        "]]",
    ]);
    (head, prop::collection::vec(event(), 0..12), comma, tail)
        .prop_map(|(head, events, comma, tail)| format!("{head}{}{tail}", events.join(comma)))
        .boxed()
}

/// Changes to the bytes of a document: where (as a share of its length), how, and to what.
pub(super) fn damage() -> impl Strategy<Value = Vec<(f64, u8, u8)>> {
    let byte = prop_oneof![
        prop::sample::select(b"{}[],:\"\\0-eE.+ \n\tXtfn\x00\x1f\x80\xc3\xff".to_vec()),
        any::<u8>(),
    ];
    prop::collection::vec((0.0..1.0, 0_u8..4, byte), 0..4)
}

pub(super) fn damaged(content: &str, damage: &[(f64, u8, u8)]) -> Vec<u8> {
    let mut bytes = content.as_bytes().to_vec();
    for (share, how, byte) in damage {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place"
        )]
        let at = (share * bytes.len() as f64) as usize;
        match how {
            0 if at < bytes.len() => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if at.is_multiple_of(4) => bytes.truncate(at),
            _ => {}
        }
    }
    bytes
}

proptest! {
    #[test]
    fn both_readers_give_one_answer(content in document()) {
        same_answer(content.as_bytes());
    }

    #[test]
    fn both_readers_give_one_answer_on_damaged_text(content in document(), damage in damage()) {
        same_answer(&damaged(&content, &damage));
    }

    #[test]
    fn no_input_panics(content in prop::collection::vec(any::<u8>(), 0..200)) {
        same_answer(&content);
        same_answer(&[b"{\"traceEvents\":[".as_slice(), &content].concat());
    }
}

#[test]
fn all_readers_agree_on_the_corpus() {
    let Some(corpus) = std::env::var_os("TRACEKIT_CORPUS") else {
        println!("TRACEKIT_CORPUS is not set: no corpus to read");
        return;
    };
    let found = discover(&[corpus.into()]).expect("the corpus");
    for input in found.inputs {
        let source = Source::open(&input.path, &IngestOptions::default()).expect("a file");
        let expected = describe(&read_with(
            source.bytes(),
            Reader::Text,
            usize::MAX,
            usize::MAX,
        ));
        for (reader, chunk, segment) in [
            (Reader::Auto, 128 << 10, 16 << 20),
            (Reader::Auto, 700, 5000),
            (Reader::Auto, 1, 20_000),
            (Reader::Simd, 128 << 10, 16 << 20),
            (Reader::Simd, 700, 5000),
        ] {
            let answer = describe(&read_with(source.bytes(), reader, chunk, segment));
            let path = input.path.display();
            assert!(answer == expected, "{path} {reader:?} {chunk} {segment}");
        }
    }
}

/// Whoever reads an event counts the same: one that has lost its middle to another is no plain one.
#[test]
fn keys_of_an_event_that_come_twice_are_counted_by_every_reader() {
    let event = r#"{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10.5,"dur":3,"args":{"device":0,"stream":7,"correlation":5,"grid":[1,1,1]}}"#;
    let with = |text: &str, again: &str| event.replacen(text, &format!("{text},{again}"), 1);
    let odd = [
        with(r#""dur":3"#, r#""dur":30"#),
        with(r#""tid":7"#, r#""ph":"X""#),
        with(r#""correlation":5"#, r#""correlation":6"#),
        with(r#""correlation":5"#, r#""correlati\u006fn":6"#),
        with(r#""grid":[1,1,1]"#, r#""device":0"#),
        event.replace("}}", r#"},"args":{"device":1}}"#),
        event.replace("}}", r#"},"name":"other"}"#),
    ];
    // Of keys that no number needs it does not matter.
    let free = [
        with(r#""grid":[1,1,1]"#, r#""grid":[2,1,1]"#),
        with(r#""ts":10.5"#, r#""id2":1,"id2":1"#),
    ];
    for (many, expected) in [(&odd[..], 7), (&free[..], 0)] {
        let plain = vec![event; 20].join(",\n");
        let events: Vec<String> = many
            .iter()
            .map(|odd| format!("{plain},\n{odd},\n{plain}"))
            .collect();
        let content = format!("{{\"traceEvents\":[{}]}}", events.join(",\n"));
        same_answer(content.as_bytes());
        assert_eq!(
            count(&trace(&content), HealthCode::DuplicateKey),
            expected,
            "{content}"
        );
    }
    let trace = trace(&format!("{{\"traceEvents\":[{event},{}]}}", odd[0]));
    let entries = trace.health.entries();
    let entry = entries.iter().find(|entry| entry.code == "duplicate_key");
    let at = "{\"traceEvents\":[".len() + event.len() + 1 + odd[0].rfind("\"dur\"").unwrap();
    assert_eq!(entry.unwrap().first_offset, Some(at as u64));
    let last = trace.events.ids().last().unwrap();
    assert_eq!(trace.events.length(last), 30_000);
}
