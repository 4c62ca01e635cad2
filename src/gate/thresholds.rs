//! All thresholds in one place, from a file or as they are by default.

use serde::Deserialize;

use super::json::{Json, object};
use super::optimization::RecommendationGates;
use super::qualification::QualificationGates;
use super::regression::RegressionGates;
use super::screening::ScreeningBudget;
use super::sensitivity::{Grid, RelativeGrid};
use super::strategies::MemoryBudget;
use crate::error::{Error, ErrorKind, Result};

/// The default thresholds as a documented file.
pub const DEFAULT_THRESHOLDS: &str = include_str!("thresholds.toml");

/// Everything that a decision is compared with.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// One change, end to end.
    pub recommend: RecommendationGates,
    /// One change under several workloads.
    pub regression: RegressionGates,
    /// Strategies under a memory budget.
    pub budget: BudgetThresholds,
    /// Handed-off strategies under a budget.
    pub screening: ScreeningBudget,
    /// The grid of absolute thresholds.
    pub sensitivity: Grid,
    /// The grid of thresholds relative to the baseline.
    pub relative_sensitivity: RelativeGrid,
    /// What a profiled strategy has to have measured without the profiler.
    pub qualification: QualificationGates,
    /// What the activation ladder has to show.
    pub activation: QualificationGates,
    /// How memory by phase is measured.
    pub phase: PhaseThresholds,
    /// Which hardware a budget is planned for.
    pub hardware: HardwareProfile,
    /// Which model a budget is planned for.
    pub model: ModelProfile,
}

/// A memory budget whose limit of loss may follow from the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetThresholds {
    /// Most memory allocated, MiB.
    pub memory_cap_mb: f64,
    /// Least throughput, samples a second.
    pub min_samples_per_s: f64,
    /// Least memory saved, MiB.
    pub min_memory_saving_mb: f64,
    /// Least share of throughput kept.
    pub min_throughput_ratio: f64,
    /// Highest loss of evaluation; `None`: from the baseline.
    pub max_val_loss: Option<f64>,
    /// How many times the baseline's loss that is.
    pub quality_slack: f64,
}

impl Default for BudgetThresholds {
    fn default() -> Self {
        Self {
            memory_cap_mb: 11200.0,
            min_samples_per_s: 1.0,
            min_memory_saving_mb: 512.0,
            min_throughput_ratio: 0.70,
            max_val_loss: None,
            quality_slack: 1.02,
        }
    }
}

impl BudgetThresholds {
    /// The budget for a baseline with this loss of evaluation: the limit of loss is rounded to six decimals.
    ///
    /// # Errors
    /// When no limit of loss is set and the baseline has none.
    pub fn budget(&self, baseline_loss: Option<f64>) -> Result<MemoryBudget> {
        let from_baseline = || baseline_loss.map(|loss| loss * self.quality_slack);
        let Some(max_val_loss) = self.max_val_loss.or_else(from_baseline) else {
            let message =
                "max_val_loss is not set and the baseline has no eval_loss to take it from";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        Ok(MemoryBudget {
            memory_cap_mb: self.memory_cap_mb,
            min_samples_per_s: self.min_samples_per_s,
            min_memory_saving_mb: self.min_memory_saving_mb,
            min_throughput_ratio: self.min_throughput_ratio,
            max_val_loss: super::number::round(max_val_loss, 6),
        })
    }
}

impl Default for ScreeningBudget {
    fn default() -> Self {
        Self {
            memory_cap_mb: 11200.0,
            min_memory_saving_mb: 512.0,
            min_throughput_ratio: 0.70,
            max_quality_delta: 0.01,
        }
    }
}

/// How memory by phase is measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PhaseThresholds {
    /// Strategies that are profiled and measured by phase: `baseline`, `checkpoint`.
    pub strategies: Vec<String>,
    /// Runs of each.
    pub repeats: i64,
    /// Share of the device's memory that a process may take, above 0 and at most 1.
    pub process_memory_fraction: f64,
    /// Memory that has to be free beyond the expected peak, MiB.
    pub min_free_margin_mb: f64,
    /// A closing record needs memory by phase.
    pub require_phase_memory: bool,
}

impl Default for PhaseThresholds {
    fn default() -> Self {
        Self {
            strategies: vec!["baseline".to_owned(), "checkpoint".to_owned()],
            repeats: 3,
            process_memory_fraction: 0.92,
            min_free_margin_mb: 512.0,
            require_phase_memory: true,
        }
    }
}

