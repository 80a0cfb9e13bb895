//! The problems that are at hand.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tilewright_contract::VerdictKind;

use crate::pipeline::Verifier;
use crate::problem::{Problem, digest};
use crate::room;

/// A problem that is loaded, or will be by the first who uses it.
pub(crate) type Slot = Arc<OnceLock<Problem>>;

/// Problems by path and contents, the one that was used last at the end. A problem holds its data, on the host and on each
/// GPU, and processes that time its reference.
pub(crate) struct Shelf<'a> {
    verifier: &'a Verifier,
    /// How many are kept that nobody uses.
    limit: usize,
    /// Bytes of a problem's data that were fetched from a GPU, and may stay in our memory.
    copies: u64,
    held: Mutex<Vec<Held>>,
}

struct Held {
    path: PathBuf,
    digest: String,
    slot: Slot,
}

impl<'a> Shelf<'a> {
    pub(crate) fn new(verifier: &'a Verifier, limit: usize) -> Self {
        Self { verifier, limit, copies: room::for_copies(), held: Mutex::default() }
    }

    /// A problem as its file is now. The first to ask loads it, the others wait for that.
    pub(crate) fn with<T>(&self, path: &Path, work: impl FnOnce(&Problem) -> T) -> T {
        let slot = self.slot(path);
        let problem = slot.get_or_init(|| self.load(path));
        let result = work(problem);
        let failed = problem.oracle.as_ref().is_err_and(|stop| stop.kind == VerdictKind::Infrastructure);
        // It may work the next time; and copies of data go with the last who uses them.
        if failed || problem.copied() > self.copies {
            self.forget(&slot);
        }
        drop(slot);
        self.tidy();
        result
    }

    /// Loads a problem; where there is no room for it, once more when those have gone that nobody uses.
    fn load(&self, path: &Path) -> Problem {
        let problem = self.verifier.load(path);
        if problem.lacks_room() && self.close(0) { self.verifier.load(path) } else { problem }
    }

    fn slot(&self, path: &Path) -> Slot {
        let digest = digest(&std::fs::read(path).unwrap_or_default());
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let found = held.iter().position(|held| held.path == path && held.digest == digest);
        let found = match found {
            Some(at) => held.remove(at),
            None => Held { path: path.to_owned(), digest, slot: Slot::default() },
        };
        let slot = Arc::clone(&found.slot);
        held.push(found);
        slot
    }

    fn forget(&self, slot: &Slot) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).retain(|held| !Arc::ptr_eq(&held.slot, slot));
    }

    /// Closes those that nobody uses and that are too many, the one that was not used for longest first; where the host's
    /// memory is scarce, one more for each candidate.
    fn tidy(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).len();
        let limit = if room::is_scarce() { held.saturating_sub(1) } else { self.limit };
        self.close(limit.min(self.limit));
    }

    /// Closes those that nobody uses until as many are left; whether there were any.
    fn close(&self, limit: usize) -> bool {
        let mut closed = Vec::new();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while held.len() > limit {
            let Some(at) = held.iter().position(|held| Arc::strong_count(&held.slot) == 1) else { break };
            closed.push(held.remove(at));
        }
        drop(held);
        // Processes end here: nobody should wait for that with the shelf in his hands.
        !closed.is_empty()
    }
}

impl Drop for Shelf<'_> {
    /// Each has processes that take a moment to end.
    fn drop(&mut self) {
        let held = std::mem::take(self.held.get_mut().unwrap_or_else(PoisonError::into_inner));
        std::thread::scope(|threads| {
            for held in held {
                threads.spawn(|| drop(held));
            }
        });
    }
}
