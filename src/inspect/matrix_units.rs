//! Which kernels of a trace use matrix units, each name looked at once.

use foldhash::HashMap;

use super::options::Definition;
use super::tensor_core;
use super::view::View;
use crate::attribute::Work;
use crate::model::StrId;

/// By name of a kernel: it uses matrix units.
#[derive(Default)]
pub(super) struct MatrixUnits(HashMap<StrId, bool>);

impl MatrixUnits {
    /// True for a kernel on matrix units.
    pub(super) fn has(&mut self, view: &View<'_>, work: &Work) -> bool {
        let trace = view.trace();
        let name = trace.events.name(work.event);
        let is_used = || is_used_by(view, trace.strings.get(name));
        *self.0.entry(name).or_insert_with(is_used)
    }
}

/// True for the name of a kernel on matrix units, by the definition in force.
pub(super) fn is_used_by(view: &View<'_>, kernel: &str) -> bool {
    match view.options.definition {
        Definition::Tensorboard => tensor_core::is_used_by_plugin(kernel),
        Definition::Tracekit | Definition::Hta => tensor_core::is_used_by(kernel),
    }
}
