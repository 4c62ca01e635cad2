//! `tracekit evidence`: the records of the evidence chain.

use std::path::{Path, PathBuf};

mod args;
mod example;
mod tables;

pub(super) use args::Args;
use args::{
    Evidence, Format, HandoffArgs, IdentifyArgs, ManifestArgs, ManifestCommand, NormalizeArgs,
    Number, Output, PreflightArgs, Project, ProjectArgs, StrategiesArgs, TrainingArgs, VerifyArgs,
};

use super::exit::Exit;
use super::output::Target;
use crate::error::{Error, ErrorKind, Result};
use crate::evidence::{
    Admission, BUDGET_MANIFEST, BudgetProject, BudgetStage, CLOSURE_MANIFEST, ClosureArtifacts,
    ClosureManifest, ClosureProject, ClosureStage, Label, MeasuredFor, Measurement, Needed,
    PLACEHOLDER_LABEL, RESULTS, ROOT_VARIABLE, Requirements, Root, Saved, StageReport,
    attribution_table, build_strategy_report, build_training_baseline, check_memory_fraction,
    checklist, create_budget_manifest, create_closure_manifest, environment_preflight, gpu_memory,
    identify, modernized, normalize_file, probe_runtime, read_measurements, save_or_confirm, tool,
};
use crate::gate::{
    Decision, Json, Thresholds, build_budget_handoff, input_artifact, object, workload_id,
};
use crate::report::{evidence_document, markdown, text};

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    match &args.command {
        Evidence::Manifest(ManifestCommand::Create(args)) => create_manifest(args),
        Evidence::Manifest(ManifestCommand::Verify(args)) => verify_manifest(args),
        Evidence::Prepare(args) => prepare(args),
        Evidence::Training(args) => training(args),
        Evidence::Strategies(args) => strategies(args),
        Evidence::Analyze(args) => {
            let label = label(args.label.as_deref())?;
            let report = args.common.budget()?.analyze(&label)?;
            finish(&args.common.output, &report, false)
        }
        Evidence::Profile(args) => {
            let label = label(args.label.as_deref())?;
            let project = args.common.closure(None)?;
            let report = project.profile(&label, &args.traces, &args.measurements)?;
            finish(&args.common.output, &report, false)
        }
        Evidence::Phase(args) => {
            let label = label(args.label.as_deref())?;
            let project = args.common.closure(None)?;
            let report = project.phase(&label, &args.measurements, args.memory.given())?;
            finish(&args.common.output, &report, false)
        }
        Evidence::Close(args) => {
            let label = label(args.label.as_deref())?;
            let report = match args.project {
                Number::Budget => args.common.budget()?.close(&label)?,
                Number::Closure => args.common.closure(args.pressure.clone())?.close(&label)?,
            };
            finish(&args.common.output, &report, args.exit_by_decision)
        }
        Evidence::Handoff(args) => handoff(args),
        Evidence::Normalize(args) => normalize(args),
        Evidence::Identify(args) => identified(args),
        Evidence::Attribution(args) => {
            let record = Json::read_object(&args.file)?;
            tell(&args.output, &attribution_table(&record))?;
            Ok(Exit::Done)
        }
        Evidence::Preflight(args) => preflight(args),
        Evidence::Tables(args) => tables::run(args),
        Evidence::Checklist(args) => {
            let verdict = checklist(&args.folder)?;
            tell(&args.output, &verdict.record)?;
            Ok(if verdict.complete {
                Exit::Done
            } else {
                Exit::Tune
            })
        }
    }
}

/// The label that was given, else that of the variable, else the one that nobody chose.
fn label_text(given: Option<&str>) -> String {
    let given = given.map(str::to_owned);
    let given = given.or_else(|| std::env::var("RUN_LABEL").ok());
    given.unwrap_or_else(|| PLACEHOLDER_LABEL.to_owned())
}

fn label(given: Option<&str>) -> Result<Label> {
    Label::new(&label_text(given))
}

impl Project {
    fn root(&self) -> Result<Root> {
        if let Some(root) = &self.root {
            return Root::at(root);
        }
        match std::env::var_os(ROOT_VARIABLE) {
            Some(start) => Root::discover(&expanded(Path::new(&start))),
            None => Root::discover(Path::new(".")),
        }
    }

    fn thresholds(&self) -> Result<Thresholds> {
        let Some(path) = &self.thresholds else {
            return Thresholds::read("", &self.changes);
        };
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        Thresholds::read(&text, &self.changes).map_err(|error| error.in_file(path))
    }

    fn manifest_path(&self, root: &Root, default: &str) -> PathBuf {
        match &self.manifest {
            Some(path) => root.path().join(path),
            None => root.join(default),
        }
    }

    fn budget(&self) -> Result<BudgetProject> {
        let root = self.root()?;
        let manifest = self.manifest_path(&root, BUDGET_MANIFEST);
        let mut project = BudgetProject::new(root, self.thresholds()?);
        project.manifest = manifest;
        Ok(project)
    }

