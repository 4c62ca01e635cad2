//! A project in a folder of its own, and the chain of records in it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tracekit::evidence::{
    BudgetProject, ClosureArtifacts, ClosureProject, Label, MeasuredFor, RESULTS, Root,
    build_strategy_report, build_training_baseline, create_budget_manifest,
    create_closure_manifest, read_measurements, replace_json, save_json_record_once,
};
use tracekit::gate::{Json, Thresholds};

use super::fixtures;

/// A project with everything up to the records of one label.
pub(crate) struct Chain {
    pub(crate) folder: TempDir,
    pub(crate) root: Root,
    pub(crate) label: Label,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("{RESULTS}/{name}_t.json"))
}

pub(crate) const BASELINE: &str = "73_real_gpu_training";
pub(crate) const STRATEGY: &str = "76_real_gpu_memory";
pub(crate) const EVIDENCE: &str = "75_memory_budget_evidence";
pub(crate) const BUDGET: &str = "75_memory_budget_decision";
pub(crate) const PROFILE: &str = "74_real_gpu_profile";
pub(crate) const PHASE: &str = "74_phase_memory";
pub(crate) const CLOSURE: &str = "74_profiling_optimization";
pub(crate) const HANDOFF: &str = "74_profile/performance_handoff";

impl Chain {
    /// Measurements and traces, no record yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&fixtures().join("chain"), folder.path());
        std::fs::create_dir_all(folder.path().join(RESULTS)).unwrap();
        Self {
            root: Root::at(folder.path()).unwrap(),
            folder,
            label: Label::new("t").unwrap(),
        }
    }

    /// With 73 and 76, and the manifest of 75.
    pub(crate) fn with_strategies() -> Self {
        let chain = Self::new();
        let files = |names: &[&str]| -> Vec<PathBuf> {
            let path = |name: &&str| PathBuf::from(format!("measurements/{name}.json"));
            names.iter().map(path).collect()
        };
        let thresholds = Thresholds::default();
        let role = MeasuredFor::Adoption;
        let sides = files(&["73_baseline", "73_tuned"]);
        let sides = read_measurements(&chain.root, &sides, role).unwrap();
        let record =
            build_training_baseline(&chain.label, &sides[0], &sides[1], &thresholds).unwrap();
        chain.save(BASELINE, &record);
        let measured = files(&["76_baseline", "76_checkpoint", "76_offload", "76_hybrid"]);
        let measured = read_measurements(&chain.root, &measured, role).unwrap();
        let artifact = chain.root.artifact(&path(BASELINE)).unwrap();
        let report =
            build_strategy_report(&chain.label, (&record, &artifact), &measured, &thresholds);
        chain.save(STRATEGY, &report.unwrap());
        chain.budget_manifest();
        chain
    }

    /// With 75, too, and the manifest of 74 as far as its sources.
    pub(crate) fn with_budget() -> Self {
        let chain = Self::with_strategies();
        chain.budget().analyze(&chain.label).unwrap();
        chain.budget().close(&chain.label).unwrap();
        chain.closure_manifest(false, false);
        chain
    }

    /// With profile and phase memory, and the whole manifest of 74.
    pub(crate) fn whole() -> Self {
        let chain = Self::with_budget();
        chain.profile().unwrap();
        chain.closure_manifest(true, false);
        chain.phase().unwrap();
        chain.closure_manifest(true, true);
        chain
    }

    pub(crate) fn profile(&self) -> tracekit::Result<tracekit::evidence::StageReport> {
        self.closure()
            .profile(&self.label, Path::new("traces"), &measured("profile"))
    }

    pub(crate) fn phase(&self) -> tracekit::Result<tracekit::evidence::StageReport> {
        self.closure().phase(&self.label, &measured("phase"), None)
    }

    pub(crate) fn budget(&self) -> BudgetProject {
        BudgetProject::new(self.root.clone(), Thresholds::default())
    }

    pub(crate) fn closure(&self) -> ClosureProject {
        ClosureProject::new(self.root.clone(), Thresholds::default())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(path(name))
    }

    fn save(&self, name: &str, record: &Json) {
        save_json_record_once(&self.at(name), record).unwrap();
    }

    pub(crate) fn record(&self, name: &str) -> Json {
        Json::read_object(&self.at(name)).unwrap()
    }

    /// Changes a record, and nothing that names it.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Json)) {
        let mut record = self.record(name);
        change(&mut record);
        replace_json(&self.at(name), &record).unwrap();
    }

    /// The manifest of 75 for what is there now.
    pub(crate) fn budget_manifest(&self) {
        let manifest =
            create_budget_manifest(&self.root, &path(STRATEGY), Path::new("approved_75.json"));
        replace_json(&self.budget().manifest, &manifest.unwrap()).unwrap();
    }

    /// The manifest of 74 for what is there now.
    pub(crate) fn closure_manifest(&self, profile: bool, phase: bool) {
        let artifacts = ClosureArtifacts {
            sources: [
                Some(path(BASELINE)),
                Some(path(STRATEGY)),
                Some(path(BUDGET)),
                Some(PathBuf::from("activation.json")),
            ],
            profile: profile.then(|| path(PROFILE)),
            trace_dir: profile.then(|| PathBuf::from(format!("{RESULTS}/74_profile/trace_t"))),
            phase: phase.then(|| path(PHASE)),
        };
        let manifest = create_closure_manifest(&self.root, &artifacts, None).unwrap();
        replace_json(&self.closure().manifest, &manifest).unwrap();
    }

    /// The hash of every file, by path.
    pub(crate) fn tree(&self) -> Vec<(PathBuf, String)> {
        fn below(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    below(&path, found);
                } else {
                    let hash = tracekit::evidence::hash(&path).unwrap();
                    found.push((path, hash));
                }
            }
        }
        let mut found = Vec::new();
        below(self.folder.path(), &mut found);
        found.sort();
        found
    }
}

pub(crate) fn measured(kind: &str) -> Vec<PathBuf> {
    ["baseline", "checkpoint"]
        .map(|name| PathBuf::from(format!("measurements/74_{kind}_{name}.json")))
        .to_vec()
}
