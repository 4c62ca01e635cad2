//! The ranks of a run beside each other: what each did, who waits for whom, whose clock is how far off.
//!
//! What one file says is a row a call without text, so that hundreds of ranks fit into memory; calls are
//! [matched](super::matching) when all files are read. A rank whose file is missing is missing in the
//! collectives; nothing is refused.

use std::collections::BTreeMap;

use super::clock::clocks;
use super::collective::Communication;
use super::frame::{Frame, Unit};
use super::late::{self, Late};
use super::matching::{Member, matched};
use super::options::Definition;
use super::subject::{Inspected, Subject};
use super::transfer::transfer_frame;
use super::view::View;
use super::waiting::{
    Together, collectives_frame, most_waiting, operations, operations_frame, standings, waits_frame,
};
use crate::attribute::{Bucket, RankResult};
use crate::error::Result;
use crate::stats::median_time;
use crate::units::Ns;

/// The ranks of runs.
pub(super) struct Ranks;

/// What one file says.
pub(super) struct Seen {
    /// Whose definitions to follow, as for all files.
    definition: Definition,
    /// How many collectives to name, as for all files.
    top: usize,
    pub(super) found: Communication,
    /// What to add to its times.
    pub(super) base: Ns,
    /// By step: its name; only for the definition of the TensorBoard plugin.
    pub(super) steps: Vec<String>,
    /// Only for HTA's definition.
    pub(super) late: Option<Late>,
}

impl Subject for Ranks {
    type Seen = Seen;

    fn look(&self, view: &View<'_>) -> Result<Seen> {
        let definition = view.options.definition;
        let by_step = definition == Definition::Tensorboard;
        let by_hta = definition == Definition::Hta;
        let steps = view.dissection.steps.all.iter();
        Ok(Seen {
            definition,
            top: view.options.top,
            found: Communication::new(view)?,
            base: Ns(view.trace().metadata.base_time_ns.unwrap_or(0)),
            steps: if by_step {
                steps.map(|step| step.name.clone()).collect()
            } else {
                Vec::new()
            },
            late: by_hta.then(|| late::kernels(view)),
        })
    }

    fn tables(&self, files: Vec<Inspected<'_, Seen>>) -> Vec<Frame> {
        let seen = files.first().map(|file| &file.seen);
        let definition = seen.map_or(Definition::Tracekit, |seen| seen.definition);
        let top = seen.map_or(0, |seen| seen.top);
        if definition == Definition::Hta {
            return vec![late::frame(&files)];
        }
        let all = together(&files);
        if definition == Definition::Tensorboard {
            return vec![transfer_frame(&files, &all)];
        }
        let numbered = all.iter().enumerate();
        let collectives: Vec<_> = numbered
            .flat_map(|(number, together)| together.collectives(number))
            .collect();
        let operations = operations(&collectives);
        let waiting = most_waiting(collectives, top);
        vec![
            ranks_frame(&files),
            stragglers_frame(&files, &all),
            clocks_frame(&files, &all),
            operations_frame(&operations),
            collectives_frame(&waiting),
            waits_frame(&all, &waiting),
        ]
    }
}

