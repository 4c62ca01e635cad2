//! Pictures of where the time goes: by step, by class, by rank.

use super::super::attribution::comparison::Measure;
use super::super::attribution::label;
use super::super::attribution::timeline::{counting_steps, devices};
use super::super::chart::{Bar, Bars, Chart, Heat, HeatCell, Paint, Part, Picture};
use super::super::document::Value;
use super::super::number::{counted, percent};
use super::run_title;
use crate::attribute::{
    Attribution, Bucket, Cell, DeviceClass, HostStep, Phase, RankResult, RunResult, Timeline,
};
use crate::units::Ns;

/// Bars that one picture shows; more steps are put together.
const MOST_BARS: usize = 100;

/// The parts of one bar, as sums, and how many things were added.
#[derive(Default)]
struct Stack {
    parts: Vec<(Paint, Ns)>,
    count: i64,
}

impl Stack {
    fn add(&mut self, parts: impl IntoIterator<Item = (Paint, Ns)>) {
        self.count += 1;
        for (paint, time) in parts {
            match self.parts.iter_mut().find(|(known, _)| *known == paint) {
                Some((_, sum)) => *sum += time,
                None => self.parts.push((paint, time)),
            }
        }
    }

    fn append(&mut self, other: &Self) {
        self.add(other.parts.iter().copied());
        self.count += other.count - 1;
    }

    /// How many bars there are, and which part of all that was added is the largest.
    fn largest(&self, bars: usize, of: &str, what: &str) -> String {
        let whole: Ns = self.parts.iter().map(|(_, time)| *time).sum();
        let each = match bars {
            1 => String::new(),
            bars => format!(
                "{}, from the first {of} to the last. ",
                counted(bars as u64, "bar")
            ),
        };
        let most = self.parts.iter().max_by_key(|(_, time)| *time);
        match most.and_then(|(paint, time)| Some((paint, time.ratio(whole)?))) {
            Some((paint, share)) => {
                format!(
                    "{each}{what} is {} with {} %.",
                    paint.name(),
                    percent(share)
                )
            }
            None => each,
        }
    }

    /// The mean of what was added, without parts that are nothing.
    fn bar(&self, label: String) -> Bar {
        let mut means: Vec<(Paint, Ns)> = self
            .parts
            .iter()
            .map(|(paint, sum)| (*paint, Ns(sum.0 / self.count.max(1))))
            .filter(|(_, time)| *time > Ns::ZERO)
            .collect();
        means.sort_by_key(|(paint, _)| *paint);
        let total: Ns = means.iter().map(|(_, time)| *time).sum();
        let part = |(paint, time): &(Paint, Ns)| Part {
            paint: *paint,
            value: Value::Ns(*time),
            share: Value::share(*time, total),
        };
        Bar {
            label,
            parts: means.iter().map(part).collect(),
            total: Value::Ns(total),
        }
    }
}

/// Phases and idle time of a window of a device.
fn of_line(line: &Timeline) -> impl Iterator<Item = (Paint, Ns)> {
    let held = Bucket::ALL.map(|bucket| (Paint::Bucket(bucket), line.phases[bucket.index()]));
    held.into_iter().chain([(Paint::Idle, line.idle_ns)])
}

/// Annotated phases of a step of the host.
fn of_host(step: &HostStep) -> impl Iterator<Item = (Paint, Ns)> {
    let phases = step.phases.iter();
    let phases = phases.map(|(phase, time)| (Paint::Bucket(Bucket::Phase(*phase)), time.wall_ns));
    phases.chain([(Paint::Unattributed, step.unattributed_ns)])
}

fn of_self(run: &RunResult) -> impl Iterator<Item = (Paint, Ns)> {
    let phases = run.host_phases.iter();
    phases.map(|(phase, time)| (Paint::Bucket(Bucket::Phase(*phase)), time.self_ns))
}

fn files<'a>(
    attribution: &'a Attribution,
    run: &'a RunResult,
) -> impl Iterator<Item = &'a RankResult> {
    run.ranks.iter().map(|rank| &attribution.ranks[*rank])
}

