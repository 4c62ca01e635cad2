//! The rules, one a file.

mod allocator_growth;
mod data_loading;
mod exposed_communication;
mod host_bound;
mod launch_bound;
mod low_occupancy;
mod memory_copies;
mod no_tensor_cores;
mod optimizer_share;
mod pageable_transfers;
mod rank_imbalance;
mod recompute_overhead;
mod small_kernels;
mod stragglers;
mod synchronisation;
mod warm_up_or_noise;

use serde::Serialize;

use super::case::{Case, Judgement};
use super::inference::Category;
use crate::error::{Error, ErrorKind, Result};
use crate::model::ActivityType;

/// A hypothesis with its test.
pub(super) struct Rule {
    /// Name.
    pub(super) code: &'static str,
    /// What it is about.
    pub(super) category: Category,
    /// The hypothesis, as a question.
    pub(super) question: &'static str,
    /// How it is tested.
    pub(super) method: &'static str,
    /// What to do when it holds.
    pub(super) next_action: &'static str,
    /// True when the test follows work to its launch.
    pub(super) needs_launches: bool,
    /// The test.
    pub(super) judge: fn(&mut Case<'_>) -> Judgement,
}

/// Every rule, in the order of results.
pub(super) const RULES: [Rule; 16] = [
    data_loading::RULE,
    host_bound::RULE,
    launch_bound::RULE,
    synchronisation::RULE,
    exposed_communication::RULE,
    stragglers::RULE,
    rank_imbalance::RULE,
    memory_copies::RULE,
    pageable_transfers::RULE,
    allocator_growth::RULE,
    recompute_overhead::RULE,
    optimizer_share::RULE,
    small_kernels::RULE,
    low_occupancy::RULE,
    no_tensor_cores::RULE,
    warm_up_or_noise::RULE,
];

/// True when a rule asks for events of this type. Events that no rule asks for are not kept for them.
pub(super) fn asks_for_activity(activity: ActivityType) -> bool {
    activity.is_launch()
}

/// True when a rule asks for events called `name`.
pub(super) fn asks_for_name(name: &str) -> bool {
    data_loading::LOADERS
        .iter()
        .any(|start| name.starts_with(start))
}

/// What a rule asks and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RuleText {
    /// Name.
    pub code: &'static str,
    /// What it is about.
    pub category: Category,
    /// The hypothesis, as a question.
    pub question: &'static str,
    /// How it is tested.
    pub method: &'static str,
    /// What to do when it holds.
    pub next_action: &'static str,
}

/// What the rule `code` asks and how; all of them without a code.
///
/// # Errors
/// When there is no such rule.
pub fn explanations(code: Option<&str>) -> Result<Vec<RuleText>> {
    let texts = RULES.iter().map(|rule| RuleText {
        code: rule.code,
        category: rule.category,
        question: rule.question,
        method: rule.method,
        next_action: rule.next_action,
    });
    let texts: Vec<RuleText> = texts
        .filter(|text| code.is_none_or(|code| text.code == code))
        .collect();
    match code {
        Some(code) if texts.is_empty() => {
            let message = format!("no rule is called '{code}'; --explain alone lists them");
            Err(Error::new(ErrorKind::Usage, message))
        }
        _ => Ok(texts),
    }
}
