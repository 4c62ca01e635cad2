//! Things that are made side by side and taken in order.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes numbered things in order, each as soon as those before it are there.
///
/// No thread waits for another: one that comes while another one takes leaves its thing to that.
pub(super) struct InOrder<T, S> {
    line: Mutex<Line<T>>,
    /// What takes them. Only the one thread that is taking locks it.
    taker: Mutex<S>,
}

struct Line<T> {
    waiting: BTreeMap<usize, T>,
    /// The number that is taken next.
    next: usize,
    taking: bool,
}

impl<T, S> InOrder<T, S> {
    pub(super) fn new(taker: S) -> Self {
        Self {
            line: Mutex::new(Line {
                waiting: BTreeMap::new(),
                next: 0,
                taking: false,
            }),
            taker: Mutex::new(taker),
        }
    }

    /// Hands over number `number`; `take` gets it now or later, or is called for others now.
    pub(super) fn put(&self, number: usize, thing: T, take: impl Fn(&mut S, usize, T)) {
        let mut line = lock(&self.line);
        line.waiting.insert(number, thing);
        if line.taking {
            return;
        }
        line.taking = true;
        while let Some((next, thing)) = line.first() {
            drop(line);
            take(&mut lock(&self.taker), next, thing);
            line = lock(&self.line);
        }
        line.taking = false;
    }

    /// The taker, when all is taken.
    pub(super) fn into_taker(self) -> S {
        self.taker
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Line<T> {
    /// What is next in order, if it is there.
    fn first(&mut self) -> Option<(usize, T)> {
        let number = self.next;
        let thing = self.waiting.remove(&number)?;
        self.next += 1;
        Some((number, thing))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_early_waits() {
        let order = InOrder::new(Vec::new());
        for number in [2, 0, 3, 1, 4] {
            order.put(number, 10 * number, |taken, number, thing| {
                taken.push((number, thing));
            });
        }
        let taken = order.into_taker();
        assert_eq!(taken, [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)]);
    }

    #[test]
    fn all_are_taken_from_many_threads() {
        let order = InOrder::new(Vec::new());
        rayon::scope(|scope| {
            for number in 0..1000 {
                let order = &order;
                scope.spawn(move |_| order.put(number, (), |taken, number, ()| taken.push(number)));
            }
        });
        assert!(order.into_taker().into_iter().eq(0..1000));
    }
}
