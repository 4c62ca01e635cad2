//! What each finding means, how it is detected, what it does to the numbers, and what to do.

use serde::Serialize;

use crate::health::{HealthCode, Severity};

/// Name and version of the JSON schema of explanations.
const SCHEMA_VERSION: &str = "tracekit.doctor.codes/v1";

/// Explanations of findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Codes {
    /// `tracekit.doctor.codes/v1`.
    pub schema_version: &'static str,
    /// One entry a finding.
    pub codes: Vec<Code>,
}

/// The explanation of one kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Code {
    /// Stable name.
    pub code: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// How it is detected.
    pub detection: &'static str,
    /// What it does to the numbers.
    pub effect: &'static str,
    /// What to do.
    pub action: &'static str,
}

/// The explanation of `only`, or of every finding.
pub fn codes(only: Option<HealthCode>) -> Codes {
    let wanted = HealthCode::ALL
        .iter()
        .filter(|code| only.is_none_or(|only| only == **code));
    Codes {
        schema_version: SCHEMA_VERSION,
        codes: wanted.map(|code| explained(*code)).collect(),
    }
}

/// The explanation of `code`.
pub(super) fn explained(code: HealthCode) -> Code {
    let [detection, effect, action] = texts(code);
    Code {
        code: code.as_str(),
        severity: code.severity(),
        meaning: code.help(),
        detection,
        effect,
        action,
    }
}

