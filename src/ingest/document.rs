//! The document around the events.

use foldhash::HashSet;

use super::IngestOptions;
use super::escape::is_space;
use super::metadata::Sections;
use super::row::Rows;
use super::segment::{self, Events, Form};
use super::text::{Fault, Scanner};
use crate::error::{Error, ErrorKind, Result};
use crate::health::{Health, HealthCode};
use crate::model::Metadata;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A document: its events, and the rest.
pub(super) struct Document {
    /// The rows of the event array.
    pub(super) rows: Rows,
    /// What the other keys say.
    pub(super) metadata: Metadata,
    /// What was unusual outside the events.
    pub(super) health: Health,
}

/// Reads a whole document.
pub(super) fn read(data: &[u8], options: &IngestOptions) -> Result<Document> {
    read_with(data, |open, form, first| {
        segment::read(data, open, form, first, options)
    })
}

/// Reads a document whose event arrays are read by `array`: it gets the offset of the opening
/// bracket, what stands around it, and whether it is the first array.
pub(super) fn read_with(
    data: &[u8],
    mut array: impl FnMut(usize, Form, bool) -> Result<Events>,
) -> Result<Document> {
    let mut health = Health::default();
    let mut scanner = Scanner::new(data, 0);
    if data.starts_with(BYTE_ORDER_MARK) {
        health.count(HealthCode::ByteOrderMark, 0, "");
        scanner.pos = BYTE_ORDER_MARK.len();
    }
    match scanner.space() {
        Some(b'{') => object(data, scanner, health, array),
        Some(b'[') => {
            let events = array(scanner.pos, Form::Array, true)?;
            scanner.pos = events.end;
            end_of_document(&mut scanner)?;
            Ok(Document {
                rows: events.rows,
                metadata: Metadata::default(),
                health,
            })
        }
        // Nothing at all and no JSON at all are damage where a trace was expected.
        first => Err(match first {
            None if data.is_empty() => refused(ErrorKind::Truncated, "empty file"),
            None => refused(ErrorKind::Truncated, "nothing but white space"),
            Some(b'"') => not_a_trace("a bare string"),
            Some(b'-' | b'0'..=b'9') => not_a_trace("a bare number"),
            _ if data.starts_with(b"\xff\xfe") || data.starts_with(b"\xfe\xff") => {
                refused(ErrorKind::Json, "UTF-16 text, which is no JSON")
            }
            Some(_) => refused(ErrorKind::Json, "neither JSON, gzip nor zstd"),
        }),
    }
}

/// What the front of a document says about the rest.
pub(super) enum Opening {
    /// The first event array opens at this offset.
    Array(usize, Form),
    /// This is no trace, whatever follows.
    Refused(Error),
    /// Too little is there to say.
    Unknown,
}

/// Reads the front of a document whose rest is not there yet.
pub(super) fn opening(front: &[u8]) -> Opening {
    let mut found = None;
    let read = read_with(front, |open, form, _| {
        found = Some((open, form));
        Err(not_a_trace("unread"))
    });
    let start = front.strip_prefix(BYTE_ORDER_MARK).unwrap_or(front);
    let first = start.iter().find(|byte| !is_space(**byte));
    match (found, read) {
        (Some((open, form)), _) => Opening::Array(open, form),
        (None, Err(error)) if !matches!(first, None | Some(b'{')) => Opening::Refused(error),
        _ => Opening::Unknown,
    }
}

fn not_a_trace(why: &str) -> Error {
    refused(ErrorKind::NotATrace, why)
}

fn refused(kind: ErrorKind, why: &str) -> Error {
    Error::new(kind, format!("not a Chrome/Kineto trace: {why}"))
}

/// Reads the object form: events under `traceEvents`, with other keys on both sides.
fn object(
    data: &[u8],
    mut scanner: Scanner<'_>,
    mut health: Health,
    mut array: impl FnMut(usize, Form, bool) -> Result<Events>,
) -> Result<Document> {
    let mut sections = Sections::default();
    let mut seen: HashSet<Box<[u8]>> = HashSet::default();
    let mut events: std::result::Result<Rows, &str> = Err("no traceEvents array");
    let mut failure = None;
    let walk = scanner.members(|scanner, key| {
        let name = String::from_utf8_lossy(key);
        let first = seen.insert(key.into());
        if !first {
            health.count(HealthCode::DuplicateKey, scanner.key_at as u64, &name);
        }
        let start = scanner.pos;
        if key == b"traceEvents" && scanner.peek() == Some(b'[') {
            match array(start, Form::Object, first) {
                Ok(read) => {
                    scanner.pos = read.end;
                    if let Ok(before) = &events {
                        let replaced = before.events.len();
                        health.add(HealthCode::ReplacedEvents, replaced as u64, None);
                    }
                    events = Ok(read.rows);
                }
                Err(error) => {
                    failure = Some(error);
                    return Err(Fault::End);
                }
            }
        } else {
            scanner.skip()?;
            let text = &data[start..scanner.pos];
            if key == b"traceEvents" {
                events = Err(match text[0] {
                    b'{' => "traceEvents is an object, not an array",
                    b'"' => "traceEvents is a string, not an array",
                    b'-' | b'0'..=b'9' => "traceEvents is a number, not an array",
                    b't' | b'f' => "traceEvents is a boolean, not an array",
                    _ => "traceEvents is null, not an array",
                });
            } else {
                sections.keep(key, text);
            }
        }
        std::mem::take(&mut scanner.quirks).count_into(&mut health, &name);
        Ok(())
    });
    if let Some(error) = failure {
        return Err(error);
    }
    walk.map_err(|fault| fault.into_error(data.len()))?;
    scanner.quirks.count_into(&mut health, "");
    let rows = events.map_err(not_a_trace)?;
    end_of_document(&mut scanner)?;
    let metadata = sections.read();
    health.add(HealthCode::LostRecords, metadata.out_of_range_records, None);
    for (code, messages) in [
        (HealthCode::ProfilerStopped, &metadata.profiler_stops),
        (HealthCode::ProfilerErrors, &metadata.profiler_errors),
    ] {
        health.add(code, messages.count, messages.first.clone());
    }
    Ok(Document {
        rows,
        metadata,
        health,
    })
}

/// Only white space may follow the document.
fn end_of_document(scanner: &mut Scanner<'_>) -> Result<()> {
    match scanner.space() {
        None => Ok(()),
        Some(_) => Err(
            Error::new(ErrorKind::Json, "text behind the end of the document")
                .at(scanner.pos as u64),
        ),
    }
}
