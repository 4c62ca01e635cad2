//! Labels, and the stages that a project runs through.

use crate::error::{Error, ErrorKind, Result};

/// The label that nobody chose.
pub const PLACEHOLDER_LABEL: &str = "replace_with_unique_label";

/// A label that records are written under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// `text` as a label: letters, digits, `.`, `_` and `-`, since it becomes part of file names.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is empty, the placeholder or has other characters.
    pub fn new(text: &str) -> Result<Self> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
        if text == PLACEHOLDER_LABEL {
            return invalid(format!(
                "run_label: {PLACEHOLDER_LABEL} is a placeholder; choose a label of your own"
            ));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if text.is_empty() || !text.bytes().all(is_plain) || text.starts_with('.') {
            return invalid(format!(
                "run_label: '{text}' must be of letters, digits, '.', '_' and '-'"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A stage of the closure (project 74).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosureStage {
    /// Looks and writes nothing.
    Prepare,
    /// Writes the record of profiled runs.
    Profile,
    /// Writes the record of memory by phase.
    Phase,
    /// Writes the closing record and the hand-off.
    Close,
}

impl ClosureStage {
    /// All stages, in order.
    pub const ALL: [Self; 4] = [Self::Prepare, Self::Profile, Self::Phase, Self::Close];

    /// The spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Profile => "profile",
            Self::Phase => "phase",
            Self::Close => "close",
        }
    }

    /// The stage of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when there is none.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|stage| stage.as_str() == name);
        found.ok_or_else(|| unknown(name, "prepare, profile, phase, close"))
    }
}

/// A stage of the budget (project 75).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetStage {
    /// Looks and writes nothing.
    Prepare,
    /// Writes the evidence.
    Analyze,
    /// Writes the decision.
    Close,
}

impl BudgetStage {
    /// All stages, in order.
    pub const ALL: [Self; 3] = [Self::Prepare, Self::Analyze, Self::Close];

    /// The spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Analyze => "analyze",
            Self::Close => "close",
        }
    }

    /// The stage of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when there is none.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|stage| stage.as_str() == name);
        found.ok_or_else(|| unknown(name, "prepare, analyze, close"))
    }
}

fn unknown(name: &str, known: &str) -> Error {
    let message = format!("run_stage: '{name}' is none of {known}");
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_names() {
        for stage in ClosureStage::ALL {
            assert_eq!(ClosureStage::from_name(stage.as_str()).unwrap(), stage);
        }
        for stage in BudgetStage::ALL {
            assert_eq!(BudgetStage::from_name(stage.as_str()).unwrap(), stage);
        }
        assert_eq!(
            ClosureStage::from_name("analyze").unwrap_err().to_string(),
            "run_stage: 'analyze' is none of prepare, profile, phase, close"
        );
        assert_eq!(
            BudgetStage::from_name("").unwrap_err().to_string(),
            "run_stage: '' is none of prepare, analyze, close"
        );
    }

    #[test]
    fn labels_become_file_names() {
        assert_eq!(Label::new("run-1.b_2").unwrap().as_str(), "run-1.b_2");
        assert_eq!(
            Label::new(PLACEHOLDER_LABEL).unwrap_err().to_string(),
            "run_label: replace_with_unique_label is a placeholder; choose a label of your own"
        );
        for text in ["", "../x", "a b", ".hidden", "é", "a/b"] {
            assert_eq!(
                Label::new(text).unwrap_err().to_string(),
                format!("run_label: '{text}' must be of letters, digits, '.', '_' and '-'")
            );
        }
    }
}
