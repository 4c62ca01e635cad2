//! A spool to what its process did.

use std::collections::hash_map::Entry;

use foldhash::HashMap;
use tracekit_spool::{
    Frame, Frames, NvtxEvents, NvtxOp, Record, RecordSizes, Records, Tag, fields, u32_at, u64_at,
};

use super::demangle::demangle;
use super::range::Ranges;
use super::recording::{Cupti, End, Lost, Process, Recording, TextId};

/// Clocks that are less apart are the same clock, read one after the other.
const SAME_CLOCK: i64 = 1_000_000;

/// More notes than this of one process say nothing new.
const MOST_NOTES: usize = 32;

/// Domains of API calls.
const DRIVER: u32 = 1;
const RUNTIME: u32 = 2;

/// Reads a spool, which a ring has in several files, one behind the other; `None` when it is none.
pub(super) fn decode(files: &[&[u8]]) -> Option<Recording> {
    let mut decoder = Decoder::default();
    let mut read = 0_u64;
    for bytes in files {
        let Some(mut frames) = Frames::new(bytes) else {
            decoder.recording.unreadable += bytes.len() as u64;
            continue;
        };
        decoder.is_first = read == 0;
        for frame in frames.by_ref() {
            decoder.frame(&frame);
        }
        decoder.recording.unreadable += frames.damaged() + frames.torn();
        read += 1;
    }
    (read > 0).then(|| decoder.finish())
}

/// How many files of a ring were removed before this one was written.
pub(super) fn files_removed(bytes: &[u8]) -> u64 {
    let mut frames = Frames::new(bytes).into_iter().flatten();
    let found = frames.find(|frame| frame.tag == Some(Tag::Lost));
    found.map_or(0, |frame| lost(frame.data).files)
}

#[derive(Default)]
struct Decoder {
    recording: Recording,
    sizes: RecordSizes,
    texts: HashMap<Vec<u8>, TextId>,
    /// Texts of addresses, which may change over time.
    addresses: HashMap<u64, TextId>,
    calls: HashMap<(u32, u32), TextId>,
    ranges: Ranges,
    /// How far CUPTI's clock is behind the system's, and the system's behind its steady one.
    behind: Vec<i64>,
    steady: Vec<i64>,
    last_clock: u64,
    /// There is no file before this one.
    is_first: bool,
}

impl Decoder {
    fn frame(&mut self, frame: &Frame<'_>) {
        let data = frame.data;
        match frame.tag {
            Some(Tag::Header) => self.recording.process = process(data),
            Some(Tag::Cupti) => self.recording.cupti = Some(cupti(data)),
            Some(Tag::Sizes) => self.sizes = RecordSizes::of_frame(data),
            Some(Tag::Text) => {
                if let (Some(address), Some(text)) = (u64_at(data, 0), data.get(8..)) {
                    let text = self.intern(text);
                    self.addresses.insert(address, text);
                }
            }
            Some(Tag::Callback) => {
                if let (Some(domain), Some(id), Some(name)) =
                    (u32_at(data, 0), u32_at(data, 4), data.get(8..))
                {
                    let name = self.intern(without_version(name));
                    self.calls.insert((domain, id), name);
                }
            }
            Some(Tag::Domain) => {
                if let (Some(number), Some(name)) = (u32_at(data, 0), data.get(4..)) {
                    let name = self.intern(name);
                    self.recording.domains.push((number, name));
                }
            }
            Some(Tag::Buffer) => self.buffer(data),
            Some(Tag::Nvtx) => self.nvtx(data),
            // Else the files before have told.
            Some(Tag::Open) if self.is_first => self.nvtx(data),
            Some(Tag::Lost) => self.recording.lost = Some(lost(data)),
            Some(Tag::Clock) => self.clock(data),
            Some(Tag::Note) => {
                let line = String::from_utf8_lossy(data).into_owned();
                let notes = &mut self.recording.notes;
                if notes.len() < MOST_NOTES && !notes.contains(&line) {
                    notes.push(line);
                }
            }
            Some(Tag::End) => self.recording.end = Some(end(data)),
            // When recording started and stopped shows in what is there.
            Some(Tag::Capture | Tag::Open) | None => {}
        }
    }

