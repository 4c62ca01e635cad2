//! A recording to a trace as Kineto writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};

use foldhash::HashMap;
use serde_json::json;
use tracekit_spool::{Api, Copy, Device, Fill, Kernel, Overhead, Sync};

use super::nvml::{Sample, Samples};
use super::range::Range;
use super::recording::{Recording, TextId};
use crate::ingest::quote_into;
use crate::model::CounterKind;

/// What goes into one trace.
pub(super) struct Source<'a> {
    pub(super) recording: &'a Recording,
    pub(super) samples: &'a Samples,
    /// The devices of NVML whose counters go into it, with their numbers in the trace.
    pub(super) devices: BTreeMap<u32, u32>,
    pub(super) host: &'a str,
    /// Nanoseconds since 1970 that times are counted from.
    pub(super) base: u64,
    /// Lines for whoever reads the trace.
    pub(super) notes: &'a [String],
    /// The spool it is made from, so that it is known when it is made again.
    pub(super) spool: Option<&'a str>,
}

/// Where a trace names its spool.
pub(super) const SPOOL_KEY: &str = "tracekit_spool";

/// Which devices of this process are which of NVML's.
///
/// CUDA numbers the devices that a process may see; NVML numbers all, in another order. Both know
/// them by their UUID. Where no UUID is the same (as in a MIG slice), the numbers are taken for the
/// same if all devices can be seen, and nothing is linked else.
pub(super) fn link_devices(recording: &Recording, samples: &Samples) -> BTreeMap<u32, u32> {
    let mut linked = BTreeMap::new();
    for (device, _) in &recording.devices {
        let uuid = uuid_text(&device.uuid);
        let known = samples.devices.iter().find(|known| known.uuid == uuid);
        if let Some(known) = known {
            linked.insert(known.index, device.id);
        }
    }
    if linked.is_empty() && recording.process.visible_devices.is_none() {
        for (device, _) in &recording.devices {
            linked.insert(device.id, device.id);
        }
    }
    linked
}

/// A UUID as NVML writes it. None is in a trace: it names one piece of hardware for ever.
fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
    }
    text
}

/// One event, by what it is and its place there. In order of time, then of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Range(usize),
    Call(usize),
    Kernel(usize),
    Copy(usize),
    Fill(usize),
    Sync(usize),
    Overhead(usize),
    Sample(usize),
}

/// Writes the trace of `source`.
///
/// # Errors
/// When writing fails.
pub(super) fn write_trace(source: &Source<'_>, out: &mut dyn Write) -> io::Result<()> {
    let recording = source.recording;
    let mut items: Vec<(u64, Item)> = Vec::new();
    let times = |times: &mut dyn Iterator<Item = u64>, item: fn(usize) -> Item| {
        times
            .enumerate()
            .map(move |(place, time)| (time, item(place)))
            .collect::<Vec<_>>()
    };
    let Recording {
        kernels,
        copies,
        fills,
        calls,
        syncs,
        overheads,
        ranges,
        ..
    } = recording;
    items.extend(times(&mut ranges.iter().map(|it| it.start), Item::Range));
    items.extend(times(&mut calls.iter().map(|it| it.0.start), Item::Call));
    items.extend(times(
        &mut kernels.iter().map(|it| it.0.start),
        Item::Kernel,
    ));
    items.extend(times(&mut copies.iter().map(|it| it.start), Item::Copy));
    items.extend(times(&mut fills.iter().map(|it| it.start), Item::Fill));
    items.extend(times(&mut syncs.iter().map(|it| it.start), Item::Sync));
    items.extend(times(
        &mut overheads.iter().map(|it| it.start),
        Item::Overhead,
    ));
    for (place, sample) in source.samples.values.iter().enumerate() {
        if source.devices.contains_key(&sample.device) {
            items.push((sample.time, Item::Sample(place)));
        }
    }
    items.sort_unstable();
    let mut writer = Writer::new(source, out);
    writer.head()?;
    for (_, item) in items {
        match item {
            Item::Range(place) => writer.range(&ranges[place])?,
            Item::Call(place) => writer.call(&calls[place].0, calls[place].1)?,
            Item::Kernel(place) => writer.kernel(&kernels[place].0, kernels[place].1)?,
            Item::Copy(place) => writer.copy(&copies[place])?,
            Item::Fill(place) => writer.fill(&fills[place])?,
            Item::Sync(place) => writer.sync(&syncs[place])?,
            Item::Overhead(place) => writer.overhead(&overheads[place])?,
            Item::Sample(place) => writer.sample(source.samples.values[place])?,
        }
    }
    writer.rows()?;
    writer.tail()
}

