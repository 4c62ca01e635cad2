//! The arguments of events, read when asked for: most are of no use to most questions, so the columns
//! do not hold them.
//!
//! ```text
//! trace    offset of each event
//! content  ………{ "name": …, "args": { "grid": [8, 1, 1], … } }………
//!                                  └── read again from here
//! ```
//! Plain content is looked up at once by all threads. Compressed content is inflated once more, from
//! front to back, into a buffer that slides along.

use std::borrow::Cow;

use rayon::prelude::*;

use super::escape;
use super::inflate::{Compression, Inflater};
use super::row::{self, Value};
use super::text::{Fault, Scan, Scanner};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{EventId, Trace};

/// About how many bytes of compressed content are inflated at a time.
const STEP: usize = 1 << 20;

/// So many events are read by one task.
const EVENTS_A_TASK: usize = 1024;

/// Arguments of one event, as the file has them.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    keys: &'a [&'static str],
    /// One a key.
    values: Vec<Value<'a>>,
}

impl<'a> Args<'a> {
    /// The value of `key`; where the file has several, the last.
    fn value(&self, key: &str) -> Value<'a> {
        let place = self.keys.iter().position(|known| *known == key);
        debug_assert!(place.is_some(), "{key} is no key that was asked for");
        place.map_or(Value::Absent, |place| self.values[place])
    }

    /// An integer of 64 bits, also one in quotes.
    pub(crate) fn int(&self, key: &str) -> Option<i64> {
        row::signed(self.value(key), &mut String::new())
    }

    /// The bits of an id or address, which may need all 64; 0 when absent.
    pub(crate) fn bits(&self, key: &str) -> u64 {
        row::id_bits(self.value(key), &mut String::new())
    }

    /// A finite number, also one in quotes.
    pub(crate) fn float(&self, key: &str) -> Option<f64> {
        let number = match self.value(key) {
            Value::Int(number) => number as f64,
            Value::Number(text) => std::str::from_utf8(text).ok()?.parse().ok()?,
            Value::Text(text) => text.trim_ascii().parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    }

    /// A string.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        match self.value(key) {
            Value::Text(text) => Some(Cow::Borrowed(text)),
            Value::Quoted(raw) => {
                let mut text = String::new();
                escape::decode_into(raw, &mut text);
                Some(Cow::Owned(text))
            }
            _ => None,
        }
    }

    /// An array or object as text without white space outside strings; also one that the writer put
    /// into quotes, as PyTorch does with `"[8, 1, 1]"`.
    pub(crate) fn compact(&self, key: &str) -> Option<String> {
        let quoted;
        let text: &[u8] = match self.value(key) {
            Value::Array(text) | Value::Object(text) => text,
            Value::Text(_) | Value::Quoted(_) => {
                quoted = self.text(key)?;
                quoted.as_bytes()
            }
            _ => return None,
        };
        Some(escape::compact(text).into_owned())
    }

    /// Up to `most` integers of an array, also of one in quotes; `None` when it is no array of integers
    /// or has more.
    pub(crate) fn ints(&self, key: &str, most: usize) -> Option<Vec<i64>> {
        let text = self.compact(key)?;
        let inside = text.strip_prefix('[')?.strip_suffix(']')?;
        if inside.is_empty() {
            return Some(Vec::new());
        }
        let mut numbers = Vec::new();
        for number in inside.split(',') {
            if numbers.len() == most {
                return None;
            }
            numbers.push(number.parse().ok()?);
        }
        Some(numbers)
    }
}

/// What `take` makes of the arguments `keys` of each of `wanted`, in their order, which must be that
/// of the file. `bytes` are those that `trace` was read from.
///
/// # Errors
/// When the content is not what it was when `trace` was read.
pub(crate) fn arguments<T: Send>(
    bytes: &[u8],
    trace: &Trace,
    wanted: &[EventId],
    keys: &[&'static str],
    take: impl Fn(EventId, &Args<'_>) -> T + Sync,
) -> Result<Vec<T>> {
    let Some(compression) = Compression::of(bytes) else {
        let parts: Result<Vec<Vec<T>>> = wanted
            .par_chunks(EVENTS_A_TASK)
            .map(|events| {
                let read = events.iter().map(|event| {
                    let at = usize::try_from(trace.events.offset(*event)).unwrap_or(usize::MAX);
                    let args = bytes
                        .get(at..)
                        .map_or(Err(Fault::End), |text| args_of(text, keys));
                    args.map(|args| take(*event, &args)).map_err(|_| changed())
                });
                read.collect()
            })
            .collect();
        return Ok(parts?.into_iter().flatten().collect());
    };
    let mut window = Window {
        inflater: Inflater::new(bytes, compression, u64::MAX),
        bytes: Vec::new(),
        start: 0,
        base: 0,
        ended: false,
    };
    let mut taken = Vec::with_capacity(wanted.len());
    for event in wanted {
        window.advance_to(trace.events.offset(*event))?;
        loop {
            match args_of(window.data(), keys) {
                Ok(args) => break taken.push(take(*event, &args)),
                Err(Fault::End) if !window.ended => window.grow()?,
                Err(_) => return Err(changed()),
            }
        }
    }
    Ok(taken)
}

fn changed() -> Error {
    Error::new(ErrorKind::Io, "the file changed while it was read")
}

/// The arguments of the event that starts `text`.
fn args_of<'a>(text: &'a [u8], keys: &'a [&'static str]) -> Scan<Args<'a>> {
    let mut scanner = Scanner::new(text, 0);
    let mut args = Args {
        keys,
        values: vec![Value::Absent; keys.len()],
    };
    match scanner.peek() {
        Some(b'{') => {}
        Some(_) => return Err(Fault::Unexpected(0, "expected an event")),
        None => return Err(Fault::End),
    }
    scanner.members(|scanner, key| {
        if key != b"args" {
            return scanner.skip();
        }
        args.values.fill(Value::Absent);
        if scanner.peek() != Some(b'{') {
            return scanner.skip();
        }
        scanner.members(|scanner, key| {
            match keys.iter().position(|known| known.as_bytes() == key) {
                Some(place) => args.values[place] = scanner.value()?,
                None => scanner.skip()?,
            }
            Ok(())
        })
    })?;
    Ok(args)
}

