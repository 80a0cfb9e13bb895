//! The problems that are at hand.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tilewright_contract::VerdictKind;

use crate::pipeline::Verifier;
use crate::problem::{Problem, digest};

/// Share of the host's memory that stays free: problems are loaded beside candidates that allocate.
const SCARCE: f64 = 0.15;

/// A problem that is loaded, or will be by the first who uses it.
pub(crate) type Slot = Arc<OnceLock<Problem>>;

/// Problems by path and contents, the one that was used last at the end. A problem holds its data, on the host and on each
/// GPU, and processes that time its reference.
pub(crate) struct Shelf<'a> {
    verifier: &'a Verifier,
    /// How many are kept that nobody uses.
    limit: usize,
    held: Mutex<Vec<Held>>,
}

struct Held {
    path: PathBuf,
    digest: String,
    slot: Slot,
}

impl<'a> Shelf<'a> {
    pub(crate) fn new(verifier: &'a Verifier, limit: usize) -> Self {
        Self { verifier, limit, held: Mutex::default() }
    }

    /// A problem as its file is now. The first to ask loads it, the others wait for that.
    pub(crate) fn with<T>(&self, path: &Path, work: impl FnOnce(&Problem) -> T) -> T {
        let slot = self.slot(path);
        let problem = slot.get_or_init(|| self.verifier.load(path));
        let result = work(problem);
        if problem.oracle.as_ref().is_err_and(|stop| stop.kind == VerdictKind::Infrastructure) {
            // It may work the next time.
            self.forget(&slot);
        }
        drop(slot);
        self.tidy();
        result
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
        let mut closed = Vec::new();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = if is_scarce() { held.len().saturating_sub(1) } else { self.limit };
        while held.len() > limit.min(self.limit) {
            let Some(at) = held.iter().position(|held| Arc::strong_count(&held.slot) == 1) else { break };
            closed.push(held.remove(at));
        }
        drop(held);
        // Processes end here: nobody should wait for that.
        drop(closed);
    }
}

/// Whether less of the host's memory is free than should be. Unknown is not scarce.
fn is_scarce() -> bool {
    std::fs::read_to_string("/proc/meminfo").is_ok_and(|text| free_share(&text).is_some_and(|free| free < SCARCE))
}

/// Of all memory, the share that is free for use, by the kernel's own account.
fn free_share(meminfo: &str) -> Option<f64> {
    let field = |name: &str| -> Option<f64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(field("MemAvailable:")? / field("MemTotal:")?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_free_memory_is_read_or_unknown() {
        let text = "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    250 kB\n";
        assert_eq!(free_share(text), Some(0.25));
        assert_eq!(free_share("MemTotal: 1000 kB\n"), None);
        assert_eq!(free_share("MemTotal: x kB\nMemAvailable: 1 kB\n"), None);
    }
}
