//! Keeps to what an endpoint allows: requests and tokens a minute, and requests at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pace of all requests to one endpoint.
#[derive(Debug)]
pub(super) struct Pace {
    /// Seconds from the start of a request to that of the next.
    per_request: f64,
    /// Seconds that a token holds the next request back.
    per_token: f64,
    max_concurrent: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// No request starts before.
    next: Instant,
    running: usize,
}

/// The right to one request at a time; given back when it goes.
pub(super) struct Permit<'a>(&'a Pace);

impl Pace {
    pub(super) fn new(requests_per_minute: Option<f64>, tokens_per_minute: Option<f64>, concurrent: u32) -> Self {
        let seconds = |per_minute: Option<f64>| per_minute.map_or(0.0, |rate| 60.0 / rate);
        Self {
            per_request: seconds(requests_per_minute),
            per_token: seconds(tokens_per_minute),
            max_concurrent: concurrent as usize,
            state: Mutex::new(State { next: Instant::now(), running: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Waits until a request may start.
    pub(super) fn permit(&self) -> Permit<'_> {
        let mut state = self.state();
        loop {
            if state.running >= self.max_concurrent {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let wait = state.next.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                break;
            }
            (state, _) = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
        }
        state.running += 1;
        state.next = Instant::now() + Duration::from_secs_f64(self.per_request);
        Permit(self)
    }

    /// An answer took these tokens.
    pub(super) fn spent(&self, tokens: u64) {
        let held = Duration::try_from_secs_f64(self.per_token * tokens as f64).unwrap_or_default();
        let mut state = self.state();
        state.next = state.next.max(Instant::now()) + held;
    }

    /// The server asks for a pause: it holds for everybody.
    pub(super) fn pause(&self, pause: Duration) {
        let mut state = self.state();
        state.next = state.next.max(Instant::now() + pause);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_requests_run_at_a_time_than_allowed() {
        let pace = Pace::new(None, None, 2);
        let most = Mutex::new((0usize, 0usize));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    let _permit = pace.permit();
                    let mut seen = most.lock().unwrap();
                    seen.0 += 1;
                    seen.1 = seen.1.max(seen.0);
                    drop(seen);
                    std::thread::sleep(Duration::from_millis(5));
                    most.lock().unwrap().0 -= 1;
                });
            }
        });
        let most = most.lock().unwrap().1;
        assert!((1..=2).contains(&most), "{most} at a time");
    }

    #[test]
    fn requests_tokens_and_pauses_hold_the_next_request_back() {
        let next = |pace: &Pace| pace.state().next;
        let pace = Pace::new(Some(60.0), None, 1);
        let start = Instant::now();
        drop(pace.permit());
        assert!(next(&pace) >= start + Duration::from_millis(999));

        let pace = Pace::new(None, Some(60_000.0), 1);
        let start = Instant::now();
        drop(pace.permit());
        pace.spent(5_000);
        assert!(next(&pace) >= start + Duration::from_millis(4_999));

        let pace = Pace::new(None, None, 1);
        let start = Instant::now();
        pace.pause(Duration::from_secs(7));
        assert!(next(&pace) >= start + Duration::from_secs(7));
    }
}