/// How `code` is detected, what it does to the numbers, and what to do.
fn texts(code: HealthCode) -> [&'static str; 3] {
    match code {
        HealthCode::DuplicateRank => [
            "Two files of one run have the same rank, by distributedInfo or by their names, and are no further windows of one worker.",
            "Totals of the run count the rank twice; comparisons of ranks mix the two.",
            "Give tracekit one of the files, or put files of different runs into different folders.",
        ],
        HealthCode::DuplicateCapture => [
            "Files of one rank and one profiler window hold the same capture, such as a file and its compressed copy.",
            "Totals of the run count the capture several times.",
            "Leave out the copies.",
        ],
        HealthCode::FailedInput => [
            "The file has the name or the content of a trace, and reading it stops at the byte named: it is cut off or is no JSON there.",
            "Nothing of the file is in any number.",
            "Record it again and wait until the profiler has closed the file. --salvage reads what is whole in it, and tracekit repair --salvage writes that as a trace of its own.",
        ],
        HealthCode::ForeignTrace => [
            "The file has the form of a Chrome trace, but no event has a category of the PyTorch profiler and nothing else in it is of that profiler.",
            "Nothing can be attributed: there are no operators, launches or kernels.",
            "Use the trace that torch.profiler wrote; traces of browsers and of other programs are for other tools.",
        ],
        HealthCode::EmptyCapture => [
            "There is no operator, launch, Python frame, device event or annotation but those of steps.",
            "There is nothing to attribute.",
            "Look for an earlier file: with a schedule that is not repeated, the profiler writes one more, empty, file when the program ends, over the good one where they share a name. Check that the schedule has active steps.",
        ],
        HealthCode::LostRecords => [
            "The log arrays in the file (INFO, WARNING, ERROR) count records as out of range: outside of the capture.",
            "Records of the warm-up are among them, which miss nowhere. When kernel launches of the file lack their work, the lost records were theirs and device time is missing.",
            "See launches_without_work. When that is not there, either, nothing is missing from the steps of the file.",
        ],
        HealthCode::ProfilerStopped => [
            "A line in the log arrays of the file (INFO, WARNING, ERROR) says so: `CUPTI stopped early? = 1`, `CollectTrace stopped by`, `Exceeded max GPU buffer count`, `Trace terminated during warmup` or `Dropped N activity records`. Files written since July 2026 have no such arrays.",
            "Device work from the moment on at which the buffers were full is missing, and the device seems idle. launches_without_work tells which steps are concerned.",
            "Profile fewer steps at once, or give the profiler larger buffers (ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB in the Kineto config).",
        ],
        HealthCode::ProfilerErrors => [
            "A line in the log arrays of the file says that CUPTI could not be initialised, or that a call of it failed with an error. Calls that push and pop External ids are left aside: correlation ids link the work.",
            "What the failed call was to deliver is missing: all device work when the initialisation failed, some records otherwise.",
            "Look the error up by its name. CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: allow profiling in the driver; CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: end the other profiler.",
        ],
        HealthCode::LaunchesWithoutWork => [
            "Calls that launch kernels (cudaLaunchKernel, cuLaunchKernelEx, hipLaunchKernel and so on) whose correlation id no device event has, outside of stream captures, told by step. Calls for copies and fills are not looked at. Gaps between correlation ids are no sign of loss: every call of the runtime takes an id, and those that the profiler leaves out make gaps of thousands in sound files. So the launches themselves are looked at.",
            "The device time of these kernels is missing from every sum, and the device seems idle meanwhile.",
            "Profile again with more warm-up steps, fewer active ones or a larger profiler buffer, and synchronise before the profiler stops. Leave out the steps named.",
        ],
        HealthCode::UnlinkedDeviceWork => [
            "Device work whose correlation id no launch has, although it is not smaller than that of every launch, and neither a flow nor an External id leads to one.",
            "The work is in the device sums and timelines, but in no phase and no step.",
            "Record host and device activities in one trace, all threads of the process included. MTIA's dma_request events never have a launch.",
        ],
        HealthCode::AmbiguousLaunch => [
            "Several processes in one file launched under one correlation id, and no External id tells which it was.",
            "The work is in the device sums, but in no phase and no step.",
            "Give tracekit the files of the ranks instead of a merged one.",
        ],
        HealthCode::RepeatedWork => [
            "Device work that is in the file more than once: the same name on the same stream, from the same start to the \
             same end, of the same launch.",
            "Each is counted, so device time is too long by that of the repetitions.",
            "Find out which program joined the file from two, or wrote its events twice, and record or join again.",
        ],
        HealthCode::WorkWithoutLength => [
            "Kernels that end when they start, a tenth of all kernels or more. Fewer are normal in old traces, whose times \
             are whole microseconds. Kineto writes 0 where a record ends before it starts.",
            "What they did on the device is in no number: device time is too short.",
            "Record again with a newer PyTorch and driver; until then do not compare device times.",
        ],
        HealthCode::MissingTimestamp => [
            "Complete, begin or end events whose ts is missing or no number.",
            "The events are in no number.",
            "Find out which program wrote them, by the name and the byte of the first.",
        ],
        HealthCode::InvalidTimestamp => [
            "A ts or dur that is further than 146 years from zero.",
            "The events are in no number.",
            "Profile again; when it recurs, the driver reports broken times: update it.",
        ],
        HealthCode::NegativeDuration => [
            "Complete events with a dur below zero. Profilers of 2020 to 2022 wrote it for operators that had not ended.",
            "The events are in no number.",
            "Update PyTorch; end annotations before the profiler stops.",
        ],
        HealthCode::ZeroTimestamp => [
            "Device events with ts 0 and dur 0: the driver delivered a record without times.",
            "Their device time is missing, and the device seems idle meanwhile.",
            "Profile again; drivers of CUDA 12.6 to 13.0 lose times when the profiler starts, which newer ones do not.",
        ],
        HealthCode::AbsurdTime => [
            "Events that start more than 24 hours from the median event, or last longer than 7 days.",
            "The events are in no number and no window.",
            "A few are records that the driver damaged. Many mean that two captures were merged: take them apart.",
        ],
        HealthCode::UnpaddedFractions => [
            "Timestamps count from the epoch and have fractions of a microsecond, at least 300 of them, and none is below 0.1: the zeros after the point are missing, so that 5 ns reads as 0.5 us. Builds of PyTorch from March and April 2024 did this.",
            "One time in ten is too large by up to 0.9 us. Sums over many events hardly change; short kernels, gaps and the order of close events are wrong.",
            "Record with a release of PyTorch. What was written cannot be told from what was meant.",
        ],
        HealthCode::RoundedTimestamps => [
            "Timestamps count from the epoch, and every fraction of a microsecond is on a quarter: a program read them as floats and wrote them again.",
            "Starts are up to 0.125 us off, durations are exact. Ends and starts of neighbours may cross by that much.",
            "Use the file that the profiler wrote, or a program that keeps the digits.",
        ],
        HealthCode::MissingDuration => [
            "Complete events without a dur.",
            "They have no length, and device work among them is in no number.",
            "Find out which program wrote them, by the name and the byte of the first.",
        ],
        HealthCode::MissingPh => [
            "Events without the letter that says what kind of event they are.",
            "The events are in no number.",
            "Nothing, unless they are many: then another program changed the file.",
        ],
        HealthCode::NonObjectEvent => [
            "Elements of the event array that are numbers, strings, arrays or null.",
            "The elements are in no number.",
            "Nothing, unless they are many: then the file is no trace.",
        ],
        HealthCode::UnknownPh => [
            "Events with a letter that the trace format does not know.",
            "The events are in no number.",
            "Nothing, unless they are many: then another program changed the file.",
        ],
        HealthCode::UnmatchedEnd => [
            "End events with no begin event of their name open on their thread.",
            "The events are ignored; what they ended is not in the file.",
            "Nothing, when the capture started inside of them. Else look for lost begin events.",
        ],
        HealthCode::UnclosedBegin => [
            "Begin events with no end event of their name behind them on their thread.",
            "They end with the last event of the file and may be too long.",
            "End ranges before the profiler stops.",
        ],
        HealthCode::UnfinishedOperation => [
            "Operations that the profiler marked as not finished (args.finished is false): they were running when the capture ended.",
            "They end with the capture. Operators and annotations among them are cut short; Python frames of the program itself are always among them and harm nothing.",
            "End annotations and synchronise before the profiler stops.",
        ],
        HealthCode::PreWindow => [
            "Device work with a correlation id below that of every launch in the file: it was launched before the capture started and was still waiting.",
            "The work is in the device sums and timelines, but in no phase and no step.",
            "Synchronise before the profiler starts, or leave out the first step of the capture.",
        ],
        HealthCode::GraphReplay => [
            "Device work whose launch replays a captured graph (cudaGraphLaunch, hipGraphLaunch).",
            "All work of a replay has the phase in which it is launched, which is right only where a graph holds one phase. Operators, shapes and recompute inside are not known.",
            "Annotate the phase around each replay, and capture phases into graphs of their own; or profile without graphs.",
        ],
        HealthCode::CaptureOnly => [
            "Kernel launches between BeginCapture and EndCapture without device work, in a file in which no graph is replayed.",
            "These launches did no work: the file shows how graphs were made, not how they run.",
            "Profile the steps after the capture.",
        ],
        HealthCode::WorkBeforeLaunch => [
            "Device work that starts before the call that launched it: the two clocks differ. The worst is told.",
            "Sums and phases are right. Launch delays and causes of idle time are wrong by about the worst value.",
            "Update the driver and the profiler, which align the clocks; do not read launch delays from the file.",
        ],
        HealthCode::LaneOverlapRepaired => [
            "Device events that outlast the next start on their stream by more than 5 us each, on a stream where that sums up to more than 1 % of its time: a stream runs one after the other, so the durations are wrong.",
            "The events were cut at the next start. The time taken away is told; it had been counted twice.",
            "Compare with another capture before deciding anything on these kernels; update the driver.",
        ],
        HealthCode::LaneOverlap => [
            "Device events that end after the next start on their stream. The worst is told.",
            "None that matters: programmatic launches and clock noise make some in sound traces.",
            "Nothing.",
        ],
        HealthCode::PhasesInferred => [
            "There is host work, and no annotation called forward or backward.",
            "Phases follow from autograd nodes, optimizer ranges and their order, which is right for plain training loops. In traces of inference everything is forward.",
            "Annotate the phases with torch.profiler.record_function(\"forward\") and so on.",
        ],
        HealthCode::NoOperators => [
            "There is device work, and no operator or annotation of the host.",
            "Device sums and timelines are right, but every piece of work is in `other`.",
            "Record ProfilerActivity.CPU, too.",
        ],
        HealthCode::MissingSteps => [
            "The numbers of the steps (ProfilerStep#N) leave some out between the first and the last.",
            "What ran in the missing steps is in no step, and the step behind the gap may have waited for it.",
            "Read step times of the steps on one side of the gap; profile again when all are needed.",
        ],
        HealthCode::PartialSteps => [
            "First or last steps that were still open when the capture ended, whose launches lack their work, or that have fewer than 80 % of the launches of their neighbour.",
            "They are left out of step times, and marked in tables of steps.",
            "Nothing; --include-partial-steps of attribute counts them.",
        ],
        HealthCode::OutlierCollective => [
            "Where several ranks show the same collective: a rank whose kernel takes at least ten times as long as on another rank, and a tenth of the window longer. With one rank only: a kernel that takes ten times the median and three times the next longest of its name, and a tenth of the window.",
            "The rank waits in the kernel for a rank that comes late: that time counts as communication, but no faster network would shorten it.",
            "When it is the first collective of the capture, the profilers started apart (start_skew): leave out that step. Else look for what the late rank does.",
        ],
        HealthCode::CollectivesNotCompared => [
            "Devices of different ranks that show the same collectives are put into groups. There are more than 256, and this device belongs to none of the first 256.",
            "Waiting for other ranks, captures that start apart and clocks that differ are not looked for between this device and the others.",
            "Give tracekit fewer ranks at once, such as those of one process group.",
        ],
        HealthCode::StartSkew => [
            "Collectives that end together on several ranks show how their clocks differ; with that taken out, the capture of this rank starts before that of the last rank, and its first collective takes longer than elsewhere.",
            "The first collectives of the ranks that start early wait for the last one: their communication, step time and idle time are not comparable.",
            "Put a barrier before the profiler starts, or leave out the first step when comparing ranks.",
        ],
        HealthCode::ClockOffset => [
            "Collectives that end together end at times that differ by the same amount all along, more than 1 ms.",
            "Durations are right. Times of this rank cannot be laid beside those of other ranks as they are.",
            "Compare durations; shift the rank by the value told before merging timelines.",
        ],
        HealthCode::RecomputeNotObservable => [
            "There are regions compiled by torch.compile, or replayed graphs.",
            "Recomputation that a compiler fused into a backward kernel, or that runs in a graph, is counted as backward. What is shown as recompute is a lower bound.",
            "Compare with a run without compilation or graphs to learn the cost of recomputation.",
        ],
        HealthCode::MissingRanks => [
            "The world size in distributedInfo is larger than the number of ranks in the run.",
            "Numbers of the run are those of the ranks that are here; the slowest may not be among them.",
            "Give tracekit the folder with the files of all ranks.",
        ],
        HealthCode::Sliced => [
            "A note in the file (tracekit_slice) says that tracekit slice kept a part of the events. The count is that of the events left out.",
            "Sums are those of the part. Work launched and steps opened outside of it are not there.",
            "Nothing; go back to the whole trace for the whole.",
        ],
        HealthCode::Repaired => [
            "A note in the file (tracekit_repair) says what tracekit repair, redact or slice changed: text that was no JSON, missing commas, impossible overlaps that they clipped (slice notes these under tracekit_slice). The count is that of all changes; the time is what was clipped, its share that of the device time before.",
            "None, but for clipped events: their durations are shorter than the profiler wrote, which is kept in their arguments.",
            "Nothing where only text was changed. Where events were clipped, compare with another capture before deciding anything on these kernels; update the driver.",
        ],
        HealthCode::UnterminatedArray => [
            "The file is a bare array without its closing bracket, which the format allows.",
            "None, unless the program that wrote it died: then its last events are missing.",
            "Check that the last step is whole.",
        ],
        HealthCode::TrailingComma => [
            "A comma before a closing bracket.",
            "None.",
            "Nothing; other JSON readers refuse the file.",
        ],
        HealthCode::ControlCharacters => [
            "Raw control characters, such as line ends, inside of strings.",
            "None; names are shown with the characters written out.",
            "Nothing; other JSON readers refuse the file.",
        ],
        HealthCode::InvalidUtf8 => [
            "Bytes inside of strings that are not UTF-8.",
            "Names that differ only in these bytes count as one.",
            "Nothing; other JSON readers refuse the file.",
        ],
        HealthCode::InvalidEscape => [
            "A backslash before a character that JSON does not escape, as in paths of Windows.",
            "None.",
            "Nothing; other JSON readers refuse the file.",
        ],
        HealthCode::NonFiniteNumber => [
            "NaN, inf or N/A where a value belongs.",
            "None: the values are not used.",
            "Nothing; other JSON readers refuse the file.",
        ],
        HealthCode::Salvaged => [
            "The file is cut off or is no JSON somewhere, and --salvage was given: reading went on at the next whole event. Or tracekit repair or redact noted in the file (tracekit_repair) that bytes were left out or that the end was missing.",
            "Events in the ranges of bytes that were skipped are in no number; steps there are cut.",
            "Record the trace again, or look at the ranges named before trusting a number.",
        ],
        HealthCode::ReplacedEvents => [
            "The document has the key traceEvents more than once, with events under an earlier one.",
            "The events of the last array count; those of the others are in no number.",
            "Find out which program joined the file from two, and split it.",
        ],
        HealthCode::DuplicateKey => [
            "A key of the document that occurs twice, or one of an event or its args that numbers need.",
            "The last one counts; what the first one held is in no number.",
            "Find out which program joined the file from two, or lost a piece of it: two halves of events make one \
             with keys twice.",
        ],
        HealthCode::ByteOrderMark => [
            "The file starts with the three bytes that mark UTF-8.",
            "None.",
            "Nothing.",
        ],
        HealthCode::UnknownCategory => [
            "Complete or begin events whose category is not one of the PyTorch profiler.",
            "The events are in no number.",
            "Nothing, unless they are work that should count: then say which category is missing.",
        ],
        HealthCode::NoDeviceWork => [
            "No kernel, copy or fill is in the file.",
            "Only host numbers are given. That is right for a run on CPUs.",
            "When the program used a device, record ProfilerActivity.CUDA, too.",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_in_sentences() {
        for code in codes(None).codes {
            for text in [code.detection, code.effect, code.action] {
                assert!(
                    text.ends_with('.') && text.len() >= 5,
                    "{}: {text}",
                    code.code
                );
                assert!(
                    text.starts_with(char::is_uppercase),
                    "{}: {text}",
                    code.code
                );
                assert!(
                    !text.contains("  ") && !text.contains('\n'),
                    "{}: {text}",
                    code.code
                );
            }
        }
    }

    #[test]
    fn one_code_can_be_asked_for() {
        let one = codes(Some(HealthCode::PreWindow)).codes;
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].code, "pre_window");
        assert_eq!(codes(None).codes.len(), HealthCode::ALL.len());
    }
}
