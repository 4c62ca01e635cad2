//! What a name says, decided once for each distinct string of a trace.

use rayon::prelude::*;

use super::options::AttributeOptions;
use super::phase::Marker;
use super::table::OtherKind;
use crate::model::{Call, StrId, Strings, Trace};

/// Prefix of the events that the autograd engine writes around each node it runs.
pub(crate) const ENGINE_PREFIX: &str = "autograd::engine::evaluate_function: ";

/// What one name says about the event that bears it.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NameFacts {
    /// A phase annotation.
    pub(crate) marker: Option<Marker>,
    /// A range that tells what work in no phase is.
    pub(crate) other: Option<OtherKind>,
    /// The N of `ProfilerStep#N`.
    pub(crate) step: Option<u64>,
    /// `Optimizer.…`: together with steps, the mark of the main thread.
    pub(crate) optimizer_range: bool,
    /// An engine event, with the name of the node it runs (empty when that has no event).
    pub(crate) engine: Option<StrId>,
    /// Ends like an autograd node: `…Backward`, `…Backward0`, `…AccumulateGrad`, `…CopySlices`.
    pub(crate) node: bool,
    /// `…Backward` or `…BackwardN`: the only mark of a node in files without engine events.
    pub(crate) backward_node: bool,
    /// `torch::autograd::AccumulateGrad`.
    pub(crate) accumulate_grad: bool,
    /// Has `CheckpointFunction` in it.
    pub(crate) checkpoint_function: bool,
    /// A Python frame that re-runs a checkpointed body.
    pub(crate) checkpoint_frame: Option<CheckpointFrame>,
    /// A mark of code compiled by Dynamo.
    pub(crate) compiled: bool,
    /// As `Input Dims`: some input is a tensor of at least one dimension.
    pub(crate) tensor_dims: bool,
    /// DDP's copy of reduced buckets into gradients.
    pub(crate) bucket_copy: bool,
    /// An API call that launches a kernel.
    pub(crate) kernel_launch: bool,
    /// An API call that launches a captured graph.
    pub(crate) graph_launch: bool,
    /// An API call after which launches go into a graph.
    pub(crate) capture_begin: bool,
    /// An API call up to which launches go into a graph.
    pub(crate) capture_end: bool,
}

/// Which frame of `torch/utils/checkpoint.py` it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckpointFrame {
    /// `recompute_fn`: the re-run itself.
    RecomputeFn,
    /// `unpack_hook`, which calls it; the only one of the two in early releases.
    UnpackHook,
}

/// [`NameFacts`] of every string of a trace.
pub(crate) struct Names {
    facts: Vec<NameFacts>,
    /// `aten::ones_like`: makes the first gradient, directly before the engine runs.
    pub(crate) ones_like: Option<StrId>,
    pub(crate) clone: Option<StrId>,
    pub(crate) detach: Option<StrId>,
}

impl Names {
    pub(crate) fn new(trace: &Trace, options: &AttributeOptions) -> Self {
        let strings = &trace.strings;
        let names: Vec<&str> = strings.iter().map(|(_, name)| name).collect();
        let facts = names
            .par_iter()
            .with_min_len(256)
            .map(|name| facts_of(name, strings, options))
            .collect();
        Self {
            facts,
            ones_like: strings.find("aten::ones_like"),
            clone: strings.find("aten::clone"),
            detach: strings.find("aten::detach"),
        }
    }

    pub(crate) fn get(&self, name: StrId) -> &NameFacts {
        &self.facts[name.index()]
    }
}

fn facts_of(name: &str, strings: &Strings, options: &AttributeOptions) -> NameFacts {
    let backward_node = name
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .ends_with("Backward");
    let accumulate_grad = name == "torch::autograd::AccumulateGrad";
    let frame = name.contains("torch/utils/checkpoint.py").then(|| {
        if name.ends_with(": recompute_fn") {
            Some(CheckpointFrame::RecomputeFn)
        } else {
            name.ends_with(": unpack_hook")
                .then_some(CheckpointFrame::UnpackHook)
        }
    });
    let call = Call::of(name);
    NameFacts {
        marker: Marker::of(name, &options.phases),
        other: other_kind(name),
        step: name
            .strip_prefix("ProfilerStep#")
            .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|number| number.parse().ok()),
        optimizer_range: name.starts_with("Optimizer."),
        engine: name
            .strip_prefix(ENGINE_PREFIX)
            .map(|node| strings.find(node).unwrap_or(StrId::EMPTY)),
        node: backward_node || name.ends_with("AccumulateGrad") || name.ends_with("CopySlices"),
        backward_node: backward_node && !name.starts_with(ENGINE_PREFIX),
        accumulate_grad,
        checkpoint_function: name.contains("CheckpointFunction"),
        checkpoint_frame: frame.flatten(),
        compiled: name.contains("CompiledFunctionBackward")
            || name.starts_with("Torch-Compiled Region")
            || name.starts_with("## Call CompiledFxGraph"),
        tensor_dims: name.starts_with("[[")
            && name
                .as_bytes()
                .windows(2)
                .any(|pair| pair[0] == b'[' && pair[1].is_ascii_digit()),
        bucket_copy: name == "torch.distributed.ddp.reducer::copy_bucket_to_grad",
        kernel_launch: call == Call::Launch,
        graph_launch: call == Call::Replay,
        capture_begin: call == Call::CaptureBegin,
        capture_end: call == Call::CaptureEnd,
    }
}

fn other_kind(name: &str) -> Option<OtherKind> {
    if name.starts_with("Optimizer.zero_grad#") {
        Some(OtherKind::ZeroGrad)
    } else if name.starts_with("enumerate(DataLoader)#") || name.starts_with("enumerate(DataPipe)#")
    {
        Some(OtherKind::DataLoading)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str) -> NameFacts {
        facts_of(name, &Strings::default(), &AttributeOptions::default())
    }

    #[test]
    fn node_names_are_told_from_operators() {
        assert!(facts("AddmmBackward0").backward_node);
        assert!(facts("MulBackward").backward_node);
        assert!(facts("torch::autograd::CopySlices").node);
        assert!(!facts("aten::_scaled_dot_product_attention_backward").node);
        assert!(
            facts("autograd::engine::evaluate_function: AddmmBackward0")
                .engine
                .is_some()
        );
    }

    #[test]
    fn steps_and_checkpoint_frames_are_recognised() {
        assert_eq!(facts("ProfilerStep#12").step, Some(12));
        assert_eq!(facts("ProfilerStep#x").step, None);
        let frame = |name| facts(name).checkpoint_frame;
        assert_eq!(
            frame("torch/utils/checkpoint.py(1399): recompute_fn"),
            Some(CheckpointFrame::RecomputeFn)
        );
        assert_eq!(
            frame("/x/torch/utils/checkpoint.py(1): unpack_hook"),
            Some(CheckpointFrame::UnpackHook)
        );
        assert_eq!(frame("torch/utils/checkpoint.py(264): backward"), None);
    }
}
