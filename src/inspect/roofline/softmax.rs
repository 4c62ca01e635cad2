//! Softmax: 5 operations an element forward (largest, subtract, exponential, sum, divide), 4 backward
//! (multiply, sum, subtract, multiply).

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};

#[cfg(test)]
pub(super) const NAMES: [&str; 4] = [
    "aten::_softmax",
    "aten::_log_softmax",
    "aten::_softmax_backward_data",
    "aten::_log_softmax_backward_data",
];

pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        "aten::_softmax" | "aten::_log_softmax" => |inputs| {
            // `half_to_float`.
            let out = if inputs.flag(2) == Some(true) {
                Some(4)
            } else {
                inputs.size(0)
            };
            softmax(inputs, 5, 1, out)
        },
        "aten::_softmax_backward_data" | "aten::_log_softmax_backward_data" => {
            |inputs| softmax(inputs, 4, 2, inputs.size(0))
        }
        _ => return None,
    })
}

/// `each` operations an element of the first input; the first `read` inputs are read.
fn softmax(inputs: &Inputs, each: u64, read: usize, out_size: Option<u64>) -> Option<Cost> {
    let elements = inputs.elements(0)?;
    let bytes = || {
        let mut moved = elements.checked_mul(out_size?)?;
        for place in 0..read {
            moved = sum(&[moved, inputs.bytes(place)?])?;
        }
        Some(moved)
    };
    Some(Cost {
        flops: product(&[each, elements])?,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;

    #[test]
    fn five_operations_an_element_and_four_back() {
        let of = |name, dims, types, values| {
            let cost = cost(name, dims, types, values).unwrap();
            (cost.flops, cost.bytes)
        };
        let forward = |half| {
            of(
                "aten::_softmax",
                "[[4,8],[],[]]",
                "c10::Half|Scalar|Scalar",
                half,
            )
        };
        assert_eq!(forward("|-1|False"), (160, Some(32 * 4)));
        assert_eq!(forward("|-1|True"), (160, Some(32 * 6)));
        let types = "float|float|Scalar|Scalar";
        let dims = "[[4,8],[4,8],[],[]]";
        assert_eq!(
            of("aten::_log_softmax_backward_data", dims, types, "||-1|6"),
            (128, Some(32 * 12))
        );
    }
}
