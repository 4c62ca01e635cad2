//! From paths to a diagnosis.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::diagnosis::{
    Basis, Diagnosis, FileDiagnosis, Finding, Impact, Judgement, RunDiagnosis, SCHEMA_VERSION,
    SkippedFile,
};
use super::explanation::explained;
use super::measure::{Measured, Measures};
use super::verdict::{Context, verdict, weigh};
use crate::attribute::{
    AttributeOptions, AttributedFile, Dissection, ProgressEvent, Request, Salvage, SkippedInput,
    Tool, attributed, attributed_bytes, check_ranks, nothing_readable, put_in_order, read_each,
};
use crate::error::{Error, Result};
use crate::health::{Health, HealthCode, HealthEntry};
use crate::ingest::kind;
use crate::ingest::{Discovered, IngestOptions, Input, Source, discover, is_trace_name};
use crate::model::Trace;
use crate::units::Ns;

/// What to diagnose.
#[derive(Debug, Clone)]
pub struct Examination<'a> {
    /// Files, directories, or `-` for standard input.
    pub paths: &'a [PathBuf],
    /// How to read.
    pub ingest: IngestOptions,
    /// What makes a whole trace out of a damaged one; a damaged trace is not usable without.
    pub salvage: Option<Salvage>,
}

/// Reads every trace under the paths of `examination` and says what it can be used for.
///
/// # Errors
/// When a file that is named cannot be opened or is no trace at all, or when there is no trace in any of
/// the folders. A damaged trace is no error: it gets a verdict.
pub fn diagnose_paths(
    examination: &Examination<'_>,
    progress: &(dyn Fn(ProgressEvent) + Sync),
) -> Result<Diagnosis> {
    let Discovered { inputs, skipped } = discover(examination.paths)?;
    let options = AttributeOptions::default();
    let request = Request {
        paths: examination.paths,
        ingest: examination.ingest,
        options: &options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
        salvage: examination.salvage,
    };
    let read: Vec<Result<Read>> = read_each(&inputs, progress, |input| read(input, &request));
    let mut skipped: Vec<SkippedFile> = skipped
        .into_iter()
        .map(|skipped| SkippedFile {
            path: skipped.path.display().to_string(),
            reason: skipped.reason,
            kind: None,
            failed: skipped.failed,
        })
        .collect();
    let mut files: Vec<AttributedFile> = Vec::new();
    let mut measures: BTreeMap<String, Measures> = BTreeMap::new();
    let mut damaged: Vec<FileDiagnosis> = Vec::new();
    for (input, read) in inputs.iter().zip(read) {
        match read {
            Ok(Read::Trace(file, measured)) => {
                measures.insert(file.record.path.clone(), measured);
                files.push(*file);
            }
            Ok(Read::Damaged(error)) => damaged.push(broken(input, &error)),
            Ok(Read::Other(other)) => skipped.push(other),
            Err(error) if input.root.is_none() => return Err(error),
            Err(error) => skipped.push(SkippedFile {
                path: input.path.display().to_string(),
                reason: error.reason(),
                kind: None,
                failed: true,
            }),
        }
    }
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    if files.is_empty() && damaged.is_empty() {
        let skipped: Vec<SkippedInput> = skipped.into_iter().map(SkippedFile::input).collect();
        return Err(nothing_readable(examination.paths, &skipped));
    }
    put_in_order(&mut files);
    let mut diagnosis = Diagnosis {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "tracekit",
            version: env!("CARGO_PKG_VERSION"),
        },
        verdict: Judgement::Trustworthy,
        files: Vec::new(),
        runs: Vec::new(),
        skipped,
    };
    for run in files.chunk_by(|a, b| a.folder == b.folder) {
        add_run(run, &measures, &mut diagnosis);
    }
    diagnosis.files.append(&mut damaged);
    let verdicts = diagnosis.files.iter().map(|file| file.verdict.judgement);
    diagnosis.verdict = verdicts.max().unwrap_or(Judgement::Trustworthy);
    Ok(diagnosis)
}

impl SkippedFile {
    fn input(self) -> SkippedInput {
        SkippedInput {
            path: self.path,
            reason: self.reason,
            failed: self.failed,
        }
    }
}

/// What became of a file.
enum Read {
    Trace(Box<AttributedFile>, Measures),
    /// A trace that cannot be read.
    Damaged(Error),
    /// No trace, in a folder.
    Other(SkippedFile),
}

fn read(input: &Input, request: &Request<'_>) -> Result<Read> {
    let source = Source::open(&input.path, &request.ingest)?;
    let error = match Trace::from_bytes(source.bytes(), &request.ingest) {
        Ok(trace) => {
            return Ok(match attributed(input, &trace, request) {
                Ok(file) => Read::Trace(Box::new(file), Measures::new(&trace)),
                Err(error) => Read::Damaged(error),
            });
        }
        Err(error) => error,
    };
    let bytes = source.bytes();
    if error.is_damage() && (is_trace_name(&input.path) || kind::may_be_a_trace(bytes)) {
        let measure = |dissection: &Dissection<'_>, _: &[u8]| Ok(Measures::new(dissection.trace));
        return Ok(match request.salvage {
            Some(_) => match attributed_bytes(input, bytes, request, measure) {
                Ok(file) => {
                    let (file, measures) = file.split();
                    Read::Trace(Box::new(file), measures)
                }
                Err(_) => Read::Damaged(error),
            },
            None => Read::Damaged(error),
        });
    }
    let kind = kind::kind_of(&kind::head_of(bytes));
    let reason = match kind {
        Some(kind) if !kind.text.is_empty() => format!("{}: {}", error.reason(), kind.text),
        _ => error.reason(),
    };
    if input.root.is_none() {
        return Err(Error::new(error.kind(), reason).in_file(&input.path));
    }
    Ok(Read::Other(SkippedFile {
        path: input.path.display().to_string(),
        reason,
        kind: kind.map(|kind| kind.name),
        failed: false,
    }))
}

