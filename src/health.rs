//! What is wrong or unusual in an input: named, graded, counted, located.

use serde::Serialize;

use crate::units::Ns;

/// How much a finding touches the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Normal in real traces; nothing is lost.
    Info,
    /// Unusual; the numbers stand, with the stated reading.
    Notice,
    /// Some events or links are missing from the numbers.
    DataLoss,
    /// The numbers cannot be trusted as they stand.
    Error,
}

impl Severity {
    /// The spelling used in JSON and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Notice => "notice",
            Self::DataLoss => "data_loss",
            Self::Error => "error",
        }
    }
}

macro_rules! health_codes {
    ($($variant:ident $code:literal $severity:ident $help:literal;)*) => {
        /// The kinds of findings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum HealthCode {
            $(#[doc = $help] $variant,)*
        }

        impl HealthCode {
            /// Every code, in the order of output.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name, as in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The code with this stable name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($code => Some(Self::$variant),)* _ => None }
            }

            /// How much it touches the numbers.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What it means for the numbers, in one sentence.
            pub fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

health_codes! {
    DuplicateRank "duplicate_rank" Error "several files claim one rank of one run: all are kept, labelled by file, and counted in the totals";
    DuplicateCapture "duplicate_capture" Error "several files hold one capture of one rank (a file beside its compressed copy): all are counted in the totals";
    FailedInput "failed_input" DataLoss "a file under a trace name could not be read and is not in the numbers";
    ForeignTrace "foreign_trace" Error "no event in the file is of the PyTorch profiler: there is nothing to attribute";
    EmptyCapture "empty_capture" DataLoss "the capture holds no operator, launch, annotation or device work: there is nothing to attribute";
    Salvaged "salvaged" DataLoss "the file is damaged, or was before it was repaired: what is whole in it was read, the rest is not in the numbers";
    ProfilerStopped "profiler_stopped" DataLoss "the profiler's own log says that it stopped collecting device records early or dropped some: device work is missing";
    ProfilerErrors "profiler_errors" DataLoss "the profiler's own log says that CUPTI, which collects device records, failed: device work may be missing";
    LostRecords "lost_records" Notice "the profiler's own log says that device records were out of its range, warm-up included: launches_without_work tells what is missing";
    LaunchesWithoutWork "launches_without_work" DataLoss "kernel launches whose device work is not in the file: device time is missing from the numbers";
    UnlinkedDeviceWork "unlinked_device_work" DataLoss "device work whose launch is not in the file: counted as `unlinked`, in no phase";
    AmbiguousLaunch "ambiguous_launch" DataLoss "several processes launched under one correlation id and none matches by External id: counted as `unlinked`";
    ReplacedEvents "replaced_events" DataLoss "the file has several event arrays, of which the last one counts: the events of the others are not in the numbers";
    RepeatedWork "repeated_work" Error "device work that is in the file more than once, with the same name, stream, times and correlation: each is counted";
    MissingTimestamp "missing_timestamp" DataLoss "complete events without a usable ts: not in the numbers";
    InvalidTimestamp "invalid_timestamp" DataLoss "a ts or dur that is no number of nanoseconds in 64 bits: the event is not in the numbers";
    NegativeDuration "negative_duration" DataLoss "complete events with a negative dur: not in the numbers";
    ZeroTimestamp "zero_timestamp" DataLoss "device events with ts 0 and dur 0 (lost records): not in the numbers";
    AbsurdTime "absurd_time" DataLoss "events over 24 h from the median start or longer than 7 days: not in the numbers";
    UnpaddedFractions "unpadded_fractions" DataLoss "fractions of microseconds were written without their leading zeros: a tenth of all times is up to 0.9 us too large";
    RoundedTimestamps "rounded_timestamps" Notice "timestamps went through floats and are rounded to quarters of a microsecond: durations are right, order within that is not";
    MissingDuration "missing_duration" DataLoss "complete events without dur: not in the numbers";
    WorkWithoutLength "work_without_length" Notice "kernels with dur 0, a tenth of all or more: they take no time in the numbers, which they did on the device";
    MissingPh "missing_ph" Notice "events without ph: kept, in no number";
    NonObjectEvent "non_object_event" Notice "elements of traceEvents that are no objects: kept in the count, in no number";
    UnknownPh "unknown_ph" Notice "events with a ph outside the trace format: kept, in no number";
    UnmatchedEnd "unmatched_end" Notice "E events without an open B: ignored";
    UnclosedBegin "unclosed_begin" Notice "B events without an E: they end at the last timestamp of the file";
    UnfinishedOperation "unfinished_operation" Notice "operations that were still running when the capture ended: they end there";
    PreWindow "pre_window" Notice "device work launched before profiling started: counted as `pre_window`, in no phase";
    GraphReplay "graph_replay" Notice "device work of replayed graphs: it has the phase of the one launch that replayed it, and no operators of its own";
    CaptureOnly "capture_only" Notice "kernel launches recorded into graphs that are not replayed in the file: they did no device work";
    WorkBeforeLaunch "work_before_launch" Notice "device work that starts before its launch (clock skew): linked all the same";
    LaneOverlapRepaired "lane_overlap_repaired" Notice "impossible overlaps on one stream were clipped to the next start";
    LaneOverlap "lane_overlap" Info "device events that end after the next start on their stream: kept as they are";
    PhasesInferred "phases_inferred" Notice "no forward or backward annotation: phases are inferred from autograd and optimizer events; without those, all work counts as forward";
    NoOperators "no_operators" Notice "device work but no host operators and no annotations: all of it is in no phase";
    MissingSteps "missing_steps" Notice "numbers of steps that are missing between the first and the last: their work is in no step";
    PartialSteps "partial_steps" Notice "first or last steps that the capture cuts: left out of step times unless asked for";
    OutlierCollective "outlier_collective" Notice "collectives that last far longer than others of their kind: most of it is waiting for another rank, not communication";
    CollectivesNotCompared "collectives_not_compared" Notice "devices whose collectives were not compared with those of all others: there are too many that differ";
    StartSkew "start_skew" Notice "the capture starts before that of another rank: the first collectives wait for it";
    ClockOffset "clock_offset" Notice "the clock differs from that of other ranks: compare durations across ranks, not times";
    RecomputeNotObservable "recompute_not_observable" Notice "compiled regions or graph launches hide recompute: what is shown is a lower bound";
    MissingRanks "missing_ranks" Notice "the run has fewer ranks here than its world size";
    Sliced "sliced" Notice "the file is a part that was cut out of a trace: what is outside of it is in no number";
    Repaired "repaired" Notice "the file was repaired before: what was no JSON or overlapped was changed, and nothing was lost by that";
    UnterminatedArray "unterminated_array" Notice "the event array has no closing bracket, which the array form allows";
    TrailingComma "trailing_comma" Notice "commas before a closing bracket, which is no JSON: read all the same";
    ControlCharacters "control_characters" Notice "strings with raw control characters, which is no JSON: read all the same";
    InvalidUtf8 "invalid_utf8" Notice "strings that are not UTF-8: the bad bytes read as U+FFFD";
    InvalidEscape "invalid_escape" Notice "strings with escapes that JSON does not know: read as written";
    NonFiniteNumber "nonfinite_number" Notice "NaN, Infinity or N/A where a value belongs, which is no JSON: read as null";
    DuplicateKey "duplicate_key" Notice "a top-level key, or one of an event that numbers need, occurs twice: the last one counts";
    ByteOrderMark "byte_order_mark" Info "the file starts with a UTF-8 byte order mark: skipped";
    UnknownCategory "unknown_category" Info "events of categories tracekit does not know: kept, in no number";
    NoDeviceWork "no_device_work" Info "the file has no device work: only host numbers are given";
}

/// One kind of finding with its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HealthEntry {
    /// Stable name of the finding.
    pub code: &'static str,
    /// How much it touches the numbers.
    pub severity: Severity,
    /// How many events (or files, ranks, strings) it concerns.
    pub count: u64,
    /// Byte offset of the first of them in the decompressed content of its file.
    pub first_offset: Option<u64>,
    /// Which input the first of them is in: an index into the inputs of the result.
    pub first_input: Option<usize>,
    /// The name of one of them, the first in the order of names.
    pub first_name: Option<String>,
    /// Summed time before a repair, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_ns: Option<i64>,
    /// Summed time that a repair took away, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired_ns: Option<i64>,
    /// Summed time concerned, in nanoseconds, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<i64>,
    /// The worst single value, in nanoseconds, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_ns: Option<i64>,
    /// What it means, in one sentence.
    pub help: &'static str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Counter {
    count: u64,
    first: Option<u64>,
    name: Option<String>,
    input: Option<usize>,
    raw_ns: Option<i64>,
    repaired_ns: Option<i64>,
    time_ns: Option<i64>,
    worst_ns: Option<i64>,
}

impl Counter {
    /// Notes where a finding is, and about what.
    fn locate(&mut self, offset: u64, name: &str) {
        self.first = Some(self.first.map_or(offset, |first| first.min(offset)));
        self.call(name);
    }

    /// Notes the name of a finding. The smallest is kept: it does not depend on the order of events.
    fn call(&mut self, name: &str) {
        if !name.is_empty() && self.name.as_deref().is_none_or(|kept| name < kept) {
            self.name = Some(name.to_owned());
        }
    }

    /// Adds the times of another counter.
    fn add_times(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.raw_ns, other.raw_ns),
            (&mut self.repaired_ns, other.repaired_ns),
            (&mut self.time_ns, other.time_ns),
        ] {
            if let Some(value) = theirs {
                *mine = Some(mine.unwrap_or(0).saturating_add(value));
            }
        }
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }
}

