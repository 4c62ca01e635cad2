//! One change against its baseline, end to end: what it gained, and whether it is worth keeping.

use serde::Deserialize;

use super::json::{Json, object};
use super::number::{python_repr, round};
use super::role::refuse_profiled;
use super::verdict::{Decision, Outcome};
use crate::error::{Error, ErrorKind, Result};

/// What one side of a change measured, without a profiler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndToEnd {
    /// Mean time of a step, milliseconds.
    pub step_time_ms: f64,
    /// Peak of allocated memory, MiB.
    pub peak_mem_mb: f64,
    /// Throughput, samples a second.
    pub throughput: f64,
}

impl EndToEnd {
    /// Reads `step_time_ms`, `peak_mem_mb` (else `peak_memory_mb`) and `throughput` (else
    /// `samples_per_s`).
    ///
    /// # Errors
    /// When one is not there, no finite number or negative, or the record says that it was profiled.
    pub fn read(record: &Json) -> Result<Self> {
        refuse_profiled(record)?;
        Ok(Self {
            step_time_ms: required_amount(record, &["step_time_ms"])?,
            peak_mem_mb: required_amount(record, &["peak_mem_mb", "peak_memory_mb"])?,
            throughput: required_amount(record, &["throughput", "samples_per_s"])?,
        })
    }
}

/// The number under the first of `keys` that is there.
pub(crate) fn required_number(record: &Json, keys: &[&str]) -> Result<f64> {
    let found = keys.iter().find_map(|key| record.get(key));
    let Some(found) = found else {
        return Err(missing_key(keys[0]));
    };
    found.as_f64().ok_or_else(|| {
        let message = format!("{} is no finite number but {}", keys[0], found.to_line());
        Error::new(ErrorKind::Invalid, message)
    })
}

/// The same of something that there cannot be less than nothing of: time, memory, throughput.
pub(crate) fn required_amount(record: &Json, keys: &[&str]) -> Result<f64> {
    let number = required_number(record, keys)?;
    if number < 0.0 {
        let message = format!("{} is negative: {}", keys[0], python_repr(number));
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(number)
}

pub(crate) fn missing_key(key: &str) -> Error {
    Error::new(ErrorKind::MissingKey, format!("missing key '{key}'"))
}

/// What a change gained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptimizationSummary {
    /// Time saved a step, milliseconds, two decimals.
    pub step_time_delta_ms: f64,
    /// Memory saved, MiB, two decimals.
    pub peak_mem_delta_mb: f64,
    /// Throughput gained, samples a second, two decimals.
    pub throughput_delta: f64,
    /// Some time was saved, however little.
    pub time_improved: bool,
    /// Some memory was saved, however little.
    pub memory_improved: bool,
    /// Some throughput was gained, however little.
    pub throughput_improved: bool,
}

impl OptimizationSummary {
    /// Reads a summary.
    ///
    /// # Errors
    /// When a difference is missing or no number.
    pub fn read(record: &Json) -> Result<Self> {
        refuse_profiled(record)?;
        let flag = |key| record.at(&[key]).is_true();
        Ok(Self {
            step_time_delta_ms: required_number(record, &["step_time_delta_ms"])?,
            peak_mem_delta_mb: required_number(record, &["peak_mem_delta_mb"])?,
            throughput_delta: required_number(record, &["throughput_delta"])?,
            time_improved: flag("time_improved"),
            memory_improved: flag("memory_improved"),
            throughput_improved: flag("throughput_improved"),
        })
    }

    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "step_time_delta_ms" => self.step_time_delta_ms,
            "peak_mem_delta_mb" => self.peak_mem_delta_mb,
            "throughput_delta" => self.throughput_delta,
            "time_improved" => self.time_improved,
            "memory_improved" => self.memory_improved,
            "throughput_improved" => self.throughput_improved,
        }
    }
}

/// What `tuned` gained over `base`. Differences are rounded; whether something improved is not.
pub fn summarize_optimization_result(base: &EndToEnd, tuned: &EndToEnd) -> OptimizationSummary {
    let time = base.step_time_ms - tuned.step_time_ms;
    let memory = base.peak_mem_mb - tuned.peak_mem_mb;
    let throughput = tuned.throughput - base.throughput;
    OptimizationSummary {
        step_time_delta_ms: round(time, 2),
        peak_mem_delta_mb: round(memory, 2),
        throughput_delta: round(throughput, 2),
        time_improved: time > 0.0,
        memory_improved: memory > 0.0,
        throughput_improved: throughput > 0.0,
    }
}

/// The optimisation report: six lines of Markdown, without a line break at the end.
pub fn format_optimization_report(
    summary: &OptimizationSummary,
    bottleneck: &str,
    next_action: &str,
) -> String {
    let word = |improved| if improved { "改善" } else { "未改善" };
    let rows = [
        "| 指标 | 变化 | 判断 |".to_owned(),
        "| --- | --- | --- |".to_owned(),
        format!(
            "| step time | {} ms | {} |",
            python_repr(summary.step_time_delta_ms),
            word(summary.time_improved)
        ),
        format!(
            "| peak memory | {} MB | {} |",
            python_repr(summary.peak_mem_delta_mb),
            word(summary.memory_improved)
        ),
        format!(
            "| throughput | {} | {} |",
            python_repr(summary.throughput_delta),
            word(summary.throughput_improved)
        ),
        format!("瓶颈判断：{bottleneck}。下一步：{next_action}。"),
    ];
    rows.join("\n")
}

