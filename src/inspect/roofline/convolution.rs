//! Convolutions: each output element takes 2 operations for each weight of its channel.
//!
//! ```text
//! forward                  2 · |output| · |weight| / output channels
//! transposed               2 · |input|  · |weight| / input channels
//! backward                 as much for the gradient of the input, and again for that of the weight
//! ```
//! As PyTorch's `FlopCounterMode` and TraceLens count, without the bias. The size of the output follows
//! from stride, padding and dilation, which are in the file since PyTorch 2.1 only; the library may do
//! with fewer operations (Winograd, FFT).

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};

#[cfg(test)]
pub(super) const NAMES: [&str; 15] = [
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::convolution",
    "aten::_convolution",
    "aten::mkldnn_convolution",
    "aten::miopen_convolution",
    "aten::miopen_depthwise_convolution",
    "aten::cudnn_convolution",
    "aten::_slow_conv2d_forward",
    "aten::_conv_depthwise2d",
    "aten::cudnn_convolution_transpose",
    "aten::miopen_convolution_transpose",
    "aten::convolution_backward",
    "aten::cudnn_convolution_backward_input",
];

pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        "aten::conv1d" | "aten::conv2d" | "aten::conv3d" => {
            |inputs| forward(inputs, &Layout::plain(Some(2), 3, 4, 5))
        }
        "aten::convolution" | "aten::_convolution" => |inputs| {
            if inputs.flag(6)? {
                let layout = Layout {
                    output_padding: Some(7),
                    groups: 8,
                    ..Layout::plain(Some(2), 3, 4, 5)
                };
                transposed(inputs, &layout)
            } else {
                forward(inputs, &Layout::plain(Some(2), 3, 4, 5))
            }
        },
        "aten::mkldnn_convolution"
        | "aten::miopen_convolution"
        | "aten::miopen_depthwise_convolution" => {
            |inputs| forward(inputs, &Layout::plain(Some(2), 4, 3, 5))
        }
        "aten::cudnn_convolution" => |inputs| forward(inputs, &Layout::plain(None, 3, 2, 4)),
        "aten::_slow_conv2d_forward" => |inputs| {
            let layout = Layout {
                dilation: None,
                ..Layout::plain(Some(3), 4, 5, 6)
            };
            forward(inputs, &layout)
        },
        "aten::_conv_depthwise2d" => |inputs| forward(inputs, &Layout::plain(Some(3), 4, 5, 6)),
        "aten::cudnn_convolution_transpose" => |inputs| {
            let layout = Layout {
                output_padding: Some(3),
                groups: 6,
                ..Layout::plain(None, 4, 2, 5)
            };
            transposed(inputs, &layout)
        },
        "aten::miopen_convolution_transpose" => |inputs| {
            let layout = Layout {
                output_padding: Some(4),
                groups: 7,
                ..Layout::plain(Some(2), 5, 3, 6)
            };
            transposed(inputs, &layout)
        },
        "aten::convolution_backward" => backward,
        "aten::cudnn_convolution_backward_input" => backward_input,
        _ => return None,
    })
}

/// Which input is what; the input and the weight are the first two.
struct Layout {
    bias: Option<usize>,
    stride: usize,
    padding: usize,
    /// `None` where there is none: 1.
    dilation: Option<usize>,
    output_padding: Option<usize>,
    groups: usize,
}

impl Layout {
    fn plain(bias: Option<usize>, stride: usize, padding: usize, dilation: usize) -> Self {
        Self {
            bias,
            stride,
            padding,
            dilation: Some(dilation),
            output_padding: None,
            groups: 0,
        }
    }
}

/// Input number `place` for dimension `dim`: one value may stand for all.
fn along(inputs: &Inputs, place: Option<usize>, dim: usize, without: i64) -> Option<i64> {
    let Some(place) = place else {
        return Some(without);
    };
    match inputs.ints(place)?.as_slice() {
        [one] => Some(*one),
        several => several.get(dim).copied(),
    }
}

/// The dimensions of space: those of the input and of the weight behind batch and channels.
fn space(inputs: &Inputs) -> Option<Vec<(i64, i64)>> {
    let (input, weight) = (inputs.dims(0)?, inputs.dims(1)?);
    if input.len() != weight.len() || input.len() < 3 {
        return None;
    }
    input[2..]
        .iter()
        .zip(&weight[2..])
        .map(|(input, weight)| Some((i64::try_from(*input).ok()?, i64::try_from(*weight).ok()?)))
        .collect()
}

