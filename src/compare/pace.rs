//! The steps of a side, and the units of the test.

use std::collections::BTreeMap;

use super::observed::OUTSIDE;
use super::saved::{SavedDeviceStep, SavedFile};
use super::side::Side;
use crate::stats::median;
use crate::units::Ns;

/// A repeat of fewer than so many on a side is no unit.
const REPEATS: usize = 3;
/// More steps than this are put together in so many groups.
const GROUPS: usize = 100;

/// What quantities are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// The whole steps of both sides.
    WholeSteps,
    /// Whole captures: a side has no whole step.
    Captures,
}

/// A step of a side, on all its ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) repeat: u32,
    pub(super) window: usize,
    pub(super) name: String,
    pub(super) partial: bool,
    /// Length of its range on the slowest rank.
    pub(super) host: Ns,
    /// Its time on the slowest device with work in it.
    pub(super) device: Option<Ns>,
    /// How many files have it.
    pub(super) files: u64,
}

/// Repeat, window, name, and which of several of that name in one file.
type StepKey = (u32, usize, String, usize);

/// Every step of a side, in order of repeat, window and time on the first rank that has it.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps {
    pub(super) all: Vec<Step>,
    /// By file, by place of the step in it: its number here.
    of_file: Vec<Vec<u32>>,
}

impl Steps {
    pub(super) fn new(files: &[SavedFile], repeats: &[u32]) -> Self {
        let mut numbers: BTreeMap<StepKey, u32> = BTreeMap::new();
        let mut steps = Self::default();
        for (file, repeat) in files.iter().zip(repeats) {
            let mut devices: Vec<StepsByName<'_>> = file
                .devices
                .iter()
                .map(|device| StepsByName::new(&device.steps))
                .collect();
            let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
            let mut places = Vec::with_capacity(file.host.steps.len());
            for step in &file.host.steps {
                let nth = seen.entry(&step.name).or_default();
                let key = (*repeat, file.window, step.name.clone(), *nth);
                *nth += 1;
                let next = u32::try_from(steps.all.len()).unwrap_or(OUTSIDE);
                let number = *numbers.entry(key).or_insert(next);
                if number == next {
                    steps.all.push(Step {
                        repeat: *repeat,
                        window: file.window,
                        name: step.name.clone(),
                        partial: false,
                        host: Ns::ZERO,
                        device: None,
                        files: 0,
                    });
                }
                let own = &mut steps.all[number as usize];
                own.partial |= step.partial;
                own.host = own.host.max(Ns(step.wall_ns));
                own.files += 1;
                for device in &mut devices {
                    let found = device.next(&step.name).filter(|step| has_work(step));
                    own.device = own
                        .device
                        .max(found.map(|step| Ns(step.timeline.window_ns)));
                }
                places.push(number);
            }
            steps.of_file.push(places);
        }
        steps.put_in_order()
    }

    fn put_in_order(self) -> Self {
        let mut order: Vec<u32> = (0..).take(self.all.len()).collect();
        order.sort_by_key(|number| {
            let step = &self.all[*number as usize];
            (step.repeat, step.window)
        });
        let mut place = vec![0; order.len()];
        for (own, number) in (0..).zip(&order) {
            place[*number as usize] = own;
        }
        let all = order
            .iter()
            .map(|number| self.all[*number as usize].clone());
        let of_file = self.of_file.iter();
        Self {
            all: all.collect(),
            of_file: of_file
                .map(|places| {
                    places
                        .iter()
                        .map(|number| place[*number as usize])
                        .collect()
                })
                .collect(),
        }
    }

    pub(super) fn whole(&self) -> usize {
        self.all.iter().filter(|step| !step.partial).count()
    }

    /// True when some whole step has device work.
    pub(super) fn on_device(&self) -> bool {
        let mut whole = self.all.iter().filter(|step| !step.partial);
        whole.any(|step| step.device.is_some())
    }
}

fn has_work(step: &SavedDeviceStep) -> bool {
    step.totals
        .get("total")
        .is_some_and(|total| total.events > 0)
}

/// The steps of a device, by name; those of one name in their order.
pub(super) struct StepsByName<'a> {
    steps: BTreeMap<&'a str, Vec<&'a SavedDeviceStep>>,
}

impl<'a> StepsByName<'a> {
    pub(super) fn new(steps: &'a [SavedDeviceStep]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&SavedDeviceStep>> = BTreeMap::new();
        for step in steps.iter().rev() {
            by_name.entry(&step.name).or_default().push(step);
        }
        Self { steps: by_name }
    }

    /// The next step called `name`.
    pub(super) fn next(&mut self, name: &str) -> Option<&'a SavedDeviceStep> {
        self.steps.get_mut(name)?.pop()
    }
}

/// What is counted in, and which of it are the units of the test.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// By file, by place of the step in it: in which step it is counted, or [`OUTSIDE`].
    of_file: Vec<Vec<u32>>,
    /// By file: where what is in no step is counted.
    outside: Vec<u32>,
    /// By step: how many files have it.
    files: Vec<u64>,
    /// The steps of each unit.
    groups: Vec<Vec<u32>>,
    /// By step: its time, where that is known.
    pub(super) times: Vec<Option<Ns>>,
}

/// What the units of a test are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Units {
    Steps,
    GroupsOfSteps,
    Repeats,
    Captures,
}

