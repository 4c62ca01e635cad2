//! What profiles and phase memory say about hypotheses. It explains and never decides.

use super::json::{Json, object};
use super::measure::Measure;
use super::report::{ProfileReport, TraceTimes};
use super::role::PROFILER_METRICS;

/// What evidence says about a hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It holds.
    Supported,
    /// It does not.
    Refuted,
    /// Nothing measured tells.
    InsufficientEvidence,
    /// There is nothing to measure.
    NotApplicable,
}

impl Finding {
    /// The spelling in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Refuted => "refuted",
            Self::InsufficientEvidence => "insufficient_evidence",
            Self::NotApplicable => "not_applicable",
        }
    }

    fn of(holds: bool) -> Self {
        if holds {
            Self::Supported
        } else {
            Self::Refuted
        }
    }
}

/// One hypothesis with what was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// Which hypothesis.
    pub id: &'static str,
    /// `compute`, `memory` or `communication`.
    pub category: &'static str,
    /// What evidence says.
    pub finding: Finding,
    /// The numbers behind it.
    pub observations: Json,
    /// Where they are from.
    pub evidence: Vec<Json>,
    /// What to do about it.
    pub optimization: &'static str,
}

impl Assessment {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "id" => self.id,
            "category" => self.category,
            "status" => self.finding.as_str(),
            "strategies" => vec!["baseline", "checkpoint"],
            "observations" => &self.observations,
            "evidence" => self.evidence.clone(),
            "optimization" => self.optimization,
            "measurement_role" => PROFILER_METRICS,
        }
    }
}

/// What is said about the five hypotheses, in their order. `phase` is the record of phase memory with its
/// path.
///
/// Where the profile has the inferences of `tracekit infer`, those about the hypothesis are among its numbers.
/// That a trace has idle time is reported and supports nothing by itself: a share is no cause.
pub fn infer_bottleneck_assessments(
    profile: &ProfileReport,
    evidence_path: &str,
    phase: Option<(&Json, &str)>,
) -> Vec<Assessment> {
    let trace = |finding| match finding {
        Finding::InsufficientEvidence => Vec::new(),
        _ => vec![object! {"kind" => "profiler_trace", "path" => evidence_path}],
    };
    let of_phase = |finding| match (finding, phase) {
        (Finding::InsufficientEvidence, _) | (_, None) => Vec::new(),
        (_, Some((_, path))) => vec![object! {"kind" => "phase_memory", "path" => path}],
    };
    let times = times(profile);
    let (recompute, recompute_seen) = recompute(profile, &times);
    let record = phase.map(|(record, _)| record);
    let (residency, residency_seen) = residency(record);
    let (outside, outside_seen) = peak_outside_activation(record);
    let (waiting, waiting_seen) = waiting(&times);
    let (communication, communication_seen) = communication(&times);
    vec![
        Assessment {
            id: "recompute_overhead",
            category: "compute",
            finding: recompute,
            observations: recompute_seen,
            evidence: trace(recompute),
            optimization: "checkpoint_fewer_or_cheaper_blocks",
        },
        Assessment {
            id: "activation_residency",
            category: "memory",
            finding: residency,
            observations: residency_seen,
            evidence: of_phase(residency),
            optimization: "checkpoint_or_offload_activations",
        },
        Assessment {
            id: "global_peak_outside_activation",
            category: "memory",
            finding: outside,
            observations: outside_seen,
            evidence: of_phase(outside),
            optimization: "reduce_optimizer_state_or_gradients",
        },
        Assessment {
            id: "launch_or_sync_wait",
            category: "compute",
            finding: waiting,
            observations: waiting_seen,
            evidence: Vec::new(),
            optimization: "remove_synchronisation_or_batch_launches",
        },
        Assessment {
            id: "communication",
            category: "communication",
            finding: communication,
            observations: communication_seen,
            evidence: trace(communication),
            optimization: "overlap_or_shrink_communication",
        },
    ]
}

type Seen = (Finding, Json);
type Times = [Option<TraceTimes>; 2];

/// The times of both strategies. Time on a device says nothing beside time on a host: of two places, neither
/// counts.
fn times(profile: &ProfileReport) -> Times {
    match ["baseline", "checkpoint"].map(|name| profile.times(name)) {
        [Some(base), Some(checkpoint)] if base.place != checkpoint.place => [None, None],
        times => times,
    }
}

