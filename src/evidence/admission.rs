//! Whether there is memory enough to measure, before anything is loaded.

use std::process::Command;

use crate::error::{Error, ErrorKind, Result};
use crate::gate::{Json, object, round};

/// Memory of a device or machine, MiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FreeMemory {
    /// Not in use now.
    pub free_mb: f64,
    /// All of it.
    pub total_mb: f64,
}

/// Whether a measurement may start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Admission {
    /// What is free before the model is loaded, MiB.
    pub memory: FreeMemory,
    /// Peak that the strategies reserved without the profiler, MiB.
    pub projected_peak_reserved_mb: f64,
    /// What has to be free beyond that, MiB.
    pub minimum_free_margin_mb: f64,
}

impl Admission {
    /// For the baseline of the report of strategies.
    ///
    /// # Errors
    /// `peak_reserved_mb`, when the baseline does not have it as a number above 0.
    pub fn new(strategy: &Json, memory: FreeMemory, margin_mb: f64) -> Result<Self> {
        let baseline = strategy.at(&["candidates"]).items().iter();
        let peak = baseline
            .filter(|candidate| candidate.at(&["name"]).as_str() == Some("baseline"))
            .find_map(|candidate| candidate.at(&["peak_reserved_mb"]).as_f64())
            .filter(|peak| *peak > 0.0);
        let Some(projected_peak_reserved_mb) = peak else {
            let message =
                "peak_reserved_mb: the baseline of the strategies must have it as a number above 0";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        Ok(Self {
            memory,
            projected_peak_reserved_mb,
            minimum_free_margin_mb: margin_mb,
        })
    }

    /// What has to be free, MiB.
    pub fn required_mb(&self) -> f64 {
        self.projected_peak_reserved_mb + self.minimum_free_margin_mb
    }

    /// True when that much is free.
    pub fn admitted(&self) -> bool {
        self.memory.free_mb >= self.required_mb()
    }

    /// Fails unless it is admitted.
    ///
    /// # Errors
    /// [`ErrorKind::State`] with what is free and what is needed.
    pub fn check(&self) -> Result<()> {
        if self.admitted() {
            return Ok(());
        }
        let message = format!(
            "memory_admission: {:.2} MiB are free and {:.2} are needed ({:.2} reserved by the baseline and \
             a margin of {:.2})",
            self.memory.free_mb,
            self.required_mb(),
            self.projected_peak_reserved_mb,
            self.minimum_free_margin_mb
        );
        Err(Error::new(ErrorKind::State, message))
    }

    /// As part of a record, two decimals.
    pub fn to_json(&self) -> Json {
        object! {
            "free_memory_mb_before_load" => round(self.memory.free_mb, 2),
            "total_memory_mb" => round(self.memory.total_mb, 2),
            "projected_peak_reserved_mb" => round(self.projected_peak_reserved_mb, 2),
            "minimum_free_margin_mb" => round(self.minimum_free_margin_mb, 2),
            "required_free_memory_mb" => round(self.required_mb(), 2),
            "admitted" => self.admitted(),
        }
    }
}

/// Checks the share of the device's memory that a process may take.
///
/// # Errors
/// `process_memory_fraction`, when it is not above 0 and at most 1.
pub fn check_memory_fraction(fraction: f64) -> Result<()> {
    if fraction > 0.0 && fraction <= 1.0 {
        return Ok(());
    }
    let message = format!("process_memory_fraction: {fraction} is not above 0 and at most 1");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Memory of the first GPU that a program would see, asked of the driver's management library (NVML): itself,
/// where tracekit can collect, else through `nvidia-smi`; `None` without one.
pub fn gpu_memory() -> Option<FreeMemory> {
    #[cfg(all(feature = "collect", unix))]
    if let Some((free, total)) = crate::collect::free_memory() {
        let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
        return Some(FreeMemory {
            free_mb: mib(free),
            total_mb: mib(total),
        });
    }
    asked_of_smi()
}

fn asked_of_smi() -> Option<FreeMemory> {
    let output = Command::new("nvidia-smi")
        .args([
            "--query-gpu=memory.free,memory.total",
            "--format=csv,noheader,nounits",
        ])
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    memory_line(std::str::from_utf8(&output.stdout).ok()?)
}

fn memory_line(text: &str) -> Option<FreeMemory> {
    let (free, total) = text.lines().next()?.split_once(',')?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|mb| mb.is_finite());
    Some(FreeMemory {
        free_mb: number(free)?,
        total_mb: number(total)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(reserved: &str) -> Json {
        Json::parse(&format!(
            "{{\"candidates\":[{{\"name\":\"baseline\",\"peak_reserved_mb\":{reserved}}}]}}"
        ))
        .unwrap()
    }

    #[test]
    fn the_stored_baseline_needs_11262_mib() {
        for (free, admitted) in [(11261.99, false), (11262.0, true)] {
            let memory = FreeMemory {
                free_mb: free,
                total_mb: 12227.0,
            };
            let admission = Admission::new(&strategy("10750.0"), memory, 512.0).unwrap();
            assert!((admission.required_mb() - 11262.0).abs() < 1e-9);
            assert_eq!(admission.admitted(), admitted);
            assert_eq!(admission.check().is_ok(), admitted);
        }
        for reserved in ["0", "-1", "null", "true", "\"10750\""] {
            let memory = FreeMemory {
                free_mb: 1e9,
                total_mb: 1e9,
            };
            let error = Admission::new(&strategy(reserved), memory, 512.0).unwrap_err();
            assert_eq!(
                error.to_string(),
                "peak_reserved_mb: the baseline of the strategies must have it as a number above 0"
            );
        }
    }

    #[test]
    fn fractions_are_above_zero_and_at_most_one() {
        for fraction in [0.01, 0.92, 1.0] {
            check_memory_fraction(fraction).unwrap();
        }
        for fraction in [0.0, 1.01, -1.0, f64::NAN] {
            assert!(check_memory_fraction(fraction).is_err());
        }
    }

    #[test]
    fn the_driver_is_read() {
        let memory = memory_line("11262, 12227\n40, 50\n").unwrap();
        assert!(
            (memory.free_mb - 11262.0).abs() < 1e-9 && (memory.total_mb - 12227.0).abs() < 1e-9
        );
        assert_eq!(memory_line("[N/A], 12227\n"), None);
        assert_eq!(memory_line(""), None);
    }
}