/// A stretch of inflated content that slides along.
struct Window<'a> {
    inflater: Inflater<'a>,
    bytes: Vec<u8>,
    /// Where in `bytes` the stretch starts.
    start: usize,
    /// Offset of its first byte in the content.
    base: u64,
    /// True when the content ends with the stretch.
    ended: bool,
}

impl Window<'_> {
    fn data(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Leaves behind what is before `offset`.
    fn advance_to(&mut self, offset: u64) -> Result<()> {
        loop {
            let skip = offset.checked_sub(self.base).ok_or_else(changed)?;
            let len = self.data().len();
            if let Ok(skip) = usize::try_from(skip)
                && skip <= len
            {
                self.start += skip;
                self.base = offset;
                return Ok(());
            }
            self.start += len;
            self.base += len as u64;
            if self.ended {
                return Err(changed());
            }
            self.grow()?;
        }
    }

    /// Inflates more behind the stretch: at least as much as there is, so that an event of any length
    /// is looked at few times.
    fn grow(&mut self) -> Result<()> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let before = self.bytes.len();
        self.bytes.resize(before + STEP.max(before), 0);
        let mut len = before;
        while len < self.bytes.len() {
            let read = self.inflater.read(&mut self.bytes[len..])?;
            if read == 0 {
                self.ended = true;
                break;
            }
            len += read;
        }
        self.bytes.truncate(len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression as Level, write::GzEncoder};

    use super::*;
    use crate::ingest::IngestOptions;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn content(events: usize, long: usize) -> String {
        let events: Vec<String> = (0..events)
            .map(|number| {
                let long = "x".repeat(if number % 7 == 0 { long } else { 3 });
                format!(
                    r#"{{"ph": "X", "cat": "kernel", "name": "{long}", "ts": {number}, "dur": 1,
                    "args": {{"bytes": 1, "grid": [{number}, 1, 1], "text": "a\tb", "bytes": "{number}"}}}}"#
                )
            })
            .collect();
        format!(r#"{{"traceEvents": [{}]}}"#, events.join(","))
    }

    #[test]
    fn plain_and_compressed_content_give_the_same_arguments() {
        let content = content(500, 300_000);
        for bytes in [content.clone().into_bytes(), gzip(content.as_bytes())] {
            let trace = Trace::from_bytes(&bytes, &IngestOptions::default()).unwrap();
            let wanted: Vec<EventId> = trace.events.ids().filter(|id| id.0 % 3 == 1).collect();
            let keys = ["grid", "bytes", "text", "missing"];
            let read = arguments(&bytes, &trace, &wanted, &keys, |id, args| {
                assert_eq!(args.ints("grid", 3), Some(vec![i64::from(id.0), 1, 1]));
                assert_eq!(args.ints("grid", 2), None);
                assert_eq!(args.text("text").as_deref(), Some("a\tb"));
                assert_eq!((args.int("missing"), args.float("missing")), (None, None));
                args.int("bytes")
            })
            .unwrap();
            let expected: Vec<Option<i64>> =
                wanted.iter().map(|id| Some(i64::from(id.0))).collect();
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn content_that_changed_is_an_error() {
        let bytes = content(5, 3).into_bytes();
        let trace = Trace::from_bytes(&bytes, &IngestOptions::default()).unwrap();
        let wanted: Vec<EventId> = trace.events.ids().collect();
        for changed in [b"".to_vec(), vec![b' '; bytes.len()], gzip(b"{}")] {
            assert!(arguments(&changed, &trace, &wanted, &[], |_, _| ()).is_err());
        }
    }

    #[test]
    fn values_are_read_as_leniently_as_columns_are() {
        let text =
            br#"{"args": 1, "args": {"f": 0.5, "n": NaN, "s": "[1, 2]", "w": "12", "b": true,
            "deep": [[1, "a b"], []], "x": [1, "2"]}, "name": "x"}"#;
        let keys = ["f", "n", "s", "w", "b", "deep", "x"];
        let args = args_of(text, &keys).unwrap();
        assert_eq!(args.float("f"), Some(0.5));
        assert_eq!((args.float("n"), args.int("n")), (None, None));
        assert_eq!(args.ints("s", 9), Some(vec![1, 2]));
        assert_eq!((args.int("w"), args.float("w")), (Some(12), Some(12.0)));
        assert_eq!(args.compact("deep").as_deref(), Some(r#"[[1,"a b"],[]]"#));
        assert_eq!(args.ints("x", 9), None);
    }
}
