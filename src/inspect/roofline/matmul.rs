//! Matrix products: 2·M·N·K operations.
//!
//! A product of M×K and K×N takes M·N·K multiplications and as many additions, as PyTorch's
//! `FlopCounterMode` and TraceLens count. TraceLens adds M·N for a bias, PyTorch does not; neither does this.

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};

#[cfg(test)]
pub(super) const NAMES: [&str; 14] = [
    "aten::mm",
    "aten::addmm",
    "aten::addmm_",
    "aten::_addmm_activation",
    "aten::bmm",
    "aten::baddbmm",
    "aten::baddbmm_",
    "aten::mv",
    "aten::dot",
    "aten::matmul",
    "aten::linear",
    "aten::_scaled_mm",
    "aten::_int_mm",
    "aiter::gemm_a16w16",
];

pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        "aten::mm" | "aten::bmm" | "aten::mv" | "aten::dot" | "aten::matmul" => {
            |inputs| matmul(inputs, 0, None)
        }
        "aten::addmm"
        | "aten::addmm_"
        | "aten::_addmm_activation"
        | "aten::baddbmm"
        | "aten::baddbmm_" => |inputs| matmul(inputs, 1, Some(0)),
        "aten::linear" | "aiter::gemm_a16w16" => linear,
        "aten::_scaled_mm" => scaled_mm,
        "aten::_int_mm" => |inputs| of_type(inputs, 0, None, Some(4)),
        _ => return None,
    })
}

/// Batch, M, N and K of a product.
struct Sizes {
    batch: u64,
    m: u64,
    n: u64,
    k: u64,
}

impl Sizes {
    fn flops(&self) -> Option<u64> {
        product(&[2, self.batch, self.m, self.n, self.k])
    }

    fn out(&self) -> Option<u64> {
        product(&[self.batch, self.m, self.n])
    }

    /// Of `torch.matmul`: vectors are rows or columns, batches are broadcast.
    fn of(left: &[u64], right: &[u64]) -> Option<Self> {
        let (left_batch, m, k) = match left {
            [k] => (&[][..], 1, *k),
            [batch @ .., m, k] => (batch, *m, *k),
            [] => return None,
        };
        let (right_batch, inner, n) = match right {
            [k] => (&[][..], *k, 1),
            [batch @ .., k, n] => (batch, *k, *n),
            [] => return None,
        };
        let batch = product(&broadcast(left_batch, right_batch)?)?;
        (inner == k).then_some(Self { batch, m, n, k })
    }
}

/// Dimensions that both can be read as: from the last one on equal, or one of them 1.
pub(super) fn broadcast(left: &[u64], right: &[u64]) -> Option<Vec<u64>> {
    let (long, short) = if left.len() < right.len() {
        (right, left)
    } else {
        (left, right)
    };
    let mut all = long.to_vec();
    let shift = long.len() - short.len();
    for (own, other) in all[shift..].iter_mut().zip(short) {
        if *own == 1 {
            *own = *other;
        } else if *other != 1 && *own != *other {
            return None;
        }
    }
    Some(all)
}

fn matmul(inputs: &Inputs, first: usize, added: Option<usize>) -> Option<Cost> {
    of_type(inputs, first, added, inputs.size(first))
}

/// The product of inputs `first` and the next, to elements of `out_size` bytes.
fn of_type(
    inputs: &Inputs,
    first: usize,
    added: Option<usize>,
    out_size: Option<u64>,
) -> Option<Cost> {
    let sizes = Sizes::of(inputs.dims(first)?, inputs.dims(first + 1)?)?;
    cost(inputs, &sizes, [first, first + 1], added, out_size)
}

fn cost(
    inputs: &Inputs,
    sizes: &Sizes,
    factors: [usize; 2],
    added: Option<usize>,
    out_size: Option<u64>,
) -> Option<Cost> {
    // A product of complex numbers is four of real ones, or three: that is for the library to choose.
    if inputs.is_complex(factors[0]) {
        return None;
    }
    // beta, behind the factors: with 0 what is added is not read.
    let added = added.filter(|_| !inputs.is_nought(factors[1] + 1));
    let bytes = || {
        let added = match added {
            Some(added) => inputs.bytes(added)?,
            None => 0,
        };
        let out = sizes.out()?.checked_mul(out_size?)?;
        sum(&[
            inputs.bytes(factors[0])?,
            inputs.bytes(factors[1])?,
            added,
            out,
        ])
    };
    Some(Cost {
        flops: sizes.flops()?,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(factors[0]),
    })
}

