//! What to ask for next: pure functions of what is known, so that a run that was killed goes on as it would have.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{Node, Tree};

/// A candidate that is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    pub sample: u64,
    /// The candidate that it is to be better than.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
}

/// The shape of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Plan {
    /// Best of n: so many conversations of so many turns, none of which knows of the others.
    Chains { n: u32, rounds: u32 },
    /// In each round `children` candidates, each a child of whichever candidate is worth it.
    Search { children: u32, rounds: u32, select: Selection, window: Window },
    /// One candidate more, as round number `round`.
    One { round: u32, parent: Option<u64> },
}

/// Which candidate gets a child.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Selection {
    /// The children go to the best ones, one each; more than one where there are fewer candidates than children.
    Reward,
    /// By reward, and by how seldom it was tried: `reward / best + explore * sqrt(ln(visits of all) / visits)`.
    Ucb { explore: f64 },
}

/// Which of the turns that led to a candidate its child is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last ones.
    Last(u32),
    /// The consecutive ones with the largest sum of rewards; of equals, the latest.
    Best(u32),
}

impl Plan {
    /// The next round; empty when there is none. An author who does not learn is asked for no second turn, and in a search goes on
    /// with his list.
    pub(crate) fn next(&self, tree: &Tree, learns: bool) -> Vec<Planned> {
        let done = tree.rounds.len() as u32;
        let parents = match *self {
            Self::Chains { n, rounds } => turns(tree, n as usize, rounds as usize, learns),
            Self::Search { rounds, .. } if done >= rounds => Vec::new(),
            Self::Search { children, .. } if done == 0 || !learns => vec![None; children as usize],
            Self::Search { children, select, .. } => {
                select.parents(tree, children as usize).into_iter().map(Some).collect()
            }
            Self::One { round, .. } if done > round => Vec::new(),
            Self::One { parent, .. } => vec![parent.filter(|_| learns)],
        };
        let next = tree.next_sample();
        parents.into_iter().zip(next..).map(|(parent, sample)| Planned { sample, parent }).collect()
    }

    /// The turns that a child of this candidate is told.
    pub(crate) fn turns<'a>(&self, path: &[&'a Node]) -> Vec<&'a Node> {
        match *self {
            Self::Chains { .. } | Self::One { .. } => path.to_vec(),
            Self::Search { window, .. } => window.of(path),
        }
    }
}

/// The parents of the next turns: conversations that are to begin come first, so that a run goes on with a larger `n`; then each
/// conversation that has fewer turns than `rounds` gets its next one.
fn turns(tree: &Tree, n: usize, rounds: usize, learns: bool) -> Vec<Option<u64>> {
    let planned = || tree.rounds.iter().flatten();
    let begun = planned().filter(|planned| planned.parent.is_none()).count();
    if begun < n {
        return vec![None; n - begun];
    }
    if !learns {
        return Vec::new();
    }
    let followed: HashSet<u64> = planned().filter_map(|planned| planned.parent).collect();
    let ends = tree.nodes.keys().filter(|&&sample| !followed.contains(&sample) && tree.is_done(sample));
    ends.filter(|&&sample| tree.path(sample).len() < rounds).map(|&sample| Some(sample)).collect()
}

impl Selection {
    fn parents(self, tree: &Tree, count: usize) -> Vec<u64> {
        // Children of a candidate that is the same as another would be children of the other one.
        let known: Vec<&Node> = tree.distinct().into_iter().filter(|node| tree.is_done(node.sample)).collect();
        if known.is_empty() {
            return Vec::new();
        }
        match self {
            Self::Reward => by_reward(known, count),
            Self::Ucb { explore } => by_ucb(tree, &known, count, explore),
        }
    }
}

fn by_reward(mut known: Vec<&Node>, count: usize) -> Vec<u64> {
    known.sort_by(|a, b| b.reward().total_cmp(&a.reward()).then(a.sample.cmp(&b.sample)));
    known.iter().cycle().take(count).map(|node| node.sample).collect()
}

/// One child after the other, as if those before it had already come to nothing new.
fn by_ucb(tree: &Tree, known: &[&Node], count: usize, explore: f64) -> Vec<u64> {
    let best = known.iter().map(|node| node.reward()).fold(f64::MIN_POSITIVE, f64::max);
    let mut visits: Vec<u32> = known.iter().map(|node| 1 + children(tree, node.sample)).collect();
    let mut chosen = Vec::new();
    for _ in 0..count {
        let total = f64::from(visits.iter().sum::<u32>());
        let worth = |index: usize| {
            known[index].reward() / best + explore * (total.ln().max(0.0) / f64::from(visits[index])).sqrt()
        };
        let Some(index) = (0..known.len()).max_by(|&a, &b| worth(a).total_cmp(&worth(b)).then(b.cmp(&a))) else {
            break;
        };
        visits[index] += 1;
        chosen.push(known[index].sample);
    }
    chosen
}

fn children(tree: &Tree, sample: u64) -> u32 {
    tree.rounds.iter().flatten().filter(|planned| planned.parent == Some(sample)).count() as u32
}

impl Window {
    fn of<'a>(self, path: &[&'a Node]) -> Vec<&'a Node> {
        match self {
            Self::Last(size) => path[path.len().saturating_sub(size as usize)..].to_vec(),
            Self::Best(size) => best_window(path, size as usize).to_vec(),
        }
    }
}

fn best_window<'p, 'a>(path: &'p [&'a Node], size: usize) -> &'p [&'a Node] {
    if path.len() <= size || size == 0 {
        return if size == 0 { &[] } else { path };
    }
    let sum = |window: &[&Node]| window.iter().map(|node| node.reward()).sum::<f64>();
    let best = path.windows(size).max_by(|a, b| sum(a).total_cmp(&sum(b)));
    best.unwrap_or(path)
}

#[cfg(test)]
mod tests;
