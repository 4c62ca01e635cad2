//! One trace as the breakdowns see it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::allocation::{self, Pool};
use super::options::InspectOptions;
use super::recorded::{self, Recorded};
use crate::attribute::{Dissection, HostThread, Launch, Moment, NONE, Op, Work, span_of};
use crate::error::Result;
use crate::ingest::{Args, arguments};
use crate::model::{EventId, Ident, Trace};
use crate::units::{Ns, Span};

/// One trace, taken apart, with the content that it was read from.
pub(crate) struct View<'a> {
    pub(crate) dissection: &'a Dissection<'a>,
    pub(crate) options: &'a InspectOptions,
    content: &'a [u8],
    found: Arc<Found>,
}

/// What is found out about a trace once, whoever asks first.
#[derive(Default)]
struct Found {
    /// By launch.
    launchers: OnceLock<Vec<Option<Launcher>>>,
    /// By piece of device work.
    recorded: OnceLock<Vec<Recorded>>,
    pools: OnceLock<Vec<Pool>>,
}

/// Where on the host a launch was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Launcher {
    /// Number of the host thread.
    pub(crate) thread: usize,
    /// Number, on that thread, of the innermost operator open at the launch.
    pub(crate) op: Option<u32>,
}

impl<'a> View<'a> {
    pub(crate) fn new(
        dissection: &'a Dissection<'a>,
        content: &'a [u8],
        options: &'a InspectOptions,
    ) -> Self {
        Self {
            dissection,
            options,
            content,
            found: Arc::default(),
        }
    }

    /// The same trace for breakdowns with other options.
    pub(crate) fn with(&self, options: &'a InspectOptions) -> Self {
        Self {
            options,
            found: Arc::clone(&self.found),
            ..*self
        }
    }

    /// What is recorded about each piece of the dissection's device work, in its order; nothing about
    /// what does not count.
    ///
    /// # Errors
    /// When the content is not what it was when the trace was read.
    pub(crate) fn recorded(&self) -> Result<&[Recorded]> {
        let found = &self.found.recorded;
        if let Some(recorded) = found.get() {
            return Ok(recorded);
        }
        let read = recorded::of_work(self)?;
        Ok(found.get_or_init(|| read))
    }

    /// The pools of memory in order of device, each with its changes in order of time.
    ///
    /// # Errors
    /// As [`recorded`](Self::recorded).
    pub(super) fn pools(&self) -> Result<&[Pool]> {
        let found = &self.found.pools;
        if let Some(pools) = found.get() {
            return Ok(pools);
        }
        let read = allocation::pools(self)?;
        Ok(found.get_or_init(|| read))
    }