/// `input · weightᵀ`, with a weight of N×K.
fn linear(inputs: &Inputs) -> Option<Cost> {
    let [rows @ .., k] = inputs.dims(0)? else {
        return None;
    };
    let [n, inner] = inputs.dims(1)? else {
        return None;
    };
    if inner != k {
        return None;
    }
    let sizes = Sizes {
        batch: 1,
        m: product(rows)?,
        n: *n,
        k: *k,
    };
    let bias = inputs.dims(2).map(|_| 2);
    cost(inputs, &sizes, [0, 1], bias, inputs.size(0))
}

/// `_scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, …)`.
fn scaled_mm(inputs: &Inputs) -> Option<Cost> {
    // Numbers of `c10::ScalarType`.
    let out = match inputs.value(6) {
        Some("5" | "15") => Some(2),
        Some("6") => Some(4),
        _ => None,
    };
    of_type(inputs, 0, None, out)
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;
    use super::super::precision::Precision;

    fn flops_and_bytes(name: &str, dims: &str, types: &str, values: &str) -> (u64, Option<u64>) {
        let cost = cost(name, dims, types, values).unwrap();
        (cost.flops, cost.bytes)
    }

    #[test]
    fn products_take_two_operations_an_element_and_step() {
        assert_eq!(
            flops_and_bytes("aten::mm", "[[2,3],[3,5]]", "float|float", ""),
            (60, Some(4 * (6 + 15 + 10)))
        );
        assert_eq!(
            flops_and_bytes("aten::bmm", "[[7,2,3],[7,3,5]]", "c10::Half|c10::Half", ""),
            (420, Some(2 * 7 * (6 + 15 + 10)))
        );
        assert_eq!(
            flops_and_bytes(
                "aten::addmm",
                "[[5],[2,3],[3,5],[],[]]",
                "float|float|float|Scalar|Scalar",
                "|||1|1"
            ),
            (60, Some(4 * (5 + 6 + 15 + 10)))
        );
        assert_eq!(
            flops_and_bytes("aten::mv", "[[4,3],[3]]", "double|double", ""),
            (24, Some(8 * (12 + 3 + 4)))
        );
        assert_eq!(
            flops_and_bytes("aten::dot", "[[9],[9]]", "float|float", ""),
            (18, Some(4 * 19))
        );
        assert_eq!(
            flops_and_bytes("aten::linear", "[[4,2,3],[5,3],[]]", "float|float|", ""),
            (240, Some(4 * (24 + 15 + 40)))
        );
        assert_eq!(
            flops_and_bytes("aten::matmul", "[[2,1,4,3],[6,3,5]]", "float|float", ""),
            (2 * 12 * 4 * 5 * 3, Some(4 * (24 + 90 + 240)))
        );
    }

    #[test]
    fn what_is_added_is_read_unless_beta_is_nought() {
        let bytes = |beta: &str| {
            let values = format!("|||{beta}|0.125");
            let types = "c10::Half|c10::Half|c10::Half|Scalar|Scalar";
            flops_and_bytes(
                "aten::baddbmm",
                "[[2,4,4],[2,4,3],[2,3,4],[],[]]",
                types,
                &values,
            )
            .1
        };
        assert_eq!(bytes("0."), Some(2 * (24 + 24 + 32)));
        assert_eq!(bytes("1"), Some(2 * (24 + 24 + 32 + 32)));
    }

    #[test]
    fn types_decide_bytes_and_precision() {
        let types = "c10::Float8_e4m3fn|c10::Float8_e4m3fn|float|float|||Scalar";
        let dims = "[[16,32],[32,16],[],[],[],[],[]]";
        let fp8 = cost("aten::_scaled_mm", dims, types, "||||||15").unwrap();
        assert_eq!(fp8.precision, Some(Precision::Fp8));
        assert_eq!(fp8.bytes, Some(512 + 512 + 2 * 256));
        assert_eq!(
            cost("aten::_scaled_mm", dims, types, "").unwrap().bytes,
            None
        );
        let unknown = cost("aten::mm", "[[2,3],[3,5]]", "", "").unwrap();
        assert_eq!(
            (unknown.flops, unknown.bytes, unknown.precision),
            (60, None, None)
        );
    }

    #[test]
    fn what_does_not_fit_is_no_product() {
        for dims in ["[[2,3],[4,5]]", "[[2,3]]", "[[],[]]", "[[2,2,3],[3,3,5]]"] {
            assert_eq!(
                cost("aten::matmul", dims, "float|float", ""),
                None,
                "{dims}"
            );
        }
        let complex = "c10::complex<float>|c10::complex<float>";
        assert_eq!(cost("aten::mm", "[[2,3],[3,5]]", complex, ""), None);
    }
}
