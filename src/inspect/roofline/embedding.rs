//! Rows taken from a table by index: nothing is computed, rows are read and written.
//!
//! How often a row is found in a cache cannot be known: each index counts as one read of a row.

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};

#[cfg(test)]
pub(super) const NAMES: [&str; 4] = [
    "aten::embedding",
    "aten::embedding_dense_backward",
    "aten::index_select",
    "aten::gather",
];

pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(match name {
        "aten::embedding" => |inputs| {
            let [_, length] = *inputs.dims(0)? else {
                return None;
            };
            Some(moved(inputs, 1, product(&[inputs.elements(1)?, length])?))
        },
        "aten::embedding_dense_backward" => dense_backward,
        "aten::index_select" => |inputs| {
            let dims = inputs.dims(0)?;
            let rank = i64::try_from(dims.len()).ok()?;
            let dim = *inputs.ints(1)?.first()?;
            let dim = if dim < 0 { dim.checked_add(rank)? } else { dim };
            let mut out = dims.to_vec();
            *out.get_mut(usize::try_from(dim).ok()?)? = inputs.elements(2)?;
            Some(moved(inputs, 2, product(&out)?))
        },
        "aten::gather" => |inputs| Some(moved(inputs, 2, inputs.elements(2)?)),
        _ => return None,
    })
}

/// `elements` of the table are read and written, by the indices in input number `index`.
fn moved(inputs: &Inputs, index: usize, elements: u64) -> Cost {
    let bytes = || {
        let rows = product(&[2, elements, inputs.size(0)?])?;
        sum(&[inputs.bytes(index)?, rows])
    };
    Cost {
        flops: 0,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(0),
    }
}

/// `embedding_dense_backward(grad_output, indices, num_weights, …)`: rows of the gradient are added up.
fn dense_backward(inputs: &Inputs) -> Option<Cost> {
    let length = *inputs.dims(0)?.last()?;
    let bytes = || {
        let rows = u64::try_from(*inputs.ints(2)?.first()?).ok()?;
        let table = product(&[rows, length, inputs.size(0)?])?;
        sum(&[inputs.bytes(0)?, inputs.bytes(1)?, table])
    };
    Some(Cost {
        flops: inputs.elements(0)?,
        repeated: 0,
        bytes: bytes(),
        precision: inputs.precision(0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;

    #[test]
    fn each_index_moves_a_row() {
        let of = |name, dims, types, values| {
            let cost = cost(name, dims, types, values).unwrap();
            (cost.flops, cost.bytes)
        };
        let types = "c10::Half|long int|Scalar|Scalar|Scalar";
        assert_eq!(
            of("aten::embedding", "[[100,16],[2,3],[],[],[]]", types, ""),
            (0, Some(6 * 8 + 2 * 6 * 16 * 2))
        );
        let types = "float|long int|Scalar|Scalar|Scalar";
        assert_eq!(
            of(
                "aten::embedding_dense_backward",
                "[[6,16],[6],[],[],[]]",
                types,
                "||100|-1|False"
            ),
            (96, Some(4 * 96 + 6 * 8 + 4 * 1600))
        );
        assert_eq!(
            of(
                "aten::index_select",
                "[[10,4],[],[3]]",
                "float|Scalar|long int",
                "|0|"
            ),
            (0, Some(3 * 8 + 2 * 12 * 4))
        );
        assert_eq!(
            of(
                "aten::gather",
                "[[10,4],[],[3,4],[]]",
                "float|Scalar|long int|Scalar",
                ""
            ),
            (0, Some(12 * 8 + 2 * 12 * 4))
        );
    }
}
