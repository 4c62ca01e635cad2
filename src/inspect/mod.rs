//! Breakdowns: what a trace spends its time on, looked at from one side each.
//!
//! ```text
//! paths ─ attribute ─→ dissection ─ look ─→ what one file says ─ tables ─→ frames
//!                      of each file         (one a file, at once)          over all files
//! ```
//! A [`Topic`] is one side; its module has the definitions of every column. All of them see the same
//! view: device work with its phase, step and launch, and host threads with their
//! operators nested. Arguments that no column of a trace holds are read again where they are needed.

mod allocation;
mod annotation;
mod attribution;
mod clock;
mod collective;
mod combination;
mod communication;
mod copy;
mod critical_path;
mod dependency;
mod device_line;
mod device_time;
mod distribution;
mod exposure;
mod folder;
mod frame;
mod gap;
mod group;
#[cfg(test)]
mod growth;
mod health;
mod host_event;
mod hta;
mod hta_breakdown;
mod hta_event;
mod hta_idle;
mod hta_sequence;
mod idle;
mod kernel;
mod lane;
mod late;
mod launch;
mod level;
mod line;
mod matching;
mod matrix_units;
mod memory;
mod module;
mod nesting;
mod occupation;
mod operation;
mod operator;
mod operator_view;
mod options;
mod plugin;
mod queue;
mod rank;
mod raw;
mod recorded;
mod remark;
mod roofline;
mod step_time;
mod subject;
mod summary;
mod survey;
mod synchronization;
mod tensor_core;
mod tensor_core_time;
mod tensorboard;
#[cfg(test)]
mod testing;
mod timeline_file;
mod topic;
mod transfer;
mod utilisation;
mod view;
mod waiting;

pub use attribution::attribution_frame;
pub use device_line::{Bin, DeviceLine};
pub use folder::{Inspection, SCHEMA_VERSION, inspect_paths};
pub use frame::{Entry, Frame, Names, Series, Unit, Values};
pub use group::MAX_GROUPS;
pub use health::health_frame;
pub use level::LevelCurve;
pub use options::{By, Definition, InspectOptions};
pub use remark::Remark;
pub use roofline::{Bound, DeviceTable, RooflineEstimate, estimate_roofline};
#[cfg(feature = "cli")]
pub(crate) use survey::survey_and;
pub use survey::{Survey, SurveyedFile, survey_paths};
pub use topic::Topic;

pub(crate) use communication::collective_sums;
pub(crate) use device_line::idle_gaps;
pub(crate) use folder::subject_of;
pub(crate) use memory::peaks as memory_peaks;
pub(crate) use raw::{device_work, events, files};
pub(crate) use subject::{Inspected, Seen};
pub(crate) use view::View;
