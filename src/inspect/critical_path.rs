//! The critical path: what a step would have to do faster to be faster.
//!
//! The [graph](super::dependency) of a range (a step, or an annotation) has the operators, calls and data
//! loading that start in it and the device work that they launch:
//!
//! ```text
//! edge                 from → to                              when
//! operator_kernel      node to node of a thread; kernel       inside of an operator or call
//! dependency           outermost operator to the next         on a thread
//! kernel_launch_delay  call → kernel                          its stream was free when it was launched
//! kernel_kernel_delay  kernel → next on its stream            else, when that ended after what it waits for
//! sync_dependency      kernel → end of a call, or kernel      `cuda_sync` records say so
//! ```
//! This is the definition of HolisticTraceAnalysis (`critical_path_analysis`), with its names. Where two
//! pieces of work overlap on a stream, the time between their starts is the first one's.

mod finder;

use std::collections::BTreeMap;

use finder::{Finder, Found, Parts, ranges};

use super::dependency::{Edge, EdgeType, Owner};
use super::frame::{Frame, Unit};
use super::line::Line;
use super::memory::OTHERS;
use super::options::By;
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use crate::attribute::{DeviceClass, Moment, Phase, Work, union};
use crate::error::Result;
use crate::model::StrId;
use crate::units::{Ns, Span};

/// The longest path through what a step waits for.
pub(super) struct CriticalPath;

impl Subject for CriticalPath {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        let parts = Parts::new(view)?;
        let mut finder = Finder::new(view, &parts);
        let found: Vec<Found<'_>> = ranges(view, &parts)
            .into_iter()
            .map(|range| finder.find(range))
            .collect();
        let pieces = pieces(view, &parts, &found);
        Ok(vec![
            bounds(view, &found, &pieces),
            extents(view, &parts, &found),
            contributors(view, &found, &pieces),
            edges(&found),
        ])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// What the time of an edge is bound by, with the names of HTA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    DataLoading,
    Cpu,
    GpuCompute,
    GpuCommunication,
    KernelKernelOverhead,
    KernelLaunchOverhead,
}

impl Bound {
    const ALL: [Self; 6] = [
        Self::DataLoading,
        Self::Cpu,
        Self::GpuCompute,
        Self::GpuCommunication,
        Self::KernelKernelOverhead,
        Self::KernelLaunchOverhead,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::DataLoading => "data_loading",
            Self::Cpu => "cpu_bound",
            Self::GpuCompute => "gpu_compute_bound",
            Self::GpuCommunication => "gpu_communication_bound",
            Self::KernelKernelOverhead => "gpu_kernel_kernel_overhead",
            Self::KernelLaunchOverhead => "gpu_kernel_launch_overhead",
        }
    }

    fn of(parts: &Parts<'_>, edge: &Edge) -> Option<Self> {
        match (edge.kind, edge.owner) {
            (EdgeType::KernelKernelDelay, _) => Some(Self::KernelKernelOverhead),
            (EdgeType::KernelLaunchDelay, _) => Some(Self::KernelLaunchOverhead),
            (EdgeType::Dependency | EdgeType::SyncDependency, _) | (_, Owner::Nobody) => None,
            (EdgeType::OperatorKernel, Owner::Host(_, true)) => Some(Self::DataLoading),
            (EdgeType::OperatorKernel, Owner::Host(_, false)) => Some(Self::Cpu),
            (EdgeType::OperatorKernel, Owner::Work(work)) => {
                match parts.works[work as usize].class {
                    DeviceClass::Communication => Some(Self::GpuCommunication),
                    _ => Some(Self::GpuCompute),
                }
            }
        }
    }
}

/// An edge of a path that takes time, with what is known about it.
struct Piece {
    /// Number of the range.
    range: usize,
    weight: Ns,
    kind: EdgeType,
    bound: Bound,
    name: StrId,
    phase: &'static str,
}

