//! An independent reader: strict JSON by `serde_json`, numbers by decimal digits, one event at a
//! time, nothing shared with the library. Slow and plain on purpose.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tracekit::Trace;
use tracekit::model::{ActivityType, EventFlags, EventId, Ident};

/// A `pid` or `tid`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Missing,
    Int(i64),
    Text(String),
}

/// Everything the library keeps of one element of the event array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) offset: u64,
    pub(crate) ph: u8,
    pub(crate) name: String,
    pub(crate) cat: String,
    pub(crate) pid: Place,
    pub(crate) tid: Place,
    pub(crate) ts: Option<i64>,
    pub(crate) dur: Option<i64>,
    pub(crate) unfinished: bool,
    pub(crate) correlation: u64,
    pub(crate) external: u64,
    pub(crate) device: Option<i64>,
    pub(crate) stream: Option<i64>,
    pub(crate) sequence: i64,
    pub(crate) fwd_thread: i64,
    pub(crate) index: i64,
    pub(crate) dims: String,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            offset: 0,
            ph: 0,
            name: String::new(),
            cat: String::new(),
            pid: Place::Missing,
            tid: Place::Missing,
            ts: None,
            dur: None,
            unfinished: false,
            correlation: 0,
            external: 0,
            device: None,
            stream: None,
            sequence: -1,
            fwd_thread: 0,
            index: -1,
            dims: String::new(),
        }
    }
}

/// The fields of one object, in order, duplicates kept.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> serde::Deserialize<'a> for Fields<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'a> Visitor<'a> for Collect {
            type Value = Fields<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl<'a> Fields<'a> {
    /// The last field called `key`.
    fn get(&self, key: &str) -> Option<&'a str> {
        self.last_of(&[key])
    }

    /// The last field called by one of `keys`.
    fn last_of(&self, keys: &[&str]) -> Option<&'a str> {
        let mut fields = self.0.iter().rev();
        fields
            .find(|(name, _)| keys.contains(&name.as_str()))
            .map(|(_, value)| value.get())
    }
}

/// The events of `content`, or why it is no trace in strict JSON.
pub(crate) fn read(content: &[u8]) -> Result<Vec<Row>, String> {
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let array = if whole.get().starts_with('{') {
        let fields: Fields<'_> =
            serde_json::from_str(whole.get()).map_err(|error| error.to_string())?;
        fields.get("traceEvents").ok_or("no traceEvents")?
    } else {
        whole.get()
    };
    let events: Vec<&RawValue> = serde_json::from_str(array).map_err(|error| error.to_string())?;
    let mut rows = Vec::with_capacity(events.len());
    for event in events {
        let offset = event.get().as_ptr() as usize - text.as_ptr() as usize;
        let mut row =
            row(event.get()).map_err(|error| format!("{error} in the event at {offset}"))?;
        row.offset = offset as u64;
        rows.push(row);
    }
    pair(&mut rows);
    Ok(rows)
}

fn row(text: &str) -> Result<Row, serde_json::Error> {
    let mut row = Row::default();
    if !text.starts_with('{') {
        return Ok(row);
    }
    let event: Fields<'_> = serde_json::from_str(text)?;
    // What `serde_json` cannot decode, half a surrogate pair say, has no second opinion.
    let string = |key: &str| match event.get(key) {
        Some(value) if value.starts_with('"') => serde_json::from_str::<String>(value),
        _ => Ok(String::new()),
    };
    row.ph = match string("ph")?.as_bytes() {
        [] => 0,
        [letter] => *letter,
        _ => b'?',
    };
    row.name = string("name")?;
    row.cat = string("cat")?;
    row.pid = event.get("pid").map_or(Place::Missing, place);
    row.tid = event.get("tid").map_or(Place::Missing, place);
    row.ts = event.get("ts").and_then(nanoseconds);
    row.dur = event.get("dur").and_then(nanoseconds);
    let args: Option<Fields<'_>> = event
        .get("args")
        .and_then(|args| serde_json::from_str(args).ok());
    let activity = ActivityType::from_cat(&row.cat);
    let of_flow = matches!(
        activity,
        ActivityType::LaunchFlow | ActivityType::ForwardBackwardFlow
    );
    if of_flow {
        row.correlation = event.get("id").map_or(0, unsigned);
    }
    let Some(args) = args else { return Ok(row) };
    let int = |key: &str| args.get(key).and_then(signed);
    let external = args
        .last_of(&["External id", "external id"])
        .map_or(0, unsigned);
    row.unfinished = row.ph == b'X'
        && args
            .get("finished")
            .is_some_and(|value| matches!(value, "false" | "\"false\""));
    if activity.is_device_work() {
        row.correlation = args.get("correlation").map_or(0, unsigned);
        row.external = external;
        row.device = int("device").or_else(|| int("inDevice"));
        row.stream = int("stream");
    } else if activity.is_launch() || of_flow {
        if !of_flow {
            row.correlation = args.get("correlation").map_or(0, unsigned);
        }
        row.external = external;
    } else if matches!(activity, ActivityType::CpuOp | ActivityType::UserAnnotation) {
        row.external = external;
        row.sequence = int("Sequence number").unwrap_or(-1);
        row.fwd_thread = int("Fwd thread id").unwrap_or(0);
        row.index = args
            .last_of(&["Ev Idx", "Profiler Event Index"])
            .and_then(signed)
            .filter(|index| (0..i64::from(u32::MAX)).contains(index))
            .unwrap_or(-1);
        row.dims = args
            .last_of(&["Input Dims", "Input dims"])
            .filter(|dims| dims.starts_with('['))
            .map(without_white_space)
            .unwrap_or_default();
    }
    Ok(row)
}

