//! Which accesses of other programs come before the present one, by release and acquire through atomic operations.
//!
//! A program counts its releases; an access is named by its program and the count at its time. Each release keeps
//! which earlier releases its program had acquired: a graph in which "comes before" is reachability. It is searched
//! only where two programs really touch the same memory, so that programs that only add atomically pay nothing.

use std::collections::{HashMap, HashSet};

/// Where one program stands.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The program's number plus one.
    pub(super) program: u32,
    /// Releases so far.
    pub(super) clock: u32,
    /// What it has acquired; its own last release among it.
    after: Vec<u32>,
    /// Counts changes of `after`.
    version: u64,
    /// Stores so far.
    pub(super) stores: u64,
    /// It has accessed memory since its last release.
    pub(super) dirty: bool,
}

impl Progress {
    pub(super) fn new(number: u64) -> Self {
        Self { program: number as u32 + 1, ..Self::default() }
    }

    /// Everything before a release comes before what follows here.
    pub(super) fn acquire(&mut self, release: u32) {
        if self.after.last() != Some(&release) {
            self.after.push(release);
            self.version += 1;
        }
    }
}

#[derive(Debug)]
struct Release {
    program: u32,
    clock: u32,
    after: Vec<u32>,
}

/// All releases of a launch.
#[derive(Debug, Default)]
pub(super) struct Order {
    releases: Vec<Release>,
    search: Search,
}

/// What is known of one program's past; kept while that program asks.
#[derive(Debug, Default)]
struct Search {
    program: u32,
    version: u64,
    open: Vec<u32>,
    seen: HashSet<u32>,
    /// The latest count of each program that comes before.
    known: HashMap<u32, u32>,
}

impl Order {
    /// A release by a program. `also` are releases that go on through the same location without being acquired.
    pub(super) fn release(&mut self, progress: &mut Progress, also: &[u32]) -> u32 {
        // A program that spins has nothing new to tell.
        if let ([last], false, []) = (progress.after.as_slice(), progress.dirty, also)
            && let Release { program, clock, .. } = self.releases[*last as usize]
            && (program, clock + 1) == (progress.program, progress.clock)
        {
            return *last;
        }
        progress.dirty = false;
        let number = self.releases.len() as u32;
        let mut after = std::mem::replace(&mut progress.after, vec![number]);
        after.sort_unstable();
        after.dedup();
        if !also.is_empty() {
            // What the location carried belongs to it, not to the program.
            progress.after.clone_from(&after);
            after.extend_from_slice(also);
        }
        self.releases.push(Release { program: progress.program, clock: progress.clock, after });
        progress.clock += 1;
        progress.version += 1;
        number
    }

    /// Whether all that a program did until it had released `clock` times comes before the present.
    pub(super) fn before(&mut self, progress: &Progress, program: u32, clock: u32) -> bool {
        let search = &mut self.search;
        if search.program != progress.program {
            *search = Search { program: progress.program, version: u64::MAX, ..Search::default() };
        }
        if search.version != progress.version {
            for &release in &progress.after {
                if search.seen.insert(release) {
                    search.open.push(release);
                }
            }
            search.version = progress.version;
        }
        let knows = |search: &Search| search.known.get(&program).is_some_and(|&known| known >= clock);
        while !knows(search) {
            let Some(release) = search.open.pop() else { return false };
            let Release { program, clock, after } = &self.releases[release as usize];
            let known = search.known.entry(*program).or_insert(*clock);
            *known = (*known).max(*clock);
            for &earlier in after {
                if search.seen.insert(earlier) {
                    search.open.push(earlier);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vector clocks, the textbook form, as an independent implementation.
    #[derive(Clone, Default)]
    struct Clocks(HashMap<u32, u32>);

    impl Clocks {
        fn join(&mut self, other: &Self) {
            for (&program, &clock) in &other.0 {
                let mine = self.0.entry(program).or_insert(clock);
                *mine = (*mine).max(clock);
            }
        }
    }

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_vector_clocks(events in prop::collection::vec((0u32..5, 0usize..3, any::<[bool; 3]>()), 1..60)) {
            let mut order = Order::default();
            let mut programs: Vec<Progress> = (0..5).map(Progress::new).collect();
            let mut clocks = vec![Clocks::default(); 5];
            let mut locations: Vec<Option<u32>> = vec![None; 3];
            let mut vectors = vec![Clocks::default(); 3];
            for (program, location, [access, acquire, release]) in events {
                let at = program as usize;
                programs[at].dirty |= access;
                if acquire {
                    if let Some(number) = locations[location] {
                        programs[at].acquire(number);
                    }
                    let seen = vectors[location].clone();
                    clocks[at].join(&seen);
                }
                if release {
                    let also: Vec<u32> = if acquire { Vec::new() } else { locations[location].into_iter().collect() };
                    locations[location] = Some(order.release(&mut programs[at], &also));
                    let mut own = clocks[at].clone();
                    own.0.insert(program + 1, programs[at].clock - 1);
                    vectors[location].join(&own);
                }
                for asking in 0..5u32 {
                    for other in (0..5u32).filter(|&other| other != asking) {
                        for clock in 0..programs[other as usize].clock {
                            let wanted = clocks[asking as usize].0.get(&(other + 1)).is_some_and(|&known| known >= clock);
                            prop_assert_eq!(order.before(&programs[asking as usize], other + 1, clock), wanted);
                        }
                    }
                }
            }
        }
    }
}