fn forward(inputs: &Inputs, layout: &Layout) -> Option<Cost> {
    let weight = inputs.dims(1)?;
    let mut out = vec![*inputs.dims(0)?.first()?, *weight.first()?];
    for (dim, (length, kernel)) in space(inputs)?.into_iter().enumerate() {
        let stride = along(inputs, Some(layout.stride), dim, 1)?;
        let padding = along(inputs, Some(layout.padding), dim, 0)?;
        let dilation = along(inputs, layout.dilation, dim, 1)?;
        let reach = dilation.checked_mul(kernel.checked_sub(1)?)?;
        let free = length
            .checked_add(padding.checked_mul(2)?)?
            .checked_sub(reach)?
            .checked_sub(1)?;
        if free < 0 || stride < 1 {
            return None;
        }
        out.push(u64::try_from(free / stride + 1).ok()?);
    }
    let out = product(&out)?;
    cost(
        inputs,
        layout,
        product(&[2, out, product(&weight[1..])?])?,
        Some(out),
    )
}

fn transposed(inputs: &Inputs, layout: &Layout) -> Option<Cost> {
    let weight = inputs.dims(1)?;
    let flops = product(&[2, inputs.elements(0)?, product(weight.get(1..)?)?])?;
    let out = || {
        let groups = u64::try_from(*inputs.ints(layout.groups)?.first()?).ok()?;
        let channels = weight.get(1)?.checked_mul(groups)?;
        let mut out = vec![*inputs.dims(0)?.first()?, channels];
        for (dim, (length, kernel)) in space(inputs)?.into_iter().enumerate() {
            let stride = along(inputs, Some(layout.stride), dim, 1)?;
            let padding = along(inputs, Some(layout.padding), dim, 0)?;
            let dilation = along(inputs, layout.dilation, dim, 1)?;
            let extra = along(inputs, layout.output_padding, dim, 0)?;
            let reach = dilation.checked_mul(kernel.checked_sub(1)?)?;
            let length = length
                .checked_sub(1)?
                .checked_mul(stride)?
                .checked_sub(padding.checked_mul(2)?)?
                .checked_add(reach)?
                .checked_add(extra)?
                .checked_add(1)?;
            out.push(u64::try_from(length).ok()?);
        }
        product(&out)
    };
    cost(inputs, layout, flops, out())
}

fn cost(inputs: &Inputs, layout: &Layout, flops: u64, out: Option<u64>) -> Option<Cost> {
    if inputs.is_complex(0) {
        return None;
    }
    let bytes = || {
        let bias = layout.bias.filter(|bias| inputs.dims(*bias).is_some());
        let bias = bias.map_or(Some(0), |bias| inputs.bytes(bias))?;
        let out = out?.checked_mul(inputs.size(0)?)?;
        sum(&[inputs.bytes(0)?, inputs.bytes(1)?, bias, out])
    };
    Some(Cost {
        flops,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(0),
    })
}

/// `convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
/// output_padding, groups, output_mask)`.
fn backward(inputs: &Inputs) -> Option<Cost> {
    let weight = inputs.dims(2)?;
    if inputs.is_complex(0) {
        return None;
    }
    let scattered = usize::from(inputs.flag(7)?);
    let once = product(&[2, inputs.elements(scattered)?, product(weight.get(1..)?)?])?;
    let wanted = inputs.flags(10)?;
    let [of_input, of_weight, of_bias] = wanted.as_slice() else {
        return None;
    };
    let count = u64::from(*of_input) + u64::from(*of_weight);
    let bytes = || {
        let (grad, input, weight) = (inputs.bytes(0)?, inputs.bytes(1)?, inputs.bytes(2)?);
        let mut moved = grad;
        if *of_input {
            moved = sum(&[moved, weight, input])?;
        }
        if *of_weight {
            moved = sum(&[moved, input, weight])?;
        }
        if *of_bias {
            let channels = inputs.dims(0)?.get(1)?;
            moved = sum(&[moved, channels.checked_mul(inputs.size(0)?)?])?;
        }
        Some(moved)
    };
    Some(Cost {
        flops: once.checked_mul(count)?,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(0),
    })
}

