//! Operators inside operators: which are the outermost of their name, and what ran below each.
//!
//! ```text
//! aten::sum ───────────────┐    outermost of its name
//!   └─ aten::sum ──────┐   │    not: its time is in the one around it already
//!        └─ aten::mul ┐│   │    outermost of its name
//! ```

use foldhash::HashMap;

use crate::attribute::{HostThread, NONE, Op};
use crate::model::StrId;

/// By operator of `thread`: no operator around it has the same name.
pub(super) fn outermost_of_name(thread: &HostThread) -> Vec<bool> {
    let ops = &thread.ops;
    let (first, children) = children(ops);
    let mut outermost = vec![false; ops.len()];
    let mut open: HashMap<StrId, u32> = HashMap::default();
    // An operator is pushed twice: to be entered, and to be left when all inside it is done.
    let mut todo: Vec<(u32, bool)> = Vec::new();
    for (root, op) in (0u32..).zip(ops) {
        if op.parent != NONE {
            continue;
        }
        todo.push((root, true));
        while let Some((place, enters)) = todo.pop() {
            let name = ops[place as usize].name;
            let count = open.entry(name).or_default();
            if !enters {
                *count -= 1;
                continue;
            }
            outermost[place as usize] = *count == 0;
            *count += 1;
            todo.push((place, false));
            let range = first[place as usize]..first[place as usize + 1];
            todo.extend(children[range].iter().map(|child| (*child, true)));
        }
    }
    outermost
}

/// The operators directly inside each: where they start in the list, and the list.
fn children(ops: &[Op]) -> (Vec<usize>, Vec<u32>) {
    let mut first = vec![0; ops.len() + 1];
    for op in ops.iter().filter(|op| op.parent != NONE) {
        first[op.parent as usize + 1] += 1;
    }
    for place in 0..ops.len() {
        first[place + 1] += first[place];
    }
    let mut next = first.clone();
    let mut children = vec![0; first[ops.len()]];
    for (place, op) in (0u32..).zip(ops) {
        if op.parent != NONE {
            let slot = &mut next[op.parent as usize];
            children[*slot] = place;
            *slot += 1;
        }
    }
    (first, children)
}

/// Sums by key, in order of key.
pub(super) type Sums<K, V> = Vec<(K, V)>;

/// Adds `value` to what `sums` has under `key`.
pub(super) fn add<K: Ord, V>(sums: &mut Sums<K, V>, key: K, value: V, add: impl Fn(&mut V, V)) {
    match sums.binary_search_by(|(other, _)| other.cmp(&key)) {
        Ok(place) => add(&mut sums[place].1, value),
        Err(place) => sums.insert(place, (key, value)),
    }
}

/// Calls `done` with what ran below each operator (itself included), from the innermost out, given
/// what each launched itself. Sums move up and are never copied, so deep nesting costs no more.
pub(super) fn below<K: Ord, V>(
    thread: &HostThread,
    mut own: Vec<Sums<K, V>>,
    plus: impl Fn(&mut V, V) + Copy,
    mut done: impl FnMut(usize, &Sums<K, V>),
) {
    // An operator lies behind the one around it.
    for (place, op) in thread.ops.iter().enumerate().rev() {
        let sums = std::mem::take(&mut own[place]);
        if sums.is_empty() {
            continue;
        }
        done(place, &sums);
        if op.parent == NONE {
            continue;
        }
        let outer = &mut own[op.parent as usize];
        let (larger, smaller) = if outer.len() < sums.len() {
            (sums, std::mem::take(outer))
        } else {
            (std::mem::take(outer), sums)
        };
        *outer = larger;
        for (key, value) in smaller {
            add(outer, key, value, plus);
        }
    }
}
