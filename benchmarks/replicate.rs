//! Makes a large trace out of a real one: whole copies of its events, one after the other in time,
//! with every link renumbered so that copies stay apart, until the size is reached. The same arguments
//! give the same bytes.
//!
//! `cargo run --release --example replicate -- TRACE --size 200MB|--copies N
//! [--layout native|pretty|line|minified] [-o FILE]`

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::path::PathBuf;

use serde_json::value::RawValue;

/// Room between copies, in nanoseconds.
const GAP_NS: i128 = 1_000_000;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Fields<'a> = Vec<(&'a str, Range<usize>)>;

struct Arguments {
    trace: PathBuf,
    amount: Amount,
    layout: Layout,
    output: Option<PathBuf>,
}

/// How much is written: whole copies, so many or until a size is reached.
#[derive(Clone, Copy)]
pub(crate) enum Amount {
    Copies(u64),
    Bytes(u64),
}

/// How events are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As in the original.
    Native,
    /// Without white space.
    Minified,
    /// On one line, with a space behind commas and colons.
    Line,
    /// One value a line.
    Pretty,
}

/// A number in an event that differs from copy to copy.
struct Hole {
    at: Range<usize>,
    kind: Kind,
    value: i128,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// `ts`, in nanoseconds; true when it is written with decimals.
    Time {
        decimals: bool,
    },
    Correlation,
    ExternalId,
    SequenceNumber,
    Flow,
    Index,
    /// The number of a `ProfilerStep#`.
    Step,
}

struct Event {
    text: String,
    holes: Vec<Hole>,
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let content = read(&arguments.trace)?;
    let text = std::str::from_utf8(&content)?;
    let output: Box<dyn Write> = match &arguments.output {
        Some(path) => Box::new(File::create(path)?),
        None => Box::new(io::stdout().lock()),
    };
    let mut output = BufWriter::with_capacity(1 << 20, output);
    replicate(text, arguments.layout, arguments.amount, &mut output)?;
    output.flush()?;
    Ok(())
}

/// Writes copies of the trace in `text`.
pub(crate) fn replicate(
    text: &str,
    layout: Layout,
    amount: Amount,
    output: &mut impl Write,
) -> Result<()> {
    let (head, array, tail) = split(text)?;
    let mut once = Vec::new();
    let mut copied = Vec::new();
    for event in serde_json::from_str::<Vec<&RawValue>>(array)? {
        let event = prepare(&laid_out(event.get(), layout))?;
        let mut holes = event.holes.iter();
        let timed = holes.any(|hole| matches!(hole.kind, Kind::Time { .. }));
        if timed && repeats(&event.text) {
            copied.push(event);
        } else {
            once.push(event);
        }
    }
    if copied.is_empty() {
        return Err("the trace has no events to copy".into());
    }
    let strides = strides(&copied)?;
    let separator = match layout {
        Layout::Minified => ",",
        Layout::Line => ", ",
        Layout::Native | Layout::Pretty => ",\n  ",
    };
    let lengths = copied
        .iter()
        .map(|event| event.text.len() + separator.len());
    let copies = match amount {
        Amount::Copies(copies) => copies.max(1),
        Amount::Bytes(bytes) => bytes.div_ceil(lengths.sum::<usize>() as u64).max(1),
    };
    write!(output, "{head}[")?;
    let mut first = true;
    for copy in 0..copies {
        let last = once.iter().filter(|_| copy + 1 == copies);
        for event in copied.iter().chain(last) {
            if !first {
                output.write_all(separator.as_bytes())?;
            }
            first = false;
            write_event(output, event, i128::from(copy), &strides)?;
        }
    }
    write!(output, "]{tail}")?;
    Ok(())
}

