//! What a call of an operator was given, as the profiler writes it with `record_shapes`.
//!
//! ```text
//! Input Dims       [[64, 32], [[2, 3], [4]], [], []]
//! Input type       ["float", "TensorList", "Scalar", ""]
//! Concrete Inputs  ["", "", "0.5", ""]
//!                   tensor   list of two    number  none
//! ```
//! Types of tensors are C++ names, in small letters or with `c10::`; `Scalar`, `ScalarList`, `TensorList`,
//! or in early releases `Int`, `Bool`, `GenericList`, are something else. `Concrete Inputs` came with
//! PyTorch 2.1.

use super::super::operation::{dtype_of, element_bytes};
use super::precision::Precision;
use crate::ingest::Args;

/// Arguments to read for [`Inputs`].
pub(super) const KEYS: [&str; 4] = ["Input Dims", "Input dims", "Input type", "Concrete Inputs"];

/// The inputs of one call.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    all: Vec<Input>,
}

#[derive(Debug, Default)]
struct Input {
    dims: Vec<u64>,
    /// The tensors of a list.
    list: Vec<Vec<u64>>,
    dtype: String,
    /// As in `Concrete Inputs`; empty when it is not there.
    value: String,
}

impl Inputs {
    /// The inputs in `args`; `None` without dimensions, or with some that are none.
    pub(super) fn read(args: &Args<'_>) -> Option<Self> {
        let dims = args
            .compact("Input Dims")
            .or_else(|| args.compact("Input dims"))?;
        let types = args.compact("Input type").unwrap_or_default();
        let values = args.compact("Concrete Inputs").unwrap_or_default();
        Self::parse(&dims, &types, &values)
    }

    /// The same from the texts of the three arguments.
    pub(super) fn parse(dims: &str, types: &str, values: &str) -> Option<Self> {
        let types = elements(types).unwrap_or_default();
        let values = elements(values).unwrap_or_default();
        let mut all = Vec::new();
        for (place, dims) in elements(dims)?.into_iter().enumerate() {
            let text = |list: &[&str]| list.get(place).map(|text| unquoted(text));
            let mut input = Input {
                dtype: text(&types).unwrap_or_default(),
                value: text(&values).unwrap_or_default(),
                ..Input::default()
            };
            for dim in elements(dims)? {
                if dim.starts_with('[') {
                    input.list.push(numbers(dim)?);
                } else {
                    input.dims.push(dim.parse().ok()?);
                }
            }
            all.push(input);
        }
        Some(Self { all })
    }

    fn tensor_at(&self, place: usize) -> Option<&Input> {
        let input = self.all.get(place)?;
        let is_scalar = |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase());
        let is_tensor = if input.dtype.is_empty() {
            !input.dims.is_empty()
        } else {
            !is_scalar(&input.dtype)
        };
        is_tensor.then_some(input)
    }

    /// The dimensions of input number `place`, when it is a tensor.
    pub(super) fn dims(&self, place: usize) -> Option<&[u64]> {
        Some(&self.tensor_at(place)?.dims)
    }

    /// How many elements that tensor has; `None` also when it is more than 64 bits hold.
    pub(super) fn elements(&self, place: usize) -> Option<u64> {
        product(self.dims(place)?)
    }

    /// Bytes of one of its elements.
    pub(super) fn size(&self, place: usize) -> Option<u64> {
        let bytes = element_bytes(dtype_of(&self.tensor_at(place)?.dtype))?;
        u64::try_from(bytes).ok()
    }

    /// Bytes of all its elements.
    pub(super) fn bytes(&self, place: usize) -> Option<u64> {
        self.elements(place)?.checked_mul(self.size(place)?)
    }

    /// The precision that it is computed with.
    pub(super) fn precision(&self, place: usize) -> Option<Precision> {
        Precision::of(dtype_of(&self.tensor_at(place)?.dtype))
    }

    /// True when its elements are complex numbers.
    pub(super) fn is_complex(&self, place: usize) -> bool {
        let dtype = self.tensor_at(place).map(|input| input.dtype.as_str());
        dtype.is_some_and(|dtype| dtype.contains("complex"))
    }

    /// The numbers of all inputs that are tensors.
    pub(super) fn tensors(&self) -> impl Iterator<Item = usize> {
        (0..self.all.len()).filter(|place| self.tensor_at(*place).is_some())
    }

    /// Bytes of all inputs that are tensors.
    pub(super) fn all_bytes(&self) -> Option<u64> {
        let mut sum = 0_u64;
        for place in self.tensors() {
            sum = sum.checked_add(self.bytes(place)?)?;
        }
        Some(sum)
    }

    /// The dimensions of the tensors of a list; `None` when it is no list or its tensors were not
    /// written.
    pub(super) fn list(&self, place: usize) -> Option<&[Vec<u64>]> {
        let list = &self.all.get(place)?.list;
        (!list.is_empty()).then_some(list)
    }

    /// The value of input number `place`, as text.
    pub(super) fn value(&self, place: usize) -> Option<&str> {
        let value = self.all.get(place)?.value.as_str();
        (!value.is_empty()).then_some(value)
    }

    /// The value as `True` or `False`.
    pub(super) fn flag(&self, place: usize) -> Option<bool> {
        match self.value(place)? {
            "True" | "true" => Some(true),
            "False" | "false" => Some(false),
            _ => None,
        }
    }

    /// The value as integers: those of a list, or one.
    pub(super) fn ints(&self, place: usize) -> Option<Vec<i64>> {
        let value = self.value(place)?;
        match elements(value) {
            Some(list) => list
                .into_iter()
                .map(|number| number.trim().parse().ok())
                .collect(),
            None => Some(vec![value.parse().ok()?]),
        }
    }

    /// The value as flags, of a list.
    pub(super) fn flags(&self, place: usize) -> Option<Vec<bool>> {
        let list = elements(self.value(place)?)?;
        Some(list.iter().map(|flag| flag.trim() == "True").collect())
    }

    /// True when the value is known to be nought.
    pub(super) fn is_nought(&self, place: usize) -> bool {
        let number = self.value(place).and_then(|text| text.parse::<f64>().ok());
        number.is_some_and(|number| number == 0.0)
    }
}

