//! The allocator asks the driver again and again, or memory grows.

use super::super::case::{Case, Judgement, int_at, percent, share};
use super::super::inference::{Category, Level, Number};
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "allocator_growth",
    category: Category::Memory,
    question: "Does the allocator not settle?",
    method: "Calls that take memory from the driver and give it back, after the first device work: a settled caching allocator makes none. \
             Their time as a share of the window; and, where allocations were recorded, steps in a row after \
             which more memory is allocated than before.",
    next_action: "Find what holds tensors from step to step (tracekit inspect memory); even out shapes; \
                  PYTORCH_ALLOC_CONF=expandable_segments:True; leave some memory free.",
    tables: &[
        "attribution",
        "device_work",
        "events",
        "memory_steps",
        "step_ranges",
    ],
    needs_launches: false,
    judge,
};

/// Calls after the first work of the devices: what comes before sets up the context, which takes seconds.
const CALLS: &str = "FROM (SELECT file, event, name, ts_ns, dur_ns FROM events WHERE ph = 'X' AND name IN \
                     ('cudaMalloc', 'cudaFree', 'cuMemAlloc_v2', 'cuMemFree_v2', 'cuMemCreate', \
                     'cuMemMap', 'cuMemUnmap', 'hipMalloc', 'hipFree', 'hipExtMallocWithFlags')) AS \
                     calls JOIN (SELECT file AS of_file, MIN(start_ns) AS first_ns FROM device_work \
                     GROUP BY file) AS begun ON calls.file = begun.of_file WHERE ts_ns > first_ns";
const RUNTIME: &str =
    "SELECT COUNT(*) FROM events WHERE cat IN ('cuda_runtime', 'cuda_driver', 'Runtime')";
const STEPS: &str = "SELECT rank, device, step, MIN(peak_allocated_at_ns) AS at_ns, SUM(net_bytes) AS \
                     net_bytes FROM memory_steps WHERE step IS NOT NULL AND device <> 'cpu' GROUP BY rank, \
                     device, step ORDER BY rank, device, at_ns, step";

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let calls = case.count("calls for memory", &format!("SELECT COUNT(*) {CALLS}"))?;
    let time = case.ns("time in them", &format!("SELECT SUM(dur_ns) {CALLS}"))?;
    let (steps, growing) = growing(case)?;
    let of_steps = steps;
    case.note(
        "steps with allocations",
        "count",
        Some(Number::Int(steps)),
        STEPS,
    );
    case.note(
        "steps in a row that grow",
        "count",
        Some(Number::Int(growing)),
        STEPS,
    );
    let runtime = case.count("calls of the runtime", RUNTIME)?;
    if runtime == 0 && steps == 0 {
        return Ok(Judgement::insufficient(
            "neither calls of the CUDA runtime nor allocations are in the files",
        ));
    }
    case.blame(&format!(
        "SELECT file, event, name {CALLS} ORDER BY dur_ns DESC, file, event"
    ))?;
    if growing as f64 >= case.limit("growing_steps") && growing == steps {
        return Ok(Judgement::supported(format!(
            "allocated memory grows in each of {steps} steps"
        ))
        .winning(time, window));
    }
    let of_window = share(time, window);
    let part = percent(of_window);
    let made = match calls {
        1 => "1 call to the driver for memory takes".to_owned(),
        calls => format!("{calls} calls to the driver for memory take"),
    };
    let judgement = Judgement::when(
        of_window >= case.limit("call_share"),
        format!("{made} {part} of the window"),
        match calls {
            0 => "no call asks the driver for memory".to_owned(),
            _ => format!("{made} only {part} of the window"),
        },
    )
    .winning(time, window);
    let steps = case.count(
        "whole steps",
        "SELECT COUNT(*) FROM step_ranges WHERE partial = FALSE",
    )?;
    Ok(if steps == 0 {
        judgement.at_most(
            Level::Low,
            "without whole steps the calls may belong to the set-up",
        )
    } else if of_steps == 0 {
        judgement.at_most(
            Level::Medium,
            "no allocations are recorded: only calls to the driver were looked at",
        )
    } else {
        judgement
    })
}

/// The number of steps of the device with the most, and the most of them in a row that leave more
/// memory allocated than they found.
fn growing(case: &Case<'_>) -> Result<(i64, i64)> {
    let rows = case.rows(STEPS)?;
    let mut best = (0, 0);
    let mut current: Option<(Option<i64>, String)> = None;
    let (mut steps, mut run) = (0, 0);
    let devices = rows
        .column("device")
        .ok()
        .and_then(|column| column.str().ok());
    for row in 0..rows.height() {
        let device = devices.and_then(|devices| devices.get(row)).unwrap_or("");
        let own = Some((int_at(&rows, "rank", row), device.to_owned()));
        if own != current {
            current = own;
            (steps, run) = (0, 0);
        }
        steps += 1;
        let grows = int_at(&rows, "net_bytes", row).is_some_and(|net| net > 0);
        run = if grows { run + 1 } else { 0 };
        best = best.max((run, steps));
    }
    Ok((best.1, best.0))
}
