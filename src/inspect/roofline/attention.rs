//! Fused attention: two products of matrices forward, five backward.
//!
//! With batch B, H heads of queries, N queries and M keys of length D, and values of length E:
//!
//! ```text
//! forward    Q·Kᵀ  2·B·H·N·M·D        P·V   2·B·H·N·M·E
//! backward   Q·Kᵀ again, dV = Pᵀ·dO, dP = dO·Vᵀ, dQ = dS·K, dK = dSᵀ·Q
//! ```
//! as PyTorch's `FlopCounterMode` and TraceLens count; the product that backward repeats is told apart.
//! A causal mask halves it all where there are as many keys as queries, as in TraceLens (PyTorch counts
//! the whole square). Where they differ it depends on how the mask is aligned, which no argument says:
//! then there is no count. Nor is there one for sequences packed into one (`varlen`), whose lengths are
//! the content of tensors, nor without `Concrete Inputs`, which say whether there is a mask. Other masks
//! and windows are not seen: the count is that of the whole square.

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};

#[cfg(test)]
pub(super) const NAMES: [&str; 14] = [
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_cudnn_attention_backward",
    "aten::_flash_attention_forward",
    "aten::_flash_attention_backward",
    "aten::_efficient_attention_forward",
    "aten::_efficient_attention_backward",
    "flash_attn::_flash_attn_forward",
    "flash_attn::_flash_attn_backward",
];

pub(super) fn rule(name: &str) -> Option<Rule> {
    use Order::{HeadsFirst, HeadsLast};
    Some(match name {
        "aten::_scaled_dot_product_flash_attention"
        | "aten::_scaled_dot_product_flash_attention_for_cpu" => {
            |inputs| forward(inputs, HeadsFirst, 4)
        }
        "aten::_scaled_dot_product_efficient_attention"
        | "aten::_scaled_dot_product_cudnn_attention" => |inputs| forward(inputs, HeadsFirst, 6),
        "aten::_flash_attention_forward" => |inputs| forward(inputs, HeadsLast, 8),
        "aten::_efficient_attention_forward" => |inputs| forward(inputs, HeadsLast, 9),
        "flash_attn::_flash_attn_forward" => |inputs| forward(inputs, HeadsLast, 5),
        "aten::_scaled_dot_product_flash_attention_backward" => {
            |inputs| backward(inputs, HeadsFirst, 4, 11)
        }
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward" => {
            |inputs| backward(inputs, HeadsFirst, 4, 7)
        }
        "aten::_scaled_dot_product_efficient_attention_backward" => {
            |inputs| backward(inputs, HeadsFirst, 5, 11)
        }
        "aten::_scaled_dot_product_cudnn_attention_backward" => {
            |inputs| backward(inputs, HeadsFirst, 4, 14)
        }
        "aten::_flash_attention_backward" | "flash_attn::_flash_attn_backward" => {
            |inputs| backward(inputs, HeadsLast, 4, 11)
        }
        "aten::_efficient_attention_backward" => |inputs| backward(inputs, HeadsLast, 5, 14),
        _ => return None,
    })
}

/// Order of the four dimensions.
#[derive(Clone, Copy)]
enum Order {
    /// Batch, heads, sequence, length.
    HeadsFirst,
    /// Batch, sequence, heads, length.
    HeadsLast,
}

/// How many pairs of a query and a key there are, and the lengths of keys and values.
struct Sizes {
    pairs: u64,
    key: u64,
    value: u64,
    /// Half of the pairs do not count.
    causal: bool,
}

impl Sizes {
    /// From queries, keys and values in inputs `first` and the next two; `causal` has the flag.
    fn of(inputs: &Inputs, first: usize, order: Order, causal: usize) -> Option<Self> {
        let split = |place: usize| {
            let [batch, b, c, length] = *inputs.dims(place)? else {
                return None;
            };
            Some(match order {
                Order::HeadsFirst => (batch, b, c, length),
                Order::HeadsLast => (batch, c, b, length),
            })
        };
        let (batch, heads, queries, key) = split(first)?;
        let (_, _, keys, key_length) = split(first + 1)?;
        let (_, _, values, value) = split(first + 2)?;
        if key != key_length || keys != values {
            return None;
        }
        // Memory-efficient attention has the kind of mask as a number: 0 is none.
        let causal = match inputs.value(causal)? {
            "0" => false,
            "1" | "2" => true,
            _ => inputs.flag(causal)?,
        };
        if causal && queries != keys {
            return None;
        }
        Some(Self {
            pairs: product(&[batch, heads, queries, keys])?,
            key,
            value,
            causal,
        })
    }

    /// Operations of products with keys and of products with values.
    fn flops(&self, with_keys: u64, with_values: u64) -> Option<u64> {
        let lengths = sum(&[
            with_keys.checked_mul(self.key)?,
            with_values.checked_mul(self.value)?,
        ])?;
        // Two operations a pair and element; half of that below a diagonal.
        let each = if self.causal { 1 } else { 2 };
        product(&[each, self.pairs, lengths])
    }
}

