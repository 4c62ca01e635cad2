//! Recompute by sequence numbers: forward work run again inside backward nodes, found without
//! Python stacks.
//!
//! PyTorch writes `Sequence number` on a forward operator only while grad mode is on. The engine
//! runs backward formulas with grad mode off; checkpointed bodies are run again with it on:
//!
//! ```text
//! evaluate_function: AddmmBackward0   seq 474, fwd thread 1
//!   AddmmBackward0                    seq 474, fwd thread 1     <- the applied node
//!     aten::layer_norm                seq 485, fwd thread 0  ┐
//!     aten::linear                    seq 486, fwd thread 0  │  region
//!       aten::addmm                                          │
//!     aten::ones                                             │
//!     aten::gelu                      seq 487, fwd thread 0  ┘
//!     aten::t                                                <- the gradient formula
//!     aten::mm
//! ```
//! `create_graph=True` also turns grad mode on in backward, and hooks may compute anything, so a
//! region must pass a guard (grad mode went off again in its node) and be confirmed (it replays
//! forward operators, by name and `Input Dims`, in order). What fails is `weak`: reported, not
//! called recompute.

use foldhash::HashMap;
use rayon::prelude::*;

use super::host::{Host, HostThread, NONE, Op};
use super::names::Names;
use crate::model::StrId;

/// A region that may be recompute.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    /// Outermost operators of the region, in order.
    pub(crate) members: Vec<u32>,
    /// Passed guard and confirmation.
    pub(crate) confirmed: bool,
}

/// Regions of one thread, and which operators lie in them.
#[derive(Debug, Default)]
pub(crate) struct ThreadRegions {
    pub(crate) regions: Vec<Region>,
    /// By operator: number of the region it is in, or [`NONE`].
    pub(crate) region_of: Vec<u32>,
}

/// Finds the regions of every thread.
pub(crate) fn find(host: &Host, names: &Names) -> Vec<ThreadRegions> {
    let records_dims = host
        .threads
        .iter()
        .any(|thread| thread.ops.iter().any(|op| !op.dims.is_empty()));
    let candidates: Vec<Vec<Candidate>> = host
        .threads
        .par_iter()
        .map(|thread| candidates(thread, names, records_dims))
        .collect();
    if candidates.iter().all(Vec::is_empty) {
        return host.threads.iter().map(ThreadRegions::none).collect();
    }
    let mut forward = Forward::new(host, names);
    host.threads
        .iter()
        .zip(candidates)
        .map(|(thread, candidates)| {
            let regions = candidates
                .into_iter()
                .map(|candidate| candidate.judge(thread, names, &mut forward))
                .collect();
            ThreadRegions::new(thread, regions)
        })
        .collect()
}

/// The part of a node's children that ran with grad mode on.
struct Candidate {
    members: Vec<u32>,
    guarded: bool,
}

/// The candidate regions of a thread, one a node at most.
fn candidates(thread: &HostThread, names: &Names, records_dims: bool) -> Vec<Candidate> {
    let ops = &thread.ops;
    let has_sequence = grad_enabled(thread, names);
    // Children of nodes, grouped by node in order.
    let mut children: Vec<(u32, u32)> = (0u32..)
        .zip(ops)
        .filter(|(_, op)| op.parent != NONE && is_node(ops, op.parent))
        .map(|(place, op)| (op.parent, place))
        .collect();
    children.sort_unstable();
    let mut found = Vec::new();
    for group in children.chunk_by(|a, b| a.0 == b.0) {
        let grad = |place: u32| has_sequence[place as usize];
        let Some(first) = group.iter().position(|(_, child)| grad(*child)) else {
            continue;
        };
        let last = group
            .iter()
            .rposition(|(_, child)| grad(*child))
            .unwrap_or(first);
        let members: Vec<u32> = group[first..=last]
            .iter()
            .map(|(_, child)| *child)
            .filter(|child| !is_node(ops, *child))
            .collect();
        let node = group[0].0;
        let rest = &group[last + 1..];
        let guarded = names.get(ops[node as usize].name).checkpoint_function
            || group.iter().any(|(_, child)| {
                is_node(ops, *child) && names.get(ops[*child as usize].name).engine.is_some()
            })
            || rest.iter().any(|(_, child)| {
                !is_node(ops, *child)
                    && (!records_dims || names.get(ops[*child as usize].dims).tensor_dims)
            });
        found.push(Candidate { members, guarded });
    }
    found
}