    fn closure(&self, pressure: Option<PathBuf>) -> Result<ClosureProject> {
        let root = self.root()?;
        let manifest = self.manifest_path(&root, CLOSURE_MANIFEST);
        let mut project = ClosureProject::new(root, self.thresholds()?);
        project.manifest = manifest;
        project.pressure = pressure;
        project.strict = self.strict;
        Ok(project)
    }
}

/// A path that may start with `~`.
fn expanded(path: &Path) -> PathBuf {
    let home = std::env::var_os("HOME");
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}

fn tell(output: &Output, record: &Json) -> Result<()> {
    let target = Target::new(None)?;
    let text = match output.format {
        Format::Json => record.to_text(),
        Format::Markdown => markdown::render(&evidence_document(record)),
        Format::Text => {
            let options = text::TextOptions {
                width: target.width(),
                styled: target.is_styled(),
            };
            text::render(&evidence_document(record), options)
        }
    };
    target.write(&text)
}

fn finish(output: &Output, report: &StageReport, by_decision: bool) -> Result<Exit> {
    tell(output, &report.record)?;
    Ok(match report.decision.filter(|_| by_decision) {
        None | Some(Decision::Accept) => Exit::Done,
        Some(Decision::Tune) => Exit::Tune,
        Some(Decision::Reject) => Exit::Rejected,
    })
}

fn told(root: &Root, path: &Path, saved: Saved) -> Result<Json> {
    Ok(object! {"status" => saved.as_str(), "record" => root.artifact(path)?})
}

/// Writes a record under a name that was chosen, unless an equal one is there.
fn save_named(path: &Path, record: &Json) -> Result<Saved> {
    save_or_confirm(path, record).map_err(|error| match error.kind() {
        ErrorKind::Exists => {
            let message =
                "is there already with other content and is not overwritten; choose another name";
            Error::new(ErrorKind::Exists, message).in_file(path)
        }
        _ => error,
    })
}

fn create_manifest(args: &ManifestArgs) -> Result<Exit> {
    let root = args.common.root()?;
    let (default, manifest) = match args.project {
        Number::Budget => {
            let (Some(strategy), Some(approved)) = (&args.strategy, &args.approved) else {
                let message = "a manifest of project 75 needs --strategy and --approved";
                return Err(Error::new(ErrorKind::Usage, message));
            };
            let manifest = create_budget_manifest(&root, strategy, approved)?;
            (BUDGET_MANIFEST, manifest)
        }
        Number::Closure => {
            let from = args.from.as_ref().map(|path| root.path().join(path));
            let from = from.map(|path| Json::read_object(&path)).transpose()?;
            let artifacts = ClosureArtifacts {
                sources: [
                    args.baseline.clone(),
                    args.strategy.clone(),
                    args.budget.clone(),
                    args.activation.clone(),
                ],
                profile: args.profile.clone(),
                trace_dir: args.trace_dir.clone(),
                phase: args.phase.clone(),
            };
            let manifest = create_closure_manifest(&root, &artifacts, from.as_ref())?;
            (CLOSURE_MANIFEST, manifest)
        }
    };
    let path = args.common.manifest_path(&root, default);
    let saved = save_named(&path, &manifest)?;
    tell(&args.common.output, &told(&root, &path, saved)?)?;
    Ok(Exit::Done)
}

fn verify_manifest(args: &VerifyArgs) -> Result<Exit> {
    let report = match args.project {
        Number::Budget => {
            let project = args.common.budget()?;
            let report = project.preflight(BudgetStage::Prepare)?;
            if !report.at(&["ready"]).is_true() {
                let message = format!("preflight_not_ready {}", report.to_line());
                return Err(Error::new(ErrorKind::State, message));
            }
            report
        }
        Number::Closure => {
            let root = args.common.root()?;
            let path = args.common.manifest_path(&root, CLOSURE_MANIFEST);
            let manifest = ClosureManifest::read(&root, &path, Needed::Sources)?;
            let entries = manifest.sources.iter();
            let entries = entries.chain(&manifest.profile).chain(&manifest.phase);
            object! {
                "status" => "verified",
                "manifest" => &manifest.artifact,
                "entries" => entries.map(|entry| entry.artifact.clone()).collect::<Vec<_>>(),
            }
        }
    };
    tell(&args.common.output, &report)?;
    Ok(Exit::Done)
}

fn prepare(args: &ProjectArgs) -> Result<Exit> {
    let report = match args.project {
        Number::Budget => args.common.budget()?.prepare()?,
        Number::Closure => {
            let project = args.common.closure(args.pressure.clone())?;
            ClosureStage::from_name("prepare")?;
            project.prepare(&label_text(args.label.as_deref()))?
        }
    };
    finish(&args.common.output, &report, false)
}

fn training(args: &TrainingArgs) -> Result<Exit> {
    let label = label(args.label.as_deref())?;
    let root = args.common.root()?;
    let read = |path| Measurement::read(&root, path, MeasuredFor::Adoption);
    let (baseline, tuned) = (read(&args.baseline)?, read(&args.tuned)?);
    let thresholds = args.common.thresholds()?;
    let record = build_training_baseline(&label, &baseline, &tuned, &thresholds)?;
    let name = format!("{RESULTS}/73_real_gpu_training_{}.json", label.as_str());
    let path = root.join(&name);
    let saved = save_or_confirm(&path, &record)?;
    let mut told = told(&root, &path, saved)?;
    told.set("decision", record.at(&["decision"]));
    tell(&args.common.output, &told)?;
    Ok(Exit::Done)
}

