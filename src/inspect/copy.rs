//! Copies and fills: between which memories, how many bytes, how fast.
//!
//! The kind and the memories are those in the name that the profiler gives: `Memcpy HtoD (Pinned ->
//! Device)` is `HtoD` from `pinned` to `device`. Bandwidth is bytes over time, of the events that have
//! bytes; 1 GB is 10⁹ bytes. The profiler's own `memory bandwidth (GB/s)` is given beside it, as a mean
//! over time.

use std::collections::BTreeMap;

use super::distribution::Description;
use super::frame::{Frame, Unit};
use super::hta_event::HtaEvents;
use super::options::{By, Definition};
use super::queue::described;
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use crate::attribute::{Bucket, DeviceClass, Work};
use crate::error::Result;
use crate::model::EventId;
use crate::units::Ns;

/// Copies and fills.
pub(super) struct Copies;

impl Subject for Copies {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        let frame = if view.options.definition == Definition::Hta {
            as_hta(view, &HtaEvents::new(view)?)
        } else {
            copies(view)?
        };
        Ok(vec![frame])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// Between which memories a copy goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    /// `HtoD`, `DtoH`, …, `memset`; `copy` and `fill` when the name says no more.
    name: String,
    source: Option<String>,
    target: Option<String>,
}

impl Kind {
    /// The kind that an event of `class` called `name` is.
    fn of(class: DeviceClass, name: &str) -> Self {
        let memories = name.split_once('(').map(|(_, rest)| rest);
        let memories = memories.and_then(|rest| Some(rest.rsplit_once(')')?.0));
        let plain = |text: &str| Some(text.trim().to_lowercase()).filter(|text| !text.is_empty());
        let (source, target) = match memories.map(|memories| memories.split_once("->")) {
            Some(Some((source, target))) => (plain(source), plain(target)),
            Some(None) => (None, memories.and_then(plain)),
            None => (None, None),
        };
        let word = |prefix: &str| {
            let rest = name.strip_prefix(prefix)?.trim_start();
            let word = rest.split([' ', '(']).next().unwrap_or_default();
            Some(word).filter(|word| !word.is_empty())
        };
        let (name, known) = match class {
            DeviceClass::Memset => {
                let known = name.starts_with("Memset");
                (if known { "memset" } else { "fill" }, known)
            }
            _ => word("Memcpy ").map_or(("copy", false), |word| (word, true)),
        };
        Self {
            name: name.to_owned(),
            source: source.filter(|_| known),
            target: target.filter(|_| known),
        }
    }
}

/// Copies that are in one row.
#[derive(Default)]
struct Sum {
    events: u64,
    time: Ns,
    with_bytes: u64,
    bytes: i128,
    time_with_bytes: Ns,
    /// Bandwidth times time.
    transferred: f64,
    time_with_bandwidth: Ns,
    fastest: Option<f64>,
}

type Key<'a> = (Kind, Option<Bucket>, Option<u32>, Option<String>);

fn copies(view: &View<'_>) -> Result<Frame> {
    let is_copy = |work: &&Work| matches!(work.class, DeviceClass::Memcpy | DeviceClass::Memset);
    let mut work: Vec<&Work> = view.work().filter(is_copy).collect();
    work.sort_by_key(|work| work.event);
    let wanted: Vec<EventId> = work.iter().map(|work| work.event).collect();
    let keys = &["bytes", "memory bandwidth (GB/s)"];
    let read = view.arguments(&wanted, keys, |_, args| {
        (args.int("bytes"), args.float("memory bandwidth (GB/s)"))
    })?;
    let mut recorded: Vec<_> = work.into_iter().zip(read).collect();
    // Sums of fractions depend on their order.
    recorded.sort_by(|(a, a_read), (b, b_read)| {
        (a.span, a_read.0).cmp(&(b.span, b_read.0)).then_with(|| {
            let [a, b] = [a_read, b_read].map(|read| read.1.unwrap_or(-1.0));
            a.total_cmp(&b)
        })
    });
    let mut rows: BTreeMap<Key<'_>, Sum> = BTreeMap::new();
    let by = |by| view.options.is_by(by);
    for (work, (bytes, bandwidth)) in recorded {
        let key = (
            Kind::of(work.class, view.trace().name(work.event)),
            by(By::Phase).then_some(work.bucket),
            by(By::Step).then_some(work.step),
            by(By::Stream).then(|| view.ident(work.stream)).flatten(),
        );
        let (bytes, bandwidth) = (
            bytes.filter(|bytes| *bytes >= 0),
            bandwidth.filter(|bandwidth| *bandwidth >= 0.0),
        );
        rows.entry(key)
            .or_default()
            .count(work.span.len(), bytes, bandwidth);
    }
    Ok(table(view, &rows.into_iter().collect::<Vec<_>>()))
}