    /// The trace.
    pub(crate) fn trace(&self) -> &'a Trace {
        self.dissection.trace
    }

    /// The device work that counts (all, or what the selected steps launched), by device and start.
    pub(crate) fn work(&self) -> impl Iterator<Item = &'a Work> + use<'a, '_> {
        let counts = |work: &&Work| self.counts(work);
        self.dissection.work.iter().filter(counts)
    }

    /// True for device work that counts.
    pub(crate) fn counts(&self, work: &Work) -> bool {
        let dissection = self.dissection;
        dissection.options.steps.is_none()
            || (work.step != NONE && dissection.selected[work.step as usize])
    }

    /// The work of each device, in order of index; each in order of start.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (i64, Vec<&'a Work>)> {
        let mut devices: Vec<(i64, Vec<&'a Work>)> = Vec::new();
        for work in self.work() {
            match devices.last_mut() {
                Some((device, list)) if *device == work.device => list.push(work),
                _ => devices.push((work.device, vec![work])),
            }
        }
        devices.into_iter()
    }

    /// All work of `device`, also what does not count, in order of start.
    pub(crate) fn all_work_on(&self, device: i64) -> &'a [Work] {
        let all: &'a [Work] = &self.dissection.work;
        let from = all.partition_point(|work| work.device < device);
        let to = all.partition_point(|work| work.device <= device);
        &all[from..to]
    }

    /// The launch of `work`.
    pub(crate) fn launch(&self, work: &Work) -> Option<&'a Launch> {
        self.dissection.links.launches.get(work.launch as usize)
    }

    /// From the start to the end of the call that made the launch; empty for a launch flow.
    pub(crate) fn call(&self, launch: &Launch) -> Span {
        span_of(self.trace(), launch.event)
    }

    /// Where launch number `launch` was made; `None` outside of all known host threads.
    pub(crate) fn launcher(&self, launch: u32) -> Option<Launcher> {
        let launchers = self.found.launchers.get_or_init(|| self.find_launchers());
        launchers.get(launch as usize).copied().flatten()
    }

    fn find_launchers(&self) -> Vec<Option<Launcher>> {
        let host = self.dissection.host;
        let launches = &self.dissection.links.launches;
        let mut by_thread: Vec<Vec<Moment>> = vec![Vec::new(); host.threads.len()];
        for (key, launch) in (0u32..).zip(launches) {
            if let Some(thread) = host.thread(launch.track) {
                by_thread[thread].push(Moment { at: launch.at, key });
            }
        }
        let mut found = vec![None; launches.len()];
        for (thread, mut moments) in by_thread.into_iter().enumerate() {
            moments.sort_unstable_by_key(|moment| (moment.at, moment.key));
            let ops = host.threads[thread].innermost_at(&moments);
            for (moment, op) in moments.iter().zip(ops) {
                let op = (op != NONE).then_some(op);
                found[moment.key as usize] = Some(Launcher { thread, op });
            }
        }
        found
    }

    /// Host thread number `thread`.
    pub(crate) fn thread(&self, thread: usize) -> &'a HostThread {
        &self.dissection.host.threads[thread]
    }

    /// The operator that `launcher` names.
    pub(crate) fn op(&self, launcher: Launcher) -> Option<&'a Op> {
        Some(&self.thread(launcher.thread).ops[launcher.op? as usize])
    }

    /// The name of a step; `None` for work in no step.
    pub(crate) fn step_name(&self, step: u32) -> Option<&'a str> {
        let steps = &self.dissection.steps.all;
        Some(&steps.get(step as usize)?.name)
    }

    /// By step: the first with its name. Steps of several processes may share one.
    pub(crate) fn first_of_name(&self) -> Vec<u32> {
        let mut first: BTreeMap<&str, u32> = BTreeMap::new();
        (0u32..)
            .zip(&self.dissection.steps.all)
            .map(|(number, step)| *first.entry(&step.name).or_insert(number))
            .collect()
    }

    /// The step in which `at` lies for host thread number `thread`.
    pub(crate) fn step_at(&self, thread: usize, at: Ns) -> Option<u32> {
        let process = self.dissection.processes.threads[thread].process;
        self.dissection.steps.at(process, at)
    }

    /// True for what lies in a selected step, or anywhere when none is selected.
    pub(crate) fn wants(&self, step: Option<u32>) -> bool {
        let all = self.dissection.options.steps.is_none();
        all || step.is_some_and(|step| self.dissection.selected[step as usize])
    }

    /// `pid`, `tid` or stream as text.
    pub(crate) fn ident(&self, ident: Ident) -> Option<String> {
        match ident {
            Ident::Missing => None,
            Ident::Int(number) => Some(number.to_string()),
            Ident::Text(text) => Some(self.trace().strings.get(text).to_owned()),
        }
    }

    /// What `take` makes of the arguments `keys` of each of `wanted`, in order of number.
    ///
    /// # Errors
    /// When the content is not what it was when the trace was read.
    pub(crate) fn arguments<T: Send>(
        &self,
        wanted: &[EventId],
        keys: &[&'static str],
        take: impl Fn(EventId, &Args<'_>) -> T + Sync,
    ) -> Result<Vec<T>> {
        debug_assert!(wanted.is_sorted());
        arguments(self.content, self.trace(), wanted, keys, take)
    }
}