/// The pieces of all paths, in order.
fn pieces(view: &View<'_>, parts: &Parts<'_>, found: &[Found<'_>]) -> Vec<Piece> {
    let dissection = view.dissection;
    let threads = &dissection.host.threads;
    let mut moments: Vec<Vec<Moment>> = vec![Vec::new(); threads.len()];
    let mut pieces: Vec<Piece> = Vec::new();
    for (range, found) in found.iter().enumerate() {
        for (at, edge) in &found.path {
            let Some(bound) = Bound::of(parts, edge) else {
                continue;
            };
            let (name, phase) = match edge.owner {
                Owner::Nobody => continue,
                Owner::Work(work) => {
                    let work = parts.works[work as usize];
                    (view.trace().events.name(work.event), work.bucket.as_str())
                }
                Owner::Host(number, _) => {
                    let event = parts.host[number as usize];
                    let key = u32::try_from(pieces.len()).expect("fewer pieces than nodes");
                    moments[event.thread as usize].push(Moment { at: *at, key });
                    (event.name, Phase::Other.as_str())
                }
            };
            pieces.push(Piece {
                range,
                weight: edge.weight,
                kind: edge.kind,
                bound,
                name,
                phase,
            });
        }
    }
    for (thread, mut moments) in moments.into_iter().enumerate() {
        moments.sort_unstable_by_key(|moment| (moment.at, moment.key));
        let ops = threads[thread].innermost_at(&moments);
        for (moment, op) in moments.iter().zip(ops) {
            let verdict = dissection.judge.verdict(moment.at, thread, op);
            pieces[moment.key as usize].phase = verdict.placement.phase.as_str();
        }
    }
    pieces
}

fn range_columns<R>(
    frame: Frame,
    rows: &[R],
    found: &[Found<'_>],
    of: impl Fn(&R) -> usize,
) -> Frame {
    frame
        .text("range", rows, |row| Some(found[of(row)].range.name))
        .id("instance", rows, |row| {
            i64::try_from(found[of(row)].range.instance).ok()
        })
}

/// Name of the frame with a row a range.
pub(super) const PATHS: &str = "critical_paths";

/// By device: when it communicates.
fn communication(view: &View<'_>) -> BTreeMap<i64, Line> {
    let devices = view.dissection.work.chunk_by(|a, b| a.device == b.device);
    devices
        .map(|work| {
            let communicates = |work: &&Work| work.class == DeviceClass::Communication;
            let spans = work.iter().filter(communicates).map(|work| work.span);
            (work[0].device, Line::of(&union(spans)))
        })
        .collect()
}

/// The part of the delays between kernels on a path in which their device communicates.
fn under_communication(parts: &Parts<'_>, lines: &BTreeMap<i64, Line>, found: &Found<'_>) -> Ns {
    let time = |(at, edge): &(Ns, Edge)| {
        let Owner::Work(work) = edge.owner else {
            return Ns::ZERO;
        };
        if edge.kind != EdgeType::KernelKernelDelay {
            return Ns::ZERO;
        }
        let delay = Span::new(*at, *at + edge.weight);
        let line = lines.get(&parts.works[work as usize].device);
        line.map_or(Ns::ZERO, |line| line.time(delay))
    };
    found.path.iter().map(time).sum()
}

/// One row a range.
fn extents(view: &View<'_>, parts: &Parts<'_>, found: &[Found<'_>]) -> Frame {
    let lines = communication(view);
    let rows: Vec<usize> = (0..found.len()).collect();
    let examined = |row: &usize| found[*row].examined.then_some(&found[*row]);
    let frame = Frame::new(
        PATHS,
        "The critical path of a range, and the graph that it is the longest path of.",
    );
    range_columns(frame, &rows, found, |row| *row)
        .at("start_ns", &rows, |row| Some(found[*row].range.span.start))
        .ns("wall_ns", &rows, |row| Some(found[*row].range.span.len()))
        .ns("extent_ns", &rows, |row| Some(examined(row)?.extent))
        .ns("length_ns", &rows, |row| Some(examined(row)?.length))
        .float("share_of_extent", Unit::Ratio, &rows, |row| {
            examined(row)?.length.ratio(examined(row)?.extent)
        })
        .count("nodes", &rows, |row| Some(examined(row)?.nodes as u64))
        .count("edges", &rows, |row| {
            Some(examined(row)?.counts.iter().sum())
        })
        .count("critical_edges", &rows, |row| {
            Some(examined(row)?.path.len() as u64)
        })
        .count("edges_left_out", &rows, |row| Some(examined(row)?.left_out))
        .ns("overhead_under_communication_ns", &rows, |row| {
            let found = examined(row).filter(|_| !lines.is_empty())?;
            Some(under_communication(parts, &lines, found))
        })
        .flag("has_sync_records", &rows, |_| {
            (!lines.is_empty()).then_some(parts.waits.recorded)
        })
}

/// Time and edges.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    ns: Ns,
    edges: u64,
}

impl Sum {
    fn count(&mut self, piece: &Piece) {
        self.ns += piece.weight;
        self.edges += 1;
    }
}

/// One row a range and bound (and phase).
fn bounds(view: &View<'_>, found: &[Found<'_>], pieces: &[Piece]) -> Frame {
    let by_phase = view.options.is_by(By::Phase);
    let mut sums: BTreeMap<(usize, Bound, &str), Sum> = BTreeMap::new();
    for (range, found) in found.iter().enumerate() {
        for bound in Bound::ALL {
            if !by_phase && found.examined {
                sums.insert((range, bound, ""), Sum::default());
            }
        }
    }
    for piece in pieces {
        let phase = if by_phase { piece.phase } else { "" };
        let key = (piece.range, piece.bound, phase);
        sums.entry(key).or_default().count(piece);
    }
    let rows: Vec<_> = sums.into_iter().collect();
    let frame = Frame::new(
        "critical_path_summary",
        "What the time on the critical path is bound by; the rows of a range add up to its length.",
    );
    let mut frame =
        range_columns(frame, &rows, found, |row| row.0.0)
            .text("bound_by", &rows, |row| Some(row.0.1.as_str()));
    if by_phase {
        frame = frame.text("phase", &rows, |row| Some(row.0.2));
    }
    frame
        .ns("sum_ns", &rows, |row| Some(row.1.ns))
        .float("share", Unit::Ratio, &rows, |row| {
            row.1.ns.ratio(found[row.0.0].length)
        })
        .count("edges", &rows, |row| Some(row.1.edges))
}

/// A row of [`contributors`]: a name, or what is beyond the names that are asked for.
struct Contributor<'a> {
    range: usize,
    name: &'a str,
    of: Option<(EdgeType, Bound, &'static str)>,
    sum: Sum,
}

/// One row a range, name and type of edge (and phase).
fn contributors(view: &View<'_>, found: &[Found<'_>], pieces: &[Piece]) -> Frame {
    let by_phase = view.options.is_by(By::Phase);
    let top = match view.options.top {
        0 => usize::MAX,
        top => top,
    };
    let mut rows: Vec<Contributor<'_>> = Vec::new();
    for same in pieces.chunk_by(|a, b| a.range == b.range) {
        let mut sums: BTreeMap<_, Sum> = BTreeMap::new();
        for piece in same {
            let phase = if by_phase { piece.phase } else { "" };
            let name = view.trace().strings.get(piece.name);
            let key = (name, piece.kind, piece.bound, phase);
            sums.entry(key).or_default().count(piece);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.ns));
        let rest = sums.split_off(sums.len().min(top));
        let range = same[0].range;
        rows.extend(sums.into_iter().map(|(key, sum)| Contributor {
            range,
            name: key.0,
            of: Some((key.1, key.2, key.3)),
            sum,
        }));
        if !rest.is_empty() {
            rows.push(Contributor {
                range,
                name: OTHERS,
                of: None,
                sum: Sum {
                    ns: rest.iter().map(|(_, sum)| sum.ns).sum(),
                    edges: rest.iter().map(|(_, sum)| sum.edges).sum(),
                },
            });
        }
    }
    let frame = Frame::new(
        "critical_path",
        "Whose time is on the critical path; the rows of a range add up to its length.",
    );
    let mut frame = range_columns(frame, &rows, found, |row| row.range)
        .text("name", &rows, |row| Some(row.name))
        .text("edge", &rows, |row| Some(row.of?.0.as_str()))
        .text("bound_by", &rows, |row| Some(row.of?.1.as_str()));
    if by_phase {
        frame = frame.text("phase", &rows, |row| Some(row.of?.2));
    }
    frame
        .ns("sum_ns", &rows, |row| Some(row.sum.ns))
        .float("share", Unit::Ratio, &rows, |row| {
            row.sum.ns.ratio(found[row.range].length)
        })
        .count("edges", &rows, |row| Some(row.sum.edges))
}

/// One row a range and type of edge.
fn edges(found: &[Found<'_>]) -> Frame {
    let mut rows: Vec<(usize, EdgeType, Sum)> = Vec::new();
    for (range, found) in found.iter().enumerate() {
        for kind in EdgeType::ALL {
            let mut sum = Sum::default();
            for (_, edge) in found.path.iter().filter(|(_, edge)| edge.kind == kind) {
                sum.ns += edge.weight;
                sum.edges += 1;
            }
            if found.examined {
                rows.push((range, kind, sum));
            }
        }
    }
    let frame = Frame::new(
        "edges",
        "The edges of the graph by type, and those of them on the critical path.",
    );
    range_columns(frame, &rows, found, |row| row.0)
        .text("edge", &rows, |row| Some(row.1.as_str()))
        .count("edges", &rows, |row| {
            Some(found[row.0].counts[row.1 as usize])
        })
        .count("critical_edges", &rows, |row| Some(row.2.edges))
        .ns("critical_ns", &rows, |row| Some(row.2.ns))
}

#[cfg(test)]
mod tests;