/// The findings of one input or of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    counters: std::collections::BTreeMap<HealthCode, Counter>,
}

impl Health {
    /// Counts one finding at byte `offset`, about the event called `name`.
    pub fn count(&mut self, code: HealthCode, offset: u64, name: &str) {
        let counter = self.counters.entry(code).or_default();
        counter.count += 1;
        counter.locate(offset, name);
    }

    /// Counts `count` findings about the event called `name`, the first of them at byte `offset`.
    pub fn count_many(&mut self, code: HealthCode, count: u64, offset: u64, name: &str) {
        let counter = self.counters.entry(code).or_default();
        counter.count = counter.count.saturating_add(count);
        counter.locate(offset, name);
    }

    /// Counts `count` findings that have no place in a file; `name` says what they are about.
    pub fn add(&mut self, code: HealthCode, count: u64, name: Option<String>) {
        if count == 0 {
            return;
        }
        let counter = self.counters.entry(code).or_default();
        counter.count = counter.count.saturating_add(count);
        if let Some(name) = name {
            counter.call(&name);
        }
    }

    /// Adds the sums before a repair and what it took away.
    pub fn add_repair(&mut self, code: HealthCode, raw_ns: i64, repaired_ns: i64) {
        let counter = self.counters.entry(code).or_default();
        *counter.raw_ns.get_or_insert(0) += raw_ns;
        *counter.repaired_ns.get_or_insert(0) += repaired_ns;
    }