fn arguments() -> Result<Arguments> {
    let mut trace = None;
    let mut amount = None;
    let mut layout = Layout::Native;
    let mut output = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--size" => amount = Some(Amount::Bytes(bytes_of(&value()?)?)),
            "--copies" => amount = Some(Amount::Copies(value()?.parse()?)),
            "--layout" => {
                layout = match value()?.as_str() {
                    "native" => Layout::Native,
                    "minified" => Layout::Minified,
                    "line" => Layout::Line,
                    "pretty" => Layout::Pretty,
                    other => return Err(format!("no layout is called {other}").into()),
                }
            }
            "-o" => output = Some(PathBuf::from(value()?)),
            _ if word.starts_with('-') => return Err(format!("no option is called {word}").into()),
            _ => trace = Some(PathBuf::from(word)),
        }
    }
    Ok(Arguments {
        trace: trace.ok_or("which trace?")?,
        amount: amount.ok_or("--size or --copies is missing")?,
        layout,
        output,
    })
}

/// `200MB` as a number of bytes; the units are powers of ten.
fn bytes_of(text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        other => return Err(format!("no unit is called {other}").into()),
    };
    Ok(digits.parse::<u64>()? * unit)
}

fn read(path: &PathBuf) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain)?;
    Ok(plain)
}

/// What comes before the event array, the array, and what comes after it.
fn split(text: &str) -> Result<(&str, &str, &str)> {
    let array = if text.trim_start().starts_with('[') {
        let start = text.len() - text.trim_start().len();
        start..text.trim_end().len()
    } else {
        let fields = fields(text)?;
        let events = fields.into_iter().find(|(key, _)| *key == "traceEvents");
        events.ok_or("the file has no traceEvents")?.1
    };
    Ok((
        &text[..array.start],
        &text[array.clone()],
        &text[array.end..],
    ))
}

/// Where the values of an object are in `text`.
fn fields(text: &str) -> Result<Fields<'_>> {
    let map: BTreeMap<&str, &RawValue> = serde_json::from_str(text)?;
    Ok(map
        .into_iter()
        .map(|(key, value)| {
            let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
            (key, start..start + value.get().len())
        })
        .collect())
}

/// True for events that every copy has: not names of rows, the capture span, or the window's end.
fn repeats(text: &str) -> bool {
    ![
        "PyTorch Profiler (",
        "Record Window End",
        "Iteration Start: PyTorch Profiler",
    ]
    .iter()
    .any(|name| text.contains(name))
}

fn prepare(text: &str) -> Result<Event> {
    let mut holes = Vec::new();
    let event = fields(text)?;
    let get = |key: &str| {
        event
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, range)| range.clone())
    };
    let value = |range: &Range<usize>| text[range.clone()].trim_matches('"');
    if get("ph").is_some_and(|ph| value(&ph) != "M")
        && let Some(at) = get("ts")
        && let Some((value, decimals)) = nanoseconds(&text[at.clone()])
    {
        holes.push(Hole {
            at,
            kind: Kind::Time { decimals },
            value,
        });
    }
    if let Some(at) = get("id")
        && let Ok(value) = text[at.clone()].parse()
    {
        holes.push(Hole {
            at,
            kind: Kind::Flow,
            value,
        });
    }
    if let Some(at) = get("name")
        && let Some(number) = value(&at).strip_prefix("ProfilerStep#")
        && let Ok(value) = number.parse()
    {
        let at = at.end - 1 - number.len()..at.end - 1;
        holes.push(Hole {
            at,
            kind: Kind::Step,
            value,
        });
    }
    if let Some(args) = get("args").filter(|args| text[args.clone()].starts_with('{')) {
        for (key, range) in fields(&text[args.clone()])? {
            let kind = match key {
                "correlation" => Kind::Correlation,
                "External id" => Kind::ExternalId,
                "Sequence number" => Kind::SequenceNumber,
                "Ev Idx" | "Ev Parent Idx" | "Profiler Event Index" => Kind::Index,
                _ => continue,
            };
            let at = args.start + range.start..args.start + range.end;
            // Zero and below say that there is no link.
            if let Some(value) = text[at.clone()].parse().ok().filter(|value| *value > 0) {
                holes.push(Hole { at, kind, value });
            }
        }
    }
    holes.sort_by_key(|hole| hole.at.start);
    Ok(Event {
        text: text.to_owned(),
        holes,
    })
}

