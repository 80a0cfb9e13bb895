//! What launches found without ending at it: see [`Limits::go_on`](crate::Limits::go_on) and
//! [`Limits::births`](crate::Limits::births).

use std::mem::discriminant;

use crate::fault::{Birth, Fault};

/// Findings that are told apart.
const MOST: usize = 256;

#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    /// The first of each kind and place, and how many there were.
    pub(crate) faults: Vec<(Fault, u64)>,
    pub(crate) births: Vec<(Birth, u64)>,
}

impl Findings {
    pub(crate) fn note(&mut self, fault: Fault) {
        count(&mut self.faults, fault, |a, b| discriminant(a) == discriminant(b) && place(a) == place(b));
    }

    pub(crate) fn note_birth(&mut self, birth: Birth) {
        let place = |birth: &Birth| (birth.infinite, birth.operation, birth.site.line);
        count(&mut self.births, birth, |a, b| place(a) == place(b));
    }
}

fn count<T>(known: &mut Vec<(T, u64)>, new: T, same: impl Fn(&T, &T) -> bool) {
    match known.iter().position(|(old, _)| same(old, &new)) {
        Some(at) => known[at].1 += 1,
        None if known.len() < MOST => known.push((new, 1)),
        None => {}
    }
}

/// Where a fault is: lines and allocation.
fn place(fault: &Fault) -> (u32, u32, &str) {
    match fault {
        Fault::OutOfBounds { allocation, site, .. }
        | Fault::Misaligned { allocation, site, .. }
        | Fault::Lanes { allocation, site, .. } => (site.line, 0, allocation),
        Fault::Race { allocation, first, second, .. } => (second.1.line, first.1.line, allocation),
        Fault::BadAddress { site, .. }
        | Fault::Assert { site, .. }
        | Fault::Promise { site, .. }
        | Fault::Position { site, .. }
        | Fault::Deadlock { site }
        | Fault::Deadline { site }
        | Fault::Malformed { site, .. } => (site.line, 0, ""),
        Fault::Arguments { .. } | Fault::Argument { .. } | Fault::Unsupported(_) => (0, 0, ""),
    }
}
