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

    /// The candidate that has the verdict for this form; where there is none, it is the caller's to verify. Waits for whoever
    /// is at it.
    pub(super) fn claim<'f>(&'f self, form: &'f str) -> Result<Claim<'f>, u64> {
        let mut known = self.known();
        loop {
            match known.get(form) {
                Some(Known::Verified(sample)) => return Err(*sample),
                Some(Known::UnderWay) => known = self.changed.wait(known).unwrap_or_else(PoisonError::into_inner),
                None => {
                    known.insert(form.into(), Known::UnderWay);
                    return Ok(Claim { forms: self, form, owner: None });
                }
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A form that its holder verifies. Without a verdict it is free again, however its holder ends.
#[derive(Debug)]
pub(super) struct Claim<'f> {
    forms: &'f Forms,
    form: &'f str,
    owner: Option<u64>,
}

impl Claim<'_> {
    /// This candidate has the verdict, and the tree has it.
    pub(super) fn verified(mut self, sample: u64) {
        self.owner = Some(sample);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut known = self.forms.known();
        match self.owner {
            Some(sample) => known.insert(self.form.into(), Known::Verified(sample)),
            None => known.remove(self.form),
        };
        self.forms.changed.notify_all();
    }
}