/// Decimal microseconds as nanoseconds, and whether they have decimals.
fn nanoseconds(text: &str) -> Option<(i128, bool)> {
    match text.split_once('.') {
        None => Some((text.parse::<i128>().ok()? * 1000, false)),
        Some((whole, fraction)) if fraction.len() <= 3 && !text.starts_with('-') => {
            let fraction: i128 = format!("{fraction:0<3}").parse().ok()?;
            Some((whole.parse::<i128>().ok()? * 1000 + fraction, true))
        }
        Some(_) => None,
    }
}

/// How much each kind of number grows from copy to copy.
fn strides(events: &[Event]) -> Result<BTreeMap<u8, i128>> {
    let mut ranges: BTreeMap<u8, (i128, i128)> = BTreeMap::new();
    for event in events {
        for hole in &event.holes {
            let length = match hole.kind {
                Kind::Time { .. } => length(&event.text)?,
                _ => 0,
            };
            let range = ranges
                .entry(slot(hole.kind))
                .or_insert((hole.value, hole.value));
            range.0 = range.0.min(hole.value);
            range.1 = range.1.max(hole.value + length);
        }
    }
    let stride = |(slot, (least, most)): (u8, (i128, i128))| match slot {
        // Whole microseconds, so that times without decimals stay exact.
        0 => (slot, ((most - least) / 1000 + 1) * 1000 + GAP_NS),
        _ => (slot, most - least + 1),
    };
    let mut strides: BTreeMap<u8, i128> = ranges.into_iter().map(stride).collect();
    // A flow bears the number of its launch, and some writers put that in the External id too: all
    // three grow alike.
    let links = [Kind::Correlation, Kind::Flow, Kind::ExternalId].map(slot);
    let most = links
        .iter()
        .filter_map(|slot| strides.get(slot))
        .max()
        .copied();
    strides.extend(links.into_iter().zip(most.into_iter().cycle()));
    Ok(strides)
}

fn slot(kind: Kind) -> u8 {
    match kind {
        Kind::Time { .. } => 0,
        Kind::Correlation => 1,
        Kind::ExternalId => 2,
        Kind::SequenceNumber => 3,
        Kind::Flow => 4,
        Kind::Index => 5,
        Kind::Step => 6,
    }
}

fn length(event: &str) -> Result<i128> {
    let fields = fields(event)?;
    let dur = fields
        .iter()
        .find(|(key, _)| *key == "dur")
        .map(|(_, range)| &event[range.clone()]);
    Ok(dur.and_then(nanoseconds).map_or(0, |(ns, _)| ns.max(0)))
}

fn write_event(
    output: &mut impl Write,
    event: &Event,
    copy: i128,
    strides: &BTreeMap<u8, i128>,
) -> io::Result<()> {
    let mut from = 0;
    for hole in &event.holes {
        output.write_all(&event.text.as_bytes()[from..hole.at.start])?;
        let value = hole.value + copy * strides[&slot(hole.kind)];
        match hole.kind {
            Kind::Time { decimals: true } => {
                write!(output, "{}.{:03}", value / 1000, value % 1000)?;
            }
            Kind::Time { decimals: false } => write!(output, "{}", value / 1000)?,
            _ => write!(output, "{value}")?,
        }
        from = hole.at.end;
    }
    output.write_all(&event.text.as_bytes()[from..])
}

/// `json` in another layout; strings and digits stay as they are.
fn laid_out(json: &str, layout: Layout) -> String {
    if layout == Layout::Native {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut escaped, mut depth) = (false, false, 1);
    let line = |out: &mut String, depth: usize| {
        if layout == Layout::Pretty {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        }
    };
    for c in json.chars() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            c if c.is_ascii_whitespace() => {}
            '{' | '[' => {
                depth += 1;
                out.push(c);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
                if layout == Layout::Line {
                    out.push(' ');
                }
            }
            ':' => {
                out.push(c);
                if layout != Layout::Minified {
                    out.push(' ');
                }
            }
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}
