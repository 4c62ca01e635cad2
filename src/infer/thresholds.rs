//! The limits of the rules.

use std::collections::BTreeMap;

#[cfg(feature = "frames")]
use super::custom::CustomRule;
use crate::error::{Error, ErrorKind, Result};

/// The limits that rules have when nobody says otherwise.
const DEFAULT: &str = include_str!("thresholds.toml");

/// Limits by rule and name, and rules of the user's.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    limits: BTreeMap<String, BTreeMap<String, f64>>,
    #[cfg(feature = "frames")]
    rules: Vec<CustomRule>,
}

impl Default for Thresholds {
    fn default() -> Self {
        let table = DEFAULT.parse().expect("the default thresholds are TOML");
        let mut thresholds = Self {
            limits: BTreeMap::new(),
            #[cfg(feature = "frames")]
            rules: Vec::new(),
        };
        thresholds
            .read(&table, |_, _| true)
            .expect("the default thresholds are numbers");
        thresholds
    }
}

impl Thresholds {
    /// The default limits, with those of `text` in their place.
    ///
    /// # Errors
    /// When `text` is no TOML, names a limit that no rule has, or has a rule that cannot be understood; in a
    /// build without data frames, when it has a rule.
    pub fn with(text: &str) -> Result<Self> {
        let table = text
            .parse()
            .map_err(|error: toml::de::Error| wrong(error.message()))?;
        let mut thresholds = Self::default();
        let known = thresholds.limits.clone();
        thresholds.read(&table, |code, name| {
            known
                .get(code)
                .is_some_and(|limits| limits.contains_key(name))
        })?;
        Ok(thresholds)
    }

    fn read(&mut self, table: &toml::Table, is_known: impl Fn(&str, &str) -> bool) -> Result<()> {
        for (code, limits) in table {
            if code == "rule" {
                #[cfg(not(feature = "frames"))]
                return Err(wrong(
                    "[[rule]] needs data frames, which this build does not have",
                ));
                #[cfg(feature = "frames")]
                {
                    let rules = limits.as_array().ok_or_else(|| wrong("use [[rule]]"))?;
                    self.rules = rules.iter().map(CustomRule::read).collect::<Result<_>>()?;
                    continue;
                }
            }
            let limits = limits
                .as_table()
                .ok_or_else(|| wrong(&format!("'{code}' is no table of limits")))?;
            for (name, value) in limits {
                if !is_known(code, name) {
                    return Err(wrong(&format!(
                        "no limit is called {code}.{name}: a table is the code of a rule (--explain lists them), a key one of its limits ('thresholds' in --format json)"
                    )));
                }
                let number = value
                    .as_float()
                    .or_else(|| value.as_integer().map(|number| number as f64));
                let number = number.filter(|number| number.is_finite() && *number >= 0.0);
                let number = number
                    .ok_or_else(|| wrong(&format!("{code}.{name} is no number from 0 on")))?;
                let of_rule = self.limits.entry(code.clone()).or_default();
                of_rule.insert(name.clone(), number);
            }
        }
        Ok(())
    }

    /// The limit called `name` of the rule `code`.
    ///
    /// # Panics
    /// When there is none: a test goes through all of them.
    pub(super) fn limit(&self, code: &str, name: &str) -> f64 {
        let limit = self.limits.get(code).and_then(|limits| limits.get(name));
        *limit.unwrap_or_else(|| panic!("there is no limit {code}.{name}"))
    }

    /// Every limit, by rule and name.
    pub fn limits(&self) -> &BTreeMap<String, BTreeMap<String, f64>> {
        &self.limits
    }

    /// Rules of the user's, in their order.
    #[cfg(feature = "frames")]
    pub fn rules(&self) -> &[CustomRule] {
        &self.rules
    }
}

pub(super) fn wrong(what: &str) -> Error {
    let what = what.replace('\n', " ");
    Error::new(ErrorKind::Usage, format!("thresholds: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_limits_are_replaced() {
        let own = Thresholds::with("[data_loading]\nloader_share = 1").unwrap();
        assert!((own.limit("data_loading", "loader_share") - 1.0).abs() < f64::EPSILON);
        let other = Thresholds::default();
        let share = |of: &Thresholds| of.limit("host_bound", "late_share");
        assert!((share(&own) - share(&other)).abs() < f64::EPSILON);
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for (text, reason) in [
            (
                "[data_loading]\nlodaer_share = 1",
                "data_loading.lodaer_share",
            ),
            ("[nothing]\nshare = 1", "nothing.share"),
            ("[data_loading]\nloader_share = \"a\"", "no number"),
            ("[data_loading]\nloader_share = -1", "no number"),
            ("[data_loading", ""),
            ("data_loading = 3", "no table"),
            #[cfg(feature = "frames")]
            ("[rule]\nname = 3", "use [[rule]]"),
            #[cfg(feature = "frames")]
            ("[[rule]]\nname = \"a\"", "op"),
            #[cfg(not(feature = "frames"))]
            ("[[rule]]\nname = \"a\"", "data frames"),
        ] {
            let error = Thresholds::with(text).unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains('\n'), "{error}");
        }
    }
}
