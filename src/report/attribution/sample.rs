//! Small attributions with round numbers, for tests of the report.

use std::collections::BTreeMap;

use crate::attribute::{
    Attribution, Bucket, Cell, Coverage, DeviceResult, DeviceStep, EvidenceShare, HostPhase,
    HostResult, HostStep, HostStepPhase, Imbalance, InputRecord, LinkedBy, OtherKind, Phase,
    RankResult, Recompute, RunResult, SCHEMA_VERSION, StepTime, Table, Timeline, Tool, TopKernel,
};
use crate::health::{HealthCode, HealthEntry};
use crate::units::Ns;

const MS: i64 = 1_000_000;

/// One run of one rank with one device and two steps of 10 ms; recompute takes `recompute` ms each.
fn with_recompute(recompute: i64, step: i64) -> Attribution {
    let step_table = table(recompute, 1);
    let capture = table(recompute, 2);
    let steps = [0, 1].map(|number| DeviceStep {
        name: format!("ProfilerStep#{number}"),
        partial: false,
        inferred: false,
        totals: step_table,
        timeline: timeline(recompute, 1),
    });
    let coverage = Coverage {
        device_events: 40,
        linked_by: LinkedBy {
            correlation: 38,
            flow: 2,
            external_id: 0,
        },
        pre_window: 0,
        unlinked: 0,
        phases: "annotated",
    };
    let recomputed = Recompute {
        evidence: "sequence",
        regions: 2,
        ops: 24,
        device_sum_ns: Ns(2 * recompute * MS),
        host_self_ns: Ns(MS),
        share_of_forward: Some(recompute as f64 / 3.0),
        by_evidence: BTreeMap::from([(
            "sequence",
            EvidenceShare {
                regions: 2,
                ops: 24,
                device_sum_ns: Ns(2 * recompute * MS),
            },
        )]),
        ..Recompute::default()
    };
    let phases: BTreeMap<Phase, HostPhase> = Phase::ALL
        .into_iter()
        .map(|phase| {
            (
                phase,
                HostPhase {
                    wall_ns: None,
                    self_ns: Ns(3 * MS),
                },
            )
        })
        .collect();
    let host_steps = [0, 1].map(|number| HostStep {
        name: format!("ProfilerStep#{number}"),
        wall_ns: Ns(step),
        partial: false,
        phases: BTreeMap::new(),
        unattributed_ns: Ns(step),
    });
    let kernel = TopKernel {
        name: "void gemm<float>()".to_owned(),
        sum_ns: Ns(4 * MS),
        events: 4,
    };
    Attribution {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "tracekit",
            version: "0",
        },
        options: BTreeMap::new(),
        inputs: vec![input(0)],
        skipped: Vec::new(),
        totals: capture,
        runs: vec![RunResult {
            name: "trace".to_owned(),
            ranks: vec![0],
            totals: capture,
            host_phases: phases.clone(),
            recompute: recomputed.clone(),
            coverage,
            step_time: Some(StepTime {
                steps: 2,
                median_ns: Ns(step),
                min_ns: Ns(step),
                max_ns: Ns(step),
                partial: false,
                inferred: false,
            }),
            imbalance: None,
            top_kernels: BTreeMap::from([("forward", vec![kernel])]),
        }],
        ranks: vec![RankResult {
            rank: Some(0),
            run: 0,
            input: 0,
            window: 0,
            totals: capture,
            devices: vec![DeviceResult {
                device: 0,
                name: Some("GPU".to_owned()),
                totals: capture,
                timeline: timeline(recompute, 2),
                steps: steps.to_vec(),
                counters: None,
            }],
            host: HostResult {
                phases,
                steps: host_steps.to_vec(),
            },
            recompute: recomputed.clone(),
            coverage,
        }],
        recompute: recomputed,
        coverage,
        health: vec![
            finding(HealthCode::NegativeDuration, 3),
            finding(HealthCode::ByteOrderMark, 1),
        ],
    }
}

/// One run of one rank.
pub(super) fn one_rank() -> Attribution {
    with_recompute(1, 10 * MS)
}

/// One run of two equal ranks.
pub(super) fn two_ranks() -> Attribution {
    let mut attribution = one_rank();
    let mut second = attribution.ranks[0].clone();
    second.rank = Some(1);
    second.input = 1;
    attribution.ranks.push(second);
    attribution.inputs.push(input(1));
    let run = &mut attribution.runs[0];
    run.ranks.push(1);
    let totals = run.totals;
    run.totals.add(&totals);
    attribution.totals = run.totals;
    if let Some(time) = &mut run.step_time {
        time.steps *= 2;
    }
    run.imbalance = Some(Imbalance {
        ranks: 2,
        min_busy_ns: Ns(17 * MS),
        min_rank: 0,
        max_busy_ns: Ns(17 * MS),
        max_rank: 0,
        spread: 0.0,
    });
    attribution
}