/// Hardware that a budget is planned for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HardwareProfile {
    /// What it is called.
    pub name: String,
    /// All its memory, MiB.
    pub total_memory_mb: i64,
    /// What training may use of it, MiB.
    pub usable_memory_mb: i64,
}

impl Default for HardwareProfile {
    fn default() -> Self {
        Self {
            name: "12GB Laptop GPU".to_owned(),
            total_memory_mb: 12227,
            usable_memory_mb: 11200,
        }
    }
}

impl HardwareProfile {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "name" => self.name.as_str(),
            "total_memory_mb" => self.total_memory_mb,
            "usable_memory_mb" => self.usable_memory_mb,
        }
    }
}

/// Model that a budget is planned for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelProfile {
    /// Which model.
    pub model_id: String,
    /// What it is trained for.
    pub task: String,
    /// On what.
    pub dataset_name: String,
    /// How many samples that has.
    pub dataset_samples: i64,
}

impl Default for ModelProfile {
    fn default() -> Self {
        Self {
            model_id: "Qwen/Qwen2.5-0.5B-Instruct".to_owned(),
            task: "causal_lm_training".to_owned(),
            dataset_name: "固定小型教学数据集".to_owned(),
            dataset_samples: 4,
        }
    }
}

impl ModelProfile {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "model_id" => self.model_id.as_str(),
            "task" => self.task.as_str(),
            "dataset_name" => self.dataset_name.as_str(),
            "dataset_samples" => self.dataset_samples,
        }
    }
}

