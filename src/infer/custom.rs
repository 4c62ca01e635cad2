//! Rules of the user's: one query, one comparison.

use std::collections::BTreeSet;

use polars::prelude::{AnyValue, DataFrame};

use super::case::Judgement;
use super::inference::{Category, Confidence, Evidence, Inference, Level, Number, Verdict};
use super::run::RunInferences;
use super::thresholds::wrong;
use crate::attribute::Attribution;
use crate::error::{Error, ErrorKind, Result};
use crate::frame;

/// A rule from a thresholds file.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomRule {
    /// Name, which is the code of the inference.
    pub name: String,
    /// The query that gives one number.
    pub sql: String,
    /// How the number is compared.
    pub operator: Operator,
    /// With what.
    pub threshold: f64,
    /// What it means when the comparison holds.
    pub message: String,
    /// What to do then.
    pub next_action: String,
}

/// How a number is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

impl Operator {
    fn as_str(self) -> &'static str {
        match self {
            Self::Above => ">",
            Self::AtLeast => ">=",
            Self::Below => "<",
            Self::AtMost => "<=",
        }
    }

    fn holds(self, number: f64, threshold: f64) -> bool {
        match self {
            Self::Above => number > threshold,
            Self::AtLeast => number >= threshold,
            Self::Below => number < threshold,
            Self::AtMost => number <= threshold,
        }
    }
}

impl CustomRule {
    /// The rule that `value`, an element of `[[rule]]`, describes.
    pub(super) fn read(value: &toml::Value) -> Result<Self> {
        let table = value.as_table().ok_or_else(|| wrong("use [[rule]]"))?;
        let known = ["name", "sql", "op", "threshold", "message", "next_action"];
        if let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(wrong(&format!(
                "a rule has no key '{unknown}'; its keys are {}",
                known.join(", ")
            )));
        }
        let text = |key: &str| {
            let text = table.get(key).and_then(toml::Value::as_str);
            text.map(str::to_owned).ok_or_else(|| {
                wrong(&format!(
                    "a rule needs '{key}', a text, as it does each of {}",
                    known.join(", ")
                ))
            })
        };
        let name = text("name")?;
        let operator = text("op")?;
        let operators = [
            Operator::Above,
            Operator::AtLeast,
            Operator::Below,
            Operator::AtMost,
        ];
        let operator = operators
            .into_iter()
            .find(|known| known.as_str() == operator)
            .ok_or_else(|| {
                wrong(&format!(
                    "'{operator}' of rule '{name}' is none of > >= < <="
                ))
            })?;
        let threshold = table.get("threshold");
        let threshold = threshold
            .and_then(toml::Value::as_float)
            .or_else(|| threshold?.as_integer().map(|number| number as f64))
            .filter(|number| number.is_finite());
        Ok(Self {
            sql: text("sql")?,
            operator,
            threshold: threshold
                .ok_or_else(|| wrong(&format!("rule '{name}' needs 'threshold', a number")))?,
            message: text("message")?,
            next_action: text("next_action")?,
            name,
        })
    }

    /// What the rule makes of one run, of which its query gives `number`.
    fn infer(&self, number: Option<Number>) -> Inference {
        let limit = format!("{} {}", self.operator.as_str(), self.threshold);
        let judgement = match number.map(Number::as_f64) {
            None => Judgement::insufficient("the query gives no number"),
            Some(number) => Judgement::when(
                self.operator.holds(number, self.threshold),
                format!("{}: {number} is {limit}", self.message),
                format!("{number} is not {limit}"),
            ),
        };
        let confidence = (judgement.verdict != Verdict::InsufficientEvidence).then(|| Confidence {
            level: Level::Medium,
            reason: "a rule of the user's".to_owned(),
        });
        Inference {
            code: self.name.clone(),
            category: Category::Own,
            verdict: judgement.verdict,
            summary: judgement.summary,
            evidence: vec![Evidence {
                name: "value".to_owned(),
                value: number,
                unit: "",
                query: self.sql.clone(),
            }],
            events: Vec::new(),
            confidence,
            effect: None,
            next_action: self.next_action.clone(),
        }
    }
}

/// The tables that `rules` ask for; `None` without rules.
pub(super) fn plan(rules: &[CustomRule]) -> Option<frame::Plan> {
    let names: BTreeSet<&str> = rules
        .iter()
        .flat_map(|rule| frame::tables_in(&rule.sql))
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    // No name at all would mean all tables.
    let names = if names.is_empty() {
        vec!["files"]
    } else {
        names
    };
    (!rules.is_empty())
        .then(|| frame::Plan::new(&names).expect("only names of tables are found in queries"))
}

/// Adds to each run what `rules` make of it.
///
/// # Errors
/// When a query cannot be answered.
pub(super) fn infer(
    plan: &frame::Plan,
    rules: &[CustomRule],
    attribution: &Attribution,
    taken: Vec<frame::Taken>,
    runs: &mut [RunInferences],
) -> Result<()> {
    let tables = plan.tables(attribution.clone(), taken)?;
    let is_alone = runs.len() == 1;
    for run in runs {
        let own;
        let frames = if is_alone {
            &tables.frames
        } else {
            own = frame::of_run(&tables.frames, &run.run)?;
            &own
        };
        for rule in rules {
            let answer = frame::query_frames(frames, &rule.sql).map_err(|error| {
                let message = format!("rule '{}': {}", rule.name, error.reason());
                Error::new(ErrorKind::Query, message)
            })?;
            run.inferences.push(rule.infer(first_number(&answer)));
        }
    }
    Ok(())
}

/// The first value of the first row, when it is a number.
fn first_number(rows: &DataFrame) -> Option<Number> {
    match rows.columns().first()?.get(0).ok()? {
        AnyValue::Null | AnyValue::Boolean(_) => None,
        AnyValue::Float64(number) => number.is_finite().then_some(Number::Float(number)),
        value if value.is_primitive_numeric() => value.extract::<i64>().map(Number::Int),
        _ => None,
    }
}
