//! A strategy with its numbers.

use std::marker::PhantomData;

use super::json::Json;
use super::measure::Measure;
use super::role::{Role, ScopeLimited, Unprofiled, refuse_profiled};
use crate::error::{Error, ErrorKind, Result};

/// One strategy of a report, measured in the role `R`.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate<R: Role> {
    /// What the record calls it; a name when it is text that is not empty.
    pub name: Json,
    /// `ok`, `oom`, `partial_oom` or another word; `None` when that field is no text.
    pub status: Option<String>,
    /// Mean time of a step, milliseconds.
    pub step_time_ms: Measure,
    /// Throughput.
    pub samples_per_s: Measure,
    /// Peak of allocated memory, MiB: `peak_memory_mb`.
    pub peak_memory_mb: Measure,
    /// Peak of allocated memory, MiB, also by its older name `peak_mem_mb`.
    pub peak_allocated_mb: Measure,
    /// Peak of memory reserved from the device, MiB.
    pub peak_reserved_mb: Measure,
    /// Loss of evaluation: `eval_loss`, else `val_loss`.
    pub eval_loss: Measure,
    /// `eval_loss`, else the training loss.
    pub eval_or_train_loss: Measure,
    /// Runs that ended well; `None` without a list of runs.
    pub ok_runs: Option<usize>,
    /// What `successful_runs` says.
    pub successful_runs: Option<i64>,
    role: PhantomData<R>,
}

impl<R: Role> Candidate<R> {
    fn read_as(record: &Json) -> Self {
        let status = match record.get("status") {
            None => Some("ok".to_owned()),
            Some(status) => status.as_str().map(str::to_owned),
        };
        let runs = record.get("runs").filter(|runs| runs.is_list());
        let is_ok = |run: &&Json| match run.get("status") {
            None => run.is_object(),
            Some(status) => status.as_str() == Some("ok"),
        };
        Self {
            name: record.at(&["name"]).clone(),
            status,
            step_time_ms: Measure::amount(record, &["step_time_ms"]),
            samples_per_s: Measure::amount(record, &["samples_per_s"]),
            peak_memory_mb: Measure::amount(record, &["peak_memory_mb"]),
            peak_allocated_mb: Measure::amount(record, &["peak_memory_mb", "peak_mem_mb"]),
            peak_reserved_mb: Measure::amount(record, &["peak_reserved_mb"]),
            eval_loss: Measure::read(record, &["eval_loss", "val_loss"]),
            eval_or_train_loss: Measure::read(record, &["eval_loss", "loss"]),
            ok_runs: runs.map(|runs| runs.items().iter().filter(is_ok).count()),
            successful_runs: record.at(&["successful_runs"]).as_int(),
            role: PhantomData,
        }
    }

    /// Its name, when it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_name()
    }

    /// True when every run ended well.
    pub fn is_ok(&self) -> bool {
        self.status.as_deref() == Some("ok")
    }
}

impl Candidate<Unprofiled> {
    /// Reads a candidate that was measured without a profiler.
    ///
    /// # Errors
    /// When it is no object or says that it was measured under a profiler.
    pub fn read(record: &Json) -> Result<Self> {
        if !record.is_object() {
            return Err(Error::new(ErrorKind::Invalid, "a candidate is no object"));
        }
        refuse_profiled(record)?;
        Ok(Self::read_as(record))
    }

    /// Reads the candidates of a strategy report.
    ///
    /// # Errors
    /// When the report has no list of candidates, or says that it was measured under a profiler.
    pub fn read_all(report: &Json) -> Result<Vec<Self>> {
        refuse_profiled(report)?;
        match report.get("candidates") {
            Some(Json::List(items)) => items.iter().map(Self::read).collect(),
            _ => Err(Error::new(
                ErrorKind::Invalid,
                "candidates is missing or no list",
            )),
        }
    }
}

impl Candidate<ScopeLimited> {
    /// Reads a candidate of the activation ladder.
    ///
    /// # Errors
    /// When it says that it was measured under a profiler.
    pub fn read_scope_limited(record: &Json) -> Result<Self> {
        refuse_profiled(record)?;
        Ok(Self::read_as(record))
    }
}

impl Candidate<super::role::Profiled> {
    /// Reads a candidate of a profile report.
    pub fn read_profiled(record: &Json) -> Self {
        Self::read_as(record)
    }
}

/// The candidate of that name; the first of several.
pub(crate) fn named<'a, R: Role>(
    candidates: &'a [Candidate<R>],
    name: &str,
) -> Option<&'a Candidate<R>> {
    candidates
        .iter()
        .find(|candidate| candidate.name() == Some(name))
}