/// The product of `factors`; `None` when it is more than 64 bits hold.
pub(super) fn product(factors: &[u64]) -> Option<u64> {
    factors
        .iter()
        .try_fold(1_u64, |product, factor| product.checked_mul(*factor))
}

/// The sum of `terms`, likewise.
pub(super) fn sum(terms: &[u64]) -> Option<u64> {
    terms
        .iter()
        .try_fold(0_u64, |sum, term| sum.checked_add(*term))
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    let numbers = elements(text)?.into_iter();
    numbers.map(|number| number.parse().ok()).collect()
}

fn unquoted(text: &str) -> String {
    text.trim_matches('"').to_owned()
}

/// The elements of the array that `text` is, each as text.
fn elements(text: &str) -> Option<Vec<&str>> {
    let inside = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    let mut found = Vec::new();
    let mut start = 0;
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    for (place, byte) in inside.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' => depth += 1,
            b']' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                found.push(inside[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    let last = inside[start..].trim();
    if !(found.is_empty() && last.is_empty()) {
        found.push(last);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_tensors_lists_numbers_and_nothing() {
        let inputs = Inputs::parse(
            "[[64,32],[[2,3],[4],[]],[],[],[],[]]",
            r#"["c10::BFloat16","TensorList","Scalar","","long int","Int"]"#,
            r#"["","","0.","","","[1, -2]"]"#,
        )
        .unwrap();
        assert_eq!(inputs.dims(0), Some(&[64, 32][..]));
        assert_eq!(
            (inputs.size(0), inputs.bytes(0)),
            (Some(2), Some(64 * 32 * 2))
        );
        assert_eq!(inputs.list(1).map(<[_]>::len), Some(3));
        assert_eq!(inputs.dims(1), None);
        assert_eq!((inputs.dims(2), inputs.dims(3)), (None, None));
        assert_eq!(inputs.elements(4), Some(1));
        assert_eq!(inputs.dims(5), None);
        assert_eq!(inputs.ints(5), Some(vec![1, -2]));
        assert!(inputs.is_nought(2) && !inputs.is_nought(3));
        assert_eq!(inputs.tensors().collect::<Vec<_>>(), [0, 4]);
        assert_eq!(inputs.all_bytes(), Some(64 * 32 * 2 + 8));
    }

    #[test]
    fn what_is_no_list_of_dimensions_is_nothing() {
        for dims in ["", "x", "[", "[[1,-2]]", "[[1.5]]", "[[[1,x]]]", "[]]"] {
            assert!(
                Inputs::parse(dims, "", "")
                    .and_then(|inputs| inputs.elements(0))
                    .is_none(),
                "{dims}"
            );
        }
        let huge = "[[9223372036854775807,9223372036854775807]]";
        let inputs = Inputs::parse(huge, r#"["float"]"#, "").unwrap();
        assert_eq!((inputs.elements(0), inputs.all_bytes()), (None, None));
    }
}
