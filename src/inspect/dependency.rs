//! The graph of what waits for what, and the longest path through it.
//!
//! A node is the start or end of an event, an edge something that has to be over before its end:
//!
//! ```text
//! host      ├─ op A ──────────────────────┤   ├─ op D ─┤
//!              ├─ launch ─┤   ├─ sync ──┤
//! stream 7        └→ ├─ k1 ─┤→├─ k2 ─┤ ↑
//!                                    └─┘
//! A.start →launch.start →launch.end →sync.start →sync.end →A.end →D.start →D.end
//! launch.start →k1.start  (launch delay)       k2.end →sync.end  (synchronisation)
//! k1.end →k2.start        (kernel delay)       A.end →D.start    (dependency, 0 ns)
//! ```
//! The time of an edge is the difference between its nodes, except that dependencies, synchronisations
//! and the way to the end of a call that waits take none. All edges go forward in time, so a path is never
//! longer than the time from its first to its last node.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::attribute::NONE;
use crate::units::Ns;

/// Number of a node.
pub(super) type NodeId = u32;

/// What an edge stands for, with the names of HTA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EdgeType {
    /// Within an operator, call or kernel.
    OperatorKernel,
    /// From an outermost operator to the next of its thread.
    Dependency,
    /// From the call to the kernel that it launches.
    KernelLaunchDelay,
    /// From a kernel to the next on its stream.
    KernelKernelDelay,
    /// From a kernel to what waits for it.
    SyncDependency,
}

impl EdgeType {
    pub(super) const ALL: [Self; 5] = [
        Self::OperatorKernel,
        Self::Dependency,
        Self::KernelLaunchDelay,
        Self::KernelKernelDelay,
        Self::SyncDependency,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::OperatorKernel => "operator_kernel",
            Self::Dependency => "dependency",
            Self::KernelLaunchDelay => "kernel_launch_delay",
            Self::KernelKernelDelay => "kernel_kernel_delay",
            Self::SyncDependency => "sync_dependency",
        }
    }
}

/// Whose time an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// Nobody's: it takes none.
    Nobody,
    /// A host event, by number; true inside of data loading.
    Host(u32, bool),
    /// Device work, by number.
    Work(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) kind: EdgeType,
    pub(super) weight: Ns,
    pub(super) owner: Owner,
}

/// Nodes with their times, and edges between them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) times: Vec<Ns>,
    pub(super) edges: Vec<Edge>,
    /// Edges left out since they go back in time.
    pub(super) left_out: u64,
}

impl Graph {
    pub(super) fn node(&mut self, at: Ns) -> NodeId {
        let id = u32::try_from(self.times.len()).expect("fewer nodes than twice the events");
        self.times.push(at);
        id
    }

    /// Adds an edge that takes the time between its nodes.
    pub(super) fn timed(&mut self, from: NodeId, to: NodeId, kind: EdgeType, owner: Owner) {
        let weight = self.times[to as usize] - self.times[from as usize];
        self.add(from, to, kind, weight, owner);
    }

    /// Adds an edge that takes no time.
    pub(super) fn untimed(&mut self, from: NodeId, to: NodeId, kind: EdgeType, owner: Owner) {
        self.add(from, to, kind, Ns::ZERO, owner);
    }

    fn add(&mut self, from: NodeId, to: NodeId, kind: EdgeType, weight: Ns, owner: Owner) {
        if self.times[from as usize] > self.times[to as usize] {
            self.left_out += 1;
            return;
        }
        self.edges.push(Edge {
            from,
            to,
            kind,
            weight,
            owner,
        });
    }

    /// From the first to the last node.
    pub(super) fn extent(&self) -> Ns {
        match (self.times.iter().min(), self.times.iter().max()) {
            (Some(first), Some(last)) => *last - *first,
            _ => Ns::ZERO,
        }
    }

