//! Which candidates are the same: none is verified twice, also not at the same time.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::Tree;

/// What is known of each form of a candidate.
#[derive(Debug, Default)]
pub(super) struct Forms {
    known: Mutex<HashMap<String, Known>>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy)]
enum Known {
    /// Somebody verifies it.
    UnderWay,
    /// This candidate has its verdict.
    Verified(u64),
}

impl Forms {
    /// The forms that have a verdict: of the text, and of what it does.
    pub(super) fn of(tree: &Tree, form: impl Fn(&str) -> String) -> Self {
        let mut known = HashMap::new();
        for node in tree.nodes.values() {
            let (Some(checked), Ok(source)) = (&node.checked, &node.answer.source) else { continue };
            let verified = Known::Verified(checked.same_as.unwrap_or(node.sample));
            known.extend(checked.twin.iter().cloned().chain([form(source)]).map(|form| (form, verified)));
        }
        Self { known: Mutex::new(known), changed: Condvar::new() }
    }

    /// The candidate that has the verdict for this form; none where the caller is to verify it, and then to call
    /// [`Self::verified`] or [`Self::give_up`]. Waits for whoever is at it.
    pub(super) fn claim(&self, form: &str) -> Option<u64> {
        let mut known = self.known();
        loop {
            match known.get(form) {
                Some(Known::Verified(sample)) => return Some(*sample),
                Some(Known::UnderWay) => known = self.changed.wait(known).unwrap_or_else(PoisonError::into_inner),
                None => {
                    known.insert(form.into(), Known::UnderWay);
                    return None;
                }
            }
        }
    }

    pub(super) fn verified(&self, form: &str, sample: u64) {
        self.known().insert(form.into(), Known::Verified(sample));
        self.changed.notify_all();
    }

    pub(super) fn give_up(&self, form: &str) {
        self.known().remove(form);
        self.changed.notify_all();
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
