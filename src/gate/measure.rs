//! A number that a record may have: not measured, not applicable, invalid and zero are four things.

use super::json::Json;

/// What a field says about a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// There is no such field, or it is `null`.
    NotMeasured,
    /// The field says `not_applicable`: there is nothing to measure.
    NotApplicable,
    /// The field holds something that is no finite number.
    Invalid,
    /// The number.
    Value(f64),
}

impl Measure {
    /// What `value` says.
    pub fn of(value: &Json) -> Self {
        match value {
            Json::Null => Self::NotMeasured,
            Json::Text(text) if text == "not_applicable" => Self::NotApplicable,
            other => other.as_f64().map_or(Self::Invalid, Self::Value),
        }
    }

    /// What the first of `keys` says that is in `record`; a field that is there and `null` hides those
    /// after it.
    pub fn read(record: &Json, keys: &[&str]) -> Self {
        Self::of(record.first(keys))
    }

    /// As [`Measure::read`], of something that there cannot be less than nothing of: time, memory, throughput.
    pub fn amount(record: &Json, keys: &[&str]) -> Self {
        match Self::read(record, keys) {
            Self::Value(value) if value < 0.0 => Self::Invalid,
            measure => measure,
        }
    }

    /// The number, if there is one.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }
}

impl From<Measure> for Json {
    fn from(measure: Measure) -> Self {
        match measure {
            Measure::NotMeasured | Measure::Invalid => Self::Null,
            Measure::NotApplicable => "not_applicable".into(),
            Measure::Value(value) => value.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_things() {
        let record = Json::parse(
            "{\"zero\":0,\"null\":null,\"na\":\"not_applicable\",\"text\":\"1\",\"flag\":true}",
        )
        .unwrap();
        for (keys, expected) in [
            (&["zero"][..], Measure::Value(0.0)),
            (&["absent"], Measure::NotMeasured),
            (&["null", "zero"], Measure::NotMeasured),
            (&["absent", "zero"], Measure::Value(0.0)),
            (&["na"], Measure::NotApplicable),
            (&["text"], Measure::Invalid),
            (&["flag"], Measure::Invalid),
        ] {
            assert_eq!(Measure::read(&record, keys), expected, "{keys:?}");
        }
        let record = Json::parse("{\"zero\":0,\"less\":-0.5}").unwrap();
        assert_eq!(Measure::amount(&record, &["zero"]), Measure::Value(0.0));
        assert_eq!(Measure::amount(&record, &["less"]), Measure::Invalid);
        assert_eq!(Measure::amount(&record, &["none"]), Measure::NotMeasured);
    }
}
