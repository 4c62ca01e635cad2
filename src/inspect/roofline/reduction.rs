//! Reductions: one operation for each element of the input, as TraceLens counts; two for sums of squares
//! and four for a variance.
//!
//! The output is as large as what is left of the dimensions; without `Concrete Inputs`, which say what is
//! reduced, bytes are not known.

use super::cost::{Cost, Rule};
use super::inputs::{Inputs, product, sum};

/// All of them, with the number of the input that has the dimensions to reduce.
const REDUCTIONS: [(&str, u64, usize); 14] = [
    ("aten::sum", 1, 1),
    ("aten::mean", 1, 1),
    ("aten::prod", 1, 1),
    ("aten::max", 1, 1),
    ("aten::min", 1, 1),
    ("aten::amax", 1, 1),
    ("aten::amin", 1, 1),
    ("aten::argmax", 1, 1),
    ("aten::argmin", 1, 1),
    ("aten::all", 1, 1),
    ("aten::any", 1, 1),
    ("aten::norm", 2, 2),
    ("aten::linalg_vector_norm", 2, 2),
    ("aten::var_mean", 4, 1),
];

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    REDUCTIONS
        .iter()
        .map(|(name, _, _)| *name)
        .chain(["aten::cumsum"])
}

pub(super) fn rule(name: &str) -> Option<Rule> {
    if name == "aten::cumsum" {
        return Some(|inputs| {
            let bytes = || inputs.bytes(0)?.checked_mul(2);
            cost(inputs, 1, bytes())
        });
    }
    let (_, each, dims) = REDUCTIONS.iter().find(|(known, _, _)| *known == name)?;
    Some(match (each, dims) {
        (1, 1) => |inputs| reduction(inputs, 1, 1),
        (2, _) => |inputs| reduction(inputs, 2, 2),
        _ => |inputs| reduction(inputs, 4, 1),
    })
}

fn reduction(inputs: &Inputs, each: u64, dims: usize) -> Option<Cost> {
    // `max(a, b)` goes element by element; a tensor further on is the one to write to.
    if inputs.dims(1).is_some() {
        return None;
    }
    let bytes = || {
        sum(&[
            inputs.bytes(0)?,
            kept(inputs, dims)?.checked_mul(inputs.size(0)?)?,
        ])
    };
    cost(inputs, each, bytes())
}

fn cost(inputs: &Inputs, each: u64, bytes: Option<u64>) -> Option<Cost> {
    Some(Cost {
        flops: product(&[each, inputs.elements(0)?])?,
        repeated: 0,
        bytes,
        precision: inputs.precision(0),
    })
}

/// How many elements are left when input number `place` says what to reduce.
fn kept(inputs: &Inputs, place: usize) -> Option<u64> {
    let dims = inputs.dims(0)?;
    let rank = i64::try_from(dims.len()).ok()?;
    let reduced = inputs.ints(place)?;
    if reduced.is_empty() {
        return Some(1);
    }
    let mut left = dims.to_vec();
    for dim in reduced {
        let dim = if dim < 0 { dim.checked_add(rank)? } else { dim };
        *left.get_mut(usize::try_from(dim).ok()?)? = 1;
    }
    product(&left)
}

#[cfg(test)]
mod tests {
    use super::super::cost::cost;

    #[test]
    fn one_operation_an_element_of_the_input() {
        let of = |name, types, values| {
            let cost = cost(name, "[[4,8],[],[],[]]", types, values).unwrap();
            (cost.flops, cost.bytes)
        };
        let types = "float|ScalarList|Scalar|";
        assert_eq!(of("aten::sum", types, "|[-1]|True|"), (32, Some(4 * 36)));
        assert_eq!(of("aten::sum", types, "|[0, 1]|False|"), (32, Some(4 * 33)));
        assert_eq!(of("aten::mean", types, "|[]|False|"), (32, Some(4 * 33)));
        assert_eq!(of("aten::mean", types, ""), (32, None));
        assert_eq!(of("aten::sum", types, "|[2]|True|"), (32, None));
        let types = "float|ScalarList|Scalar|float";
        assert_eq!(of("aten::mean", types, "|[]|False|"), (32, Some(4 * 33)));
        let types = "float|Scalar|ScalarList|Scalar";
        assert_eq!(
            of("aten::linalg_vector_norm", types, "|2|[0]|False"),
            (64, Some(4 * 40))
        );
        assert_eq!(
            of("aten::cumsum", "float|Scalar||", "|0||"),
            (32, Some(256))
        );
        assert_eq!(cost("aten::max", "[[4],[4]]", "float|float", ""), None);
    }
}