    fn intern(&mut self, text: &[u8]) -> TextId {
        if let Some(id) = self.texts.get(text) {
            return *id;
        }
        let texts = &mut self.recording.texts;
        let id = TextId(u32::try_from(texts.len()).unwrap_or(u32::MAX));
        texts.push(demangle(text));
        self.texts.insert(text.to_owned(), id);
        id
    }

    fn text_at(&mut self, address: u64) -> TextId {
        match self.addresses.get(&address) {
            Some(id) => *id,
            None => self.intern(b"(unnamed)"),
        }
    }

    fn call_name(&mut self, domain: u32, id: u32) -> TextId {
        match self.calls.get(&(domain, id)) {
            Some(id) => *id,
            None => self.intern(format!("call {id}").as_bytes()),
        }
    }

    fn buffer(&mut self, data: &[u8]) {
        let sizes = self.sizes.clone();
        let mut records = Records::new(data, &sizes);
        for record in records.by_ref() {
            self.record(&record);
        }
        self.recording.cut_buffers += u64::from(records.rest() > 0);
    }

    fn record(&mut self, record: &Record) {
        // Times that are not known are 0.
        let has_times = |start: u64, end: u64| start != 0 && end >= start;
        match *record {
            Record::Kernel(kernel) if has_times(kernel.start, kernel.end) => {
                let name = self.text_at(kernel.name);
                self.recording.kernels.push((kernel, name));
            }
            Record::Copy(copy) if has_times(copy.start, copy.end) => {
                self.recording.copies.push(copy);
            }
            Record::Fill(fill) if has_times(fill.start, fill.end) => {
                self.recording.fills.push(fill);
            }
            Record::Kernel(_) | Record::Copy(_) | Record::Fill(_) => {
                self.recording.without_times += 1;
            }
            Record::Api(api) if has_times(api.start, api.end) => {
                let domain = if api.runtime { RUNTIME } else { DRIVER };
                let name = self.call_name(domain, api.cbid);
                self.recording.calls.push((api, name));
            }
            Record::Sync(sync) if has_times(sync.start, sync.end) => {
                self.recording.syncs.push(sync);
            }
            Record::Overhead(overhead) if has_times(overhead.start, overhead.end) => {
                self.recording.overheads.push(overhead);
            }
            Record::Device(device) => {
                let name = self.text_at(device.name);
                let known = &mut self.recording.devices;
                if known.iter().all(|(known, _)| known.id != device.id) {
                    known.push((device, name));
                }
            }
            Record::Context(context) => self.recording.contexts.push(context),
            Record::Api(_) | Record::Sync(_) | Record::Overhead(_) | Record::Other(_) => {}
        }
    }

    fn nvtx(&mut self, data: &[u8]) {
        let Some((thread, events)) = NvtxEvents::of_frame(data) else {
            return;
        };
        for event in events {
            if event.op == NvtxOp::NameThread {
                if let Ok(named) = u32::try_from(event.id) {
                    let name = self.intern(event.name);
                    self.recording.threads.push((named, name));
                }
                continue;
            }
            let mut ranges = std::mem::take(&mut self.ranges);
            ranges.add(thread, &event, |name| self.intern(name));
            self.ranges = ranges;
        }
    }

    fn clock(&mut self, data: &[u8]) {
        let (Some(system), Some(steady), Some(cupti)) =
            (u64_at(data, 0), u64_at(data, 8), u64_at(data, 16))
        else {
            return;
        };
        self.last_clock = self.last_clock.max(system);
        self.steady.push(apart(system, steady));
        if cupti != 0 {
            self.behind.push(apart(system, cupti));
        }
    }

