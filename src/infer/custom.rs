//! Rules of the user's: one query, one comparison.

use super::case::{Case, Judgement};
use super::inference::{Category, Confidence, Inference, Level, Number, Verdict};
use super::thresholds::wrong;
use crate::error::Result;

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

    /// What the rule makes of one run.
    pub(super) fn infer(&self, mut case: Case<'_>) -> Result<Inference> {
        let number = case.number("value", "", &self.sql)?.map(Number::as_f64);
        let limit = format!("{} {}", self.operator.as_str(), self.threshold);
        let judgement = match number {
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
        Ok(Inference {
            code: self.name.clone(),
            category: Category::Own,
            verdict: judgement.verdict,
            summary: judgement.summary,
            evidence: case.evidence,
            events: Vec::new(),
            confidence,
            effect: None,
            next_action: self.next_action.clone(),
        })
    }
}
