use std::sync::atomic::{AtomicBool, Ordering};

/// What Ctrl-C does: it breaks an answer in the making off; pressed once more, or while nothing is under way, it ends the program.
#[derive(Debug, Default)]
pub(super) struct Stopper {
    busy: AtomicBool,
    interrupted: AtomicBool,
}

impl Stopper {
    /// Does some work; the flag that it is given says that it is to end early.
    pub(super) fn while_busy<T>(&self, work: impl FnOnce(&AtomicBool) -> T) -> T {
        self.interrupted.store(false, Ordering::SeqCst);
        self.busy.store(true, Ordering::SeqCst);
        let done = work(&self.interrupted);
        self.busy.store(false, Ordering::SeqCst);
        done
    }

    /// Whether the program is to end, and what is to be said.
    pub(super) fn pressed(&self) -> (bool, String) {
        let first = self.busy.load(Ordering::SeqCst) && !self.interrupted.swap(true, Ordering::SeqCst);
        let told = if first {
            "the answer is broken off, what is being verified is finished; Ctrl-C once more ends the program"
        } else {
            "interrupted: everything so far is in generated"
        };
        (!first, told.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_breaks_the_answer_off_and_the_second_ends_the_program() {
        let stop = Stopper::default();
        assert!(stop.pressed().0, "nothing is under way");
        for _ in 0..2 {
            stop.while_busy(|interrupted| {
                assert!(!interrupted.load(Ordering::SeqCst));
                assert!(!stop.pressed().0 && interrupted.load(Ordering::SeqCst));
                assert!(stop.pressed().0);
            });
        }
        assert!(stop.pressed().0);
    }
}
