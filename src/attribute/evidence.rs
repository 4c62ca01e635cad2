//! Which moments are recompute, by which kind of evidence.

use std::collections::BTreeMap;

use super::host::{Host, NONE};
use super::interval;
use super::names::Names;
use super::options::{AttributeOptions, RecomputeEvidence};
use super::phase::{Marker, Phase};
use super::process::{Placement, Processes};
use super::recompute::{self, ThreadRegions};
use super::result::{EvidenceShare, Recompute, WeakRecompute};
use crate::units::Ns;

/// A kind of evidence for recompute, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceKind {
    /// A `recompute` phase annotation.
    Annotation,
    /// A Python frame that re-runs a checkpointed body.
    Stack,
    /// Sequence numbers inside a backward node, guarded and confirmed.
    Sequence,
}

impl EvidenceKind {
    /// Every kind, the strongest first.
    pub const ALL: [Self; 3] = [Self::Annotation, Self::Stack, Self::Sequence];

    /// The spelling used in JSON and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::Stack => "stack",
            Self::Sequence => "sequence",
        }
    }
}

/// What is known about one moment of a host thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    pub(crate) placement: Placement,
    /// Why it is recompute, when it is.
    pub(crate) evidence: Option<EvidenceKind>,
    /// It lies in a region that failed guard or confirmation.
    pub(crate) weak: bool,
    /// Kinds that were asked for and are in the trace disagree.
    pub(crate) disagreement: bool,
}

/// Judges moments of the host threads of one trace.
pub(crate) struct Judge<'a> {
    host: &'a Host,
    names: &'a Names,
    processes: &'a Processes,
    mode: RecomputeEvidence,
    regions: Vec<ThreadRegions>,
    /// By thread, by region: a stronger kind of evidence speaks about it.
    superseded: Vec<Vec<bool>>,
    has_annotation: bool,
    has_stack: bool,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(
        host: &'a Host,
        names: &'a Names,
        processes: &'a Processes,
        options: &AttributeOptions,
    ) -> Self {
        let mode = options.recompute_evidence;
        let by_sequence = matches!(mode, RecomputeEvidence::Auto | RecomputeEvidence::Sequence);
        let by_stack = matches!(mode, RecomputeEvidence::Auto | RecomputeEvidence::Stack);
        let regions = if by_sequence {
            recompute::find(host, names)
        } else {
            host.threads.iter().map(ThreadRegions::none).collect()
        };
        let mut judge = Self {
            host,
            names,
            processes,
            mode,
            superseded: regions
                .iter()
                .map(|thread| vec![false; thread.regions.len()])
                .collect(),
            regions,
            has_annotation: processes.threads.iter().any(|thread| {
                thread
                    .phases
                    .iter()
                    .any(|piece| piece.value == Marker::Explicit(Phase::Recompute))
            }),
            has_stack: by_stack
                && host
                    .threads
                    .iter()
                    .any(|thread| !thread.recompute_frames.is_empty()),
        };
        if mode == RecomputeEvidence::Auto && (judge.has_annotation || judge.has_stack) {
            judge.supersede();
        }
        judge
    }

    /// Marks regions that a stronger kind of evidence touches: there it decides alone.
    fn supersede(&mut self) {
        for (thread, regions) in self.regions.iter().enumerate() {
            for (op, region) in (0u32..).zip(&regions.region_of) {
                if *region == NONE || self.superseded[thread][*region as usize] {
                    continue;
                }
                let at = self.host.threads[thread].ops[op as usize].span.start;
                if self.annotated(at, thread, op) || self.on_stack(at, thread, op) {
                    self.superseded[thread][*region as usize] = true;
                }
            }
        }
    }

    /// The verdict on a moment of `thread` whose innermost operator is `op` (or [`NONE`]).
    pub(crate) fn verdict(&self, at: Ns, thread: usize, op: u32) -> Verdict {
        let placement = self.processes.place(self.host, self.names, at, thread, op);
        let region = match op {
            NONE => NONE,
            op => self.regions[thread].region_of[op as usize],
        };
        let confirmed = region != NONE && self.regions[thread].regions[region as usize].confirmed;
        let annotation = placement.phase == Phase::Recompute;
        let stack = self.has_stack && self.on_stack(at, thread, op);
        let superseded = region != NONE && self.superseded[thread][region as usize];
        let evidence = if annotation {
            Some(EvidenceKind::Annotation)
        } else if stack {
            Some(EvidenceKind::Stack)
        } else {
            (confirmed && !superseded).then_some(EvidenceKind::Sequence)
        };
        let disagreement = self.mode == RecomputeEvidence::Auto
            && ((self.has_annotation && annotation != evidence.is_some())
                || (self.has_stack && stack != evidence.is_some())
                || (self.host.records_sequence && confirmed != evidence.is_some()));
        let placement = match evidence {
            Some(_) => Placement {
                inferred: placement.inferred,
                ..Placement::of(Phase::Recompute)
            },
            None => placement,
        };
        let weak = region != NONE && !confirmed && evidence.is_none();
        Verdict {
            placement,
            evidence,
            weak,
            disagreement,
        }
    }

    /// True when recompute would leave a mark: sequence numbers, or annotations or frames that are
    /// there. Where the engine ran no node, there was nothing to recompute.
    pub(crate) fn can_see(&self, options: &AttributeOptions) -> bool {
        let by_sequence = !matches!(
            options.recompute_evidence,
            RecomputeEvidence::Annotation | RecomputeEvidence::Stack
        );
        let operators = self
            .host
            .threads
            .iter()
            .any(|thread| !thread.ops.is_empty());
        (by_sequence && operators && (self.host.records_sequence || !self.host.records_engine))
            || self.has_annotation
            || self.has_stack
    }

    fn annotated(&self, at: Ns, thread: usize, op: u32) -> bool {
        self.processes
            .place(self.host, self.names, at, thread, op)
            .phase
            == Phase::Recompute
    }

    /// Inside a frame that re-runs a body, and not in an engine run nested in it.
    fn on_stack(&self, at: Ns, thread: usize, op: u32) -> bool {
        let thread = &self.host.threads[thread];
        let Some(frame) = interval::find(&thread.recompute_frames, at) else {
            return false;
        };
        let node = match op {
            NONE => NONE,
            op => thread.ops[op as usize].node,
        };
        node == NONE || thread.ops[node as usize].span.start < frame.start
    }

    /// Number, on its thread, of the region or frame that a recompute moment belongs to.
    fn place_of(&self, kind: EvidenceKind, at: Ns, thread: usize, op: u32) -> usize {
        match kind {
            EvidenceKind::Sequence => self.regions[thread].region_of[op as usize] as usize,
            EvidenceKind::Stack => {
                let frames = &self.host.threads[thread].recompute_frames;
                frames.partition_point(|frame| frame.start <= at)
            }
            EvidenceKind::Annotation => 0,
        }
    }
}