/// Time by phase and step: on the device, else on the host; of whole captures where there are no steps.
pub fn phase_bars(attribution: &Attribution, run: &RunResult) -> Option<Chart> {
    let mut steps = Stacks::default();
    // What the verdict is about: the steps that count.
    let mut counting = Stack::default();
    let counts = |partial| run.step_time.is_some_and(|times| times.counts(partial));
    let on_device = run.totals.total.events > 0;
    if on_device {
        for device in devices(attribution, run) {
            steps.file();
            for step in &device.steps {
                if counts(step.partial) {
                    counting.add(of_line(&step.timeline));
                }
                steps.add(label_of(&step.name, step.partial), of_line(&step.timeline));
            }
        }
    } else {
        for file in files(attribution, run) {
            steps.file();
            for step in &file.host.steps {
                if counts(step.partial) {
                    counting.add(of_host(step));
                }
                let label = label_of(&step.name, step.partial);
                steps.add(label, of_host(step));
            }
        }
    }
    let place = if on_device { "device" } else { "host" };
    let (of, bars, what) = if steps.list.is_empty() {
        let mut stack = Stack::default();
        if on_device {
            devices(attribution, run).for_each(|device| stack.add(of_line(&device.timeline)));
            let what = if stack.count > 1 {
                "mean of devices, each instant counted once"
            } else {
                "each instant counted once, idle time included"
            };
            ("capture", vec![stack.bar("capture".to_owned())], what)
        } else {
            stack.add(of_self(run));
            (
                "capture",
                vec![stack.bar("capture".to_owned())],
                "self time of operators",
            )
        }
    } else {
        let what = if on_device {
            "each instant counted once, idle time included"
        } else {
            "as annotated"
        };
        ("step", steps.bars(), what)
    };
    let several = if on_device {
        steps.files > 1
    } else {
        run.ranks.len() > 1
    };
    let mean = match (several, of) {
        (true, "step") if on_device => ", mean of devices",
        (true, "step") => ", mean of ranks",
        _ => "",
    };
    let shown: i64 = steps.list.iter().map(|(_, stack)| stack.count).sum();
    let about = match counting.count {
        0 => largest(&bars, of),
        whole if whole == shown => counting.largest(bars.len(), of, "The largest part"),
        _ => counting.largest(bars.len(), of, "The largest part of whole steps"),
    };
    (!bars.iter().all(|bar| bar.parts.is_empty())).then(|| Chart {
        name: named(attribution, run, "phases"),
        caption: run_title(
            attribution,
            run,
            &format!("Time on the {place} by phase and {of} ({what}{mean})"),
        ),
        about,
        picture: Picture::Bars(Bars {
            of,
            unit: "ms",
            bars,
        }),
    })
}

/// The one picture that shows the most of an attribution.
pub fn attribution_picture(attribution: &Attribution) -> Chart {
    let one = match attribution.runs.as_slice() {
        [run] => phase_bars(attribution, run),
        _ => runs(attribution),
    };
    one.unwrap_or_else(|| Chart {
        name: "phases".to_owned(),
        caption: "Nothing to attribute: no device work and no host operators".to_owned(),
        about: "There are no bars.".to_owned(),
        picture: Picture::Bars(Bars {
            of: "capture",
            unit: "ms",
            bars: Vec::new(),
        }),
    })
}

/// The name of a picture, which tells runs apart.
fn named(attribution: &Attribution, run: &RunResult, name: &str) -> String {
    let place = attribution
        .runs
        .iter()
        .position(|known| std::ptr::eq(known, run));
    match place {
        Some(place) if attribution.runs.len() > 1 => format!("{name}-{place}"),
        _ => name.to_owned(),
    }
}

fn label_of(name: &str, partial: bool) -> String {
    if partial {
        format!("{name} (partial)")
    } else {
        name.to_owned()
    }
}

/// What is the largest part of the bars together.
fn largest(bars: &[Bar], of: &str) -> String {
    let mut sums = Stack::default();
    for bar in bars {
        sums.add(bar.parts.iter().filter_map(|part| match part.value {
            Value::Ns(time) => Some((part.paint, time)),
            _ => None,
        }));
    }
    sums.largest(bars.len(), of, "The largest part")
}

