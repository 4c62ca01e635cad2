//! From findings to what a file can be used for.
//!
//! A file is trustworthy when nothing is missing from its numbers or wrong in them, and nothing that
//! has to be read in a certain way concerns one percent of the time. Numbers of which half is missing or
//! unknown must not be used.

use super::diagnosis::{Facts, Finding, Impact, Judgement, Use, Verdict};
use super::measure::Measured;
use crate::attribute::FileAttribution;
use crate::health::{HealthCode, Severity};
use crate::units::Ns;

/// From this share on, what has to be read in a certain way matters.
const MATTERS: f64 = 0.01;
/// From this share on, skewed starts make communication incomparable.
const SKEWED: f64 = 0.1;
/// From this share on, too much is missing or unknown.
const TOO_MUCH: f64 = 0.5;

const TIMES: &[Use] = &[Use::DeviceTime, Use::HostTime, Use::Phases];
const PLACES: &[Use] = &[Use::Phases, Use::Recompute];
const WORK: &[Use] = &[Use::DeviceTime, Use::Phases, Use::Recompute];

/// What the rest of a file says about the weight of a finding.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Context {
    /// The run has several ranks.
    several_ranks: bool,
    /// Phases are annotated.
    annotated: bool,
    /// Kernel launches in the file.
    launches: u64,
    /// There is no device work.
    no_device_work: bool,
    /// Some of them lost their work.
    lost_work: bool,
    /// There is backward work, so that there could be recompute.
    has_backward: bool,
    /// Share of device time in replayed graphs.
    replayed: f64,
    recompute_observable: bool,
    all_steps_partial: bool,
}

impl Context {
    /// The context of findings about a whole run.
    pub(super) fn of_run(several_ranks: bool) -> Self {
        Self {
            several_ranks,
            ..Self::default()
        }
    }

    /// The context of findings about `file`.
    pub(super) fn of_file(file: &FileAttribution, facts: &Facts) -> Self {
        use crate::attribute::Phase;
        let entries = file.health.entries();
        let replayed = entries
            .iter()
            .find(|entry| entry.code == HealthCode::GraphReplay.as_str())
            .and_then(|entry| entry.time_ns.map(Ns));
        let backward = |phase: Phase| {
            let host = file.host.phases.get(&phase);
            file.totals.phase(phase).events > 0
                || host.is_some_and(|phase| phase.self_ns > Ns::ZERO)
        };
        Self {
            several_ranks: false,
            annotated: facts.phases == "annotated",
            launches: facts.launches,
            no_device_work: facts.device_events == 0,
            lost_work: file.health.get(HealthCode::LaunchesWithoutWork) > 0,
            has_backward: backward(Phase::Backward) || backward(Phase::Recompute),
            replayed: replayed
                .and_then(|time| time.ratio(file.totals.total.sum_ns))
                .unwrap_or(0.0),
            recompute_observable: file.recompute.observable != "no",
            all_steps_partial: facts.steps > 0 && file.host.steps.iter().all(|step| step.partial),
        }
    }
}