fn place(text: &str) -> Place {
    if text == "null" {
        Place::Missing
    } else if let Ok(number) = text.parse() {
        Place::Int(number)
    } else {
        Place::Text(serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned()))
    }
}

/// A number, or a string that holds one.
fn bare(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(text)
}

fn unsigned(text: &str) -> u64 {
    bare(text).parse().unwrap_or(0)
}

fn signed(text: &str) -> Option<i64> {
    bare(text).parse().ok()
}

fn without_white_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_whitespace()).collect()
}

/// Decimal microseconds as nanoseconds: ties of what is finer round to even.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    let text = bare(text);
    let (negative, text) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            exponent.trim_start_matches('+').parse::<i64>().ok()?,
        ),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty()
        || !whole
            .bytes()
            .chain(fraction.bytes())
            .all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    // The value is `digits` with this many of them before the point.
    let point =
        i64::try_from(digits.len()).ok()? - i64::try_from(fraction.len()).ok()? + exponent + 3;
    if point > 20 {
        return None;
    }
    let kept = usize::try_from(point.max(0)).ok()?;
    let integer: String = digits
        .chars()
        .chain(std::iter::repeat('0'))
        .take(kept)
        .collect();
    let mut value: i128 = if integer.is_empty() {
        0
    } else {
        integer.parse().ok()?
    };
    let rest = if point < 0 {
        "0"
    } else {
        digits.get(kept..).unwrap_or("")
    };
    let first = rest.bytes().next().unwrap_or(b'0');
    let more = rest.bytes().skip(1).any(|byte| byte != b'0');
    if first > b'5' || (first == b'5' && (more || value % 2 == 1)) {
        value += 1;
    }
    let value = i64::try_from(if negative { -value } else { value }).ok()?;
    // The library takes times of less than 2^62 ns, so that sums of two cannot overflow.
    (value.unsigned_abs() < 1 << 62).then_some(value)
}

/// Gives every `B` the length to its `E`.
fn pair(rows: &mut [Row]) {
    let mut tracks: BTreeMap<(Place, Place), Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        if matches!(row.ph, b'B' | b'E') && row.ts.is_some() {
            tracks
                .entry((row.pid.clone(), row.tid.clone()))
                .or_default()
                .push(index);
        }
    }
    let last = rows
        .iter()
        .filter(|row| row.ph != b'M')
        .filter_map(|row| Some(row.ts? + row.dur.unwrap_or(0).max(0)))
        .max();
    for mut indices in tracks.into_values() {
        indices.sort_by_key(|index| rows[*index].ts);
        let mut open: Vec<usize> = Vec::new();
        for index in indices {
            let row = &rows[index];
            if row.ph == b'B' {
                open.push(index);
                continue;
            }
            let begin = open
                .iter()
                .rposition(|begin| row.name.is_empty() || rows[*begin].name == row.name);
            if let Some(place) = begin {
                let begin = open.remove(place);
                rows[begin].dur = Some(row.ts.unwrap() - rows[begin].ts.unwrap());
            }
        }
        for begin in open {
            rows[begin].dur = Some(last.unwrap() - rows[begin].ts.unwrap());
        }
    }
}

/// What the library holds of event `id`.
pub(crate) fn row_of(trace: &Trace, id: EventId) -> Row {
    let events = &trace.events;
    let place = |ident: Ident| match ident {
        Ident::Missing => Place::Missing,
        Ident::Int(number) => Place::Int(number),
        Ident::Text(text) => Place::Text(trace.strings.get(text).to_owned()),
    };
    let track = trace.tracks.get(events.track(id));
    let mut row = Row {
        offset: events.offset(id),
        ph: events.ph(id).0,
        name: trace.name(id).to_owned(),
        cat: trace.strings.get(events.cat(id)).to_owned(),
        pid: place(track.pid),
        tid: place(track.tid),
        ts: events.ts(id).map(|ns| ns.0),
        dur: events.dur(id).map(|ns| ns.0),
        unfinished: events.flags(id).has(EventFlags::UNFINISHED),
        ..Row::default()
    };
    if let Some(args) = events.device_args(id) {
        row.correlation = args.correlation;
        row.external = args.external;
        row.device = args.device;
        row.stream = args.stream;
    }
    if let Some(args) = events.launch_args(id) {
        row.correlation = args.correlation;
        row.external = args.external;
    }
    if let Some(args) = events.op_args(id) {
        row.external = args.external;
        row.sequence = args.sequence;
        row.fwd_thread = args.fwd_thread.into();
        row.index = match args.index {
            u32::MAX => -1,
            index => index.into(),
        };
        trace.strings.get(args.dims).clone_into(&mut row.dims);
    }
    row
}
