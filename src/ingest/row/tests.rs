//! One event to its row.

use super::*;
use crate::model::EventId;

fn rows(event: &RawEvent<'_>) -> Rows {
    let mut rows = Rows::default();
    rows.push(0, event);
    rows
}

fn complete<'a>(ts: Value<'a>, dur: Value<'a>) -> RawEvent<'a> {
    RawEvent {
        ph: Value::Text("X"),
        ts,
        dur,
        ..RawEvent::default()
    }
}

#[test]
fn each_event_has_at_most_one_fault_of_time() {
    let one = Value::Int(1);
    let far = Value::Int(i64::MAX);
    let limit = Value::Number(b"4611686018427387.904");
    for (ts, dur, code) in [
        (one, one, None),
        (Value::Text(" 1.5 "), Value::Quoted(b"2"), None),
        (one, Value::Int(0), None),
        (
            Value::Absent,
            Value::Absent,
            Some(HealthCode::MissingTimestamp),
        ),
        (
            Value::Null,
            Value::Int(-1),
            Some(HealthCode::MissingTimestamp),
        ),
        (Value::Text("soon"), one, Some(HealthCode::MissingTimestamp)),
        (Value::Bool(true), one, Some(HealthCode::MissingTimestamp)),
        (one, Value::Absent, Some(HealthCode::MissingDuration)),
        (one, Value::Array(b"[]"), Some(HealthCode::MissingDuration)),
        (far, Value::Absent, Some(HealthCode::InvalidTimestamp)),
        (one, far, Some(HealthCode::InvalidTimestamp)),
        (limit, one, Some(HealthCode::InvalidTimestamp)),
        (one, Value::Int(-1), Some(HealthCode::NegativeDuration)),
    ] {
        let rows = rows(&complete(ts, dur));
        let codes: Vec<&str> = rows
            .health
            .entries()
            .iter()
            .map(|entry| entry.code)
            .collect();
        let expected: Vec<&str> = code.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes, expected, "{ts:?} {dur:?}");
        assert_eq!(rows.events.is_complete(EventId(0)), code.is_none());
    }
}

#[test]
fn only_lost_device_records_may_not_start_at_zero() {
    let zero = complete(Value::Int(0), Value::Number(b"0.000"));
    let excluded = |cat| {
        let rows = rows(&RawEvent {
            cat: Value::Text(cat),
            ..zero
        });
        assert_eq!(
            rows.health.get(HealthCode::ZeroTimestamp) == 1,
            cat == "kernel"
        );
        rows.events.flags(EventId(0)).has(EventFlags::EXCLUDED)
    };
    assert!(excluded("kernel"));
    assert!(!excluded("cpu_op"));
}

#[test]
fn a_pid_or_tid_may_be_any_value() {
    for (value, ident) in [
        (Value::Absent, Ident::Missing),
        (Value::Null, Ident::Missing),
        (Value::Int(-3), Ident::Int(-3)),
        (Value::Number(b"-0"), Ident::Int(0)),
    ] {
        let rows = rows(&RawEvent {
            pid: value,
            ..RawEvent::default()
        });
        assert_eq!(rows.tracks.get(rows.events.track(EventId(0))).pid, ident);
    }
    for (value, text) in [
        (Value::Text(""), ""),
        (Value::Quoted(br"a\u0062"), "ab"),
        (Value::Number(b"5.0"), "5.0"),
        (Value::Number(b"9223372036854775808"), "9223372036854775808"),
        (Value::Bool(true), "true"),
        (Value::Array(b"[1, 2]"), "[1,2]"),
    ] {
        let rows = rows(&RawEvent {
            tid: value,
            ..RawEvent::default()
        });
        let Ident::Text(id) = rows.tracks.get(rows.events.track(EventId(0))).tid else {
            panic!("a text for {value:?}")
        };
        assert_eq!(rows.strings.get(id), text);
    }
}

#[test]
fn letters_are_kept_and_longer_texts_are_unknown() {
    for (value, ph, code) in [
        (Value::Text("M"), Ph::METADATA, None),
        (Value::Text("Q"), Ph(b'Q'), Some(HealthCode::UnknownPh)),
        (Value::Text("XX"), Ph(b'?'), Some(HealthCode::UnknownPh)),
        (Value::Text("é"), Ph(b'?'), Some(HealthCode::UnknownPh)),
        (Value::Text(""), Ph::MISSING, Some(HealthCode::MissingPh)),
        (Value::Absent, Ph::MISSING, Some(HealthCode::MissingPh)),
        (Value::Int(1), Ph::MISSING, Some(HealthCode::MissingPh)),
    ] {
        let rows = rows(&RawEvent {
            ph: value,
            ..RawEvent::default()
        });
        assert_eq!(rows.events.ph(EventId(0)), ph);
        assert!(
            code.is_none_or(|code| rows.health.get(code) == 1),
            "{value:?}"
        );
        assert_eq!(rows.health.entries().len(), usize::from(code.is_some()));
    }
}

#[test]
fn events_of_the_oldest_exporter_have_their_kind_in_pid() {
    for (pid, ph, activity) in [
        ("CPU functions", "X", ActivityType::CpuOp),
        ("CUDA functions", "X", ActivityType::Kernel),
        ("CUDA functions", "s", ActivityType::Missing),
        ("other", "X", ActivityType::Missing),
    ] {
        let event = RawEvent {
            ph: Value::Text(ph),
            pid: Value::Text(pid),
            ..RawEvent::default()
        };
        assert_eq!(rows(&event).events.activity(EventId(0)), activity);
    }
    let named = RawEvent {
        cat: Value::Text("cpu_op"),
        pid: Value::Text("CUDA functions"),
        ..complete(Value::Int(1), Value::Int(1))
    };
    assert_eq!(
        rows(&named).events.activity(EventId(0)),
        ActivityType::CpuOp
    );
}

#[test]
fn a_peer_copy_is_on_the_device_it_goes_to() {
    let args = RawArgs {
        in_device: Value::Int(3),
        stream: Value::Text("7"),
        ..RawArgs::default()
    };
    let event = RawEvent {
        cat: Value::Text("gpu_memcpy"),
        args,
        ..RawEvent::default()
    };
    let given = RawArgs {
        device: Value::Int(1),
        ..args
    };
    let device = |event: &RawEvent<'_>| {
        let rows = rows(event);
        let args = rows.events.device_args(EventId(0)).expect("arguments");
        (args.device, args.stream)
    };
    assert_eq!(device(&event), (Some(3), Some(7)));
    assert_eq!(
        device(&RawEvent {
            args: given,
            ..event
        }),
        (Some(1), Some(7))
    );
}

#[test]
fn rewinding_takes_back_everything_but_strings() {
    let mut rows = Rows::default();
    let event = complete(Value::Int(5), Value::Int(1));
    rows.push(0, &event);
    let mark = rows.mark();
    for cat in ["kernel", "cuda_runtime", "cpu_op", "odd"] {
        let args = RawArgs {
            external: Value::Int(1),
            ..RawArgs::default()
        };
        rows.push(
            9,
            &RawEvent {
                cat: Value::Text(cat),
                ts: Value::Int(1),
                args,
                ..event
            },
        );
    }
    rows.push_other(9);
    rows.rewind(mark);
    let events = &rows.events;
    assert_eq!(events.len(), 1);
    assert!(events.op_args.is_empty() && events.launch_args.is_empty());
    assert!(events.device_args.is_empty());
    assert_eq!(rows.extent.first, 5_000);
    assert_eq!(rows.health, Health::default());
}