impl Thresholds {
    /// Reads the thresholds in `text` (TOML); what it does not set stays as by default. `changes` are
    /// further lines `table.key = value`, which win.
    ///
    /// # Errors
    /// With the line of what is no TOML, is unknown or out of range.
    pub fn read(text: &str, changes: &[String]) -> Result<Self> {
        let invalid = |message: String| Error::new(ErrorKind::Usage, message);
        let one_line = |error: toml::de::Error| {
            let message = error.message().replace('\n', "; ");
            invalid(format!("thresholds: {message}"))
        };
        let mut table: toml::Table = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| {
                let before = text.get(..span.start).unwrap_or_default();
                before.matches('\n').count() + 1
            });
            let place = line.map_or_else(String::new, |line| format!("line {line}: "));
            invalid(format!(
                "thresholds: {place}{}",
                error.message().replace('\n', "; ")
            ))
        })?;
        let check = |table: &toml::Table| match infinite(table) {
            Some(name) => Err(invalid(format!("thresholds: {name} is no finite number"))),
            None => Ok(()),
        };
        check(&table)?;
        for change in changes {
            let parsed: toml::Table = toml::from_str(change)
                .map_err(|_| invalid(format!("'{change}' is not of the form TABLE.KEY=VALUE")))?;
            check(&parsed)?;
            merge(&mut table, parsed);
        }
        let thresholds: Self = table.try_into().map_err(one_line)?;
        thresholds.check()?;
        Ok(thresholds)
    }

    fn check(&self) -> Result<()> {
        let refused = |message: String| Err(Error::new(ErrorKind::Usage, message));
        let fraction = self.phase.process_memory_fraction;
        if !(fraction > 0.0 && fraction <= 1.0) {
            return refused(format!(
                "phase.process_memory_fraction must be above 0 and at most 1, but is {fraction}"
            ));
        }
        let not_negative = [
            (
                "recommend.min_time_delta_ms",
                self.recommend.min_time_delta_ms,
            ),
            (
                "recommend.min_memory_delta_mb",
                self.recommend.min_memory_delta_mb,
            ),
            (
                "recommend.min_throughput_delta",
                self.recommend.min_throughput_delta,
            ),
            (
                "regression.min_primary_time_gain_ms",
                self.regression.min_primary_time_gain_ms,
            ),
            (
                "regression.max_adjacent_slowdown_ms",
                self.regression.max_adjacent_slowdown_ms,
            ),
            (
                "regression.max_quality_delta",
                self.regression.max_quality_delta,
            ),
            ("budget.min_samples_per_s", self.budget.min_samples_per_s),
            (
                "budget.min_memory_saving_mb",
                self.budget.min_memory_saving_mb,
            ),
            ("budget.quality_slack", self.budget.quality_slack),
            (
                "screening.min_memory_saving_mb",
                self.screening.min_memory_saving_mb,
            ),
            (
                "screening.max_quality_delta",
                self.screening.max_quality_delta,
            ),
            ("phase.min_free_margin_mb", self.phase.min_free_margin_mb),
            (
                "qualification.minimum_memory_saving_mb",
                self.qualification.minimum_memory_saving_mb,
            ),
            (
                "qualification.maximum_loss_delta",
                self.qualification.maximum_loss_delta,
            ),
            (
                "activation.minimum_memory_saving_mb",
                self.activation.minimum_memory_saving_mb,
            ),
            (
                "activation.maximum_loss_delta",
                self.activation.maximum_loss_delta,
            ),
            (
                "budget.max_val_loss",
                self.budget.max_val_loss.unwrap_or_default(),
            ),
            (
                "regression.max_memory_growth_mb",
                self.regression.max_memory_growth_mb.unwrap_or_default(),
            ),
            (
                "regression.max_throughput_loss",
                self.regression.max_throughput_loss.unwrap_or_default(),
            ),
        ];
        for (name, value) in not_negative {
            if !(value.is_finite() && value >= 0.0) {
                return refused(format!("{name} must be 0 or more, but is {value}"));
            }
        }
        for (name, value) in [
            ("budget.memory_cap_mb", self.budget.memory_cap_mb),
            ("screening.memory_cap_mb", self.screening.memory_cap_mb),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return refused(format!("{name} must be above 0, but is {value}"));
            }
        }
        let (grid, relative) = (&self.sensitivity, &self.relative_sensitivity);
        for (name, axis) in [
            ("sensitivity.memory_caps_mb", &grid.memory_caps_mb),
            ("sensitivity.min_samples_per_s", &grid.min_samples_per_s),
            ("sensitivity.max_val_loss", &grid.max_val_loss),
            (
                "relative_sensitivity.memory_caps_mb",
                &relative.memory_caps_mb,
            ),
            (
                "relative_sensitivity.throughput_factors",
                &relative.throughput_factors,
            ),
            ("relative_sensitivity.loss_factors", &relative.loss_factors),
        ] {
            let holds = (1..=64).contains(&axis.len()) && axis.iter().all(|value| *value >= 0.0);
            if !holds {
                return refused(format!(
                    "{name} must have from 1 to 64 numbers of 0 or more"
                ));
            }
        }
        let ratios = [
            ("budget", self.budget.min_throughput_ratio),
            ("screening", self.screening.min_throughput_ratio),
            ("qualification", self.qualification.minimum_throughput_ratio),
            ("activation", self.activation.minimum_throughput_ratio),
        ];
        for (table, value) in ratios {
            if !(0.0..=1.0).contains(&value) {
                return refused(format!(
                    "the least ratio of throughput in {table} must be from 0 to 1, but is {value}"
                ));
            }
        }
        if self.phase.repeats < 3 {
            let repeats = self.phase.repeats;
            return refused(format!("phase.repeats must be 3 or more, but is {repeats}"));
        }
        Ok(())
    }
}

/// The name of a value that is NaN or infinite: a comparison with such a threshold means nothing.
fn infinite(table: &toml::Table) -> Option<String> {
    fn is_infinite(value: &toml::Value) -> bool {
        match value {
            toml::Value::Float(number) => !number.is_finite(),
            toml::Value::Array(values) => values.iter().any(is_infinite),
            _ => false,
        }
    }
    table.iter().find_map(|(key, value)| match value {
        toml::Value::Table(inner) => infinite(inner).map(|name| format!("{key}.{name}")),
        value => is_infinite(value).then(|| key.clone()),
    })
}