/// What of a trace is being written.
struct Writer<'a> {
    source: &'a Source<'a>,
    out: &'a mut dyn Write,
    line: Vec<u8>,
    first: bool,
    /// Calls by their correlation: start and thread.
    calls: HashMap<u32, (u64, u32)>,
    /// Devices of contexts.
    contexts: HashMap<u32, u32>,
    devices: HashMap<u32, &'a Device>,
    streams: BTreeSet<(u32, i64)>,
    threads: BTreeSet<u32>,
}

/// Nanoseconds as microseconds with three digits behind the point.
fn microseconds(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1_000, nanoseconds % 1_000)
}

impl<'a> Writer<'a> {
    fn new(source: &'a Source<'a>, out: &'a mut dyn Write) -> Self {
        let recording = source.recording;
        let mut calls = HashMap::default();
        for (call, _) in &recording.calls {
            calls
                .entry(call.correlation)
                .or_insert((call.start, call.thread));
        }
        let contexts = recording.contexts.iter();
        let mut contexts: HashMap<u32, u32> = contexts
            .map(|context| (context.id, context.device))
            .collect();
        for (kernel, _) in &recording.kernels {
            contexts.entry(kernel.context).or_insert(kernel.device);
        }
        Self {
            source,
            out,
            line: Vec::new(),
            first: true,
            calls,
            contexts,
            devices: recording
                .devices
                .iter()
                .map(|(device, _)| (device.id, device))
                .collect(),
            streams: BTreeSet::new(),
            threads: BTreeSet::new(),
        }
    }

    fn text(&self, id: TextId) -> String {
        quoted(self.source.recording.text(id))
    }

    fn time(&self, time: u64) -> String {
        let base = self.source.base;
        match time.checked_sub(base) {
            Some(since) => microseconds(since),
            None => format!("-{}", microseconds(base - time)),
        }
    }

    /// Adds an event to the array.
    fn event(&mut self, event: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.line.clear();
        self.line
            .extend_from_slice(if self.first { b"\n" } else { b",\n" });
        self.first = false;
        self.line.write_fmt(event)?;
        self.out.write_all(&self.line)
    }

    /// Adds the event of a span.
    fn span(
        &mut self,
        category: &str,
        name: &str,
        row: (i64, i64),
        (start, end): (u64, u64),
        args: &str,
    ) -> io::Result<()> {
        let (time, length) = (self.time(start), microseconds(end.saturating_sub(start)));
        let (pid, tid) = row;
        self.event(format_args!(
            "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{name},\"pid\":{pid},\"tid\":{tid},\"ts\":{time},\"dur\":{length},\"args\":{{{args}}}}}"
        ))
    }

    /// Adds the arrow from a launch to its work.
    fn flow(&mut self, correlation: u32, device: u32, stream: u32, start: u64) -> io::Result<()> {
        let Some(&(called, thread)) = self.calls.get(&correlation) else {
            return Ok(());
        };
        let pid = self.source.recording.process.pid;
        let (called, started) = (self.time(called), self.time(start));
        self.event(format_args!(
            "{{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":{correlation},\"pid\":{pid},\"tid\":{thread},\"ts\":{called}}}"
        ))?;
        self.event(format_args!(
            "{{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":{correlation},\"pid\":{device},\"tid\":{stream},\"ts\":{started}}}"
        ))
    }