/// What a finding does, to which numbers, and how grave it is here.
pub(super) fn weigh(
    code: HealthCode,
    measured: Measured,
    context: Context,
) -> (Impact, &'static [Use], Severity) {
    let share = measured.share;
    // Of something missing, any amount matters; of something to be kept in mind, a share.
    let missing = match share {
        Some(share) if share >= TOO_MUCH => Impact::Spoils,
        _ => Impact::Care,
    };
    let in_mind = match share {
        Some(share) if share >= TOO_MUCH => Impact::Spoils,
        Some(share) if share >= MATTERS => Impact::Care,
        _ => Impact::None,
    };
    let severity = code.severity();
    let (impact, affects): (Impact, &'static [Use]) = match code {
        HealthCode::FailedInput | HealthCode::ForeignTrace | HealthCode::EmptyCapture => {
            (Impact::Spoils, &Use::ALL)
        }
        HealthCode::DuplicateRank | HealthCode::DuplicateCapture => {
            (Impact::Spoils, &[Use::RankComparison])
        }
        HealthCode::LostRecords => {
            // Records outside of the capture are counted there, too, those of the warm-up above all.
            // When no launch lacks its work, there were no others.
            if context.launches > 0 && !context.lost_work {
                return (Impact::None, WORK, Severity::Notice);
            }
            (Impact::Care, WORK)
        }
        // Nothing at all was collected.
        HealthCode::ProfilerStopped | HealthCode::ProfilerErrors if context.no_device_work => {
            (Impact::Spoils, WORK)
        }
        HealthCode::ProfilerStopped | HealthCode::ProfilerErrors => (Impact::Care, WORK),
        HealthCode::Salvaged | HealthCode::ReplacedEvents => (Impact::Care, &Use::ALL),
        HealthCode::LaunchesWithoutWork
        | HealthCode::ZeroTimestamp
        | HealthCode::RepeatedWork
        | HealthCode::WorkWithoutLength => (missing, WORK),
        HealthCode::CaptureOnly => (in_mind, WORK),
        HealthCode::UnlinkedDeviceWork | HealthCode::AmbiguousLaunch => (missing, PLACES),
        HealthCode::PreWindow => (in_mind, PLACES),
        // An annotation around a replay says what it is.
        HealthCode::GraphReplay if context.annotated => (in_mind.min(Impact::Care), &[Use::Phases]),
        HealthCode::GraphReplay => (in_mind, &[Use::Phases]),
        HealthCode::NoOperators => (Impact::Spoils, PLACES),
        HealthCode::MissingTimestamp
        | HealthCode::InvalidTimestamp
        | HealthCode::NegativeDuration
        | HealthCode::AbsurdTime => (missing, TIMES),
        // The times are wrong, but by less than a microsecond.
        HealthCode::UnpaddedFractions => (Impact::Care, TIMES),
        HealthCode::MissingDuration => (in_mind, TIMES),
        HealthCode::UnfinishedOperation | HealthCode::UnclosedBegin => {
            (in_mind.min(Impact::Care), &[Use::HostTime])
        }
        HealthCode::WorkBeforeLaunch => (in_mind, &[Use::LaunchDelays]),
        // Of a file that was repaired, what was clipped.
        HealthCode::LaneOverlapRepaired | HealthCode::Repaired => {
            (in_mind.min(Impact::Care), &[Use::DeviceTime])
        }
        HealthCode::OutlierCollective => (in_mind, &[Use::DeviceTime, Use::RankComparison]),
        HealthCode::StartSkew => match share {
            Some(share) if share >= SKEWED => (Impact::Spoils, &[Use::RankComparison]),
            _ => (in_mind, &[Use::RankComparison]),
        },
        HealthCode::CollectivesNotCompared | HealthCode::ClockOffset => {
            (Impact::Care, &[Use::RankComparison])
        }
        HealthCode::MissingRanks if context.several_ranks => (Impact::Care, &[Use::RankComparison]),
        HealthCode::MissingSteps => (Impact::Care, &[Use::StepTimes]),
        HealthCode::PartialSteps if context.all_steps_partial => {
            (Impact::Spoils, &[Use::StepTimes])
        }
        HealthCode::RecomputeNotObservable => (recompute(context), &[Use::Recompute]),
        HealthCode::MissingRanks
        | HealthCode::PartialSteps
        | HealthCode::PhasesInferred
        | HealthCode::RoundedTimestamps
        | HealthCode::LaneOverlap
        | HealthCode::UnmatchedEnd
        | HealthCode::MissingPh
        | HealthCode::NonObjectEvent
        | HealthCode::UnknownPh
        | HealthCode::Sliced
        | HealthCode::UnterminatedArray
        | HealthCode::TrailingComma
        | HealthCode::ControlCharacters
        | HealthCode::InvalidUtf8
        | HealthCode::InvalidEscape
        | HealthCode::NonFiniteNumber
        | HealthCode::DuplicateKey
        | HealthCode::ByteOrderMark
        | HealthCode::UnknownCategory
        | HealthCode::NoDeviceWork => (Impact::None, &[]),
    };
    (impact, affects, severity)
}

/// Compiled regions and graphs matter where there is training in the file, or nothing but graphs.
fn recompute(context: Context) -> Impact {
    match (context.has_backward, context.recompute_observable) {
        (true, true) => Impact::Care,
        (true, false) => Impact::Spoils,
        (false, _) if context.replayed >= TOO_MUCH => Impact::Spoils,
        (false, _) => Impact::None,
    }
}

/// The verdict that `findings` lead to.
pub(super) fn verdict<'a>(findings: impl Iterator<Item = &'a Finding> + Clone) -> Verdict {
    let worst = |what: Use| {
        let impacts = findings.clone().filter(|it| it.affects.contains(&what));
        impacts.map(|it| it.impact).max().unwrap_or(Impact::None)
    };
    let uses = |impact: Impact| {
        Use::ALL
            .into_iter()
            .filter(move |what| worst(*what) == impact)
    };
    let not_usable_for: Vec<Use> = uses(Impact::Spoils).collect();
    let care_for: Vec<Use> = uses(Impact::Care).collect();
    let because: Vec<&'static str> = [Impact::Spoils, Impact::Care]
        .into_iter()
        .flat_map(|impact| findings.clone().filter(move |it| it.impact == impact))
        .map(|finding| finding.code)
        .collect();
    let judgement = if !not_usable_for.is_empty() {
        Judgement::NotUsable
    } else if !care_for.is_empty() {
        Judgement::UsableWithCare
    } else {
        Judgement::Trustworthy
    };
    Verdict {
        judgement,
        not_usable_for,
        care_for,
        because,
    }
}