/// `cudnn_convolution_backward_input(input_size, grad_output, weight, …)` of PyTorch before 1.11.
fn backward_input(inputs: &Inputs) -> Option<Cost> {
    let weight = inputs.dims(2)?;
    Some(Cost {
        flops: product(&[2, inputs.elements(1)?, product(weight.get(1..)?)?])?,
        repeated: 0,
        bytes: None,
        precision: inputs.precision(1),
    })
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;

    const TYPES: &str =
        "float|float|float|ScalarList|ScalarList|ScalarList|Scalar|ScalarList|Scalar";

    #[test]
    fn every_output_takes_two_operations_a_weight() {
        // 5×7 with a kernel of 3×3, stride 2, padding 1: 3×4.
        let dims = "[[2,4,5,7],[6,4,3,3],[6],[],[],[],[],[],[]]";
        let values = "|||[2, 2]|[1, 1]|[1, 1]|False|[0, 0]|1";
        let found = cost("aten::convolution", dims, TYPES, values).unwrap();
        let out = 2 * 6 * 3 * 4;
        assert_eq!(found.flops, 2 * out * 4 * 9);
        assert_eq!(found.bytes, Some(4 * (2 * 4 * 35 + 6 * 36 + 6 + out)));
        // The same by the operators of libraries, with padding before stride.
        let values = "|||[1, 1]|[2, 2]|[1, 1]|1";
        let dims = "[[2,4,5,7],[6,4,3,3],[6],[],[],[],[]]";
        let types = "float|float|float|ScalarList|ScalarList|ScalarList|Scalar";
        assert_eq!(
            cost("aten::miopen_convolution", dims, types, values).unwrap(),
            found
        );
        // Two groups: each output sees half of the channels.
        let dims = "[[2,4,5,7],[6,2,3,3],[6],[],[],[],[],[],[]]";
        let values = "|||[2]|[1]|[1]|False|[0]|2";
        let grouped = cost("aten::convolution", dims, TYPES, values).unwrap();
        assert_eq!(grouped.flops, 2 * out * 2 * 9);
    }

    #[test]
    fn dilation_widens_the_kernel() {
        // 9 with a kernel of 3 and dilation 4: reach 9, one output.
        let dims = "[[1,1,9],[1,1,3],[],[],[],[],[]]";
        let types = "float|float||ScalarList|ScalarList|ScalarList|Scalar";
        let found = cost("aten::conv1d", dims, types, "|||[1]|[0]|[4]|1").unwrap();
        assert_eq!(found.flops, 6);
        assert_eq!(cost("aten::conv1d", dims, types, "|||[1]|[0]|[5]|1"), None);
        assert_eq!(cost("aten::conv1d", dims, types, "|||[0]|[0]|[1]|1"), None);
        assert_eq!(cost("aten::conv1d", dims, types, "|||[1]|same|[1]|1"), None);
        assert_eq!(cost("aten::conv1d", dims, types, ""), None);
    }

    #[test]
    fn transposed_convolutions_spread_every_input() {
        // 4×4 with a kernel of 2×2 and stride 2: 8×8.
        let dims = "[[2,6,4,4],[6,3,2,2],[],[],[],[],[],[],[]]";
        let values = "|||[2, 2]|[0, 0]|[1, 1]|True|[0, 0]|1";
        let types = "float|float||ScalarList|ScalarList|ScalarList|Scalar|ScalarList|Scalar";
        let found = cost("aten::convolution", dims, types, values).unwrap();
        assert_eq!(found.flops, 2 * (2 * 6 * 16) * 12);
        assert_eq!(found.bytes, Some(4 * (192 + 72 + 2 * 3 * 64)));
    }

    #[test]
    fn backward_is_once_or_twice_forward() {
        let dims = "[[2,6,3,4],[2,4,5,7],[6,4,3,3],[],[],[],[],[],[],[],[]]";
        let types = "float|float|float|ScalarList|ScalarList|ScalarList|ScalarList|Scalar|ScalarList|Scalar|ScalarList";
        let of = |mask: &str| {
            let values = format!("|||[6]|[2, 2]|[1, 1]|[1, 1]|False|[0, 0]|1|[{mask}]");
            cost("aten::convolution_backward", dims, types, &values).unwrap()
        };
        let forward = 2 * (2 * 6 * 12) * 36;
        let both = of("True, True, True");
        assert_eq!(both.flops, 2 * forward);
        let (grad, input, weight) = (144, 280, 216);
        assert_eq!(both.bytes, Some(4 * (grad + 2 * (input + weight) + 6)));
        // The first layer needs no gradient of its input.
        assert_eq!(of("False, True, False").flops, forward);
        assert_eq!(
            of("False, True, False").bytes,
            Some(4 * (grad + input + weight))
        );
        assert_eq!(cost("aten::convolution_backward", dims, types, ""), None);
    }
}
