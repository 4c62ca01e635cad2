//! Normalization: some operations an element, in one pass over the data.
//!
//! | forward | operations an element |
//! |---|---|
//! | mean and variance | 1 + 3: add; subtract, square, add |
//! | centre and scale | 2 |
//! | weight, bias | 1 each |
//!
//! RMS norm has no mean: 2 for the sum of squares, 1 to scale. Batch norm with given statistics has only
//! centre and scale. Backward takes 4 for the two sums over products with the gradient, 2 for the
//! normalized value, 4 for the gradient of the input, 1 for the weight, 2 and 1 for the gradients of weight
//! and bias; without a mean 8, and 3. All of this is bound by memory by a wide margin, so that the exact
//! number changes nothing; bytes are those of all tensors once.

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};

#[cfg(test)]
pub(super) const NAMES: [&str; 12] = [
    "aten::native_layer_norm",
    "aten::native_layer_norm_backward",
    "aten::native_group_norm",
    "aten::native_group_norm_backward",
    "aten::native_batch_norm",
    "aten::native_batch_norm_backward",
    "aten::cudnn_batch_norm",
    "aten::cudnn_batch_norm_backward",
    "aten::miopen_batch_norm",
    "aten::miopen_batch_norm_backward",
    "aten::_fused_rms_norm",
    "aten::_fused_rms_norm_backward",
];

pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        "aten::native_layer_norm" => |inputs| forward(inputs, 6, [2, 3]),
        "aten::native_group_norm" => |inputs| forward(inputs, 6, [1, 2]),
        "aten::native_batch_norm" | "aten::cudnn_batch_norm" | "aten::miopen_batch_norm" => {
            |inputs| {
                let training = inputs.flag(5).unwrap_or(true);
                forward(inputs, if training { 6 } else { 2 }, [1, 2])
            }
        }
        "aten::_fused_rms_norm" => |inputs| forward(inputs, 3, [2, usize::MAX]),
        "aten::native_layer_norm_backward" => |inputs| backward(inputs, 0, 1, 10, 5),
        "aten::native_group_norm_backward" => |inputs| backward(inputs, 0, 1, 10, 4),
        "aten::native_batch_norm_backward" => |inputs| backward(inputs, 0, 1, 10, 2),
        // These have the input before the gradient.
        "aten::cudnn_batch_norm_backward" | "aten::miopen_batch_norm_backward" => {
            |inputs| backward(inputs, 1, 0, 10, 2)
        }
        "aten::_fused_rms_norm_backward" => |inputs| backward(inputs, 0, 1, 8, 4),
        _ => return None,
    })
}

fn forward(inputs: &Inputs, each: u64, affine: [usize; 2]) -> Option<Cost> {
    let affine = affine.iter().filter(|place| inputs.dims(**place).is_some());
    let each = each + affine.count() as u64;
    let bytes = || sum(&[inputs.all_bytes()?, inputs.bytes(0)?]);
    Some(Cost {
        flops: product(&[each, inputs.elements(0)?])?,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(0),
    })
}

fn backward(inputs: &Inputs, grad: usize, input: usize, each: u64, weight: usize) -> Option<Cost> {
    // Weight 1, its gradient 2, the gradient of the bias 1; RMS norm has no bias.
    let affine = match (inputs.dims(weight), each) {
        (None, _) => 0,
        (Some(_), 8) => 3,
        (Some(_), _) => 4,
    };
    let bytes = || {
        let of_weight = inputs.dims(weight).map_or(Some(0), |_| {
            let gradients = if each == 8 { 1 } else { 2 };
            inputs.bytes(weight)?.checked_mul(gradients)
        })?;
        sum(&[inputs.all_bytes()?, inputs.bytes(input)?, of_weight])
    };
    Some(Cost {
        flops: product(&[each + affine, inputs.elements(grad)?])?,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(input),
    })
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;

    #[test]
    fn operations_an_element_and_every_tensor_once() {
        let types = "float|ScalarList|float|float|Scalar";
        let norm = |dims, types| cost("aten::native_layer_norm", dims, types, "").unwrap();
        let found = norm("[[4,8],[],[8],[8],[]]", types);
        assert_eq!(
            (found.flops, found.bytes),
            (8 * 32, Some(4 * (2 * 32 + 16)))
        );
        let found = norm("[[4,8],[],[],[],[]]", "float|ScalarList|||Scalar");
        assert_eq!((found.flops, found.bytes), (6 * 32, Some(4 * 2 * 32)));
        let types = "float|float|float|float|float|Scalar|Scalar|Scalar";
        let dims = "[[2,4,3,3],[4],[4],[4],[4],[],[],[]]";
        let batch = |training| {
            let values = format!("|||||{training}|0.1|1e-05");
            cost("aten::native_batch_norm", dims, types, &values).unwrap()
        };
        assert_eq!(batch("True").flops, 8 * 72);
        assert_eq!(batch("False").flops, 4 * 72);
        assert_eq!(batch("True").bytes, Some(4 * (2 * 72 + 16)));
        let rms = cost(
            "aten::_fused_rms_norm",
            "[[4,8],[],[8],[]]",
            "float|ScalarList|float|",
            "",
        );
        assert_eq!(rms.unwrap().flops, 4 * 32);
    }

    #[test]
    fn gradients_are_written_once() {
        let types = "float|float|ScalarList|float|float|float|float|ScalarList";
        let dims = "[[4,8],[4,8],[],[4,1],[4,1],[8],[8],[]]";
        let found = cost("aten::native_layer_norm_backward", dims, types, "").unwrap();
        assert_eq!(found.flops, 14 * 32);
        assert_eq!(found.bytes, Some(4 * (2 * 32 + 8 + 16 + 32 + 16)));
        let types = "float|float|ScalarList|float|float|ScalarList";
        let dims = "[[4,8],[4,8],[],[4,1],[8],[]]";
        let found = cost("aten::_fused_rms_norm_backward", dims, types, "").unwrap();
        assert_eq!(found.flops, 11 * 32);
        assert_eq!(found.bytes, Some(4 * (2 * 32 + 4 + 8 + 32 + 8)));
    }
}
