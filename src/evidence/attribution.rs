//! What tracekit's own attribution says about the traces of each strategy. It explains and never decides.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::attribute::{
    AttributeOptions, Attribution, CounterSums, Phase, Request, RunResult, Timeline,
    attribute_paths,
};
use crate::compare::{CompareOptions, compare_paths};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{Json, PHASES, PROFILER_METRICS, TRACE_EVIDENCE_LEVEL, object, round};
use crate::infer::Thresholds;
use crate::ingest::IngestOptions;
use crate::inspect::{By, Entry, Frame, InspectOptions, Topic, inspect_paths};
use crate::units::Ns;

/// Rows of the table of operators.
const TOP_OPERATORS: usize = 10;

fn request<'a>(
    paths: &'a [PathBuf],
    options: &'a AttributeOptions,
    expect: Vec<String>,
) -> Request<'a> {
    Request {
        paths,
        ingest: IngestOptions::default(),
        options,
        ranks: Vec::new(),
        expect,
        hash_inputs: false,
        salvage: None,
    }
}

/// What is in the traces of each of `strategies` under `trace_root`, in time of whole captures:
/// nanoseconds, ratios of device time, and what the second costs over the first.
///
/// # Errors
/// When a strategy has no trace or one cannot be read.
pub fn attribute_strategies(trace_root: &Path, strategies: &[String]) -> Result<Json> {
    let options = AttributeOptions::default();
    let paths: Vec<PathBuf> = strategies
        .iter()
        .map(|name| trace_root.join(name))
        .collect();
    let mut by_strategy = Json::object();
    for (name, path) in strategies.iter().zip(&paths) {
        let own = [path.clone()];
        let attribution = attribute_paths(&request(&own, &options, Vec::new()), &|_| {})?;
        let mut times = strategy_times(&attribution);
        if let Some(counters) = device_counters(&attribution) {
            times.set("device_counters", counters);
        }
        add_inferences(&mut times, &own)?;
        by_strategy.set(name.as_str(), times);
    }
    let mut record = object! {
        "schema_version" => crate::attribute::SCHEMA_VERSION,
        "measurement_role" => PROFILER_METRICS,
        "timing_for_adoption" => false,
        "by_strategy" => by_strategy,
    };
    if let [base, candidate] = paths.as_slice() {
        record.set("cost_shift", cost_shift(base, candidate)?);
    }
    Ok(record)
}

/// Adds to the times of a strategy what `tracekit infer` says about the traces under `paths`: for each rule
/// its verdict and the time that it is about.
fn add_inferences(times: &mut Json, paths: &[PathBuf]) -> Result<()> {
    let options = AttributeOptions::default();
    let request = request(paths, &options, Vec::new());
    let inferences = crate::infer::infer_paths(&request, &Thresholds::default(), &|_| {})?;
    let mut verdicts = Json::object();
    for inference in inferences.runs.iter().flat_map(|run| &run.inferences) {
        let effect = inference.effect;
        verdicts.set(
            inference.code.as_str(),
            object! {
                "verdict" => inference.verdict.as_str(),
                "effect_ns" => effect.map(|effect| ns(effect.ns)),
                "effect_share" => effect.map(|effect| round(effect.share, 6)),
            },
        );
    }
    times.set("inferences", verdicts);
    Ok(())
}

fn ns(time: Ns) -> Json {
    time.0.into()
}

/// The times of one strategy: on the device where there is device work, else on the host.
fn strategy_times(attribution: &Attribution) -> Json {
    let totals = &attribution.totals;
    let on_device = totals.total.events > 0;
    let runs = &attribution.runs;
    let host = |phase: Phase| -> i64 {
        let of = |run: &RunResult| run.host_phases.get(&phase).map_or(0, |time| time.self_ns.0);
        runs.iter().map(of).sum()
    };
    let time = |phase: Phase| {
        if on_device {
            totals.phase(phase).sum_ns.0
        } else {
            host(phase)
        }
    };
    let mut phases = Json::object();
    for phase in Phase::ALL {
        phases.set(phase.as_str(), time(phase));
    }
    let recompute = time(Phase::Recompute);
    let steps: u64 = runs
        .iter()
        .filter_map(|run| run.step_time)
        .map(|time| time.steps)
        .sum();
    // Shares of the windows of all devices, as `tracekit infer` gives them: with idle, they add up to 1.
    let over_devices = |of: fn(&Timeline) -> Ns| -> i64 {
        let devices = attribution.ranks.iter().flat_map(|rank| &rank.devices);
        let times = devices.map(|device| of(&device.timeline).0);
        times.fold(0, i64::saturating_add)
    };
    let window = over_devices(|line| line.window_ns);
    let ratio = |of: fn(&Timeline) -> Ns| {
        let part = over_devices(of);
        Json::from((window > 0).then(|| round(part as f64 / window as f64, 6)))
    };
    let communication_ns = totals.total.communication_ns.0;
    let communication = if on_device && communication_ns == 0 {
        "not_applicable".into()
    } else {
        ratio(|line| line.exposed_communication_ns)
    };
    let step = runs.first().and_then(|run| run.step_time);
    object! {
        "place" => if on_device { "device" } else { "host" },
        "steps" => steps,
        "step_median_ns" => step.map(|time| ns(time.median_ns)),
        "phases_ns" => phases,
        "backward_ns" => time(Phase::Backward).saturating_add(recompute),
        "recompute_ns" => recompute,
        "recompute_evidence" => attribution.recompute.evidence,
        "recompute_observable" => attribution.recompute.observable,
        "phases_from" => attribution.coverage.phases,
        "communication_ns" => on_device.then_some(communication_ns),
        "compute_ratio" => ratio(|line| line.compute_ns),
        "memory_ratio" => ratio(|line| line.exposed_memcpy_ns + line.exposed_memset_ns),
        "communication_ratio" => communication,
        "idle_ratio" => ratio(|line| line.idle_ns),
    }
}