    fn finish(mut self) -> Recording {
        let mut recording = std::mem::take(&mut self.recording);
        self.behind.sort_unstable();
        let behind = self.behind.get(self.behind.len() / 2).copied().unwrap_or(0);
        if behind.unsigned_abs() > SAME_CLOCK.unsigned_abs() {
            shift(&mut recording, behind);
            recording.notes.push(format!(
                "CUPTI's clock is {} ms from the system's: device times are shifted",
                behind / 1_000_000
            ));
        }
        let steps = self.steady.iter().max().zip(self.steady.iter().min());
        if let Some(step) = steps.map(|(most, least)| most.saturating_sub(*least))
            && step > SAME_CLOCK
        {
            recording.notes.push(format!(
                "the system's clock was set by {} ms while the program ran: times before and after do not fit",
                step / 1_000_000
            ));
        }
        let unmatched = self.ranges.without_start();
        recording.events_lost = self.ranges.lost;
        recording.ranges = self.ranges.finish(self.last_clock);
        if unmatched > 0 {
            recording
                .notes
                .push(format!("{unmatched} NVTX ranges have an end and no start"));
        }
        drop_inner_calls(&mut recording);
        note_losses(&mut recording);
        recording
    }
}

/// What is missing from a recording, in lines.
fn note_losses(recording: &mut Recording) {
    let mut lines = Vec::new();
    if let Some(gone) = recording.lost {
        let since = gone.until.saturating_sub(recording.process.start);
        lines.push(format!(
            "only the newest records were kept (--ring): {} activity records ({} of the device) and {} ranges of the first {} ms were removed to make room",
            gone.records,
            gone.device_records,
            gone.ranges,
            since / 1_000_000
        ));
    }
    let mut lost = |count: u64, line: &str| {
        if count > 0 {
            lines.push(format!("{count} {line}"));
        }
    };
    if let Some(end) = recording.end {
        lost(
            end.records_dropped,
            "records were dropped by CUPTI, which had no buffer for them",
        );
        lost(
            end.buffers_outstanding,
            "buffers never came back from CUPTI: another tool, such as torch.profiler, replaced the buffer callbacks, and has their records",
        );
        lost(
            end.records_unkept,
            &format!(
                "activity records ({} of the device) came when no more could be written, and are missing",
                end.device_records_unkept
            ),
        );
        lost(
            end.ranges_unkept,
            "ranges came when no more could be written, and are missing",
        );
    }
    lost(
        recording.events_lost,
        "NVTX events are missing: they came faster than they could be written",
    );
    lost(
        recording.without_times,
        "device records have no times and are left out",
    );
    lost(recording.unreadable, "bytes of the spool cannot be read");
    lost(
        recording.cut_buffers,
        "buffers hold records of unknown size and are read up to there",
    );
    if recording.end.is_none() {
        lines.push(
            "the process did not end in order: what it did since the last flush is missing"
                .to_owned(),
        );
    }
    recording.notes.append(&mut lines);
}

/// `a - b`.
fn apart(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}

/// Moves all times of CUPTI's by `by`.
fn shift(recording: &mut Recording, by: i64) {
    let to = |time: &mut u64| *time = time.saturating_add_signed(by);
    for (kernel, _) in &mut recording.kernels {
        to(&mut kernel.start);
        to(&mut kernel.end);
    }
    for copy in &mut recording.copies {
        to(&mut copy.start);
        to(&mut copy.end);
    }
    for fill in &mut recording.fills {
        to(&mut fill.start);
        to(&mut fill.end);
    }
    for (call, _) in &mut recording.calls {
        to(&mut call.start);
        to(&mut call.end);
    }
    for sync in &mut recording.syncs {
        to(&mut sync.start);
        to(&mut sync.end);
    }
    for overhead in &mut recording.overheads {
        to(&mut overhead.start);
        to(&mut overhead.end);
    }
}

