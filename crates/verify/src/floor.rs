//! Who may use something alone, and who beside others.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Something that is used alone or beside others, in phases: all who wait for the one, then all who wait for the other. So
/// those who can do their work side by side do, and nobody waits for more than what waited before him.
pub(crate) struct Floor {
    /// Those who may use it side by side.
    width: u32,
    state: Mutex<State>,
    changed: Condvar,
}

/// A use of it, until this is dropped.
pub(crate) struct Place<'a> {
    floor: &'a Floor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Beside,
    Alone,
}

struct State {
    phase: Kind,
    /// Those who still may enter in this phase where others wait for the next one.
    left: usize,
    /// Those who use it now.
    inside: u32,
    beside: Queue,
    alone: Queue,
}

#[derive(Default)]
struct Queue {
    /// Tickets of those who wait, the first one first.
    waiting: VecDeque<u64>,
    next: u64,
}

impl Floor {
    pub(crate) fn new(width: u32) -> Self {
        let (beside, alone) = (Queue::default(), Queue::default());
        let state = State { phase: Kind::Beside, left: 0, inside: 0, beside, alone };
        Self { width: width.max(1), state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits until nobody uses it alone, and there is room.
    pub(crate) fn beside(&self) -> Place<'_> {
        self.enter(Kind::Beside)
    }

    /// Waits until nobody else uses it.
    pub(crate) fn alone(&self) -> Place<'_> {
        self.enter(Kind::Alone)
    }

    fn enter(&self, kind: Kind) -> Place<'_> {
        let mut state = self.lock();
        let queue = state.queue(kind);
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.push_back(ticket);
        while !state.admits(kind, ticket, self.width) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.queue(kind).waiting.pop_front();
        state.left -= 1;
        state.inside += 1;
        drop(state);
        // The one behind may fit too.
        self.changed.notify_all();
        Place { floor: self }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn queue(&mut self, kind: Kind) -> &mut Queue {
        match kind {
            Kind::Beside => &mut self.beside,
            Kind::Alone => &mut self.alone,
        }
    }

    fn admits(&mut self, kind: Kind, ticket: u64, width: u32) -> bool {
        self.settle();
        let room = match kind {
            Kind::Alone => self.inside == 0,
            Kind::Beside => self.inside < width,
        };
        room && self.phase == kind && self.left > 0 && self.queue(kind).waiting.front() == Some(&ticket)
    }

    /// Goes on to the next phase where this one is over.
    fn settle(&mut self) {
        let other = match self.phase {
            Kind::Beside => Kind::Alone,
            Kind::Alone => Kind::Beside,
        };
        let (here, there) = (self.queue(self.phase).waiting.len(), self.queue(other).waiting.len());
        if self.left > 0 && here > 0 {
            return;
        }
        if there == 0 {
            self.left = here;
        } else if self.inside == 0 {
            (self.phase, self.left) = (other, there);
        } else {
            self.left = 0;
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.floor.lock().inside -= 1;
        self.floor.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::channel;
    use std::thread::yield_now;

    use super::*;

    #[test]
    fn who_is_alone_is_alone() {
        let floor = Floor::new(3);
        let (beside, alone, most) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (floor, beside, alone, most) = (&floor, &beside, &alone, &most);
                scope.spawn(move || {
                    for round in 0..300 {
                        if (thread + round) % 3 == 0 {
                            let _place = floor.alone();
                            assert_eq!(alone.fetch_add(1, Ordering::SeqCst) + beside.load(Ordering::SeqCst), 0);
                            alone.fetch_sub(1, Ordering::SeqCst);
                        } else {
                            let _place = floor.beside();
                            most.fetch_max(beside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            assert_eq!(alone.load(Ordering::SeqCst), 0);
                            beside.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(floor.lock().inside, 0);
    }

    #[test]
    fn those_of_a_kind_go_together_and_nobody_waits_for_who_came_later() {
        let floor = Floor::new(2);
        let (order, arrivals) = channel();
        std::thread::scope(|scope| {
            let waiting = |count| {
                let of = |state: &State| state.beside.waiting.len() + state.alone.waiting.len();
                while of(&floor.lock()) < count {
                    yield_now();
                }
            };
            let first = floor.beside();
            let asks = [Kind::Alone, Kind::Beside, Kind::Alone, Kind::Beside];
            for (at, kind) in asks.into_iter().enumerate() {
                let (order, floor) = (order.clone(), &floor);
                scope.spawn(move || {
                    let _place = floor.enter(kind);
                    order.send(at)
                });
                waiting(at + 1);
            }
            drop(first);
        });
        // Those who wait to be alone when it is free, in their order; then the others, side by side.
        let found: Vec<usize> = arrivals.try_iter().collect();
        assert_eq!(found[..2], [0, 2]);
        assert_eq!(found.len(), 4);
    }
}
