//! The roofline model as a formula.

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};

/// What limits work by the roofline model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The rate of computing.
    Compute,
    /// The bandwidth of memory.
    Memory,
}

impl Bound {
    /// The spelling used in JSON and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
        }
    }
}

/// What [`estimate_roofline`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RooflineEstimate {
    /// Floating-point operations for each byte moved.
    pub arithmetic_intensity: f64,
    /// The limit by computing: the peak rate itself, in operations a second.
    pub compute_roof: f64,
    /// The limit by memory at this intensity, in operations a second.
    pub bandwidth_roof: f64,
    /// The lower of the two, in operations a second.
    pub attainable_roof: f64,
    /// Which of them it is; computing where they are equal.
    pub bound: Bound,
    /// `theoretical_formula_only`: no measurement backs any of this, so it explains and decides nothing.
    pub evidence_level: &'static str,
}

/// The roofline model (Williams, Waterman and Patterson, 2009) of work with `flops` floating-point
/// operations that moves `memory_bytes` bytes, on a device with `peak_flops` operations and `bandwidth`
/// bytes a second.
///
/// ```text
/// operations/s   peak ─────────╱────────────
///                            ╱ │
///               bandwidth  ╱   │ ridge: peak / bandwidth
///                        ╱     │
///                      ╱───────┴──────────── operations / byte
/// ```
///
/// # Errors
/// When an argument is not a number above zero.
///
/// ```
/// let found = tracekit::inspect::estimate_roofline(2000.0, 1000.0, 10.0, 1.0)?;
/// assert_eq!(found.attainable_roof, 2.0);
/// assert_eq!(found.bound, tracekit::inspect::Bound::Memory);
/// # Ok::<(), tracekit::Error>(())
/// ```
pub fn estimate_roofline(
    flops: f64,
    memory_bytes: f64,
    peak_flops: f64,
    bandwidth: f64,
) -> Result<RooflineEstimate> {
    let arguments = [
        ("flops", flops),
        ("memory_bytes", memory_bytes),
        ("peak_flops", peak_flops),
        ("bandwidth", bandwidth),
    ];
    for (name, value) in arguments {
        if !value.is_finite() || value <= 0.0 {
            let message = format!("{name} must be positive, but is {value}");
            return Err(Error::new(ErrorKind::Usage, message));
        }
    }
    let arithmetic_intensity = flops / memory_bytes;
    let bandwidth_roof = bandwidth * arithmetic_intensity;
    let bound = if peak_flops <= bandwidth_roof {
        Bound::Compute
    } else {
        Bound::Memory
    };
    Ok(RooflineEstimate {
        arithmetic_intensity,
        compute_roof: peak_flops,
        bandwidth_roof,
        attainable_roof: peak_flops.min(bandwidth_roof),
        bound,
        evidence_level: "theoretical_formula_only",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors() {
        let text = include_str!("../../../fixtures/roofline/estimate.json");
        let vectors: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
        assert!(vectors.len() >= 5);
        for vector in vectors {
            let input = |name: &str| vector["input"][name].as_f64().unwrap();
            let found = estimate_roofline(
                input("flops"),
                input("memory_bytes"),
                input("peak_flops"),
                input("bandwidth"),
            );
            if let Some(error) = vector.get("error") {
                let message = found.unwrap_err().to_string();
                let want = error["message"].as_str().unwrap();
                assert!(message.contains(want), "{}: {message}", vector["id"]);
            } else {
                let found = serde_json::to_value(found.unwrap()).unwrap();
                assert_eq!(found, vector["output"], "{}", vector["id"]);
            }
        }
    }

    #[test]
    fn what_is_no_positive_number_is_refused() {
        for place in 0..4 {
            for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                let mut arguments = [1.0; 4];
                arguments[place] = bad;
                let [flops, bytes, peak, bandwidth] = arguments;
                assert!(estimate_roofline(flops, bytes, peak, bandwidth).is_err());
            }
        }
    }
}