    /// Adds to the time that findings concern; `worst` is the worst single value among them.
    pub fn add_time(&mut self, code: HealthCode, time: Ns, worst: Option<Ns>) {
        let counter = self.counters.entry(code).or_default();
        let sum = counter.time_ns.unwrap_or(0).saturating_add(time.0);
        counter.time_ns = Some(sum);
        counter.worst_ns = counter.worst_ns.max(worst.map(|worst| worst.0));
    }

    /// Adds the findings of another part. Parts of one file may come in any order.
    pub fn merge(&mut self, other: &Self) {
        for (code, theirs) in &other.counters {
            let ours = self.counters.entry(*code).or_default();
            ours.count = ours.count.saturating_add(theirs.count);
            ours.first = [ours.first, theirs.first].into_iter().flatten().min();
            if let Some(name) = &theirs.name {
                ours.call(name);
            }
            ours.add_times(theirs);
        }
    }

    /// Moves the findings at or behind byte `from` on by `by` bytes: they were found in a part of
    /// the content that was read on its own.
    pub(crate) fn shift(&mut self, from: u64, by: u64) {
        for counter in self.counters.values_mut() {
            if let Some(offset) = &mut counter.first
                && *offset >= from
            {
                *offset = offset.saturating_add(by);
            }
        }
    }

    /// Adds the findings of input number `input`: what was first in an earlier one stays first.
    pub fn append(&mut self, later: &Self, input: usize) {
        for (code, theirs) in &later.counters {
            let ours = self.counters.entry(*code).or_default();
            if ours.count == 0 {
                ours.first.clone_from(&theirs.first);
                ours.name.clone_from(&theirs.name);
                ours.input = Some(input);
            }
            ours.count = ours.count.saturating_add(theirs.count);
            ours.add_times(theirs);
        }
    }

    /// Forgets byte offsets: they were those of content that nobody has.
    pub(crate) fn forget_places(&mut self) {
        for counter in self.counters.values_mut() {
            counter.first = None;
        }
    }

    /// Forgets the findings of this kind.
    pub(crate) fn forget(&mut self, code: HealthCode) {
        self.counters.remove(&code);
    }

    /// How often `code` was found.
    pub fn get(&self, code: HealthCode) -> u64 {
        self.counters.get(&code).map_or(0, |counter| counter.count)
    }

    /// The gravest severity found.
    pub fn worst(&self) -> Option<Severity> {
        self.counters.keys().map(|code| code.severity()).max()
    }

    /// All findings, the gravest kinds first.
    pub fn entries(&self) -> Vec<HealthEntry> {
        let mut entries: Vec<HealthEntry> = self
            .counters
            .iter()
            .map(|(code, counter)| HealthEntry {
                code: code.as_str(),
                severity: code.severity(),
                count: counter.count,
                first_offset: counter.first,
                first_input: counter.input,
                first_name: counter.name.clone(),
                raw_ns: counter.raw_ns,
                repaired_ns: counter.repaired_ns,
                time_ns: counter.time_ns,
                worst_ns: counter.worst_ns,
                help: code.help(),
            })
            .collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.severity));
        entries
    }
}
