//! Whether a trace can be trusted, and for what.
//!
//! Every file gets a [`Verdict`] and the [`Finding`]s behind it: how many events each concerns, what
//! share of the time, what it means for the numbers and what to do. Findings are the counters of
//! [`Health`](crate::Health), which every other command shows, too; here they are measured, weighed
//! against each other, and explained.
//!
//! ```text
//! folder       paths to files, runs and the files that are no traces     (kind)
//! measure      what the time of a file is, and how much of it findings concern
//! verdict      findings to what the file can be used for
//! explanation  what each code means
//! ```

mod diagnosis;
mod explanation;
mod folder;
mod measure;
mod verdict;

pub use diagnosis::{
    Basis, Diagnosis, Facts, FileDiagnosis, Finding, Impact, Judgement, RunDiagnosis,
    SCHEMA_VERSION, SkippedFile, Use, Verdict,
};
pub use explanation::{Code, Codes, codes};
#[cfg(feature = "batch")]
pub(crate) use folder::judgement_of;
pub use folder::{Examination, diagnose_paths};
#[cfg(feature = "batch")]
pub(crate) use measure::Measures;