    fn range(&mut self, range: &Range) -> io::Result<()> {
        self.threads.insert(range.thread);
        let mut args = Vec::new();
        if range.domain != 0 {
            let mut domains = self.source.recording.domains.iter();
            let name = domains.find(|(number, _)| *number == range.domain);
            let name = name.map_or_else(|| range.domain.to_string(), |(_, name)| self.text(*name));
            args.push(format!("\"domain\":{name}"));
        }
        if let Some(sequence) = range.sequence {
            args.push(format!("\"Sequence number\":{sequence}"));
        }
        if !range.finished {
            args.push("\"finished\":false".to_owned());
        }
        let category = if range.is_operator {
            "cpu_op"
        } else {
            "user_annotation"
        };
        let row = (
            self.source.recording.process.pid.into(),
            range.thread.into(),
        );
        let name = self.text(range.name);
        self.span(
            category,
            &name,
            row,
            (range.start, range.end),
            &args.join(","),
        )
    }

    fn call(&mut self, call: &Api, name: TextId) -> io::Result<()> {
        self.threads.insert(call.thread);
        let category = if call.runtime {
            "cuda_runtime"
        } else {
            "cuda_driver"
        };
        let args = format!(
            "\"cbid\":{},\"correlation\":{}",
            call.cbid, call.correlation
        );
        let row = (self.source.recording.process.pid.into(), call.thread.into());
        let name = self.text(name);
        self.span(category, &name, row, (call.start, call.end), &args)
    }

    fn kernel(&mut self, kernel: &Kernel, name: TextId) -> io::Result<()> {
        let Kernel {
            device,
            context,
            stream,
            correlation,
            grid,
            block,
            ..
        } = *kernel;
        self.streams.insert((device, stream.into()));
        let mut args = format!(
            "\"queued\":0,\"device\":{device},\"context\":{context},\"stream\":{stream},\"correlation\":{correlation},\"registers per thread\":{},\"shared memory\":{}",
            kernel.registers_per_thread,
            u64::from(kernel.static_shared) + u64::from(kernel.dynamic_shared),
        );
        let multiprocessors = self.devices.get(&device).map(|it| it.multiprocessors);
        if let Some(count) = multiprocessors.filter(|count| *count > 0) {
            let product =
                |sides: [u32; 3]| sides.iter().map(|side| f64::from(*side)).product::<f64>();
            let blocks = product(grid) / f64::from(count);
            let warps = blocks * (product(block) / 32.0).ceil();
            let _ = write!(
                args,
                ",\"blocks per SM\":{blocks:.6},\"warps per SM\":{warps:.6}"
            );
        }
        let sides = |sides: [u32; 3]| format!("[{},{},{}]", sides[0], sides[1], sides[2]);
        let _ = write!(args, ",\"grid\":{},\"block\":{}", sides(grid), sides(block));
        if kernel.graph != 0 || kernel.graph_node != 0 {
            let _ = write!(
                args,
                ",\"graph id\":{},\"graph node id\":{}",
                kernel.graph, kernel.graph_node
            );
        }
        let name = self.text(name);
        let row = (device.into(), stream.into());
        self.span("kernel", &name, row, (kernel.start, kernel.end), &args)?;
        self.flow(correlation, device, stream, kernel.start)
    }

