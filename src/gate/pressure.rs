//! The same training at a greater length, when somebody measured it.

use super::json::Json;
use super::number::python_list;
use crate::error::{Error, ErrorKind, Result};

/// Fields that a pressure run shares with the strategies.
const SHARED_FIELDS: [&str; 4] = ["model_id", "batch_size", "dtype", "optimizer"];

/// Checks that `pressure` is the same training as `base` at a greater length.
///
/// # Errors
/// `pressure_identity` with the fields that differ, or `pressure_seq_len`.
pub fn check_pressure_config(base: &Json, pressure: &Json) -> Result<()> {
    let mismatches: Vec<&str> = SHARED_FIELDS
        .into_iter()
        .filter(|field| base.at(&[field]) != pressure.at(&[field]))
        .collect();
    if !mismatches.is_empty() {
        let message = format!("pressure_identity {}", python_list(&mismatches));
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let limit = base.at(&["seq_len"]).as_f64().unwrap_or(0.0);
    let seq_len = pressure.at(&["seq_len"]);
    let is_longer = seq_len
        .as_int()
        .and(seq_len.as_f64())
        .is_some_and(|seq_len| seq_len > limit);
    if !is_longer {
        let message = format!(
            "pressure_seq_len: {} is no integer above {}",
            seq_len.to_line(),
            base.at(&["seq_len"]).to_line()
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}