/// Sums of recompute over one file.
#[derive(Default)]
pub(crate) struct Tally {
    /// `recompute` annotation ranges.
    pub(crate) annotations: u64,
    shares: BTreeMap<EvidenceKind, EvidenceShare>,
    host_self_ns: Ns,
    disagreement_ns: Ns,
    weak: WeakRecompute,
    /// Regions and frames with at least one operator: kind, thread, number on the thread.
    places: Vec<(EvidenceKind, usize, usize)>,
    weak_places: Vec<(usize, u32)>,
}

impl Tally {
    pub(crate) fn count_device(&mut self, verdict: Verdict, dur: Ns) {
        if let Some(kind) = verdict.evidence {
            self.shares.entry(kind).or_default().device_sum_ns += dur;
        }
        if verdict.disagreement {
            self.disagreement_ns += dur;
        }
        if verdict.weak {
            self.weak.device_sum_ns += dur;
        }
    }

    pub(crate) fn count_op(&mut self, judge: &Judge<'_>, verdict: Verdict, thread: usize, op: u32) {
        let own = &judge.host.threads[thread].ops[op as usize];
        if let Some(kind) = verdict.evidence {
            self.shares.entry(kind).or_default().ops += 1;
            self.host_self_ns += own.self_ns;
            let place = (
                kind,
                thread,
                judge.place_of(kind, own.span.start, thread, op),
            );
            if self.places.last() != Some(&place) {
                self.places.push(place);
            }
        }
        if verdict.weak {
            self.weak.ops += 1;
            self.weak.host_self_ns += own.self_ns;
            let place = (thread, judge.regions[thread].region_of[op as usize]);
            if self.weak_places.last() != Some(&place) {
                self.weak_places.push(place);
            }
        }
    }

    /// Adds what another part counted.
    pub(crate) fn add(&mut self, other: Self) {
        self.annotations += other.annotations;
        for (kind, theirs) in other.shares {
            let share = self.shares.entry(kind).or_default();
            share.regions += theirs.regions;
            share.ops += theirs.ops;
            share.device_sum_ns += theirs.device_sum_ns;
        }
        self.host_self_ns += other.host_self_ns;
        self.disagreement_ns += other.disagreement_ns;
        self.weak.regions += other.weak.regions;
        self.weak.ops += other.weak.ops;
        self.weak.device_sum_ns += other.weak.device_sum_ns;
        self.weak.host_self_ns += other.weak.host_self_ns;
        self.places.extend(other.places);
        self.weak_places.extend(other.weak_places);
    }

    pub(crate) fn finish(mut self, observable: &'static str) -> Recompute {
        self.places.sort_unstable();
        self.places.dedup();
        self.weak_places.sort_unstable();
        self.weak_places.dedup();
        self.weak.regions = self.weak_places.len() as u64;
        for (kind, _, _) in &self.places {
            if *kind != EvidenceKind::Annotation {
                self.shares.entry(*kind).or_default().regions += 1;
            }
        }
        if let Some(share) = self.shares.get_mut(&EvidenceKind::Annotation) {
            share.regions = self.annotations;
        }
        let mut recompute = Recompute {
            observable,
            ..Recompute::default()
        };
        for share in self.shares.values() {
            recompute.regions += share.regions;
            recompute.ops += share.ops;
            recompute.device_sum_ns += share.device_sum_ns;
        }
        recompute.host_self_ns = self.host_self_ns;
        recompute.disagreement_ns = self.disagreement_ns;
        recompute.weak = self.weak;
        recompute.by_evidence = self
            .shares
            .into_iter()
            .map(|(kind, share)| (kind.as_str(), share))
            .collect();
        recompute.evidence = recompute.kind_of_evidence();
        recompute
    }
}
