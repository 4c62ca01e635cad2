//! Copies and fills: nothing is computed.
//!
//! A copy between host and device has no roofline: it is bound by the bus, not by the memory of the device.

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, sum};

#[cfg(test)]
pub(super) const NAMES: [&str; 4] = ["aten::copy_", "aten::fill_", "aten::zero_", "aten::cat"];

pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        // The source may be smaller, and of another type.
        "aten::copy_" => |inputs| {
            let both = || sum(&[inputs.bytes(0)?, inputs.bytes(1)?]);
            inputs.dims(1)?;
            Some(moved(inputs, both()))
        },
        "aten::fill_" | "aten::zero_" => |inputs| {
            inputs.dims(0)?;
            Some(moved(inputs, inputs.bytes(0)))
        },
        // The type of the tensors of a list is not in the file.
        "aten::cat" => |inputs| {
            inputs.list(0)?;
            Some(moved(inputs, None))
        },
        _ => return None,
    })
}

fn moved(inputs: &Inputs, bytes: Option<u64>) -> Cost {
    Cost {
        flops: 0,
        repeated: 0,
        bytes,
        precision: inputs.precision(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;

    #[test]
    fn what_is_copied_is_read_and_written() {
        let bytes = |name, dims, types| {
            let cost = cost(name, dims, types, "").unwrap();
            assert_eq!(cost.flops, 0);
            cost.bytes
        };
        assert_eq!(
            bytes("aten::copy_", "[[4,8],[8],[]]", "c10::Half|float|Scalar"),
            Some(2 * 32 + 4 * 8)
        );
        assert_eq!(
            bytes("aten::fill_", "[[4,8],[]]", "long int|Scalar"),
            Some(256)
        );
        assert_eq!(bytes("aten::zero_", "[[4,8]]", "c10::Strange"), None);
        assert_eq!(
            bytes("aten::cat", "[[[4],[5]],[]]", "TensorList|Scalar"),
            None
        );
        assert_eq!(cost("aten::cat", "[[],[]]", "TensorList|Scalar", ""), None);
    }
}