    fn copy(&mut self, copy: &Copy) -> io::Result<()> {
        let Copy {
            device,
            context,
            stream,
            correlation,
            ..
        } = *copy;
        self.streams.insert((device, stream.into()));
        let name = format!(
            "\"Memcpy {} ({} -> {})\"",
            copy_kind(copy.copy_kind),
            memory_kind(copy.source_kind.into()),
            memory_kind(copy.target_kind.into())
        );
        let place = match copy.peer {
            None => format!("\"device\":{device},\"context\":{context}"),
            Some(peer) => format!(
                "\"fromDevice\":{},\"inDevice\":{device},\"toDevice\":{},\"fromContext\":{},\"inContext\":{context},\"toContext\":{}",
                peer.source_device, peer.target_device, peer.source_context, peer.target_context
            ),
        };
        let args = format!(
            "{place},\"stream\":{stream},\"correlation\":{correlation},{}",
            bytes_and_rate(copy.bytes, copy.start, copy.end)
        );
        let row = (device.into(), stream.into());
        self.span("gpu_memcpy", &name, row, (copy.start, copy.end), &args)?;
        self.flow(correlation, device, stream, copy.start)
    }

    fn fill(&mut self, fill: &Fill) -> io::Result<()> {
        let Fill {
            device,
            context,
            stream,
            correlation,
            ..
        } = *fill;
        self.streams.insert((device, stream.into()));
        let name = format!("\"Memset ({})\"", memory_kind(fill.memory_kind));
        let args = format!(
            "\"device\":{device},\"context\":{context},\"stream\":{stream},\"correlation\":{correlation},{}",
            bytes_and_rate(fill.bytes, fill.start, fill.end)
        );
        let row = (device.into(), stream.into());
        self.span("gpu_memset", &name, row, (fill.start, fill.end), &args)?;
        self.flow(correlation, device, stream, fill.start)
    }

    fn sync(&mut self, sync: &Sync) -> io::Result<()> {
        let device = self.contexts.get(&sync.context).copied().unwrap_or(0);
        // No stream is -1.
        let stream = i64::from(sync.stream.cast_signed());
        let kind = match sync.sync_kind {
            1 => "Event Sync",
            2 => "Stream Wait Event",
            3 => "Stream Sync",
            4 => "Context Sync",
            _ => "Unknown Sync",
        };
        let mut args = format!(
            "\"cuda_sync_kind\":\"{kind}\",\"stream\":{stream},\"correlation\":{},\"device\":{device},\"context\":{}",
            sync.correlation, sync.context
        );
        if matches!(sync.sync_kind, 1 | 2) {
            let _ = write!(
                args,
                ",\"wait_on_stream\":{stream},\"wait_on_cuda_event_record_corr_id\":-1,\"wait_on_cuda_event_id\":{}",
                sync.event
            );
        }
        let name = format!("\"{kind}\"");
        let row = (device.into(), stream);
        self.span("cuda_sync", &name, row, (sync.start, sync.end), &args)
    }

    fn overhead(&mut self, overhead: &Overhead) -> io::Result<()> {
        let name = match overhead.overhead_kind >> 16 {
            0 if overhead.overhead_kind == 1 => "\"Driver Compiler\"",
            1 => "\"Buffer Flush\"",
            2 => "\"Instrumentation\"",
            3 => "\"Resource\"",
            4 => "\"Runtime Triggered Module Loading\"",
            5 => "\"Lazy Function Loading\"",
            6 => "\"Command Buffer Full\"",
            7 => "\"Activity Buffer Request\"",
            8 => "\"UVM Activity Init\"",
            _ => "\"Unknown\"",
        };
        let span = (overhead.start, overhead.end);
        self.span("overhead", name, (-1, 0), span, "")
    }

    fn sample(&mut self, sample: Sample) -> io::Result<()> {
        let Some(device) = self.source.devices.get(&sample.device).copied() else {
            return Ok(());
        };
        let time = self.time(sample.time);
        let (name, unit) = (sample.kind.name(), sample.kind.unit());
        self.event(format_args!(
            "{{\"ph\":\"C\",\"cat\":\"{}\",\"name\":\"{name}\",\"pid\":{device},\"tid\":0,\"ts\":{time},\"args\":{{\"{unit}\":{}}}}}",
            CounterKind::CATEGORY,
            sample.value
        ))
    }

