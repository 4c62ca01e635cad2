//! What a call computes and moves, and which operators have a model for that.

use super::device::Engine;
use super::inputs::Inputs;
use super::precision::Precision;
use super::{
    attention, convolution, copy, elementwise, embedding, foreach, matmul, normalization,
    reduction, softmax,
};

/// What one call computes and moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Floating-point operations; a multiplication with addition is two.
    pub(super) flops: u64,
    /// Those of them that repeat what the forward pass computed.
    pub(super) repeated: u64,
    /// Bytes when every input is read once and every output written once; `None` when a type or size is
    /// not known.
    pub(super) bytes: Option<u64>,
    /// What the numbers are; `None` when that is not known or no rates depend on it.
    pub(super) precision: Option<Precision>,
}

/// Kinds of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Matmul,
    Convolution,
    Attention,
    Normalization,
    Softmax,
    Elementwise,
    Reduction,
    Embedding,
    Copy,
    Foreach,
}

impl Family {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Matmul => "matmul",
            Self::Convolution => "convolution",
            Self::Attention => "attention",
            Self::Normalization => "normalization",
            Self::Softmax => "softmax",
            Self::Elementwise => "elementwise",
            Self::Reduction => "reduction",
            Self::Embedding => "embedding",
            Self::Copy => "copy",
            Self::Foreach => "foreach",
        }
    }

    /// True for what counts as FLOPs of a model: products of matrices, whatever they are called.
    pub(super) fn is_model(self) -> bool {
        matches!(self, Self::Matmul | Self::Convolution | Self::Attention)
    }

    /// The units that do the work.
    pub(super) fn engine(self) -> Engine {
        if self.is_model() {
            Engine::Matrix
        } else {
            Engine::Vector
        }
    }

    /// One bit a family.
    pub(super) fn bit(self) -> u16 {
        1 << self as u16
    }

    /// The families of which at most one is counted on a way from an operator down to the innermost.
    pub(super) fn excluded(self) -> u16 {
        if self.is_model() {
            Self::Matmul.bit() | Self::Convolution.bit() | Self::Attention.bit()
        } else {
            self.bit()
        }
    }
}

/// What a call costs, from its inputs; `None` when they do not tell.
pub(super) type Rule = fn(&Inputs) -> Option<Cost>;

/// The rule of the operator with a name.
type RuleOf = fn(&str) -> Option<Rule>;

/// A family and how to compute its cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    pub(super) family: Family,
    pub(super) rule: Rule,
}

/// The model of the operator called `name`.
pub(super) fn model_of(name: &str) -> Option<Model> {
    let families: [(Family, RuleOf); 10] = [
        (Family::Matmul, matmul::rule),
        (Family::Convolution, convolution::rule),
        (Family::Attention, attention::rule),
        (Family::Normalization, normalization::rule),
        (Family::Softmax, softmax::rule),
        (Family::Elementwise, elementwise::rule),
        (Family::Reduction, reduction::rule),
        (Family::Embedding, embedding::rule),
        (Family::Copy, copy::rule),
        (Family::Foreach, foreach::rule),
    ];
    let mut found = families.into_iter().filter_map(|(family, rule)| {
        Some(Model {
            family,
            rule: rule(name)?,
        })
    });
    found.next()
}

#[cfg(test)]
pub(super) fn cost(name: &str, dims: &str, types: &str, values: &str) -> Option<Cost> {
    let quoted = |text: &str| match text {
        "" => String::new(),
        text => {
            let words: Vec<String> = text.split('|').map(|word| format!("\"{word}\"")).collect();
            format!("[{}]", words.join(","))
        }
    };
    let inputs = Inputs::parse(dims, &quoted(types), &quoted(values))?;
    (model_of(name)
        .unwrap_or_else(|| panic!("no model of {name}"))
        .rule)(&inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_and_strangers_have_no_model() {
        for name in [
            "aten::view",
            "aten::conv",
            "aten::einsum",
            "MmBackward0",
            "mm",
            "autograd::engine::evaluate_function: MmBackward0",
            "record_param_comms",
            "",
        ] {
            assert!(model_of(name).is_none(), "{name}");
        }
    }

    #[test]
    fn huge_or_odd_shapes_are_no_cost_and_no_panic() {
        let max = i64::MAX;
        let shapes = [
            format!("[[{max},{max}],[{max},{max}],[{max},{max}],[{max}],[{max}],[{max}]]"),
            format!("[[0,0],[0,{max}],[],[{max},{max},{max},{max}]]"),
            format!("[[{max},1,1,{max}],[1,{max},{max},1],[2,2,2,2]]"),
            "[]".to_owned(),
            "[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]".to_owned(),
            format!("[[[{max}],[{max}]],[[{max}],[{max}]],[]]"),
            "[[1,1],[1,1],[1,1]]".to_owned(),
            "[[1,1,1,1],[1,1,1,1],[1,1,1,1],[1,1,1,1],[1,1,1,1]]".to_owned(),
        ];
        let values = [
            String::new(),
            "[0, 0]|".repeat(15),
            format!("[{max}, {max}]|").repeat(15),
            "[-9223372036854775808]|".repeat(15),
            "True|".repeat(15),
            "-9223372036854775808|".repeat(15),
        ];
        let types = [
            "",
            "float|float|float|float|float|float",
            "TensorList|TensorList|Scalar",
        ];
        let mut known = 0;
        for name in super::super::names() {
            for dims in &shapes {
                for types in types {
                    for values in &values {
                        known += u32::from(cost(&name, dims, types, values).is_some());
                    }
                }
            }
        }
        assert!(known > 0);
    }
}
