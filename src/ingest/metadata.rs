//! The small top-level values that later stages use.

use super::log::Log;
use super::note::Notes;
use super::row::{self, Value};
use super::text::Scanner;
use crate::model::{DeviceProperties, DistributedInfo, Metadata};

const KEYS: [&[u8]; 10] = [
    b"schemaVersion",
    b"baseTimeNanoseconds",
    b"traceName",
    b"distributedInfo",
    b"deviceProperties",
    b"computeProperties",
    b"INFO",
    b"WARNING",
    b"ERROR",
    b"STAGE",
];

/// The texts of the values to read, the last one of each key.
#[derive(Debug, Default)]
pub(super) struct Sections<'a> {
    texts: [Option<&'a [u8]>; KEYS.len()],
    notes: Notes<'a>,
}

impl<'a> Sections<'a> {
    /// Keeps the value `text` when `key` is one to read.
    pub(super) fn keep(&mut self, key: &[u8], text: &'a [u8]) {
        if let Some(place) = KEYS.iter().position(|known| *known == key) {
            self.texts[place] = Some(text);
        } else {
            self.notes.keep(key, text);
        }
    }

    /// Reads the values kept. The walk of the document has found them to be valid; a value of an
    /// unexpected kind counts as absent.
    pub(super) fn read(&self) -> Metadata {
        let [schema, base, name, distributed, devices, compute, logs @ ..] =
            self.texts.map(Option::unwrap_or_default);
        let mut devices = read_devices(devices);
        if devices.is_empty() {
            devices = read_devices(compute);
        }
        let mut log = Log::default();
        for text in logs {
            log.read(text);
        }
        Metadata {
            schema_version: integer(value(schema)),
            base_time_ns: integer(value(base)),
            distributed: read_distributed(distributed),
            devices,
            trace_name: string(value(name)),
            out_of_range_records: log.out_of_range,
            profiler_stops: log.stops,
            profiler_errors: log.errors,
            rewriting: self.notes.read(),
        }
    }
}

fn value(text: &[u8]) -> Value<'_> {
    Scanner::new(text, 0).value().unwrap_or_default()
}

fn integer(value: Value<'_>) -> Option<i64> {
    row::signed(value, &mut String::new())
}

fn string(value: Value<'_>) -> Option<String> {
    row::text_of(value, &mut String::new()).map(str::to_owned)
}

fn read_distributed(text: &[u8]) -> DistributedInfo {
    let mut info = DistributedInfo::default();
    let mut scanner = Scanner::new(text, 0);
    if scanner.peek() != Some(b'{') {
        return info;
    }
    // Valid, as the walk has found: there is no fault to report.
    let _ = scanner.members(|scanner, key| {
        match key {
            b"rank" => info.rank = integer(scanner.value()?),
            b"world_size" => info.world_size = integer(scanner.value()?),
            b"backend" => info.backend = string(scanner.value()?),
            _ => scanner.skip()?,
        }
        Ok(())
    });
    info
}

fn read_devices(text: &[u8]) -> Vec<DeviceProperties> {
    let mut devices = Vec::new();
    let mut scanner = Scanner::new(text, 0);
    if scanner.peek() == Some(b'[') {
        let _ = scanner.items(|scanner| {
            if scanner.peek() != Some(b'{') {
                return scanner.skip();
            }
            let mut device = DeviceProperties::default();
            scanner.members(|scanner, key| {
                match key {
                    b"id" => device.id = integer(scanner.value()?),
                    b"name" => device.name = string(scanner.value()?),
                    _ => scanner.skip()?,
                }
                Ok(())
            })?;
            devices.push(device);
            Ok(())
        });
    }
    devices
}