/// The diagnosis of a trace that cannot be read.
fn broken(input: &Input, error: &Error) -> FileDiagnosis {
    let mut health = Health::default();
    let reason = error.reason();
    match error.offset() {
        Some(offset) => {
            let place = format!(" at byte {offset}");
            let reason = reason.strip_suffix(&place).unwrap_or(&reason);
            health.count(HealthCode::FailedInput, offset, reason);
        }
        None => health.add(HealthCode::FailedInput, 1, Some(reason)),
    }
    let findings = findings(&health, Context::default(), |_, _| Measured::default());
    FileDiagnosis {
        path: input.path.display().to_string(),
        run: None,
        rank: None,
        world_size: None,
        verdict: verdict(findings.iter()),
        facts: None,
        findings,
    }
}

/// Adds a run and its files.
fn add_run(
    run: &[AttributedFile],
    measures: &BTreeMap<String, Measures>,
    diagnosis: &mut Diagnosis,
) {
    let ranks: BTreeSet<i64> = run.iter().filter_map(|file| file.record.rank).collect();
    let mut health = Health::default();
    check_ranks(run, true, &mut health);
    let world = run.iter().filter_map(|file| file.record.world_size).max();
    let world = world.map_or(0, i64::unsigned_abs);
    let context = Context::of_run(ranks.len() > 1);
    let of_run = findings(&health, context, |code, entry| match code {
        HealthCode::MissingRanks => Measured::count(entry.count, world, Basis::Ranks),
        _ => Measured::default(),
    });
    let number = diagnosis.runs.len();
    let first = diagnosis.files.len();
    let none = Measures::default();
    for file in run {
        let attribution = &file.attribution;
        let measures = measures.get(&file.record.path).unwrap_or(&none);
        let facts = measures.facts(file.record.events, attribution);
        let context = Context::of_file(attribution, &facts);
        let mut findings = findings(&attribution.health, context, |code, entry| {
            measures.of(code, entry, attribution)
        });
        for finding in &mut findings {
            if finding.kind == HealthCode::LaunchesWithoutWork {
                finding.by_step.clone_from(&attribution.lost_launches);
            }
        }
        diagnosis.files.push(FileDiagnosis {
            path: file.record.path.clone(),
            run: Some(number),
            rank: file.record.rank,
            world_size: file.record.world_size,
            // What is wrong with the ranks of the run concerns those that have one.
            verdict: match file.record.rank {
                Some(_) => verdict(findings.iter().chain(&of_run)),
                None => verdict(findings.iter()),
            },
            facts: Some(facts),
            findings,
        });
    }
    diagnosis.runs.push(RunDiagnosis {
        name: run[0].run.clone(),
        files: (first..first + run.len()).collect(),
        findings: of_run,
    });
}

/// What `file` alone can be used for; `measures` are those of its trace.
#[cfg(feature = "batch")]
pub(crate) fn judgement_of<T>(file: &AttributedFile<T>, measures: &Measures) -> Judgement {
    let attribution = &file.attribution;
    let facts = measures.facts(file.record.events, attribution);
    let context = Context::of_file(attribution, &facts);
    let findings = findings(&attribution.health, context, |code, entry| {
        measures.of(code, entry, attribution)
    });
    verdict(findings.iter()).judgement
}

/// The findings in `health`, weighed, the gravest first.
fn findings(
    health: &Health,
    context: Context,
    measure: impl Fn(HealthCode, &HealthEntry) -> Measured,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = health
        .entries()
        .into_iter()
        .filter_map(|entry| {
            let code = HealthCode::from_name(entry.code)?;
            let measured = measure(code, &entry);
            let (impact, affects, severity) = weigh(code, measured, context);
            Some(Finding {
                code: entry.code,
                severity,
                count: entry.count,
                time_ns: measured.time,
                share: measured.share,
                share_of: measured.of,
                worst_ns: entry.worst_ns.map(Ns),
                first_offset: entry.first_offset,
                first_name: entry.first_name,
                by_step: BTreeMap::new(),
                impact,
                affects: if impact == Impact::None { &[] } else { affects },
                meaning: code.help(),
                action: explained(code).action,
                kind: code,
            })
        })
        .collect();
    findings.sort_by(|a, b| {
        let share = |finding: &Finding| finding.share.unwrap_or(-1.0);
        (b.severity, b.impact)
            .cmp(&(a.severity, a.impact))
            .then_with(|| share(b).total_cmp(&share(a)))
            .then_with(|| a.kind.cmp(&b.kind))
    });
    findings
}