/// What the counters of devices say by phase; `None` when the traces have none.
fn device_counters(attribution: &Attribution) -> Option<Vec<Json>> {
    let mut counters = Vec::new();
    for rank in &attribution.ranks {
        for device in &rank.devices {
            let Some(of_device) = &device.counters else {
                continue;
            };
            let mut phases = Json::object();
            for (phase, sums) in &of_device.phases {
                phases.set(*phase, counter_sums(sums));
            }
            counters.push(object! {
                "rank" => rank.rank,
                "device" => device.device,
                "energy_from" => of_device.energy_from,
                "total" => counter_sums(&of_device.total),
                "phases" => phases,
            });
        }
    }
    (!counters.is_empty()).then_some(counters)
}

fn counter_sums(sums: &CounterSums) -> Json {
    object! {
        "time_ns" => ns(sums.time_ns),
        "energy_uj" => sums.energy_uj,
        "power_mw" => sums.power_mw,
        "sm_clock_mhz" => sums.sm_clock_mhz.map(|range| range.mean),
        "memory_used_max_bytes" => sums.memory_used_max_bytes,
        "throttled_ns" => sums.throttled_ns.map(ns),
    }
}

/// What a step of the candidate costs over one of the baseline, by class of cost.
fn cost_shift(base: &Path, candidate: &Path) -> Result<Vec<Json>> {
    let options = AttributeOptions::default();
    let sides = [base, candidate].map(|path| [path.to_owned()]);
    let comparison = compare_paths(
        &request(&sides[0], &options, Vec::new()),
        &request(&sides[1], &options, Vec::new()),
        &CompareOptions::default(),
        &|_| {},
    )?;
    let frame = comparison
        .frames
        .iter()
        .find(|frame| frame.name == "cost_shift");
    let Some(frame) = frame else {
        return Ok(Vec::new());
    };
    let columns = ["cost", "place", "base_ns", "candidate_ns", "delta_ns"];
    Ok((0..frame.len())
        .map(|row| {
            let mut record = Json::object();
            for name in columns {
                record.set(name, entry(frame, name, row));
            }
            record
        })
        .collect())
}

fn entry(frame: &Frame, column: &str, row: usize) -> Json {
    let Some(series) = frame.column(column) else {
        return Json::Null;
    };
    match series.values.get(row) {
        Entry::Null => Json::Null,
        Entry::Text(text) => text.into(),
        Entry::Int(int) => int.into(),
        Entry::Float(float) => float.into(),
        Entry::Bool(flag) => flag.into(),
    }
}

/// Peaks of memory by phase out of the `[memory]` events of the traces under `path`, in MiB, on the device
/// with the highest peak; `None` when the traces have no such events. Recompute is part of backward.
///
/// # Errors
/// When a trace cannot be read.
pub fn phase_peaks(path: &Path) -> Result<Option<Json>> {
    let options = AttributeOptions::default();
    let look = InspectOptions {
        by: vec![By::Phase],
        top: 0,
        ..InspectOptions::default()
    };
    let paths = [path.to_owned()];
    let inspection = inspect_paths(
        &request(&paths, &options, Vec::new()),
        Topic::Memory,
        &look,
        &|_| {},
    )?;
    let frame = inspection
        .frames
        .iter()
        .find(|frame| frame.name == "memory_steps");
    let Some(frame) = frame.filter(|frame| !frame.is_empty()) else {
        return Ok(None);
    };
    let rows: Vec<(String, String, i64)> = (0..frame.len())
        .filter_map(|row| {
            let text = |column| entry(frame, column, row).as_str().map(str::to_owned);
            let peak = entry(frame, "peak_allocated_bytes", row).as_int()?;
            Some((text("device")?, text("phase")?, peak))
        })
        .collect();
    // A device before the host: only a run without devices is about the memory of the host.
    let is_host = |device: &str| device == "cpu";
    let Some((device, ..)) = rows
        .iter()
        .max_by_key(|(device, _, peak)| (!is_host(device), *peak))
    else {
        return Ok(None);
    };
    let mut phases = Json::object();
    let mut highest: Option<(&str, i64)> = None;
    for phase in PHASES {
        let of_phase = |name: &str| name == phase || (phase == "backward" && name == "recompute");
        let peak = rows
            .iter()
            .filter(|(other, name, _)| other == device && of_phase(name))
            .map(|(.., peak)| *peak)
            .max();
        if let Some(peak) = peak
            && highest.is_none_or(|(_, most)| peak > most)
        {
            highest = Some((phase, peak));
        }
        let mib = peak.map(|bytes| round(bytes as f64 / 1024.0 / 1024.0, 2));
        let metrics = object! {"peak_allocated_mb" => mib, "peak_allocated_bytes" => peak};
        phases.set(phase, metrics);
    }
    Ok(Some(object! {
        "evidence_level" => TRACE_EVIDENCE_LEVEL,
        "measurement_role" => PROFILER_METRICS,
        "device" => device.as_str(),
        "phase_metrics" => phases,
        "global_peak_phase" => highest.map(|(phase, _)| phase),
    }))
}