/// The files in groups of those that were captured at the same time: one run, one window. The number of a
/// member is its place among the files of the group, in their order.
fn together<'a>(files: &'a [Inspected<'a, Seen>]) -> Vec<Together<'a>> {
    grouped(files)
        .into_iter()
        .map(|files| {
            let member = |file: &&'a Inspected<'a, Seen>| Member {
                rank: file.rank.rank,
                base: file.seen.base,
                found: &file.seen.found,
            };
            let members: Vec<Member<'a>> = files.iter().map(member).collect();
            let matched = matched(&members);
            let clocks = clocks(&members, &matched);
            Together {
                run: files[0].run,
                window: files.iter().find_map(|file| file.window),
                members,
                matched,
                clocks,
            }
        })
        .collect()
}

/// Run and window: what was captured at the same time.
fn key(file: &Inspected<'_, Seen>) -> (usize, usize) {
    (file.run_number, file.rank.window)
}

/// The files that were captured at the same time, in the order of the first of each.
pub(super) fn grouped<'a>(files: &'a [Inspected<'a, Seen>]) -> Vec<Vec<&'a Inspected<'a, Seen>>> {
    let mut groups: Vec<Vec<&'a Inspected<'a, Seen>>> = Vec::new();
    for (file, (group, _)) in files.iter().zip(places(files)) {
        match groups.get_mut(group) {
            Some(known) => known.push(file),
            None => groups.push(vec![file]),
        }
    }
    groups
}

/// By file: its group, and its place in it. Groups come in the order of their first files.
pub(super) fn places(files: &[Inspected<'_, Seen>]) -> Vec<(usize, usize)> {
    let mut groups: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    files
        .iter()
        .map(|file| {
            let next = groups.len();
            let (group, members) = groups.entry(key(file)).or_insert((next, 0));
            *members += 1;
            (*group, *members - 1)
        })
        .collect()
}

/// Adds the columns that say which file a row is from.
pub(super) fn with_file<R>(
    frame: Frame,
    rows: &[R],
    of: impl for<'r> Fn(&'r R) -> &'r Inspected<'r, Seen>,
) -> Frame {
    frame
        .id("rank", rows, |row| of(row).rank.rank)
        .text("run", rows, |row| Some(of(row).run.to_owned()))
        .id("window", rows, |row| {
            of(row).window.and_then(|window| i64::try_from(window).ok())
        })
}

/// What one rank did, over its devices.
struct RankRow<'a> {
    file: &'a Inspected<'a, Seen>,
    steps: u64,
    step: Option<Ns>,
    /// Median over the ranks of its run and window.
    run_step: Option<Ns>,
    run_compute: Option<Ns>,
}

/// Sum over the devices of `rank`; `None` without any.
fn over_devices(rank: &RankResult, of: impl Fn(&crate::attribute::Timeline) -> Ns) -> Option<Ns> {
    let devices = rank.devices.iter().map(|device| of(&device.timeline));
    (!rank.devices.is_empty()).then(|| devices.sum())
}

/// Durations of whole steps on the host, of all when there are no whole ones; in order.
fn step_times(rank: &RankResult) -> Vec<Ns> {
    let whole = rank.host.steps.iter().any(|step| !step.partial);
    let steps = rank.host.steps.iter();
    let mut times: Vec<Ns> = steps
        .filter(|step| !whole || !step.partial)
        .map(|step| step.wall_ns)
        .collect();
    times.sort_unstable();
    times
}

