//! Where GPU training time goes, exactly.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod attribute;
#[cfg(feature = "batch")]
pub mod batch;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(all(feature = "collect", unix))]
pub mod collect;
pub mod compare;
pub mod doctor;
mod error;
pub mod evidence;
#[cfg(feature = "frames")]
pub mod frame;
pub mod gate;
mod health;
pub mod infer;
pub mod ingest;
pub mod inspect;
pub mod model;
pub mod report;
pub mod rewrite;
pub mod stats;
mod units;

pub use error::{Error, ErrorKind, Result};
pub use health::{Health, HealthCode, HealthEntry, Severity};
pub use model::Trace;
pub use units::{Ns, Span};