impl Sum {
    fn count(&mut self, time: Ns, bytes: Option<i64>, bandwidth: Option<f64>) {
        self.events += 1;
        self.time += time;
        if let Some(bytes) = bytes {
            self.with_bytes += 1;
            self.bytes += i128::from(bytes);
            self.time_with_bytes += time;
        }
        if let Some(bandwidth) = bandwidth {
            self.transferred += bandwidth * time.0 as f64;
            self.time_with_bandwidth += time;
            self.fastest = Some(self.fastest.map_or(bandwidth, |known| known.max(bandwidth)));
        }
    }
}

fn table(view: &View<'_>, rows: &[(Key<'_>, Sum)]) -> Frame {
    Frame::new("copies", "Copies and fills by kind, and how fast they are.")
        .text("kind", rows, |row| Some(row.0.0.name.clone()))
        .text("source", rows, |row| row.0.0.source.clone())
        .text("target", rows, |row| row.0.0.target.clone())
        .text("phase", rows, |row| Some(row.0.1?.as_str()))
        .text("step", rows, |row| view.step_name(row.0.2?))
        .text("stream", rows, |row| row.0.3.clone())
        .count("events", rows, |row| Some(row.1.events))
        .ns("sum_ns", rows, |row| Some(row.1.time))
        .count("events_with_bytes", rows, |row| Some(row.1.with_bytes))
        .bytes("size_bytes", rows, |row| {
            let bytes = i64::try_from(row.1.bytes).unwrap_or(i64::MAX);
            (row.1.with_bytes > 0).then_some(bytes)
        })
        .float("mean_gbps", Unit::GbPerS, rows, |row| {
            // Bytes a nanosecond are 10⁹ bytes a second.
            (row.1.with_bytes > 0).then(|| row.1.bytes as f64 / row.1.time_with_bytes.0 as f64)
        })
        .float("recorded_mean_gbps", Unit::GbPerS, rows, |row| {
            row.1.fastest?;
            Some(row.1.transferred / row.1.time_with_bandwidth.0 as f64)
        })
        .float("recorded_max_gbps", Unit::GbPerS, rows, |row| row.1.fastest)
}