/// Stacks by name of the step, in the order of the first device that has them.
#[derive(Default)]
struct Stacks {
    list: Vec<(String, Stack)>,
    /// Where the next step of the current device is looked for first.
    next: usize,
    files: usize,
}

impl Stacks {
    fn file(&mut self) {
        self.files += 1;
        self.next = 0;
    }

    fn add(&mut self, label: String, parts: impl IntoIterator<Item = (Paint, Ns)>) {
        let here = self
            .list
            .get(self.next)
            .is_some_and(|(known, _)| *known == label);
        let place = if here {
            Some(self.next)
        } else {
            self.list.iter().position(|(known, _)| *known == label)
        };
        let place = place.unwrap_or_else(|| {
            self.list.push((label, Stack::default()));
            self.list.len() - 1
        });
        self.list[place].1.add(parts);
        self.next = place + 1;
    }

    /// One bar a step, or one for so many consecutive steps that there are not too many.
    fn bars(&self) -> Vec<Bar> {
        let each = self.list.len().div_ceil(MOST_BARS).max(1);
        let together = self.list.chunks(each).map(|steps| match steps {
            [(name, stack)] => stack.bar(name.clone()),
            [(first, stack), rest @ ..] => {
                let mut sum = Stack::default();
                sum.append(stack);
                for (_, stack) in rest {
                    sum.append(stack);
                }
                let last = rest.last().map_or("", |(name, _)| name.as_str());
                // `ProfilerStep#3 to 32`
                let last = match (first.split_once('#'), last.split_once('#')) {
                    (Some((name, _)), Some((same, number))) if name == same => number,
                    _ => last,
                };
                sum.bar(format!("{first} to {last}, mean"))
            }
            [] => unreachable!("chunks are not empty"),
        });
        together.collect()
    }
}

/// Runs side by side: one bar each.
pub(super) fn runs(attribution: &Attribution) -> Option<Chart> {
    let measure = Measure::of(attribution)?;
    let bars: Vec<Bar> = attribution
        .runs
        .iter()
        .map(|run| {
            let mut stack = Stack::default();
            match measure {
                Measure::DeviceStep => counting_steps(attribution, run)
                    .for_each(|step| stack.add(of_line(&step.timeline))),
                Measure::Device => devices(attribution, run)
                    .for_each(|device| stack.add(of_line(&device.timeline))),
                Measure::HostStep | Measure::Host => {
                    stack.add(of_self(run));
                    stack.count = i64::try_from(measure.parts(attribution, run)).unwrap_or(1);
                }
            }
            stack.bar(label::run(&attribution.runs, run).into_owned())
        })
        .collect();
    let what = match measure {
        Measure::DeviceStep => "Mean step of a device by phase",
        Measure::Device => "Mean capture of a device by phase",
        Measure::HostStep => "Host self time of the capture by phase, divided by its steps",
        Measure::Host => "Mean host self time of a file by phase, whole captures",
    };
    (!bars.iter().all(|bar| bar.parts.is_empty())).then(|| Chart {
        name: "runs".to_owned(),
        caption: what.to_owned(),
        about: largest(&bars, "run"),
        picture: Picture::Bars(Bars {
            of: "run",
            unit: "ms",
            bars,
        }),
    })
}

/// Ranks side by side: one bar each, of whole captures.
pub(super) fn ranks(attribution: &Attribution, run: &RunResult) -> Option<Chart> {
    let on_device = run.totals.total.events > 0;
    let bars: Vec<Bar> = files(attribution, run)
        .take(MOST_BARS)
        .map(|file| {
            let mut stack = Stack::default();
            if on_device {
                let lines = file.devices.iter().map(|device| &device.timeline);
                lines.for_each(|line| stack.add(of_line(line)));
            } else {
                stack.add(
                    file.host
                        .phases
                        .iter()
                        .map(|(phase, time)| (Paint::Bucket(Bucket::Phase(*phase)), time.self_ns)),
                );
            }
            stack.bar(label::rank(attribution, file))
        })
        .collect();
    let what = if on_device {
        "Captures of ranks by phase (mean of their devices)"
    } else {
        "Host self time of ranks by phase"
    };
    (!bars.iter().all(|bar| bar.parts.is_empty())).then(|| Chart {
        name: named(attribution, run, "ranks"),
        caption: run_title(attribution, run, what),
        about: largest(&bars, "rank"),
        picture: Picture::Bars(Bars {
            of: "rank",
            unit: "ms",
            bars,
        }),
    })
}