/// What a change has to gain.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecommendationGates {
    /// Time saved a step, milliseconds.
    pub min_time_delta_ms: f64,
    /// Memory saved, MiB.
    pub min_memory_delta_mb: f64,
    /// Throughput gained, samples a second.
    pub min_throughput_delta: f64,
}

impl Default for RecommendationGates {
    fn default() -> Self {
        Self {
            min_time_delta_ms: 10.0,
            min_memory_delta_mb: 512.0,
            min_throughput_delta: 5.0,
        }
    }
}

/// Whether a change is worth keeping: time first, then memory or throughput.
///
/// Small gains of memory or throughput count by their rounded differences.
pub fn recommend_optimization_decision(
    summary: &OptimizationSummary,
    gates: &RecommendationGates,
) -> Outcome {
    let strong_time = summary.step_time_delta_ms >= gates.min_time_delta_ms;
    let strong_resource = summary.peak_mem_delta_mb >= gates.min_memory_delta_mb
        || summary.throughput_delta >= gates.min_throughput_delta;
    let some_resource = summary.peak_mem_delta_mb > 0.0 || summary.throughput_delta > 0.0;
    let (decision, reason) = if strong_time && strong_resource {
        (
            Decision::Accept,
            "时间达到阈值，且显存或吞吐至少一项达到阈值，当前优化值得保留。",
        )
    } else if strong_time && some_resource {
        (
            Decision::Tune,
            "时间改善成立，但资源或吞吐收益还不够稳，建议继续微调。",
        )
    } else {
        (
            Decision::Reject,
            "当前优化没有形成稳定的端到端收益，建议回退或重新定位瓶颈。",
        )
    };
    Outcome {
        decision,
        reason,
        next_action: None,
    }
}

/// What the tuned run of a training baseline gained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaselineSummary {
    /// Time saved a step, milliseconds, two decimals.
    pub step_time_delta_ms: f64,
    /// Memory saved, MiB, two decimals.
    pub peak_mem_delta_mb: f64,
    /// Some time was saved.
    pub time_improved: bool,
    /// Some memory was saved.
    pub memory_improved: bool,
}

/// What `tuned` gained over `base` in time (milliseconds) and peak memory (MiB), each given as
/// `(step_time_ms, peak_mem_mb)`.
pub fn summarize_training_baseline(base: (f64, f64), tuned: (f64, f64)) -> BaselineSummary {
    let (time, memory) = (base.0 - tuned.0, base.1 - tuned.1);
    BaselineSummary {
        step_time_delta_ms: round(time, 2),
        peak_mem_delta_mb: round(memory, 2),
        time_improved: time > 0.0,
        memory_improved: memory > 0.0,
    }
}

/// Whether the tuned run of a training baseline is a result: both gains, one of them, or none.
pub fn decide_training_baseline(summary: &BaselineSummary, gates: &RecommendationGates) -> Outcome {
    let (decision, reason) = if summary.step_time_delta_ms >= gates.min_time_delta_ms
        && summary.peak_mem_delta_mb >= gates.min_memory_delta_mb
    {
        (
            Decision::Accept,
            "时间和显存收益都达到阈值，可以作为稳定的项目结论。",
        )
    } else if summary.time_improved || summary.memory_improved {
        (
            Decision::Tune,
            "至少有一项收益成立，但还没形成稳定项目结论，先继续微调。",
        )
    } else {
        (Decision::Reject, "时间和显存都没有改善，建议回退。")
    };
    Outcome {
        decision,
        reason,
        next_action: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_baseline_needs_both_gains() {
        for (base, tuned, deltas, decision) in [
            (
                (120.0, 8192.0),
                (98.0, 6144.0),
                (22.0, 2048.0),
                Decision::Accept,
            ),
            (
                (120.0, 8192.0),
                (114.0, 7936.0),
                (6.0, 256.0),
                Decision::Tune,
            ),
            (
                (120.0, 8192.0),
                (124.0, 8192.0),
                (-4.0, 0.0),
                Decision::Reject,
            ),
        ] {
            let summary = summarize_training_baseline(base, tuned);
            assert!((summary.step_time_delta_ms - deltas.0).abs() < 1e-12);
            assert!((summary.peak_mem_delta_mb - deltas.1).abs() < 1e-12);
            let outcome = decide_training_baseline(&summary, &RecommendationGates::default());
            assert_eq!(outcome.decision, decision);
        }
    }

    #[test]
    fn numbers_of_a_profiler_are_refused() {
        let record = Json::parse(
            "{\"step_time_ms\":1,\"peak_mem_mb\":1,\"throughput\":1,\"timing_for_adoption\":false}",
        );
        let error = EndToEnd::read(&record.unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("evidence_role: "));
    }
}