fn merge(into: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(into)), toml::Value::Table(from)) => merge(into, from),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_file_says_what_holds_without_one() {
        let read = Thresholds::read(DEFAULT_THRESHOLDS, &[]).unwrap();
        assert_eq!(read, Thresholds::default());
        assert_eq!(Thresholds::read("", &[]).unwrap(), read);
    }

    #[test]
    fn the_defaults_are_the_constants_of_the_contract() {
        let defaults = Thresholds::default();
        let numbers = [
            (defaults.budget.memory_cap_mb, 11200.0),
            (defaults.budget.min_samples_per_s, 1.0),
            (defaults.budget.min_memory_saving_mb, 512.0),
            (defaults.budget.min_throughput_ratio, 0.70),
            (defaults.budget.quality_slack, 1.02),
            (defaults.recommend.min_time_delta_ms, 10.0),
            (defaults.recommend.min_memory_delta_mb, 512.0),
            (defaults.recommend.min_throughput_delta, 5.0),
            (defaults.qualification.minimum_memory_saving_mb, 512.0),
            (defaults.qualification.minimum_throughput_ratio, 0.70),
            (defaults.qualification.maximum_loss_delta, 0.01),
            (defaults.activation.minimum_memory_saving_mb, 512.0),
            (defaults.activation.minimum_throughput_ratio, 0.70),
            (defaults.activation.maximum_loss_delta, 0.01),
            (defaults.phase.process_memory_fraction, 0.92),
            (defaults.phase.min_free_margin_mb, 512.0),
        ];
        for (found, wanted) in numbers {
            assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        }
        assert_eq!(defaults.budget.max_val_loss, None);
        assert_eq!(defaults.phase.strategies, ["baseline", "checkpoint"]);
        assert_eq!(defaults.phase.repeats, 3);
        assert!(defaults.phase.require_phase_memory);
        let grid = &defaults.sensitivity;
        assert_eq!(grid.memory_caps_mb, [9600.0, 11200.0]);
        assert_eq!(grid.min_samples_per_s, [1.0, 1.5, 2.0]);
        assert_eq!(grid.max_val_loss, [12.20, 12.45, 12.80]);
        let relative = &defaults.relative_sensitivity;
        assert_eq!(relative.memory_caps_mb, [9500.0, 10000.0, 11200.0]);
        assert_eq!(relative.throughput_factors, [0.5, 0.7, 0.9]);
        assert_eq!(relative.loss_factors, [1.01, 1.02, 1.05]);
        let hardware = &defaults.hardware;
        assert_eq!(hardware.name, "12GB Laptop GPU");
        assert_eq!(
            (hardware.total_memory_mb, hardware.usable_memory_mb),
            (12227, 11200)
        );
        let model = &defaults.model;
        assert_eq!(model.model_id, "Qwen/Qwen2.5-0.5B-Instruct");
        assert_eq!(model.task, "causal_lm_training");
        assert_eq!(model.dataset_name, "固定小型教学数据集");
        assert_eq!(model.dataset_samples, 4);
    }

    #[test]
    fn what_is_set_wins() {
        let changes = ["budget.memory_cap_mb=9600".to_owned()];
        let read = Thresholds::read("[budget]\nmemory_cap_mb = 1.0\nmax_val_loss = 2", &changes);
        let read = read.unwrap();
        assert!((read.budget.memory_cap_mb - 9600.0).abs() < 1e-9);
        assert_eq!(read.budget.max_val_loss, Some(2.0));
        let budget = Thresholds::default()
            .budget
            .budget(Some(12.356_503))
            .unwrap();
        assert!((budget.max_val_loss - 12.603_633).abs() < 1e-12);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, changes, told) in [
            ("[budgets]\n", &[][..], "unknown field `budgets`"),
            ("[budget]\nx = 1\n", &[], "unknown field `x`"),
            ("[budget\n", &[], "thresholds: line 1"),
            (
                "",
                &["budget".to_owned()],
                "is not of the form TABLE.KEY=VALUE",
            ),
            (
                "",
                &["phase.process_memory_fraction=1.01".to_owned()],
                "phase.process_memory_fraction must be above 0 and at most 1, but is 1.01",
            ),
            (
                "",
                &["phase.process_memory_fraction=0".to_owned()],
                "must be above 0 and at most 1, but is 0",
            ),
            (
                "",
                &["qualification.minimum_memory_saving_mb=nan".to_owned()],
                "thresholds: qualification.minimum_memory_saving_mb is no finite number",
            ),
            (
                "[sensitivity]\nmemory_caps_mb = [1.0, inf]\n",
                &[],
                "thresholds: sensitivity.memory_caps_mb is no finite number",
            ),
            (
                "",
                &["qualification.maximum_loss_delta=-1".to_owned()],
                "qualification.maximum_loss_delta must be 0 or more, but is -1",
            ),
            (
                "",
                &["sensitivity.memory_caps_mb=[]".to_owned()],
                "sensitivity.memory_caps_mb must have from 1 to 64 numbers of 0 or more",
            ),
            (
                "",
                &["budget.min_throughput_ratio=2".to_owned()],
                "from 0 to 1, but is 2",
            ),
        ] {
            let error = Thresholds::read(text, changes).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains('\n'), "{error}");
        }
    }
}
