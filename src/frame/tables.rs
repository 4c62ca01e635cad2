//! From paths to tables.

use std::collections::BTreeMap;

use polars::prelude::*;

use super::convert::data_frame;
use super::schema::{self, Dtype, TableSchema};
use crate::attribute::{Attribution, ProgressEvent, RankResult, Request, attribute_and};
use crate::error::{Error, ErrorKind, Result};
use crate::inspect::{
    Frame, InspectOptions, Inspected, Seen, Topic, View, attribution_frame, device_work, events,
    files, health_frame, subject_of,
};

/// Tables over all files, by name.
#[derive(Debug)]
pub struct Tables {
    /// The attribution of the same files.
    pub attribution: Attribution,
    /// The tables that were asked for.
    pub frames: BTreeMap<&'static str, DataFrame>,
}

/// What is taken from one file.
pub(crate) struct Taken {
    events: Option<DataFrame>,
    device_work: Option<DataFrame>,
    topics: Vec<Seen>,
}

/// Reads every trace under the paths of `request` and makes the tables called `names`; all of them when
/// it is empty.
///
/// # Errors
/// As [`attribute_paths`](crate::attribute::attribute_paths), and when no table has one of the names.
pub fn read_tables(
    request: &Request<'_>,
    names: &[&str],
    progress: &(dyn Fn(ProgressEvent) + Sync),
) -> Result<Tables> {
    let plan = Plan::new(names)?;
    let (attribution, taken) = attribute_and(request, progress, |dissection, content| {
        plan.take(&View::new(dissection, content, &plan.options))
    })?;
    plan.tables(attribution, taken)
}

/// Which tables to make, and how.
pub(crate) struct Plan {
    wanted: Vec<&'static TableSchema>,
    topics: Vec<Topic>,
    options: InspectOptions,
}

impl Plan {
    /// The plan for the tables called `names`; all of them when it is empty.
    ///
    /// # Errors
    /// When no table has one of the names.
    pub(crate) fn new(names: &[&str]) -> Result<Self> {
        let wanted = wanted(names)?;
        let mut topics: Vec<Topic> = wanted
            .iter()
            .filter_map(|table| Some(table.topic?.0))
            .collect();
        topics.sort_unstable();
        topics.dedup();
        Ok(Self {
            wanted,
            topics,
            options: InspectOptions::finest(),
        })
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.wanted.iter().any(|table| table.name == name)
    }

    /// What one file has for the tables.
    ///
    /// # Errors
    /// As those who look at it.
    pub(crate) fn take(&self, view: &View<'_>) -> Result<Taken> {
        let view = view.with(&self.options);
        let made = |frame: Frame| data_frame(frame).map(Some).map_err(|error| failed(&error));
        let topics = self.topics.iter();
        let seen: Result<Vec<Seen>> = topics.map(|topic| subject_of(*topic).look(&view)).collect();
        Ok(Taken {
            events: if self.is_wanted("events") {
                made(events(view.trace(), || view.trace().events.ids(), None))?
            } else {
                None
            },
            device_work: if self.is_wanted("device_work") {
                made(device_work(&view, None)?)?
            } else {
                None
            },
            topics: seen?,
        })
    }

    /// The tables of all files: `taken` has one entry a rank of `attribution`.
    ///
    /// # Errors
    /// When Polars refuses.
    pub(crate) fn tables(&self, attribution: Attribution, taken: Vec<Taken>) -> Result<Tables> {
        let mut frames = BTreeMap::new();
        let mut of_topics: Vec<Vec<Seen>> = self.topics.iter().map(|_| Vec::new()).collect();
        let mut raw: [Vec<Option<DataFrame>>; 2] = Default::default();
        for taken in taken {
            raw[0].push(taken.events);
            raw[1].push(taken.device_work);
            for (list, seen) in of_topics.iter_mut().zip(taken.topics) {
                list.push(seen);
            }
        }
        for (name, parts) in ["events", "device_work"].into_iter().zip(raw) {
            if self.is_wanted(name)
                && let Some(whole) = stacked(&attribution, parts).map_err(|error| failed(&error))?
            {
                frames.insert(name, whole);
            }
        }
        let mut made: Vec<Frame> = Vec::new();
        for (topic, seen) in self.topics.iter().zip(of_topics) {
            for frame in subject_of(*topic).tables(Inspected::of(&attribution, seen)) {
                let name = name_of(*topic, &frame);
                debug_assert!(name.is_some(), "{} is in no schema", frame.name);
                made.extend(name.map(|name| Frame { name, ..frame }));
            }
        }
        if self.is_wanted("files") {
            made.push(files(&attribution));
        }
        if self.is_wanted("attribution") {
            made.push(attribution_frame(&attribution));
        }
        if self.is_wanted("health") {
            made.push(health_frame(&attribution));
        }
        for frame in made {
            let name = frame.name;
            if self.is_wanted(name) {
                frames.insert(name, data_frame(frame).map_err(|error| failed(&error))?);
            }
        }
        // What no file had anything for has its columns all the same.
        for table in &self.wanted {
            frames.entry(table.name).or_insert_with(|| empty(table));
        }
        Ok(Tables {
            attribution,
            frames,
        })
    }
}