/// HTA's `get_memory_bw_summary`: the sum of the recorded bandwidths of all copies of a kind at once,
/// after each change, every change that leaves some counting once. An event of no length takes 1 µs.
fn as_hta(view: &View<'_>, events: &HtaEvents) -> Frame {
    let mut changes: BTreeMap<&str, [Vec<(Ns, f64)>; 2]> = BTreeMap::new();
    for event in &events.device {
        let name = view.trace().strings.get(event.name);
        let bare = name.strip_prefix("hip").unwrap_or(name);
        if !bare.starts_with("Memcpy") && !bare.starts_with("Memset") && !name.starts_with("dma") {
            continue;
        }
        let kind = if name.starts_with("Memset") {
            "Memset"
        } else if name.starts_with("Memcpy") {
            name.get(..11).unwrap_or(name)
        } else {
            "Memcpy Unknown"
        };
        let dur = if event.dur == Ns::ZERO {
            Ns(1000)
        } else {
            event.dur
        };
        let [starts, ends] = changes.entry(kind).or_default();
        starts.push((event.start, event.bandwidth));
        ends.push((event.start + dur, -event.bandwidth));
    }
    let rows: Vec<(&str, Description)> = changes
        .into_iter()
        .map(|(kind, [mut changes, ends])| {
            changes.extend(ends);
            changes.sort_by_key(|(at, _)| *at);
            let mut sum = 0.0;
            let sums = changes.iter().map(|(_, change)| {
                sum += change;
                sum
            });
            (
                kind,
                Description::of(sums.filter(|sum| *sum > 0.0).collect()),
            )
        })
        .filter(|(_, description)| description.count > 0)
        .collect();
    let frame = Frame::new(
        "memory_bw_summary",
        "What HTA's get_memory_bw_summary says, in GB/s.",
    )
    .text("name", &rows, |row| Some(row.0));
    described(frame, &rows, |row| row.1)
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use crate::attribute::DeviceClass;
    use crate::inspect::testing::{cells, frames};
    use crate::inspect::{Definition, InspectOptions, Topic};

    #[test]
    fn a_name_says_between_which_memories() {
        let of = |class, name| {
            let kind = Kind::of(class, name);
            (kind.name, kind.source, kind.target)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            of(DeviceClass::Memcpy, "Memcpy HtoD (Pinned -> Device)"),
            ("HtoD".to_owned(), some("pinned"), some("device"))
        );
        assert_eq!(
            of(DeviceClass::Memcpy, "Memcpy M2D(HOST -> DEVICE)"),
            ("M2D".to_owned(), some("host"), some("device"))
        );
        assert_eq!(
            of(DeviceClass::Memset, "Memset (Managed)"),
            ("memset".to_owned(), None, some("managed"))
        );
        assert_eq!(
            of(DeviceClass::Memcpy, "__amd_rocclr_copyBuffer(int)"),
            ("copy".to_owned(), None, None)
        );
    }

    const COPIES: &str = r#"{"traceEvents":[
        {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":7,"ts":0,
         "dur":10,"args":{"device":0,"stream":7,"bytes":100000,"memory bandwidth (GB/s)":10.0}},
        {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":8,"ts":5,
         "dur":30,"args":{"device":0,"stream":8,"bytes":60000,"memory bandwidth (GB/s)":2.0}},
        {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":7,"ts":50,
         "dur":5,"args":{"device":0,"stream":7}},
        {"ph":"X","cat":"gpu_memset","name":"Memset (Device)","pid":0,"tid":7,"ts":60,
         "dur":5,"args":{"device":0,"stream":7}}]}"#;

    #[test]
    fn bandwidth_is_that_of_copies_with_bytes() {
        let frames = frames(COPIES, Topic::Copies, &InspectOptions::default());
        let columns = [
            "kind",
            "source",
            "events",
            "sum_ns",
            "events_with_bytes",
            "size_bytes",
            "mean_gbps",
            "recorded_mean_gbps",
            "recorded_max_gbps",
        ];
        // 160 kB in 40 µs; (10 · 10 + 2 · 30) / 40.
        assert_eq!(
            cells(&frames, "copies", &columns),
            [
                "HtoD pageable 3 45000 2 160000 4.0000 4.0000 10.0000",
                "memset - 1 5000 0 - - - -",
            ]
        );
    }

    #[test]
    fn hta_adds_the_bandwidths_of_copies_at_once() {
        let options = InspectOptions {
            definition: Definition::Hta,
            ..InspectOptions::default()
        };
        let frames = frames(COPIES, Topic::Copies, &options);
        // 10, 12, 2, then 0, which does not count; copies without bandwidth have -1.
        assert_eq!(
            cells(
                &frames,
                "memory_bw_summary",
                &["name", "count", "mean", "max"]
            ),
            ["Memcpy HtoD 3 8.0000 12.0000"]
        );
    }
}
