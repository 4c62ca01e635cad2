//! Tables that break nothing down: what is in the files, row by row. Queries, exports and rules of inference
//! read them.

mod device_work;
mod events;
mod files;
mod place;

pub(crate) use device_work::device_work;
pub(crate) use events::events;
pub(crate) use files::files;

use super::frame::{Frame, Names, Unit, Values};
use crate::model::{StrId, Strings};

/// A table on its way, of which only the columns that are wanted are made.
struct Columns<'w> {
    frame: Frame,
    /// All when there is none.
    wanted: Option<&'w [&'static str]>,
}

impl<'w> Columns<'w> {
    fn new(name: &'static str, about: &'static str, wanted: Option<&'w [&'static str]>) -> Self {
        Self {
            frame: Frame::new(name, about),
            wanted,
        }
    }

    fn with(mut self, name: &'static str, values: impl FnOnce() -> Values) -> Self {
        if self.wanted.is_none_or(|wanted| wanted.contains(&name)) {
            self.frame = self.frame.with(name, Unit::None, values());
        }
        self
    }

    // Units are in the names, and those who read these tables ask for no other.
    fn int(self, name: &'static str, values: impl Iterator<Item = Option<i64>>) -> Self {
        self.with(name, || Values::Int(values.collect()))
    }

    fn flag(self, name: &'static str, values: impl Iterator<Item = Option<bool>>) -> Self {
        self.with(name, || Values::Bool(values.collect()))
    }

    fn float(self, name: &'static str, values: impl Iterator<Item = Option<f64>>) -> Self {
        self.with(name, || Values::Float(values.collect()))
    }

    fn text(self, name: &'static str, values: impl Iterator<Item = Option<String>>) -> Self {
        self.with(name, || Values::Text(values.collect()))
    }

    /// A column of strings of the trace.
    fn string(
        self,
        name: &'static str,
        strings: &Strings,
        values: impl Iterator<Item = Option<StrId>>,
    ) -> Self {
        let text = |string| Some(strings.get(string).to_owned());
        self.name(name, strings.len(), StrId::index, text, values)
    }

    /// A column of the texts of keys that have numbers below `count`. Only texts in use are made.
    fn name<K: Copy>(
        self,
        name: &'static str,
        count: usize,
        number: impl Fn(K) -> usize,
        text: impl Fn(K) -> Option<String>,
        keys: impl Iterator<Item = Option<K>>,
    ) -> Self {
        self.with(name, || {
            let mut places: Vec<Option<Option<u32>>> = vec![None; count];
            let mut names = Names::default();
            names.numbers = keys
                .map(|key| {
                    let key = key?;
                    *places[number(key)].get_or_insert_with(|| {
                        names.texts.push(text(key)?);
                        u32::try_from(names.texts.len() - 1).ok()
                    })
                })
                .collect();
            Values::Name(names)
        })
    }

    fn done(self) -> Frame {
        self.frame
    }
}
