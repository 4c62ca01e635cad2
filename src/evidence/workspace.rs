//! Where records of a label lie, and whether they can be written.

use std::path::{Path, PathBuf};

use super::root::{RESULTS, Root};
use super::stage::Label;
use crate::gate::{Json, object};

/// Which program made a record.
pub(crate) fn tool() -> Json {
    object! {"name" => "tracekit", "version" => env!("CARGO_PKG_VERSION")}
}

/// Paths of the records of one label.
pub(crate) struct Paths<'a> {
    root: &'a Root,
    label: &'a str,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(root: &'a Root, label: &'a Label) -> Self {
        Self {
            root,
            label: label.as_str(),
        }
    }

    fn result(&self, name: &str) -> PathBuf {
        let label = self.label;
        self.root.join(&format!("{RESULTS}/{name}_{label}.json"))
    }

    pub(crate) fn budget_evidence(&self) -> PathBuf {
        self.result("75_memory_budget_evidence")
    }

    pub(crate) fn budget_decision(&self) -> PathBuf {
        self.result("75_memory_budget_decision")
    }

    pub(crate) fn profile(&self) -> PathBuf {
        self.result("74_real_gpu_profile")
    }

    pub(crate) fn phase(&self) -> PathBuf {
        self.result("74_phase_memory")
    }

    pub(crate) fn closure(&self) -> PathBuf {
        self.result("74_profiling_optimization")
    }

    pub(crate) fn handoff(&self) -> PathBuf {
        self.result("74_profile/performance_handoff")
    }

    pub(crate) fn trace_root(&self) -> PathBuf {
        let label = self.label;
        self.root
            .join(&format!("{RESULTS}/74_profile/trace_{label}"))
    }
}

/// Whether files can be made in `folder`, or in the nearest folder above it that is there.
pub(crate) fn is_writable(folder: &Path) -> bool {
    let nearest = folder.ancestors().find(|folder| folder.exists());
    nearest.is_some_and(|folder| {
        folder
            .metadata()
            .is_ok_and(|metadata| metadata.is_dir() && may_write(&metadata))
    })
}

/// Whether this process may write: nothing is closed to root, and what belongs to another user is open only by
/// the bits for others or a group.
#[cfg(unix)]
fn may_write(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match std::fs::metadata("/proc/self") {
        Ok(own) if own.uid() == 0 => true,
        Ok(own) if own.uid() == metadata.uid() => metadata.mode() & 0o200 != 0,
        Ok(_) => metadata.mode() & 0o022 != 0,
        Err(_) => !metadata.permissions().readonly(),
    }
}

#[cfg(not(unix))]
fn may_write(metadata: &std::fs::Metadata) -> bool {
    !metadata.permissions().readonly()
}