fn forward(inputs: &Inputs, order: Order, causal: usize) -> Option<Cost> {
    let sizes = Sizes::of(inputs, 0, order, causal)?;
    let bytes = || {
        // The output has the rows of the queries, each as long as a value.
        let rows = inputs.elements(0)?.checked_div(sizes.key)?;
        let out = product(&[rows, sizes.value, inputs.size(0)?])?;
        sum(&[inputs.bytes(0)?, inputs.bytes(1)?, inputs.bytes(2)?, out])
    };
    Some(Cost {
        flops: sizes.flops(1, 1)?,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(0),
    })
}

/// Inputs are the gradient, queries, keys and values; the output is input number `out`.
fn backward(inputs: &Inputs, order: Order, out: usize, causal: usize) -> Option<Cost> {
    let sizes = Sizes::of(inputs, 1, order, causal)?;
    let bytes = || {
        let three = sum(&[inputs.bytes(1)?, inputs.bytes(2)?, inputs.bytes(3)?])?;
        sum(&[inputs.bytes(0)?, inputs.bytes(out)?, three, three])
    };
    Some(Cost {
        flops: sizes.flops(3, 2)?,
        repeated: sizes.flops(1, 0)?,
        bytes: bytes(),
        precision: inputs.precision(1),
    })
}

#[cfg(test)]
mod tests {
    use super::super::cost::{Cost, cost};

    const DIMS: &str = "[[2,3,8,4],[2,3,8,4],[2,3,8,5],[],[],[],[]]";
    const TYPES: &str = "c10::BFloat16|c10::BFloat16|c10::BFloat16|Scalar|Scalar|Scalar|Scalar";

    fn flash(dims: &str, causal: &str) -> Option<Cost> {
        let values = format!("|||0.|{causal}|False|0.5");
        cost(
            "aten::_scaled_dot_product_flash_attention",
            dims,
            TYPES,
            &values,
        )
    }

    #[test]
    fn forward_is_two_products() {
        let found = flash(DIMS, "False").unwrap();
        assert_eq!(found.flops, 2 * (2 * 3 * 8 * 8) * (4 + 5));
        let (query, value) = (2 * 3 * 8 * 4, 2 * 3 * 8 * 5);
        assert_eq!(found.bytes, Some(2 * (2 * query + 2 * value)));
        assert_eq!(flash(DIMS, "True").unwrap().flops, found.flops / 2);
    }

    #[test]
    fn a_mask_over_unlike_lengths_and_unknown_masks_are_not_counted() {
        let unlike = "[[2,3,8,4],[2,3,16,4],[2,3,16,4],[],[],[],[]]";
        assert_eq!(flash(unlike, "True"), None);
        assert_eq!(
            flash(unlike, "False").unwrap().flops,
            2 * (2 * 3 * 8 * 16) * 8
        );
        assert_eq!(flash(DIMS, ""), None);
        assert_eq!(
            cost(
                "aten::_flash_attention_forward",
                "[[512,3,4],[512,3,4],[512,3,4]]",
                "",
                ""
            ),
            None
        );
    }

    #[test]
    fn grouped_keys_count_for_each_head_of_queries() {
        let dims = "[[2,8,12,4],[2,8,3,4],[2,8,3,4],[],[],[],[],[],[],[],[]]";
        let types = "c10::Half|c10::Half|c10::Half|||||Scalar|Scalar|Scalar|Scalar";
        let values = "|||||||0.|True|False|0.5";
        let found = cost("aten::_flash_attention_forward", dims, types, values).unwrap();
        assert_eq!(found.flops, 2 * (2 * 12 * 8 * 8) * (4 + 4) / 2);
        assert_eq!(found.bytes, Some(2 * (2 * 768 + 2 * 192)));
    }

    #[test]
    fn backward_is_five_products_of_which_one_repeats() {
        let dims = "[[2,3,8,5],[2,3,8,4],[2,3,8,4],[2,3,8,5],[2,3,8,5],[2,3,8],[],[],[],[],[],[]]";
        let types = "float|float|float|float|float|float|||Scalar|Scalar|Scalar|Scalar";
        let values = "|||||||||8|8|0.|False".replacen('|', "", 1);
        let name = "aten::_scaled_dot_product_flash_attention_backward";
        let found = cost(name, dims, types, &values).unwrap();
        let pairs = 2 * 3 * 8 * 8;
        assert_eq!(found.flops, 2 * pairs * (3 * 4 + 2 * 5));
        assert_eq!(found.repeated, 2 * pairs * 4);
        let (key, value) = (192, 240);
        assert_eq!(found.bytes, Some(4 * (2 * value + 2 * (2 * key + value))));
    }
}