fn ranks_frame(files: &[Inspected<'_, Seen>]) -> Frame {
    let compute = |file: &Inspected<'_, Seen>| over_devices(file.rank, |line| line.compute_ns);
    let steps: Vec<Vec<Ns>> = files.iter().map(|file| step_times(file.rank)).collect();
    // By run and window: median step, and median computing time.
    let mut of_run: BTreeMap<(usize, usize), [Vec<Ns>; 2]> = BTreeMap::new();
    for (file, times) in files.iter().zip(&steps) {
        let [step, computing] = of_run.entry(key(file)).or_default();
        step.extend(median_time(times));
        computing.extend(compute(file));
    }
    let of_run: BTreeMap<(usize, usize), [Option<Ns>; 2]> = of_run
        .into_iter()
        .map(|(key, values)| {
            let middle = values.map(|mut values| {
                values.sort_unstable();
                median_time(&values)
            });
            (key, middle)
        })
        .collect();
    let row = |(file, times): (_, &Vec<Ns>)| {
        let [run_step, run_compute] = of_run[&key(file)];
        RankRow {
            file,
            steps: times.len() as u64,
            step: median_time(times),
            run_step,
            run_compute,
        }
    };
    let rows: Vec<RankRow<'_>> = files.iter().zip(&steps).map(row).collect();
    let against = |own: Option<Ns>, median: Option<Ns>| {
        let (own, median) = own.zip(median)?;
        (own - median).ratio(median)
    };
    let frame = Frame::new(
        "ranks",
        "What each rank did: steps on the host, and its devices from their first start to their last end.",
    );
    let time = |frame: Frame, name, of: fn(&crate::attribute::Timeline) -> Ns| {
        frame.ns(name, &rows, |row| over_devices(row.file.rank, of))
    };
    let frame = with_file(frame, &rows, |row| row.file)
        .count("devices", &rows, |row| {
            Some(row.file.rank.devices.len() as u64)
        })
        .count("steps", &rows, |row| Some(row.steps))
        .ns("step_ns", &rows, |row| row.step)
        .float("step_against_median", Unit::Ratio, &rows, |row| {
            against(row.step, row.run_step)
        });
    let frame = time(frame, "window_ns", |line| line.window_ns);
    let frame = time(frame, "compute_ns", |line| line.compute_ns).float(
        "compute_against_median",
        Unit::Ratio,
        &rows,
        |row| against(compute(row.file), row.run_compute),
    );
    let frame = time(frame, "communication_ns", |line| line.communication_ns);
    let frame = time(frame, "exposed_communication_ns", |line| {
        line.exposed_communication_ns
    });
    let frame = time(frame, "exposed_memory_ns", |line| {
        line.exposed_memcpy_ns + line.exposed_memset_ns
    });
    let mut frame = time(frame, "idle_ns", |line| line.idle_ns);
    for (bucket, name) in Bucket::ALL.into_iter().zip(PHASES) {
        frame = frame.ns(name, &rows, |row| {
            over_devices(row.file.rank, |line| line.phases[bucket.index()])
        });
    }
    frame
}

/// Columns of the busy time of each bucket, in the order of [`Bucket::ALL`].
const PHASES: [&str; 7] = [
    "forward_ns",
    "backward_ns",
    "recompute_ns",
    "optimizer_ns",
    "other_ns",
    "pre_window_ns",
    "unlinked_ns",
];

fn stragglers_frame(files: &[Inspected<'_, Seen>], all: &[Together<'_>]) -> Frame {
    let standings: Vec<_> = all.iter().map(standings).collect();
    let mut rows: Vec<_> = files
        .iter()
        .zip(places(files))
        .map(|(file, (group, place))| (file, &standings[group][place], group))
        .collect();
    rows.sort_by_key(|(_, standing, group)| (*group, standing.place.unwrap_or(u64::MAX)));
    let frame = Frame::new(
        "stragglers",
        "Who waits least in shared collectives, so that the others wait for it; needs no clocks.",
    );
    with_file(frame, &rows, |row| row.0)
        .count("place", &rows, |row| row.1.place)
        .count("calls", &rows, |row| Some(row.1.calls))
        .count("collectives", &rows, |row| Some(row.1.collectives))
        .ns("sum_ns", &rows, |row| {
            measured(row.1.collectives, row.1.sum)
        })
        .ns("waiting_ns", &rows, |row| {
            measured(row.1.collectives, row.1.waiting)
        })
        .float("relative_waiting", Unit::Ratio, &rows, |row| {
            row.1.relative()
        })
        .count("times_last", &rows, |row| {
            measured(row.1.collectives, row.1.times_last)
        })
        .float("share_last", Unit::Ratio, &rows, |row| {
            Some(row.1.times_last as f64 / row.1.collectives as f64)
        })
        .ns("held_up_ns", &rows, |row| {
            measured(row.1.collectives, row.1.held_up)
        })
}

/// `value`, when it rests on something.
fn measured<T>(collectives: u64, value: T) -> Option<T> {
    (collectives > 0).then_some(value)
}

fn clocks_frame(files: &[Inspected<'_, Seen>], all: &[Together<'_>]) -> Frame {
    let rows: Vec<_> = files
        .iter()
        .zip(places(files))
        .map(|(file, (group, place))| (file, all[group].clocks[place]))
        .collect();
    let frame = Frame::new(
        "clocks",
        "How far the clock of each rank is ahead of the median, from collectives that end together.",
    );
    with_file(frame, &rows, |row| row.0)
        .ns("offset_ns", &rows, |row| Some(row.1?.offset))
        .ns("uncertainty_ns", &rows, |row| row.1?.uncertainty)
        .count("collectives", &rows, |row| {
            Some(row.1.map_or(0, |clock| clock.collectives))
        })
}