/// What the table is called that `topic` calls by the name of `frame`.
fn name_of(topic: Topic, frame: &Frame) -> Option<&'static str> {
    let of_topic = |table: &&TableSchema| table.topic == Some((topic, frame.name));
    Some(schema::TABLES.iter().find(of_topic)?.name)
}

/// A table without rows.
fn empty(table: &TableSchema) -> DataFrame {
    let fields = table.columns.iter().map(|column| {
        let dtype = match column.dtype {
            Dtype::Text => DataType::String,
            Dtype::Int => DataType::Int64,
            Dtype::Float => DataType::Float64,
            Dtype::Bool => DataType::Boolean,
        };
        Field::new(PlSmallStr::from_static(column.name), dtype)
    });
    DataFrame::empty_with_schema(&fields.collect::<Schema>())
}

fn wanted(names: &[&str]) -> Result<Vec<&'static TableSchema>> {
    if names.is_empty() {
        return Ok(schema::TABLES.iter().collect());
    }
    let find = |name: &&str| {
        schema::TABLES
            .iter()
            .find(|table| table.name == *name)
            .ok_or_else(|| {
                let known: Vec<&str> = schema::TABLES.iter().map(|table| table.name).collect();
                let message = format!("no table is called '{name}': {}", known.join(", "));
                Error::new(ErrorKind::Usage, message)
            })
    };
    names.iter().map(find).collect()
}

/// The parts of all files under one another, behind columns that say which file a row is from.
fn stacked(
    attribution: &Attribution,
    parts: Vec<Option<DataFrame>>,
) -> PolarsResult<Option<DataFrame>> {
    let mut whole: Option<DataFrame> = None;
    for (rank, part) in attribution.ranks.iter().zip(parts) {
        let Some(part) = part else { continue };
        let part = of_file(attribution, rank, part)?;
        match &mut whole {
            Some(whole) => drop(whole.vstack_mut_owned(part)?),
            None => whole = Some(part),
        }
    }
    Ok(whole)
}

fn of_file(
    attribution: &Attribution,
    rank: &RankResult,
    part: DataFrame,
) -> PolarsResult<DataFrame> {
    let rows = part.height();
    let run = Scalar::from(PlSmallStr::from_str(&attribution.runs[rank.run].name));
    let mut columns = vec![
        Column::new_scalar("run".into(), run, rows),
        match rank.rank {
            Some(rank) => Column::new_scalar("rank".into(), Scalar::from(rank), rows),
            None => Column::full_null("rank".into(), rows, &DataType::Int64),
        },
        Column::new_scalar(
            "file".into(),
            Scalar::from(i64::try_from(rank.input).unwrap_or(i64::MAX)),
            rows,
        ),
    ];
    columns.extend(part.into_columns());
    DataFrame::new(rows, columns)
}

/// The rows of one run.
///
/// # Errors
/// When Polars refuses.
pub(crate) fn of_run(
    frames: &BTreeMap<&'static str, DataFrame>,
    run: &str,
) -> Result<BTreeMap<&'static str, DataFrame>> {
    let only = |frame: &DataFrame| {
        let rows = frame.clone().lazy();
        let rows = match frame.column("run") {
            Ok(_) => rows.filter(col("run").eq(lit(run.to_owned()))),
            Err(_) => rows,
        };
        rows.collect().map_err(|error| failed(&error))
    };
    let own = frames.iter().map(|(name, frame)| Ok((*name, only(frame)?)));
    own.collect()
}

/// What Polars could not do. Its messages are about our tables, never about a file.
pub(crate) fn failed(error: &PolarsError) -> Error {
    Error::new(ErrorKind::Query, error.to_string().replace('\n', " "))
}