/// How much of the device time of each step is recomputed; nothing when nothing is.
pub(super) fn recompute(attribution: &Attribution, run: &RunResult) -> Option<Chart> {
    let recompute = Bucket::Phase(Phase::Recompute);
    let on_device = run.totals.total.events > 0;
    let of_host = |phase| {
        run.host_phases
            .get(&phase)
            .map_or(Ns::ZERO, |time| time.self_ns)
    };
    let all = if on_device {
        run.totals.bucket(recompute).sum_ns
    } else {
        of_host(Phase::Recompute)
    };
    if all == Ns::ZERO {
        return None;
    }
    let mut steps = Stacks::default();
    let paint = Paint::Bucket(recompute);
    let parts = |table: &crate::attribute::Table| {
        let forward = Bucket::Phase(Phase::Forward);
        [
            (paint, table.bucket(recompute).sum_ns),
            (Paint::Bucket(forward), table.bucket(forward).sum_ns),
        ]
    };
    for device in files(attribution, run).flat_map(|file| &file.devices) {
        steps.file();
        for step in &device.steps {
            steps.add(label_of(&step.name, step.partial), parts(&step.totals));
        }
    }
    let (of, bars) = if steps.list.is_empty() {
        let mut stack = Stack::default();
        if on_device {
            stack.add(parts(&run.totals));
        } else {
            let phases = [Phase::Forward, Phase::Recompute];
            stack.add(phases.map(|phase| (Paint::Bucket(Bucket::Phase(phase)), of_host(phase))));
        }
        ("capture", vec![stack.bar("capture".to_owned())])
    } else {
        ("step", steps.bars())
    };
    let (place, how) = if on_device {
        ("device", "sum of durations")
    } else {
        ("host", "self time of operators")
    };
    let share = run.recompute.share_of_forward;
    let share = share.map_or_else(String::new, |share| {
        format!(
            " Over the capture, recompute takes {} % of the time of forward.",
            percent(share)
        )
    });
    Some(Chart {
        name: named(attribution, run, "recompute"),
        caption: run_title(
            attribution,
            run,
            &format!("Recompute beside the forward pass it repeats, by {of} ({how})"),
        ),
        about: format!("Both are parts of the {place} time of the run.{share}"),
        picture: Picture::Bars(Bars {
            of,
            unit: "ms",
            bars,
        }),
    })
}

/// Phases by class of device work, as a table with shades; nothing without device work.
pub(super) fn classes(attribution: &Attribution, run: &RunResult) -> Option<Chart> {
    let totals = &run.totals;
    if totals.total.events == 0 {
        return None;
    }
    let of = |cell: &Cell, class: DeviceClass| match class {
        DeviceClass::Compute => cell.compute_ns,
        DeviceClass::Communication => cell.communication_ns,
        DeviceClass::Memcpy => cell.memcpy_ns,
        DeviceClass::Memset => cell.memset_ns,
    };
    let whole = totals.total.sum_ns;
    let buckets = Bucket::ALL
        .into_iter()
        .filter(|bucket| totals.bucket(*bucket).events > 0);
    let rows: Vec<(String, Vec<HeatCell>)> = buckets
        .map(|bucket| {
            let cells = DeviceClass::ALL.map(|class| {
                let time = of(totals.bucket(bucket), class);
                HeatCell {
                    value: Value::Ns(time),
                    share: time.ratio(whole).unwrap_or(0.0),
                }
            });
            (bucket.as_str().to_owned(), cells.into())
        })
        .collect();
    Some(Chart {
        name: named(attribution, run, "phase-class"),
        caption: run_title(
            attribution,
            run,
            "Device time by phase and class of work (sum of durations)",
        ),
        about:
            "A table: one row a phase, one column a class of work, in milliseconds; the deeper the blue, the more."
                .to_owned(),
        picture: Picture::Heat(Heat {
            columns: DeviceClass::ALL
                .map(|class| class.as_str().to_owned())
                .into(),
            unit: "ms",
            rows,
        }),
    })
}