/// Leaves out the calls of the driver that calls of the runtime consist of: both have one
/// correlation, and one launch is one launch.
fn drop_inner_calls(recording: &mut Recording) {
    let mut runtime = HashMap::default();
    for (call, _) in recording.calls.iter().filter(|(call, _)| call.runtime) {
        match runtime.entry(call.correlation) {
            Entry::Vacant(entry) => {
                entry.insert((call.thread, call.start, call.end));
            }
            Entry::Occupied(_) => {}
        }
    }
    recording.calls.retain(|(call, _)| {
        let outer = runtime.get(&call.correlation);
        call.runtime
            || outer.is_none_or(|(thread, start, end)| {
                *thread != call.thread || call.start < *start || call.end > *end
            })
    });
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

fn process(data: &[u8]) -> Process {
    let mut process = Process::default();
    for (name, value) in fields(data) {
        match name {
            "pid" => process.pid = number(value).unwrap_or(0),
            "forked_from" => process.forked_from = number(value),
            "start_ticks" => process.start_ticks = number(value),
            "start_realtime_ns" => process.start = number(value).unwrap_or(0),
            "command" => {
                let words = value.split(|byte| *byte == 0).map(text);
                process.command = words.collect();
                while process.command.last().is_some_and(String::is_empty) {
                    process.command.pop();
                }
            }
            "rank" => process.rank = number(value),
            "local_rank" => process.local_rank = number(value),
            "world_size" => process.world_size = number(value),
            "cuda_visible_devices" => process.visible_devices = Some(text(value)),
            "run" => process.run = number(value),
            _ => {}
        }
    }
    process
}

fn cupti(data: &[u8]) -> Cupti {
    let mut cupti = Cupti::default();
    for (name, value) in fields(data) {
        match name {
            "version" => cupti.version = number(value),
            "path" => cupti.path = text(value),
            _ => {}
        }
    }
    cupti
}

fn end(data: &[u8]) -> End {
    let mut end = End::default();
    for (name, value) in fields(data) {
        let value = number(value).unwrap_or(0);
        match name {
            "records_dropped" => end.records_dropped = value,
            "buffers_outstanding" => end.buffers_outstanding = value,
            "records_unkept" => end.records_unkept = value,
            "device_records_unkept" => end.device_records_unkept = value,
            "ranges_unkept" => end.ranges_unkept = value,
            _ => {}
        }
    }
    end
}

fn lost(data: &[u8]) -> Lost {
    let mut lost = Lost::default();
    for (name, value) in fields(data) {
        let value = number(value).unwrap_or(0);
        match name {
            "files" => lost.files = value,
            "bytes" => lost.bytes = value,
            "records" => lost.records = value,
            "device_records" => lost.device_records = value,
            "ranges" => lost.ranges = value,
            "until_realtime_ns" => lost.until = value,
            _ => {}
        }
    }
    lost
}

/// `cudaLaunchKernel_v7000` is `cudaLaunchKernel`.
fn without_version(name: &[u8]) -> &[u8] {
    let at = (0..name.len()).rfind(|at| name[*at..].starts_with(b"_v"));
    match at {
        Some(at) if at + 2 < name.len() && name[at + 2..].iter().all(u8::is_ascii_digit) => {
            &name[..at]
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_calls_are_cut() {
        for (given, want) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel_ptsz"),
            ("cuMemAlloc_v2", "cuMemAlloc"),
            ("cuLaunchKernel", "cuLaunchKernel"),
            ("a_v", "a_v"),
            ("a_vx", "a_vx"),
        ] {
            assert_eq!(without_version(given.as_bytes()), want.as_bytes());
        }
    }

    #[test]
    fn what_is_no_spool_is_none() {
        assert!(decode(&[b"{}"]).is_none());
        assert!(decode(&[]).is_none());
        let empty = decode(&[b"TKSPOOL2"]).unwrap();
        assert_eq!(empty.process.pid, 0);
        assert_eq!(empty.notes.len(), 1);
    }
}