    /// Names of processes, threads and streams.
    fn rows(&mut self) -> io::Result<()> {
        let recording = self.source.recording;
        let pid = recording.process.pid;
        let name = |command: &[String]| {
            let first = command.first().map_or("", String::as_str);
            first.rsplit('/').next().unwrap_or("").to_owned()
        };
        let mut rows = vec![
            (
                pid.into(),
                0,
                "process_name",
                "name",
                quoted(&name(&recording.process.command)),
            ),
            (pid.into(), 0, "process_labels", "labels", quoted("CPU")),
        ];
        let named: BTreeMap<u32, TextId> = recording.threads.iter().copied().collect();
        for thread in std::mem::take(&mut self.threads) {
            let name = match named.get(&thread) {
                Some(name) => format!("thread {thread} ({})", recording.text(*name)),
                None => format!("thread {thread}"),
            };
            let row = (
                pid.into(),
                thread.into(),
                "thread_name",
                "name",
                quoted(&name),
            );
            rows.push(row);
        }
        let streams = std::mem::take(&mut self.streams);
        let devices: BTreeSet<u32> = streams
            .iter()
            .map(|(device, _)| *device)
            .chain(self.source.devices.values().copied())
            .collect();
        for device in devices {
            let label = quoted(&format!("GPU {device}"));
            rows.push((device.into(), 0, "process_labels", "labels", label));
        }
        for (device, stream) in streams {
            let name = quoted(&format!("stream {stream}"));
            rows.push((device.into(), stream, "thread_name", "name", name));
        }
        for (pid, tid, name, key, value) in rows {
            let pid: i64 = pid;
            self.event(format_args!(
                "{{\"ph\":\"M\",\"name\":\"{name}\",\"pid\":{pid},\"tid\":{tid},\"ts\":0.000,\"args\":{{\"{key}\":{value}}}}}"
            ))?;
        }
        Ok(())
    }

    /// Everything before the events.
    fn head(&mut self) -> io::Result<()> {
        let recording = self.source.recording;
        let process = &recording.process;
        let devices: Vec<_> = recording
            .devices
            .iter()
            .map(|(device, name)| properties(device, recording.text(*name)))
            .collect();
        let mut head = vec![
            ("schemaVersion", json!(1)),
            (SPOOL_KEY, json!(self.source.spool)),
            ("deviceProperties", json!(devices)),
        ];
        if let Some(version) = recording.cupti.as_ref().and_then(|cupti| cupti.version) {
            head.push(("cupti_version", json!(version)));
        }
        if process.rank.is_some() || process.world_size.is_some() {
            let info = json!({ "rank": process.rank, "world_size": process.world_size });
            head.push(("distributedInfo", info));
        }
        head.push(("host_name", json!(self.source.host)));
        head.push(("tracekit_collect", self.about()));
        // Findings are read from here, as from the profiler's own log.
        let mut warnings = Vec::new();
        if let Some(dropped) = recording.end.map(|end| end.records_dropped)
            && dropped > 0
        {
            warnings.push(format!("Dropped {dropped} activity records"));
        }
        if let Some(lost) = recording.lost {
            warnings.push(format!(
                "Dropped {} activity records: only the newest were kept (--ring)",
                lost.records
            ));
        }
        if is_cut(recording) {
            warnings.push(
                "CollectTrace stopped by tracekit collect: records are missing, see tracekit_collect"
                    .to_owned(),
            );
        }
        if !warnings.is_empty() {
            head.push(("WARNING", json!(warnings)));
        }
        head.push(("displayTimeUnit", json!("ms")));
        head.push(("baseTimeNanoseconds", json!(self.source.base)));
        self.out.write_all(b"{\n")?;
        for (key, value) in head {
            writeln!(self.out, "\"{key}\": {value},")?;
        }
        self.out.write_all(b"\"traceEvents\": [")
    }

