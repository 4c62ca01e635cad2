//! Which kernels of a trace use matrix units, each name looked at once.

use rustc_hash::FxHashMap;

use super::tensor_core;
use super::view::View;
use crate::attribute::Work;
use crate::model::StrId;

/// By name of a kernel: it uses matrix units.
#[derive(Default)]
pub(super) struct MatrixUnits(FxHashMap<StrId, bool>);

impl MatrixUnits {
    /// True for a kernel on matrix units.
    pub(super) fn has(&mut self, view: &View<'_>, work: &Work) -> bool {
        let trace = view.trace();
        let name = trace.events.name(work.event);
        let is_used = || tensor_core::is_used_by(trace.strings.get(name));
        *self.0.entry(name).or_insert_with(is_used)
    }
}
