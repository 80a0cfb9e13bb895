//! What a run knows: its settings, and each candidate with where it comes from and what became of it.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tilewright_author::{Answer, Goal, Turn, Usage};
use tilewright_contract::{CandidateId, Verdict, VerdictKind};

use crate::Planned;
use crate::reward::reward;

/// What a run is about. Changing any of it makes another run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// `tilewright.run/1`
    pub schema: String,
    pub problem: CandidateId,
    /// As the user calls it.
    pub author: String,
    pub goal: Goal,
    /// Name and version of each; the first decides.
    pub profiles: Vec<String>,
    pub trials: u32,
    /// Of the verifier's secret seeds and of the author's.
    pub seed: u64,
}

impl Settings {
    pub const SCHEMA: &'static str = "tilewright.run/1";
}

/// A candidate of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its number within the run, from 0.
    pub sample: u64,
    /// The one that it is to be better than.
    pub parent: Option<u64>,
    /// From 0.
    pub round: u32,
    pub answer: Answer,
    /// None until it was verified, and where there is no code.
    pub checked: Option<Checked>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub verdict: Verdict,
    /// The candidate that was verified in its place: it does the same.
    pub same_as: Option<u64>,
    /// Digest of what it does, where that is known.
    pub twin: Option<String>,
    /// Whether the verdict comes from the closer look at the candidate that ends a run.
    pub confirmed: bool,
}

/// All candidates of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    /// What was planned for each round.
    pub rounds: Vec<Vec<Planned>>,
    pub nodes: BTreeMap<u64, Node>,
}

impl Tree {
    /// Where a candidate stands: its round, and the one that it comes from.
    pub fn place(&self, sample: u64) -> Option<(u32, Option<u64>)> {
        self.rounds.iter().zip(0..).find_map(|(planned, round)| {
            let found = planned.iter().find(|planned| planned.sample == sample)?;
            Some((round, found.parent))
        })
    }

    /// The best accepted candidate; of equals, the one that came first. Of those that are the same, the one that was verified.
    pub fn best(&self) -> Option<&Node> {
        let accepted = self.distinct().into_iter().filter(|node| node.accepted());
        let best = accepted.fold(None, |best: Option<&Node>, node| match best {
            Some(best) if best.reward() >= node.reward() => Some(best),
            _ => Some(node),
        })?;
        self.nodes.get(&best.verified_as())
    }

    /// One of each group of candidates that are the same: the first. Which of them was verified depends on who was faster, and
    /// nothing that is decided here may.
    pub fn distinct(&self) -> Vec<&Node> {
        let mut seen = HashSet::new();
        self.nodes.values().filter(|node| node.checked.is_none() || seen.insert(node.verified_as())).collect()
    }

    /// Puts the verdict of a closer look in place of the one before, also for candidates that do the same.
    pub(crate) fn confirm(&mut self, sample: u64, verdict: &Verdict) {
        let group = self.nodes.values_mut().filter(|node| node.verified_as() == sample);
        for checked in group.filter_map(|node| node.checked.as_mut()) {
            checked.verdict = verdict.clone();
            checked.confirmed = true;
        }
    }

    /// The turns that led to a candidate and the candidate's own, the oldest first.
    pub fn path(&self, sample: u64) -> Vec<&Node> {
        let mut path: Vec<&Node> = std::iter::successors(self.nodes.get(&sample), |node| {
            // A parent's number is smaller than its child's: a damaged log cannot make this go round.
            node.parent.filter(|&parent| parent < node.sample).and_then(|parent| self.nodes.get(&parent))
        })
        .collect();
        path.reverse();
        path
    }

    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.nodes.values().for_each(|node| usage += node.answer.usage);
        usage
    }

    /// Verdicts that were paid for.
    pub fn verdicts(&self) -> usize {
        self.nodes.values().filter(|node| node.checked.is_some() && node.is_own()).count()
    }

    /// Whether a planned candidate needs nothing more.
    pub fn is_done(&self, sample: u64) -> bool {
        self.nodes.get(&sample).is_some_and(|node| node.answer.source.is_err() || node.checked.is_some())
    }

    /// The next number.
    pub fn next_sample(&self) -> u64 {
        self.rounds.iter().flatten().map(|planned| planned.sample + 1).max().unwrap_or(0)
    }

    /// What was planned and is not done.
    pub(crate) fn missing(&self) -> Vec<Planned> {
        let planned = self.rounds.iter().flatten();
        planned.filter(|planned| !self.is_done(planned.sample)).copied().collect()
    }
}

impl Node {
    pub fn accepted(&self) -> bool {
        self.kind() == Some(VerdictKind::Accepted)
    }

    pub fn kind(&self) -> Option<VerdictKind> {
        self.checked.as_ref().map(|checked| checked.verdict.verdict)
    }

    pub fn verdict(&self) -> Option<&Verdict> {
        self.checked.as_ref().map(|checked| &checked.verdict)
    }

    /// Whether it was verified itself.
    pub fn is_own(&self) -> bool {
        self.checked.as_ref().is_some_and(|checked| checked.same_as.is_none())
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.checked.as_ref().is_some_and(|checked| checked.confirmed)
    }

    /// Number of the candidate whose verdict it has.
    fn verified_as(&self) -> u64 {
        self.checked.as_ref().and_then(|checked| checked.same_as).unwrap_or(self.sample)
    }

    pub fn reward(&self) -> f64 {
        self.verdict().map_or(0.0, reward)
    }

    /// How many times faster than the first baseline, where that was measured.
    pub fn speedup(&self) -> Option<f64> {
        let timing = self.verdict()?.timing.as_ref()?;
        timing.baselines.first().map(|baseline| baseline.speedup.value)
    }

    pub(crate) fn turn(&self) -> Turn {
        Turn { source: self.answer.source.clone(), verdict: self.verdict().cloned() }
    }
}