/// Two runs; the second recomputes more and is slower.
pub(super) fn two_runs() -> Attribution {
    let mut attribution = one_rank();
    attribution.runs[0].name = "baseline".to_owned();
    let mut other = with_recompute(2, 12 * MS + MS / 2);
    other.runs[0].name = "ckpt".to_owned();
    other.runs[0].ranks = vec![1];
    other.ranks[0].run = 1;
    other.ranks[0].input = 1;
    attribution.totals.add(&other.totals);
    attribution.runs.append(&mut other.runs);
    attribution.ranks.append(&mut other.ranks);
    attribution.inputs.append(&mut other.inputs);
    attribution
}

/// One run without device work.
pub(super) fn host_only() -> Attribution {
    let mut attribution = one_rank();
    let phases = BTreeMap::from([
        (
            Phase::Forward,
            HostPhase {
                wall_ns: Some(Ns(3 * MS)),
                self_ns: Ns(2 * MS),
            },
        ),
        (
            Phase::Backward,
            HostPhase {
                wall_ns: None,
                self_ns: Ns(6 * MS),
            },
        ),
    ]);
    let coverage = Coverage {
        phases: "annotated",
        ..Coverage::default()
    };
    attribution.totals = Table::default();
    attribution.coverage = coverage;
    attribution.recompute = Recompute::default();
    let run = &mut attribution.runs[0];
    run.totals = Table::default();
    run.host_phases = phases.clone();
    run.recompute = Recompute::default();
    run.coverage = coverage;
    run.top_kernels.clear();
    if let Some(time) = &mut run.step_time {
        time.steps = 1;
    }
    let rank = &mut attribution.ranks[0];
    rank.totals = Table::default();
    rank.devices.clear();
    rank.host.phases = phases;
    rank.host.steps.truncate(1);
    rank.host.steps[0].phases = BTreeMap::from([(
        Phase::Forward,
        HostStepPhase {
            wall_ns: Ns(3 * MS),
        },
    )]);
    attribution
}

fn input(rank: i64) -> InputRecord {
    InputRecord {
        path: format!("trace/rank-{rank}.json"),
        sha256: None,
        bytes: 1_000,
        events: 100,
        rank: Some(rank),
        world_size: None,
        device_names: vec!["GPU".to_owned()],
        compressed: false,
        partial: false,
        lost: None,
    }
}

fn finding(code: HealthCode, count: u64) -> HealthEntry {
    HealthEntry {
        code: code.as_str(),
        severity: code.severity(),
        count,
        first_input: Some(0),
        first_offset: Some(1_234),
        first_name: Some("gemm\u{1b}".to_owned()),
        raw_ns: None,
        repaired_ns: None,
        time_ns: None,
        worst_ns: None,
        help: code.help(),
    }
}

/// Device time of `steps` equal steps.
fn table(recompute: i64, steps: i64) -> Table {
    let mut table = Table::default();
    let cell = |ms: i64, events: i64, communication: i64| Cell {
        sum_ns: Ns(ms * MS * steps / 2),
        busy_ns: Ns(ms * MS * steps / 2),
        events: u64::try_from(events * steps).unwrap(),
        launches: u64::try_from(events * steps).unwrap(),
        compute_ns: Ns((ms - communication) * MS * steps / 2),
        communication_ns: Ns(communication * MS * steps / 2),
        ..Cell::default()
    };
    // In half milliseconds a step.
    for (phase, cell) in [
        (Phase::Forward, cell(6, 6, 0)),
        (Phase::Backward, cell(8, 10, 1)),
        (Phase::Recompute, cell(2 * recompute, 2, 0)),
        (Phase::Other, cell(1, 2, 0)),
    ] {
        table.buckets[Bucket::Phase(phase).index()] = cell;
        table.total.add(&cell);
    }
    table.other_by[OtherKind::ZeroGrad as usize] = cell(1, 1, 0);
    table.other_by[OtherKind::Rest as usize] = cell(0, 1, 0);
    table
}

/// The timeline of `steps` equal steps of 10 ms.
fn timeline(recompute: i64, steps: i64) -> Timeline {
    let half = |halves: i64| Ns(halves * MS * steps / 2);
    let busy = 15 + 2 * recompute;
    let mut line = Timeline {
        start_ns: Ns::ZERO,
        end_ns: half(20),
        window_ns: half(20),
        compute_ns: half(busy - 1),
        communication_ns: half(1),
        exposed_communication_ns: half(1),
        idle_ns: half(20 - busy),
        ..Timeline::default()
    };
    line.phases[0] = half(6);
    line.phases[1] = half(8);
    line.phases[2] = half(2 * recompute);
    line.phases[4] = half(1);
    line
}