fn is_node(ops: &[Op], place: u32) -> bool {
    ops[place as usize].node == place
}

/// By operator: it is no node, and it or something in it (outside nested nodes) is a forward
/// operator with a sequence number.
fn grad_enabled(thread: &HostThread, names: &Names) -> Vec<bool> {
    let ops = &thread.ops;
    let mut enabled: Vec<bool> = ops
        .iter()
        .map(|op| op.sequence >= 0 && op.fwd_thread == 0 && !names.get(op.name).node)
        .collect();
    for place in (0..ops.len()).rev() {
        if is_node(ops, u32::try_from(place).unwrap_or(NONE)) {
            enabled[place] = false;
        } else if enabled[place] && ops[place].parent != NONE {
            enabled[ops[place].parent as usize] = true;
        }
    }
    enabled
}

impl Candidate {
    fn judge(mut self, thread: &HostThread, names: &Names, forward: &mut Forward) -> Region {
        let keys: Vec<(u32, Key)> = self
            .members
            .iter()
            .map(|member| (*member, key_of(&thread.ops[*member as usize])))
            .filter(|(_, key)| Some(key.0) != names.detach)
            .collect();
        if self.guarded {
            // Checkpointing restores the random-number state by cloning it before and after.
            let is_clone = |key: &Key| Some(key.0) == names.clone;
            let replay: Vec<Key> = keys.iter().map(|(_, key)| *key).collect();
            let first = replay.iter().position(|key| !is_clone(key)).unwrap_or(0);
            let last = replay
                .iter()
                .rposition(|key| !is_clone(key))
                .map_or(0, |last| last + 1);
            let confirmed = forward.confirms(&replay[first..last]);
            return Region {
                members: self.members,
                confirmed,
            };
        }
        let replay: Vec<Key> = keys.iter().map(|(_, key)| *key).collect();
        let prefix = forward.common_prefix(&replay);
        if prefix < MIN_PREFIX {
            return Region {
                members: self.members,
                confirmed: false,
            };
        }
        let last = keys[prefix - 1].0;
        self.members.retain(|member| *member <= last);
        Region {
            members: self.members,
            confirmed: true,
        }
    }
}

/// Unguarded regions count only as far as they repeat at least this many forward operators.
const MIN_PREFIX: usize = 4;

/// What an operator is compared by.
type Key = (StrId, StrId);

fn key_of(op: &Op) -> Key {
    (op.name, op.dims)
}

/// Forward operators in the order they ran, one list a set of siblings.
struct Forward {
    keys: Vec<Key>,
    /// First place after the list that a place is in.
    list_end: Vec<u32>,
    /// Where each operator occurs, sorted.
    places: Vec<(Key, u32)>,
    confirmed: HashMap<Vec<Key>, bool>,
}

/// How many starting points are tried for one region. Repeated layers match at the first.
const MAX_STARTS: usize = 64;

/// How far ahead the next operator of a replay is looked for.
const WINDOW: usize = 32;

impl Forward {
    fn new(host: &Host, names: &Names) -> Self {
        let mut forward = Self {
            keys: Vec::new(),
            list_end: Vec::new(),
            places: Vec::new(),
            confirmed: HashMap::default(),
        };
        // Only so many places are looked at: which ones must not depend on the order of events.
        let mut threads: Vec<_> = host.threads.iter().collect();
        threads.sort_by_key(|thread| thread.ops.first().map(|op| (op.span.start, op.span.end)));
        for thread in threads {
            let mut members: Vec<(u32, u32)> = (0u32..)
                .zip(&thread.ops)
                .filter(|(_, op)| op.node == NONE && Some(op.name) != names.detach)
                .map(|(place, op)| (op.parent, place))
                .collect();
            members.sort_unstable();
            for list in members.chunk_by(|a, b| a.0 == b.0) {
                let end = forward.keys.len() + list.len();
                let end = u32::try_from(end).expect("fewer than 2^32 operators");
                for (_, place) in list {
                    let key = key_of(&thread.ops[*place as usize]);
                    let at = u32::try_from(forward.keys.len()).expect("fewer than 2^32 operators");
                    forward.places.push((key, at));
                    forward.keys.push(key);
                    forward.list_end.push(end);
                }
            }
        }
        forward.places.par_sort_unstable();
        forward
    }

