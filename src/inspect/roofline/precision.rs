//! Types of numbers as far as the rates of devices differ by them.

use serde::Deserialize;

/// What numbers a device computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Precision {
    Fp64,
    Fp32,
    /// Matrix products of `float` with inputs cut to 19 bits.
    Tf32,
    Fp16,
    Bf16,
    Fp8,
    Int8,
}

impl Precision {
    /// The precision of matrix products of elements of type `dtype` (PyTorch's name).
    pub(super) fn of(dtype: &str) -> Option<Self> {
        Some(match dtype {
            "Double" => Self::Fp64,
            "Float" => Self::Fp32,
            "Half" => Self::Fp16,
            "BFloat16" => Self::Bf16,
            "Byte" | "Char" | "QInt8" | "QUInt8" => Self::Int8,
            _ if dtype.starts_with("Float8_") => Self::Fp8,
            _ => return None,
        })
    }

    /// The precision of everything else: PyTorch computes element by element in `float` where the
    /// elements are shorter.
    pub(super) fn of_elements(self) -> Option<Self> {
        match self {
            Self::Fp64 => Some(Self::Fp64),
            Self::Int8 => None,
            _ => Some(Self::Fp32),
        }
    }

    /// The spelling used in JSON, text and files of devices.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Fp64 => "fp64",
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Int8 => "int8",
        }
    }
}

/// One number a precision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rates {
    fp64: Option<f64>,
    fp32: Option<f64>,
    tf32: Option<f64>,
    fp16: Option<f64>,
    bf16: Option<f64>,
    fp8: Option<f64>,
    int8: Option<f64>,
}

impl Rates {
    pub(super) fn of(&self, precision: Precision) -> Option<f64> {
        match precision {
            Precision::Fp64 => self.fp64,
            Precision::Fp32 => self.fp32,
            Precision::Tf32 => self.tf32,
            Precision::Fp16 => self.fp16,
            Precision::Bf16 => self.bf16,
            Precision::Fp8 => self.fp8,
            Precision::Int8 => self.int8,
        }
    }

    /// Every number that is there.
    pub(super) fn all(&self) -> impl Iterator<Item = f64> {
        [
            self.fp64, self.fp32, self.tf32, self.fp16, self.bf16, self.fp8, self.int8,
        ]
        .into_iter()
        .flatten()
    }
}
