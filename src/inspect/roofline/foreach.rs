//! Operators over lists of tensors, as optimizers use them: operations an element of the first list.
//!
//! Bytes are not known: the file has the dimensions of the tensors of a list (since PyTorch 2.2), not
//! their type. Adam takes 3 operations for the first moment, 4 for the second, 3 for the denominator, 3 for
//! the update, and AdamW 1 for the decay; SGD 2, with momentum more, which no argument says.

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};

/// Without the `_` of those that work in place.
pub(super) const NAMES: [&str; 16] = [
    "aten::_foreach_add",
    "aten::_foreach_sub",
    "aten::_foreach_mul",
    "aten::_foreach_div",
    "aten::_foreach_sqrt",
    "aten::_foreach_neg",
    "aten::_foreach_reciprocal",
    "aten::_foreach_maximum",
    "aten::_foreach_pow",
    "aten::_foreach_copy",
    "aten::_foreach_zero",
    "aten::_foreach_norm",
    "aten::_foreach_lerp",
    "aten::_foreach_addcmul",
    "aten::_foreach_addcdiv",
    "aten::_fused_adam",
];

pub(super) fn rule(name: &str) -> Option<Rule> {
    let own = name.strip_suffix('_').unwrap_or(name);
    Some(match own {
        "aten::_foreach_copy" | "aten::_foreach_zero" => |inputs| foreach(inputs, 0),
        "aten::_foreach_norm" => |inputs| foreach(inputs, 2),
        "aten::_foreach_lerp" | "aten::_foreach_addcmul" | "aten::_foreach_addcdiv" => {
            |inputs| foreach(inputs, 3)
        }
        "aten::_fused_adam" => |inputs| foreach(inputs, 13),
        "aten::_fused_adamw" => |inputs| foreach(inputs, 14),
        _ if NAMES.contains(&own) => |inputs| foreach(inputs, 1),
        _ => return None,
    })
}

fn foreach(inputs: &Inputs, each: u64) -> Option<Cost> {
    let sizes: Option<Vec<u64>> = inputs.list(0)?.iter().map(|dims| product(dims)).collect();
    Some(Cost {
        flops: product(&[each, sum(&sizes?)?])?,
        repeated: 0,
        bytes: None,
        precision: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;

    #[test]
    fn operations_an_element_of_the_first_list() {
        let dims = "[[[2,3],[4],[]],[[2,3],[4],[]],[]]";
        let types = "TensorList|TensorList|Scalar";
        let flops = |name| cost(name, dims, types, "").unwrap().flops;
        assert_eq!(flops("aten::_foreach_add_"), 11);
        assert_eq!(flops("aten::_foreach_addcdiv_"), 33);
        assert_eq!(flops("aten::_fused_adamw_"), 14 * 11);
        assert_eq!(flops("aten::_foreach_copy_"), 0);
        assert_eq!(
            cost("aten::_foreach_add_", "[[],[]]", "TensorList|Scalar", ""),
            None
        );
    }
}