    /// How the trace was made.
    fn about(&self) -> serde_json::Value {
        let recording = self.source.recording;
        let process = &recording.process;
        let cupti = recording.cupti.as_ref();
        let devices: Vec<_> = self
            .source
            .samples
            .devices
            .iter()
            .filter_map(|known| {
                let device = self.source.devices.get(&known.index)?;
                Some(json!({
                    "device": device,
                    "index": known.index,
                    "name": known.name,
                }))
            })
            .collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "command": process.command,
            "pid": process.pid,
            "forked_from": process.forked_from,
            "local_rank": process.local_rank,
            "visible_devices": process.visible_devices,
            "cupti": cupti.map(|cupti| cupti.path.as_str()),
            "ended_in_order": recording.end.is_some(),
            "removed": recording.lost.map(|lost| json!({
                "records": lost.records,
                "device_records": lost.device_records,
                "ranges": lost.ranges,
                "until_ns": lost.until,
            })),
            "device_events": recording.device_events(),
            "ranges": recording.ranges.len(),
            "nvml": devices,
            "notes": self.source.notes,
        })
    }

    fn tail(&mut self) -> io::Result<()> {
        let process = &self.source.recording.process;
        let name = format!("tracekit-{}-{}", self.source.host, process.pid);
        let name = quoted(&name);
        write!(self.out, "\n],\n\"traceName\": {name}\n}}\n")
    }
}

/// True when records are missing that there would be in a whole run.
fn is_cut(recording: &Recording) -> bool {
    let Some(end) = recording.end else {
        // Without device work there is nothing that could be missing.
        return recording.cupti.is_some();
    };
    end.records_unkept > 0
        || end.buffers_outstanding > 0
        || recording.unreadable > 0
        || recording.cut_buffers > 0
}

fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote_into(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn properties(device: &Device, name: &str) -> serde_json::Value {
    let threads = u64::from(device.warps_per_multiprocessor) * u64::from(device.warp);
    json!({
        "id": device.id,
        "name": name,
        "totalGlobalMem": device.memory,
        "computeMajor": device.compute_capability[0],
        "computeMinor": device.compute_capability[1],
        "maxThreadsPerBlock": device.threads_per_block,
        "maxThreadsPerMultiprocessor": threads,
        "regsPerBlock": device.registers_per_block,
        "regsPerMultiprocessor": device.registers_per_multiprocessor,
        "warpSize": device.warp,
        "sharedMemPerBlock": device.shared_per_block,
        "sharedMemPerMultiprocessor": device.shared_per_multiprocessor,
        "numSms": device.multiprocessors,
        "coreClockKhz": device.core_clock,
        "memoryBandwidthKBps": device.memory_bandwidth,
        "l2CacheSize": device.l2_cache,
    })
}

fn bytes_and_rate(bytes: u64, start: u64, end: u64) -> String {
    let length = end.saturating_sub(start);
    if length == 0 {
        return format!("\"bytes\":{bytes}");
    }
    let rate = bytes as f64 / length as f64;
    format!("\"bytes\":{bytes},\"memory bandwidth (GB/s)\":{rate:.6}")
}

fn memory_kind(kind: u16) -> &'static str {
    match kind {
        1 => "Pageable",
        2 => "Pinned",
        3 => "Device",
        4 => "Array",
        5 => "Managed",
        6 => "Device Static",
        7 => "Managed Static",
        _ => "Unknown",
    }
}

fn copy_kind(kind: u8) -> &'static str {
    match kind {
        1 => "HtoD",
        2 => "DtoH",
        3 => "HtoA",
        4 => "AtoH",
        5 => "AtoA",
        6 => "AtoD",
        7 => "DtoA",
        8 => "DtoD",
        9 => "HtoH",
        10 => "PtoP",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_behind_the_point() {
        assert_eq!(microseconds(5), "0.005");
        assert_eq!(microseconds(1_234_567), "1234.567");
    }

    #[test]
    fn uuids_are_written_as_nvml_writes_them() {
        let mut uuid = [0; 16];
        uuid[0] = 0xab;
        uuid[15] = 1;
        assert_eq!(uuid_text(&uuid), "GPU-ab000000-0000-0000-0000-000000000001");
    }
}