    fn places_of(&self, key: Key) -> &[(Key, u32)] {
        let from = self.places.partition_point(|place| place.0 < key);
        let rest = &self.places[from..];
        &rest[..rest.partition_point(|place| place.0 == key)]
    }

    /// At least four fifths of the operators occur in order within one list of forward siblings,
    /// or all occur in the forward.
    fn confirms(&mut self, replay: &[Key]) -> bool {
        if replay.is_empty() {
            return false;
        }
        if let Some(known) = self.confirmed.get(replay) {
            return *known;
        }
        let confirmed =
            self.in_order(replay) || replay.iter().all(|key| !self.places_of(*key).is_empty());
        self.confirmed.insert(replay.to_vec(), confirmed);
        confirmed
    }

    fn in_order(&self, replay: &[Key]) -> bool {
        let needed = (replay.len() * 4).div_ceil(5);
        // A match has one of the first few operators; the rarest of them leaves the fewest places
        // to look at.
        let skippable = replay.len() - needed;
        let first = replay[..=skippable]
            .iter()
            .enumerate()
            .filter(|(_, key)| !self.places_of(**key).is_empty())
            .min_by_key(|(at, key)| (self.places_of(**key).len(), *at));
        let Some((skipped, key)) = first else {
            return false;
        };
        self.places_of(*key)
            .iter()
            .take(MAX_STARTS)
            .any(|(_, start)| {
                let mut at = *start as usize;
                let end = self.list_end[at] as usize;
                let mut matched = self.matched_before(at, &replay[..skipped]);
                for key in &replay[skipped..] {
                    let window = &self.keys[at..end.min(at + WINDOW)];
                    if let Some(ahead) = window.iter().position(|forward| forward == key) {
                        matched += 1;
                        at += ahead + 1;
                    }
                }
                matched >= needed
            })
    }

    /// How many of `skipped` occur in order shortly before the place `at`, in the same list.
    fn matched_before(&self, at: usize, skipped: &[Key]) -> usize {
        let mut end = at;
        let mut matched = 0;
        for key in skipped.iter().rev() {
            let window = &self.keys[end.saturating_sub(WINDOW)..end];
            let found = window.iter().rposition(|forward| forward == key);
            let Some(found) = found.map(|place| end - window.len() + place) else {
                continue;
            };
            if self.list_end[found] == self.list_end[at] {
                matched += 1;
                end = found;
            }
        }
        matched
    }

    /// The longest prefix of `replay` that is a contiguous run of forward siblings.
    fn common_prefix(&self, replay: &[Key]) -> usize {
        let starts = replay.first().map_or(&[][..], |key| self.places_of(*key));
        starts
            .iter()
            .take(MAX_STARTS)
            .map(|start| {
                let start = start.1 as usize;
                let list = &self.keys[start..self.list_end[start] as usize];
                list.iter()
                    .zip(replay)
                    .take_while(|(forward, key)| forward == key)
                    .count()
            })
            .max()
            .unwrap_or(0)
    }
}

impl ThreadRegions {
    pub(crate) fn none(thread: &HostThread) -> Self {
        Self {
            regions: Vec::new(),
            region_of: vec![NONE; thread.ops.len()],
        }
    }

    fn new(thread: &HostThread, regions: Vec<Region>) -> Self {
        let ops = &thread.ops;
        let mut region_of = vec![NONE; ops.len()];
        for (number, region) in (0u32..).zip(&regions) {
            for member in &region.members {
                region_of[*member as usize] = number;
            }
        }
        // Whole subtrees, but never across a nested node.
        for place in 0..ops.len() {
            let op = &ops[place];
            if region_of[place] == NONE
                && op.parent != NONE
                && !is_node(ops, u32::try_from(place).unwrap_or(NONE))
            {
                region_of[place] = region_of[op.parent as usize];
            }
        }
        Self { regions, region_of }
    }
}