fn strategies(args: &StrategiesArgs) -> Result<Exit> {
    let label = label(args.label.as_deref())?;
    let root = args.common.root()?;
    let place = root.path().join(&args.baseline);
    let baseline = Json::read_object(&place)?;
    let artifact = root.artifact(&place)?;
    let measured = read_measurements(&root, &args.files, MeasuredFor::Adoption)?;
    let thresholds = args.common.thresholds()?;
    let record = build_strategy_report(&label, (&baseline, &artifact), &measured, &thresholds)?;
    let name = format!("{RESULTS}/76_real_gpu_memory_{}.json", label.as_str());
    let path = root.join(&name);
    let saved = save_or_confirm(&path, &record)?;
    let mut told = told(&root, &path, saved)?;
    told.set("decision", record.at(&["decision"]));
    tell(&args.common.output, &told)?;
    Ok(Exit::Done)
}

fn handoff(args: &HandoffArgs) -> Result<Exit> {
    let (report, bytes) = Json::read_object_and_bytes(&args.strategy)?;
    let config = report.at(&["config"]);
    let workload = args.workload.clone().unwrap_or_else(|| workload_id(config));
    let device = config.at(&["device"]).as_name().map(str::to_owned);
    let hardware = args.hardware.clone().or(device).ok_or_else(|| {
        let message = "nothing says which hardware it is: give --hardware";
        Error::new(ErrorKind::Usage, message)
    })?;
    let mut handoff = build_budget_handoff(&report, &workload, &hardware)
        .map_err(|error| error.in_file(&args.strategy))?;
    let input = input_artifact(&args.strategy.to_string_lossy(), &bytes);
    handoff.set("inputs", vec![input]);
    handoff.set("tool", tool());
    match &args.file {
        Some(path) => {
            save_named(path, &handoff)?;
        }
        None => Target::new(None)?.write(&handoff.to_text())?,
    }
    Ok(Exit::Done)
}

fn normalize(args: &NormalizeArgs) -> Result<Exit> {
    let mut told = String::new();
    for file in &args.files {
        let path = normalize_file(file, args.output_dir.as_deref())?;
        told.push_str(&path.display().to_string());
        told.push('\n');
    }
    Target::new(None)?.write(&told)?;
    Ok(Exit::Done)
}

fn identified(args: &IdentifyArgs) -> Result<Exit> {
    let mut files = Vec::new();
    let mut refused = 0_usize;
    for path in &args.files {
        let record = Json::read_object(path)?;
        let mut told = object! {"file" => path.display().to_string()};
        match identify(&record) {
            Ok(found) => {
                let record = found.to_json();
                for (key, value) in record.fields().filter(|(_, value)| !value.is_null()) {
                    told.set(key, value);
                }
            }
            Err(error) => {
                refused += 1;
                told.set("refused", error.reason());
            }
        }
        files.push(told);
    }
    if let Some(modern) = &args.modern {
        let [only] = args.files.as_slice() else {
            let message = "--modern is of one file";
            return Err(Error::new(ErrorKind::Usage, message));
        };
        let record = modernized(&Json::read_object(only)?).map_err(|error| error.in_file(only))?;
        save_named(modern, &record)?;
    }
    tell(&args.output, &object! {"files" => files})?;
    Ok(if refused > 0 {
        Exit::SomeInputsFailed
    } else {
        Exit::Done
    })
}

fn preflight(args: &PreflightArgs) -> Result<Exit> {
    let packages: Vec<String> = args
        .required
        .iter()
        .chain(&args.optional)
        .cloned()
        .collect();
    let facts = probe_runtime(&args.python, &packages);
    let wanted = Requirements {
        required_packages: args.required.clone(),
        optional_packages: args.optional.clone(),
        require_gpu: args.require_gpu,
        min_gpu_memory_gb: args.min_gpu_memory_gb,
        require_native_bf16: args.require_native_bf16,
        output_path: None,
    };
    let mut report = environment_preflight(&facts, &wanted);
    let mut blocked = !report.at(&["ready"]).is_true();
    if let Some(path) = &args.strategy {
        let thresholds = Thresholds::read("", &args.changes)?;
        check_memory_fraction(thresholds.phase.process_memory_fraction)?;
        let memory = args.memory.given().or_else(gpu_memory).ok_or_else(|| {
            let message = "no GPU to ask; give --free-memory-mb and --total-memory-mb";
            Error::new(ErrorKind::Usage, message)
        })?;
        let strategy = Json::read_object(path)?;
        let margin = thresholds.phase.min_free_margin_mb;
        let admission =
            Admission::new(&strategy, memory, margin).map_err(|error| error.in_file(path))?;
        blocked |= !admission.admitted();
        report.set("memory_admission", admission.to_json());
    }
    tell(&args.output, &report)?;
    Ok(if blocked { Exit::Failure } else { Exit::Done })
}
