//! Element by element: one operation for each element of the output and function, as TraceLens counts.
//!
//! The output has the dimensions that the inputs are broadcast to; inputs are read as large as they are. Its
//! elements have the type of the input with the longest ones (of tensors with dimensions, where there are
//! any), and one byte for comparisons.

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};
use super::matmul::broadcast;

/// Of one tensor, 1 operation an element.
const UNARY: [&str; 38] = [
    "abs",
    "neg",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sigmoid",
    "tanh",
    "sin",
    "cos",
    "erf",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "relu",
    "gelu",
    "silu",
    "mish",
    "softplus",
    "elu",
    "leaky_relu",
    "hardtanh",
    "hardsigmoid",
    "hardswish",
    "clamp",
    "clamp_min",
    "clamp_max",
    "threshold",
    "bitwise_not",
    "square",
];

/// Of two tensors or a tensor and a number, 1 operation an element.
const BINARY: [&str; 27] = [
    "add",
    "sub",
    "rsub",
    "mul",
    "div",
    "pow",
    "maximum",
    "minimum",
    "fmod",
    "remainder",
    "atan2",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "threshold_backward",
    "sigmoid_backward",
    "tanh_backward",
    "gelu_backward",
    "silu_backward",
    "leaky_relu_backward",
    "hardtanh_backward",
    "elu_backward",
    "mish_backward",
    "softplus_backward",
    "hardswish_backward",
    "hardsigmoid_backward",
    "floor_divide",
];

/// Comparisons: 1 operation an element, 1 byte out.
const LOGICAL: [&str; 14] = [
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
];

/// Of three tensors, 3 operations an element: scale, multiply or divide, add.
const TERNARY: [&str; 3] = ["addcmul", "addcdiv", "lerp"];

/// All names without `aten::` and without the `_` of those that work in place.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let all = UNARY.iter().chain(&BINARY).chain(&LOGICAL);
    all.chain(&TERNARY).copied().chain(["where"])
}

pub(super) fn rule(name: &str) -> Option<Rule> {
    let own = name.strip_prefix("aten::")?;
    let own = own.strip_suffix('_').unwrap_or(own);
    if UNARY.contains(&own) || BINARY.contains(&own) {
        return Some(|inputs| elementwise(inputs, 1, None));
    }
    if LOGICAL.contains(&own) {
        return Some(|inputs| elementwise(inputs, 1, Some(1)));
    }
    if TERNARY.contains(&own) {
        return Some(|inputs| elementwise(inputs, 3, None));
    }
    // It chooses and computes nothing.
    (own == "where").then_some(|inputs| elementwise(inputs, 0, None))
}

fn elementwise(inputs: &Inputs, each: u64, out_size: Option<u64>) -> Option<Cost> {
    let mut out: Option<Vec<u64>> = None;
    for place in inputs.tensors() {
        let dims = inputs.dims(place)?;
        out = Some(match out {
            None => dims.to_vec(),
            Some(known) => broadcast(&known, dims)?,
        });
    }
    let elements = product(&out?)?;
    let leading = leading(inputs);
    let bytes = || {
        let out_size = out_size.or_else(|| inputs.size(leading?))?;
        sum(&[inputs.all_bytes()?, elements.checked_mul(out_size)?])
    };
    Some(Cost {
        flops: product(&[each, elements])?,
        repeated: 0,
        bytes: bytes(),
        precision: leading.and_then(|leading| inputs.precision(leading)),
    })
}

/// The input whose type the output has: of those with dimensions, or else of all, the first with the
/// longest elements.
fn leading(inputs: &Inputs) -> Option<usize> {
    let key = |place: &usize| {
        let has_dims = inputs.dims(*place).is_some_and(|dims| !dims.is_empty());
        (has_dims, inputs.size(*place), std::cmp::Reverse(*place))
    };
    inputs.tensors().max_by_key(key)
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;
    use super::super::precision::Precision;

    fn of(name: &str, dims: &str, types: &str) -> (u64, Option<u64>) {
        let cost = cost(name, dims, types, "").unwrap();
        (cost.flops, cost.bytes)
    }

    #[test]
    fn one_operation_an_element_of_the_output() {
        assert_eq!(
            of("aten::relu_", "[[4,8]]", "float"),
            (32, Some(2 * 32 * 4))
        );
        assert_eq!(
            of("aten::add", "[[4,8],[8],[]]", "float|float|Scalar"),
            (32, Some(4 * (32 + 8 + 32)))
        );
        assert_eq!(
            of("aten::mul", "[[4,1],[1,8]]", "c10::Half|float"),
            (32, Some(2 * 4 + 4 * 8 + 4 * 32))
        );
        // A tensor without dimensions does not lengthen the elements of others.
        assert_eq!(
            of("aten::mul", "[[4,8],[]]", "c10::Half|float"),
            (32, Some(2 * 32 + 4 + 2 * 32))
        );
        assert_eq!(
            of("aten::eq", "[[4],[4]]", "long int|long int"),
            (4, Some(2 * 32 + 4))
        );
        assert_eq!(
            of(
                "aten::addcmul_",
                "[[4],[4],[4],[]]",
                "float|float|float|Scalar"
            ),
            (12, Some(4 * 16))
        );
        assert_eq!(
            of("aten::where", "[[4],[4],[]]", "bool|float|float"),
            (0, Some(4 + 16 + 4 + 16))
        );
    }

    #[test]
    fn types_that_are_not_known_leave_bytes_out() {
        assert_eq!(of("aten::neg", "[[4]]", "c10::Strange"), (4, None));
        let ints = cost("aten::add", "[[4],[4]]", "long int|long int", "").unwrap();
        assert_eq!(ints.precision, None);
        let half = cost("aten::add", "[[4],[4]]", "c10::Half|c10::Half", "").unwrap();
        assert_eq!(half.precision, Some(Precision::Fp16));
        assert_eq!(cost("aten::add", "[[4],[3]]", "float|float", ""), None);
        assert_eq!(cost("aten::add", "[[],[]]", "Scalar|Scalar", ""), None);
    }
}