/// By the traces where they were attributed, else by the profiled time of a step.
fn recompute(profile: &ProfileReport, times: &Times) -> Seen {
    if let [Some(base), Some(checkpoint)] = times {
        let backward = [base, checkpoint].map(|times| times.backward_ns / times.steps);
        let recompute = checkpoint.recompute_ns / checkpoint.steps;
        let mut seen = object! {
            "place" => base.place.as_deref(),
            "checkpoint_recompute_ns_per_step" => recompute,
            "baseline_backward_ns_per_step" => backward[0],
            "checkpoint_backward_ns_per_step" => backward[1],
        };
        add_inferences(&mut seen, times, &["recompute_overhead"]);
        let holds = recompute > 0.0 && backward[1] > backward[0];
        return (Finding::of(holds), seen);
    }
    let step = |name| profile.candidate(name)?.step_time_ms.value();
    match (step("baseline"), step("checkpoint")) {
        (Some(base), Some(checkpoint)) => (
            Finding::of(checkpoint > base),
            object! {
                "baseline_profiler_step_time_ms" => base,
                "checkpoint_profiler_step_time_ms" => checkpoint,
            },
        ),
        _ => (Finding::InsufficientEvidence, Json::object()),
    }
}

fn ok_candidate<'a>(record: Option<&'a Json>, name: &str) -> Option<&'a Json> {
    let candidates = record?.at(&["candidates"]).items();
    candidates.iter().find(|candidate| {
        candidate.at(&["name"]).as_str() == Some(name)
            && candidate.at(&["status"]).as_str() == Some("ok")
    })
}

fn residency(record: Option<&Json>) -> Seen {
    let sides = ok_candidate(record, "baseline").zip(ok_candidate(record, "checkpoint"));
    let saving = |phase: &str| {
        let (base, checkpoint) = sides?;
        let peak = |side: &Json| {
            side.at(&["phase_metrics", phase, "peak_allocated_mb"])
                .as_f64()
        };
        Some(super::number::round(peak(base)? - peak(checkpoint)?, 3))
    };
    let (Some(forward), Some(backward)) = (saving("forward"), saving("backward")) else {
        return (Finding::InsufficientEvidence, Json::object());
    };
    let seen = object! {"forward_saving_mb" => forward, "backward_saving_mb" => backward};
    (Finding::of(forward > 0.0 || backward > 0.0), seen)
}

fn peak_outside_activation(record: Option<&Json>) -> Seen {
    let both = ok_candidate(record, "baseline").and(ok_candidate(record, "checkpoint"));
    let phase = both.and_then(|candidate| candidate.at(&["global_peak_phase"]).as_str());
    match phase {
        Some(phase) => (
            Finding::of(phase == "optimizer"),
            object! {"checkpoint_global_peak_phase" => phase},
        ),
        None => (Finding::InsufficientEvidence, Json::object()),
    }
}

fn waiting(times: &Times) -> Seen {
    let ratio = |times: &Option<TraceTimes>| {
        let times = times.as_ref();
        Json::from(times.map_or(Measure::NotMeasured, |times| times.idle_ratio))
    };
    let mut seen = object! {
        "baseline_device_idle_ratio" => ratio(&times[0]),
        "checkpoint_device_idle_ratio" => ratio(&times[1]),
    };
    let rules = ["host_bound", "launch_bound", "synchronisation"];
    add_inferences(&mut seen, times, &rules);
    (Finding::InsufficientEvidence, seen)
}

/// Any communication is reported; none on traces with device work is nothing to measure.
fn communication(times: &Times) -> Seen {
    let ratios = times.each_ref().map(|times| {
        let times = times.as_ref();
        times.map_or(Measure::NotMeasured, |times| times.communication_ratio)
    });
    let mut seen = object! {
        "baseline_communication_ratio" => Json::from(ratios[0]),
        "checkpoint_communication_ratio" => Json::from(ratios[1]),
    };
    add_inferences(&mut seen, times, &["exposed_communication", "stragglers"]);
    // What computation hides is communication, too.
    let mut sums = times.iter().flatten().map(|times| times.communication_ns);
    let some = sums.any(|sum| sum.is_some_and(|sum| sum > 0.0));
    let finding = if some
        || ratios
            .iter()
            .any(|ratio| ratio.value().is_some_and(|ratio| ratio > 0.0))
    {
        Finding::Supported
    } else if ratios.contains(&Measure::NotApplicable) {
        Finding::NotApplicable
    } else if ratios.iter().any(|ratio| ratio.value().is_some()) {
        Finding::Refuted
    } else {
        Finding::InsufficientEvidence
    };
    (finding, seen)
}

/// Adds the verdicts of `rules` on each strategy, where there are any; what is not applicable was not seen.
fn add_inferences(seen: &mut Json, times: &Times, rules: &[&str]) {
    for (name, times) in ["baseline", "checkpoint"].into_iter().zip(times) {
        let Some(times) = times else { continue };
        let mut verdicts = Json::object();
        for rule in rules {
            let found = times.inferences.get(rule);
            let seen = found.filter(|it| it.at(&["verdict"]).as_str() != Some("not_applicable"));
            if let Some(found) = seen {
                verdicts.set(*rule, found);
            }
        }
        if verdicts.fields().next().is_some() {
            seen.set(format!("{name}_inferences"), verdicts);
        }
    }
}
