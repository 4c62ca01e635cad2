//! Records as the gates read them: strategies that were measured, profiles that only explain.

use super::candidate::{Candidate, named};
use super::json::{Json, object};
use super::measure::Measure;
use super::role::{Profiled, Unprofiled};
use crate::error::{Error, ErrorKind, Result};

/// A report of strategies measured without a profiler.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyReport {
    /// How they were measured.
    pub config: Json,
    /// The strategies, in order.
    pub candidates: Vec<Candidate<Unprofiled>>,
}

impl StrategyReport {
    /// Reads a report.
    ///
    /// # Errors
    /// When it has no list of candidates, or says that it was measured under a profiler.
    pub fn read(report: &Json) -> Result<Self> {
        Ok(Self {
            config: report.at(&["config"]).clone(),
            candidates: Candidate::read_all(report)?,
        })
    }

    /// The strategy of that name.
    pub fn candidate(&self, name: &str) -> Option<&Candidate<Unprofiled>> {
        named(&self.candidates, name)
    }
}

/// A report of profiled runs. Nothing in it but names and the presence of traces can reach a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileReport {
    candidates: Vec<Candidate<Profiled>>,
    traced: Vec<bool>,
    attribution: Json,
}

/// Which strategies were profiled, and whether there is a trace of them: no numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileCoverage {
    /// Names in order, each with whether its profile ended well and a trace is named.
    pub strategies: Vec<(String, bool)>,
}

/// Times that tracekit attributed in the traces of a strategy. They explain and do not decide.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceTimes {
    /// `device`, or `host` where there is no device work.
    pub place: Option<String>,
    /// Steps in the traces.
    pub steps: f64,
    /// Time in recompute, nanoseconds.
    pub recompute_ns: f64,
    /// Time in backward with the recompute in it, nanoseconds.
    pub backward_ns: f64,
    /// Share of the device's window in which nothing ran; not measured without device work.
    pub idle_ratio: Measure,
    /// Share of the window in communication that no computation hides; not applicable without collectives.
    pub communication_ratio: Measure,
    /// Sum of communication, hidden or not, nanoseconds; `None` in older records.
    pub communication_ns: Option<f64>,
    /// What `tracekit infer` said about the traces, by rule: null where it was not asked.
    pub inferences: Json,
}

impl ProfileReport {
    /// Reads a profile report, of today or older.
    ///
    /// # Errors
    /// When it has no list of candidates.
    pub fn read(report: &Json) -> Result<Self> {
        let Some(Json::List(items)) = report.get("candidates") else {
            let message = "candidates is missing or no list";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let files = report.at(&["profile", "trace_files_by_strategy"]);
        let traced = items.iter().map(|item| {
            let name = item.at(&["name"]).as_str().unwrap_or_default();
            item.at(&["trace_dir"]).as_name().is_some() || !files.at(&[name]).items().is_empty()
        });
        Ok(Self {
            traced: traced.collect(),
            candidates: items.iter().map(Candidate::read_profiled).collect(),
            attribution: report.at(&["attribution"]).clone(),
        })
    }

    /// Names and presence only.
    pub fn coverage(&self) -> ProfileCoverage {
        let strategies = self.candidates.iter().zip(&self.traced);
        ProfileCoverage {
            strategies: strategies
                .filter_map(|(candidate, traced)| {
                    let name = candidate.name()?.to_owned();
                    Some((name, *traced && candidate.is_ok()))
                })
                .collect(),
        }
    }

    /// The strategy of that name, when its profile ended well.
    pub fn candidate(&self, name: &str) -> Option<&Candidate<Profiled>> {
        named(&self.candidates, name).filter(|candidate| candidate.is_ok())
    }

    /// What was attributed in the traces of that strategy, when its profile ended well.
    pub fn times(&self, name: &str) -> Option<TraceTimes> {
        self.candidate(name)?;
        let times = self.attribution.at(&["by_strategy", name]);
        let number = |key| times.at(&[key]).as_f64();
        Some(TraceTimes {
            place: times.at(&["place"]).as_str().map(str::to_owned),
            steps: number("steps").filter(|steps| *steps > 0.0)?,
            recompute_ns: number("recompute_ns")?,
            backward_ns: number("backward_ns")?,
            idle_ratio: Measure::read(times, &["idle_ratio"]),
            communication_ratio: Measure::read(times, &["communication_ratio"]),
            communication_ns: number("communication_ns"),
            inferences: times.at(&["inferences"]).clone(),
        })
    }
}

/// What each strategy was judged as under a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetEvaluations(Vec<(String, bool)>);

impl BudgetEvaluations {
    /// Reads `evaluations` of a summary.
    pub fn read(summary: &Json) -> Self {
        let evaluations = summary.at(&["evaluations"]).items().iter();
        Self(
            evaluations
                .filter_map(|evaluation| {
                    let name = evaluation.at(&["name"]).as_name()?.to_owned();
                    let feasible = evaluation.at(&["status"]).as_str() == Some("feasible");
                    Some((name, feasible))
                })
                .collect(),
        )
    }

    /// Whether the strategy fits; `None` when it was not judged.
    pub fn is_feasible(&self, name: &str) -> Option<bool> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, feasible)| *feasible)
    }
}

/// An artefact as records name it.
pub fn artifact(path: &str, sha256: &str) -> Json {
    object! {"path" => path, "sha256" => sha256}
}

/// True for 64 lower-case hexadecimal digits.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