impl Units {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::GroupsOfSteps => "groups_of_steps",
            Self::Repeats => "repeats",
            Self::Captures => "captures",
        }
    }
}

/// The units of both sides.
pub(super) fn paces(base: &Side, candidate: &Side) -> (Basis, Units, [Pace; 2]) {
    let sides = [base, candidate];
    if sides.iter().any(|side| side.steps.whole() == 0) {
        let paces = sides.map(Pace::of_captures);
        return (Basis::Captures, Units::Captures, paces);
    }
    let on_device = sides.iter().all(|side| side.steps.on_device());
    let repeats = |side: &Side| {
        let whole = side.steps.all.iter().filter(|step| !step.partial);
        let mut repeats: Vec<u32> = whole.map(|step| step.repeat).collect();
        repeats.dedup();
        repeats.len()
    };
    let units = if sides.iter().all(|side| repeats(side) >= REPEATS) {
        Units::Repeats
    } else if sides.iter().any(|side| side.steps.whole() > GROUPS) {
        Units::GroupsOfSteps
    } else {
        Units::Steps
    };
    let paces = sides.map(|side| Pace::of_steps(side, units, on_device));
    (Basis::WholeSteps, units, paces)
}

impl Pace {
    fn of_steps(side: &Side, units: Units, on_device: bool) -> Self {
        let steps = &side.steps;
        let mut number = vec![OUTSIDE; steps.all.len()];
        let mut whole: Vec<&Step> = Vec::new();
        for (step, number) in steps.all.iter().zip(&mut number) {
            if !step.partial {
                *number = u32::try_from(whole.len()).unwrap_or(OUTSIDE);
                whole.push(step);
            }
        }
        let numbers: Vec<u32> = (0..).take(whole.len()).collect();
        let groups: Vec<Vec<u32>> = match units {
            Units::Repeats => numbers
                .chunk_by(|a, b| whole[*a as usize].repeat == whole[*b as usize].repeat)
                .map(<[u32]>::to_vec)
                .collect(),
            _ => numbers
                .chunks(numbers.len().div_ceil(GROUPS).max(1))
                .map(<[u32]>::to_vec)
                .collect(),
        };
        let time = |step: &&Step| {
            let device = step.device.filter(|_| on_device);
            Some(device.unwrap_or(step.host))
        };
        Self {
            of_file: steps
                .of_file
                .iter()
                .map(|places| places.iter().map(|place| number[*place as usize]).collect())
                .collect(),
            outside: vec![OUTSIDE; steps.of_file.len()],
            files: whole.iter().map(|step| step.files).collect(),
            groups,
            times: whole.iter().map(time).collect(),
        }
    }

    /// Each window of each repeat is one step.
    fn of_captures(side: &Side) -> Self {
        let keys = side.saved.ranks.iter().zip(&side.repeats);
        let keys: Vec<(u32, usize)> = keys.map(|(file, repeat)| (*repeat, file.window)).collect();
        let mut files: BTreeMap<(u32, usize), u64> = BTreeMap::new();
        for key in &keys {
            *files.entry(*key).or_default() += 1;
        }
        let order: Vec<&(u32, usize)> = files.keys().collect();
        let outside: Vec<u32> = keys
            .iter()
            .map(|key| {
                let place = order.binary_search(&key).unwrap_or(0);
                u32::try_from(place).unwrap_or(OUTSIDE)
            })
            .collect();
        let steps = side.saved.ranks.iter().map(|file| file.host.steps.len());
        Self {
            of_file: steps
                .zip(&outside)
                .map(|(steps, outside)| vec![*outside; steps])
                .collect(),
            outside,
            files: files.values().copied().collect(),
            groups: (0..).take(files.len()).map(|step| vec![step]).collect(),
            times: vec![None; files.len()],
        }
    }

    /// Where what happens in file `file`, in its step at `place`, is counted; `None` when it is not.
    pub(super) fn step(&self, file: usize, place: u32) -> Option<u32> {
        let step = match place {
            OUTSIDE => self.outside.get(file),
            place => self.of_file.get(file)?.get(place as usize),
        };
        step.copied().filter(|step| *step != OUTSIDE)
    }

    /// How many steps of files there are.
    pub(super) fn rank_steps(&self) -> u64 {
        self.files.iter().sum()
    }

    /// How many units there are.
    pub(super) fn units(&self) -> usize {
        self.groups.len()
    }

    /// By unit: the median of `value` over its steps, each divided by the files that have it.
    pub(super) fn samples(&self, value: impl Fn(u32) -> Ns) -> Vec<f64> {
        let of_step = |step: &u32| {
            let files = self.files[*step as usize].max(1);
            value(*step).0 as f64 / files as f64
        };
        self.medians(of_step)
    }

    /// By unit: the median time of its steps; nothing where times are not known.
    pub(super) fn step_times(&self) -> Vec<f64> {
        if self.times.iter().any(Option::is_none) {
            return Vec::new();
        }
        self.medians(|step| self.times[*step as usize].unwrap_or_default().0 as f64)
    }

    fn medians(&self, value: impl Fn(&u32) -> f64) -> Vec<f64> {
        let groups = self.groups.iter();
        let medians = groups.filter_map(|steps| {
            let values: Vec<f64> = steps.iter().map(&value).collect();
            median(&values)
        });
        medians.collect()
    }
}