/// The operators of the traces under `path` with the most device time (host time without device work), as
/// a text table in the columns of PyTorch's profiler. Memory is not told there.
///
/// # Errors
/// When a trace cannot be read.
pub fn top_operators(path: &Path) -> Result<String> {
    let options = AttributeOptions::default();
    let look = InspectOptions {
        top: 0,
        ..InspectOptions::default()
    };
    let paths = [path.to_owned()];
    let inspection = inspect_paths(
        &request(&paths, &options, Vec::new()),
        Topic::Operators,
        &look,
        &|_| {},
    )?;
    let frame = inspection
        .frames
        .iter()
        .find(|frame| frame.name == "operators");
    let frame = frame.ok_or_else(|| Error::new(ErrorKind::NotATrace, "no table of operators"))?;
    let int = |column: &str, row| entry(frame, column, row).as_int();
    let sum = |column: &str| -> i64 {
        let values = (0..frame.len()).filter_map(|row| int(column, row));
        values.fold(0, i64::saturating_add)
    };
    let (cpu, cuda) = (sum("host_self_ns"), sum("device_direct_ns"));
    let key = if cuda > 0 {
        "device_total_ns"
    } else {
        "host_total_ns"
    };
    let mut rows: Vec<usize> = (0..frame.len()).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(int(key, *row)));
    rows.truncate(TOP_OPERATORS);
    let heads = [
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "Self CUDA",
        "Self CUDA %",
        "CUDA total",
        "CUDA time avg",
        "CPU Mem",
        "Self CPU Mem",
        "CUDA Mem",
        "Self CUDA Mem",
        "# of Calls",
    ]
    .map(str::to_owned);
    let mut line = "-".repeat(55) + "  ";
    for _ in 1..heads.len() {
        line += &("-".repeat(12) + "  ");
    }
    let mut out = format!("{line}\n{}\n{line}\n", laid_out(&heads));
    for row in rows {
        let calls = int("calls", row);
        let average = |time: Option<i64>| {
            time.zip(calls)
                .and_then(|(time, calls)| time.checked_div(calls))
        };
        let name = entry(frame, "operator", row);
        let (self_cpu, total_cpu) = (int("host_self_ns", row), int("host_total_ns", row));
        let (self_cuda, total_cuda) = (int("device_direct_ns", row), int("device_total_ns", row));
        let none = || "n/a".to_owned();
        let cells = [
            name.as_str().unwrap_or_default().to_owned(),
            percent(self_cpu, cpu),
            time(self_cpu),
            percent(total_cpu, cpu),
            time(total_cpu),
            time(average(total_cpu)),
            time(self_cuda),
            percent(self_cuda, cuda),
            time(total_cuda),
            time(average(total_cuda)),
            none(),
            none(),
            none(),
            none(),
            calls.map_or_else(none, |calls| calls.to_string()),
        ];
        out += &(laid_out(&cells) + "\n");
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{line}\nSelf CPU time total: {}", time(Some(cpu)));
    if cuda > 0 {
        let _ = writeln!(out, "Self CUDA time total: {}", time(Some(cuda)));
    }
    Ok(out)
}

fn laid_out(cells: &[String; 15]) -> String {
    let mut out = String::new();
    for (place, cell) in cells.iter().enumerate() {
        let width = if place == 0 { 55 } else { 12 };
        let cell = if cell.chars().count() > width && place == 0 {
            cell.chars().take(width - 3).collect::<String>() + "..."
        } else {
            cell.clone()
        };
        // Writing to a string cannot fail.
        let _ = write!(out, "{cell:>width$}  ");
    }
    out
}

fn percent(part: Option<i64>, whole: i64) -> String {
    match part {
        Some(part) if whole > 0 => format!("{:.2}%", part as f64 / whole as f64 * 100.0),
        Some(_) => "0.00%".to_owned(),
        None => "n/a".to_owned(),
    }
}

/// Nanoseconds as PyTorch's profiler spells times.
fn time(ns: Option<i64>) -> String {
    let Some(ns) = ns else {
        return "n/a".to_owned();
    };
    let us = ns as f64 / 1e3;
    if us >= 1e6 {
        format!("{:.3}s", us / 1e6)
    } else if us >= 1e3 {
        format!("{:.3}ms", us / 1e3)
    } else {
        format!("{us:.3}us")
    }
}
