use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A count of something that is shared: cores, a GPU, bytes of memory. Who asks first gets first, however much he asks for,
/// so that nobody waits for ever.
#[derive(Debug)]
pub struct Permits {
    capacity: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken: u64,
    /// Tickets of those who wait, the first one first.
    queue: VecDeque<u64>,
    next: u64,
}

/// Some of the count, until this is dropped.
#[derive(Debug)]
pub struct Permit<'a> {
    of: &'a Permits,
    amount: u64,
}

impl Permits {
    pub fn new(capacity: u64) -> Self {
        Self { capacity: capacity.max(1), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for `amount`; more than there is in all counts as all.
    pub fn take(&self, amount: u64) -> Permit<'_> {
        let amount = amount.min(self.capacity);
        let mut state = self.lock();
        let ticket = state.next;
        state.next += 1;
        state.queue.push_back(ticket);
        while state.queue.front() != Some(&ticket) || state.taken + amount > self.capacity {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.queue.pop_front();
        state.taken += amount;
        drop(state);
        // The one behind may fit too.
        self.changed.notify_all();
        Permit { of: self, amount }
    }

    /// Waits for all of it.
    pub fn take_all(&self) -> Permit<'_> {
        self.take(self.capacity)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.of.lock().taken -= self.amount;
        self.of.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn no_more_is_out_than_there_is() {
        let permits = Permits::new(5);
        let (out, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (permits, out, most) = (&permits, &out, &most);
                scope.spawn(move || {
                    for round in 0..200 {
                        // Now and then more than there is: that is all of it.
                        let amount = (thread * 31 + round) % 7 + 1;
                        let permit = permits.take(amount);
                        most.fetch_max(
                            out.fetch_add(permit.amount, Ordering::SeqCst) + permit.amount,
                            Ordering::SeqCst,
                        );
                        out.fetch_sub(permit.amount, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 5);
        assert_eq!(permits.lock().taken, 0);
    }

    #[test]
    fn who_asks_for_all_is_not_passed_by_those_who_ask_for_little() {
        let permits = Permits::new(4);
        let first = permits.take(1);
        let (order, arrivals) = channel();
        std::thread::scope(|scope| {
            let waiting = |count| {
                while permits.lock().queue.len() < count {
                    std::thread::yield_now();
                }
            };
            let (all, little) = (order.clone(), order.clone());
            let permits = &permits;
            scope.spawn(move || {
                let _permit = permits.take_all();
                all.send("all")
            });
            waiting(1);
            // There is room for it, but somebody is before it.
            scope.spawn(move || {
                let _permit = permits.take(1);
                little.send("little")
            });
            waiting(2);
            drop(first);
        });
        assert_eq!(arrivals.try_iter().collect::<Vec<_>>(), ["all", "little"]);
    }
}