    /// The numbers of the edges of the longest path, in order; of several, the one whose edges were added
    /// first.
    ///
    /// Nodes are taken when all that lead to them are, earliest first. Nodes of one instant can lead to
    /// one another in a circle; then the first of them is taken as it is.
    pub(super) fn longest_path(&self) -> Vec<usize> {
        let count = self.times.len();
        let (into_from, into) = self.lists(|edge| edge.to);
        let (out_from, out) = self.lists(|edge| edge.from);
        let mut open: Vec<u32> = (0..count)
            .map(|node| into_from[node + 1] - into_from[node])
            .collect();
        let mut by_time: Vec<NodeId> = (0u32..).take(count).collect();
        by_time.sort_unstable_by_key(|node| (self.times[*node as usize], *node));
        let key = |node: NodeId| Reverse((self.times[node as usize], node));
        let mut ready: BinaryHeap<_> = by_time
            .iter()
            .filter(|node| open[**node as usize] == 0)
            .map(|node| key(*node))
            .collect();
        let mut taken = vec![false; count];
        let mut lengths = vec![Ns::ZERO; count];
        let mut last_edges = vec![NONE; count];
        let mut best: Option<NodeId> = None;
        let mut oldest = by_time.iter();
        loop {
            let node = match ready.pop() {
                Some(Reverse((_, node))) => node,
                None => match oldest.find(|node| !taken[**node as usize]) {
                    Some(node) => *node,
                    None => break,
                },
            };
            let place = node as usize;
            if taken[place] {
                continue;
            }
            taken[place] = true;
            for number in &into[range(&into_from, place)] {
                let edge = &self.edges[*number as usize];
                let length = lengths[edge.from as usize] + edge.weight;
                let first = last_edges[place] == NONE;
                if taken[edge.from as usize]
                    && edge.from != node
                    && (first || length > lengths[place])
                {
                    lengths[place] = length;
                    last_edges[place] = *number;
                }
            }
            if best.is_none_or(|best| lengths[place] > lengths[best as usize]) {
                best = Some(node);
            }
            for number in &out[range(&out_from, place)] {
                let to = self.edges[*number as usize].to;
                open[to as usize] -= 1;
                if open[to as usize] == 0 && !taken[to as usize] {
                    ready.push(key(to));
                }
            }
        }
        let mut path = Vec::new();
        let mut at = best;
        while let Some(node) = at {
            let number = last_edges[node as usize];
            if number == NONE {
                break;
            }
            path.push(number as usize);
            at = Some(self.edges[number as usize].from);
        }
        path.reverse();
        path
    }

    /// The edges by one of their nodes: where each node's begin, and their numbers in order.
    fn lists(&self, of: impl Fn(&Edge) -> NodeId) -> (Vec<u32>, Vec<u32>) {
        let mut from = vec![0u32; self.times.len() + 1];
        for edge in &self.edges {
            from[of(edge) as usize + 1] += 1;
        }
        for node in 1..from.len() {
            from[node] += from[node - 1];
        }
        let mut next = from.clone();
        let mut list = vec![0u32; self.edges.len()];
        for (number, edge) in (0u32..).zip(&self.edges) {
            let place = &mut next[of(edge) as usize];
            list[*place as usize] = number;
            *place += 1;
        }
        (from, list)
    }
}

fn range(from: &[u32], node: usize) -> std::ops::Range<usize> {
    from[node] as usize..from[node + 1] as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(times: &[i64], edges: &[(u32, u32, bool)]) -> Graph {
        let mut graph = Graph::default();
        for at in times {
            graph.node(Ns(*at));
        }
        for (from, to, timed) in edges {
            if *timed {
                graph.timed(*from, *to, EdgeType::OperatorKernel, Owner::Nobody);
            } else {
                graph.untimed(*from, *to, EdgeType::SyncDependency, Owner::Nobody);
            }
        }
        graph
    }

    fn path(graph: &Graph) -> Vec<(u32, u32)> {
        let numbers = graph.longest_path();
        numbers
            .iter()
            .map(|number| (graph.edges[*number].from, graph.edges[*number].to))
            .collect()
    }

    #[test]
    fn the_longest_path_goes_over_the_most_time() {
        // 0 ─10→ 1 ─0→ 3, 0 ─7→ 2 ─8→ 3
        let graph = graph(
            &[0, 10, 7, 15],
            &[(0, 1, true), (1, 3, false), (0, 2, true), (2, 3, true)],
        );
        assert_eq!(path(&graph), [(0, 2), (2, 3)]);
        assert_eq!(graph.extent(), Ns(15));
    }

    #[test]
    fn of_equal_paths_the_first_counts() {
        let graph = graph(
            &[0, 5, 5, 9],
            &[(0, 2, true), (0, 1, true), (2, 3, true), (1, 3, true)],
        );
        assert_eq!(path(&graph), [(0, 2), (2, 3)]);
    }

    #[test]
    fn edges_back_in_time_are_left_out_and_circles_end() {
        let mut graph = graph(
            &[0, 5, 5, 5, 8],
            &[
                (0, 1, true),
                (1, 2, false),
                (2, 3, false),
                (3, 1, false),
                (3, 4, true),
                (4, 0, true),
            ],
        );
        assert_eq!(graph.left_out, 1);
        assert_eq!(path(&graph), [(0, 1), (1, 2), (2, 3), (3, 4)]);
        graph.untimed(4, 4, EdgeType::SyncDependency, Owner::Nobody);
        assert_eq!(path(&graph), [(0, 1), (1, 2), (2, 3), (3, 4)]);
        assert!(Graph::default().longest_path().is_empty());
    }
}
