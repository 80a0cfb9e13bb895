//! Two runs over the same problems: what changed, and whether it could be luck.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::Resamples;
use crate::error::BenchError;
use crate::formula::{geometric_mean, is_fast};
use crate::outcome::{Outcome, Run, RunProblem};
use crate::setting::{Difference, list};

/// The second run against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// `tilewright.bench-compare/1`
    pub schema: String,
    pub a: Side,
    pub b: Side,
    /// What the two do not have in common; figures are comparable where this is empty.
    pub differences: Vec<Difference>,
    /// Problems of both, by content; and ids of those that only one of them has.
    pub common: u32,
    pub only_a: Vec<String>,
    pub only_b: Vec<String>,
    /// The deciding profile of the first run.
    pub profile: String,
    /// Differences of shares over the common problems, pair by pair.
    pub changes: Vec<Change>,
    /// Over problems that both have solved and timed, by baseline: how many times faster the second run's candidates are
    /// against it.
    pub speed: Vec<SpeedChange>,
    /// Problems that one run solves with a sample at least, and the other with none.
    pub flips: Vec<Flip>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    pub runs: Vec<String>,
    pub samples_from: String,
    /// Samples of the common problems that are decided.
    pub samples: u32,
}

/// A share in both runs, and the second less the first with its 95 % limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// `valid`, `compiled`, `correct`, `fast_1 against eager`, `solved` (by any sample)
    pub what: String,
    pub a: f64,
    pub b: f64,
    pub difference: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedChange {
    pub baseline: String,
    /// Geometric mean over problems of the quotient of the two runs' mean speedups.
    pub ratio: f64,
    /// None where no two of the problems differ, as of a single one.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub problems: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flip {
    pub id: String,
    /// Correct of decided samples.
    pub a: (u32, u32),
    pub b: (u32, u32),
    /// Why the failing side fails, as it is told for its first sample.
    pub reason: Option<String>,
}

impl Comparison {
    pub const SCHEMA: &'static str = "tilewright.bench-compare/1";

    /// `anyway`: also of runs whose settings differ.
    ///
    /// # Errors
    /// The settings differ, or there is no common problem.
    pub fn new(a: &Run, b: &Run, ps: &[f64], anyway: bool) -> Result<Self, BenchError> {
        let differences = differences(a, b);
        if !differences.is_empty() && !anyway {
            let message = format!(
                "the runs are not comparable, they differ in {}: give --anyway to compare them all the same",
                list(&differences)
            );
            return Err(BenchError::usage(message));
        }
        let pairs = pairs(a, b);
        if pairs.is_empty() {
            return Err(BenchError::usage("the runs have no problem in common"));
        }
        let resamples = Resamples::new(pairs.len());
        let only = |run: &Run, of: fn(&Pair<'_>) -> *const RunProblem| -> Vec<String> {
            let alone = |problem: &&RunProblem| pairs.iter().all(|pair| !std::ptr::eq(of(pair), *problem));
            run.problems.iter().filter(alone).map(|problem| problem.id.clone()).collect()
        };
        Ok(Self {
            schema: Self::SCHEMA.into(),
            a: side(a, pairs.iter().map(|pair| pair.0)),
            b: side(b, pairs.iter().map(|pair| pair.1)),
            differences,
            common: pairs.len() as u32,
            only_a: only(a, |pair| pair.0),
            only_b: only(b, |pair| pair.1),
            profile: a.setting.profiles.first().cloned().unwrap_or_default(),
            changes: changes(a, b, &pairs, ps, &resamples),
            speed: baselines(a, b).filter_map(|(name, at)| speed(name, at, &pairs, &resamples)).collect(),
            flips: pairs.iter().filter_map(flip).collect(),
        })
    }
}

type Pair<'a> = (&'a RunProblem, &'a RunProblem);

fn differences(a: &Run, b: &Run) -> Vec<Difference> {
    let mut found = a.setting.differences(&b.setting);
    if a.drivers != b.drivers {
        let text = |run: &Run| run.drivers.iter().cloned().collect::<Vec<_>>().join(", ");
        found.push(Difference { what: "driver".into(), a: text(a), b: text(b) });
    }
    found
}

/// The same problems: equal texts, or equal names where a text is not known. A suite may have a text twice, under two
/// names: each is paired with its own.
fn pairs<'a>(a: &'a Run, b: &'a Run) -> Vec<Pair<'a>> {
    let by_digest: HashMap<&str, &RunProblem> = b
        .problems
        .iter()
        .filter(|problem| !problem.digest.is_empty())
        .map(|problem| (problem.digest.as_str(), problem))
        .collect();
    let by_id: HashMap<&str, &RunProblem> = b.problems.iter().map(|problem| (problem.id.as_str(), problem)).collect();
    let partner = |problem: &'a RunProblem| {
        let may_be = |named: &&RunProblem| {
            problem.digest == named.digest || problem.digest.is_empty() || named.digest.is_empty()
        };
        let named = by_id.get(problem.id.as_str()).copied().filter(may_be);
        named.or_else(|| by_digest.get(problem.digest.as_str()).copied())
    };
    a.problems.iter().filter_map(|problem| Some((problem, partner(problem)?))).collect()
}

/// Baselines of both, with their place in each.
fn baselines<'a>(a: &'a Run, b: &'a Run) -> impl Iterator<Item = (&'a str, (usize, usize))> {
    a.setting.baselines.iter().enumerate().filter_map(|(at, name)| {
        let other = b.setting.baselines.iter().position(|other| other == name)?;
        Some((name.as_str(), (at, other)))
    })
}

fn side<'a>(run: &Run, problems: impl Iterator<Item = &'a RunProblem>) -> Side {
    let decided = problems.flat_map(|problem| &problem.outcomes).filter(|outcome| outcome.decided());
    Side {
        runs: run.files.iter().map(|file| file.display().to_string()).collect(),
        samples_from: run.samples.clone(),
        samples: decided.count() as u32,
    }
}

fn correct(outcome: &Outcome) -> bool {
    outcome.passes.first().copied().unwrap_or(false)
}

/// The share of a problem's decided samples; none decided counts as 0, as in a report.
fn share(problem: &RunProblem, hit: &dyn Fn(&Outcome) -> bool) -> f64 {
    let decided = || problem.outcomes.iter().filter(|outcome| outcome.decided());
    let hits = decided().filter(|outcome| hit(outcome)).count();
    hits as f64 / decided().count().max(1) as f64
}

fn changes(a: &Run, b: &Run, pairs: &[Pair<'_>], ps: &[f64], resamples: &Resamples) -> Vec<Change> {
    let change = |what: String, of_a: &dyn Fn(&RunProblem) -> f64, of_b: &dyn Fn(&RunProblem) -> f64| {
        let sides: Vec<(f64, f64)> = pairs.iter().map(|pair| (of_a(pair.0), of_b(pair.1))).collect();
        let differences: Vec<f64> = sides.iter().map(|(a, b)| b - a).collect();
        let (low, high) = resamples.mean_within(&differences, (-1.0, 1.0))?;
        let mean = |of: fn(&(f64, f64)) -> f64| sides.iter().map(of).sum::<f64>() / sides.len() as f64;
        let (a, b) = (mean(|side| side.0), mean(|side| side.1));
        Some(Change { what, a, b, difference: b - a, low, high })
    };
    let both = |what: &str, hit: fn(&Outcome) -> bool| {
        change(what.into(), &|problem| share(problem, &hit), &|problem| share(problem, &hit))
    };
    let solved = |problem: &RunProblem| f64::from(u8::from(share(problem, &correct) > 0.0));
    let mut found = vec![
        both("valid", |outcome| outcome.valid),
        both("compiled", |outcome| outcome.compiled),
        both("correct", correct),
        change("solved".into(), &solved, &solved),
    ];
    for (name, at) in baselines(a, b) {
        for &p in ps.iter().filter(|&&p| p > 0.0) {
            let fast = |at: usize| {
                move |outcome: &Outcome| is_fast(correct(outcome), outcome.speedups[at].map(|speedup| speedup.value), p)
            };
            let (in_a, in_b) = (fast(at.0), fast(at.1));
            found.push(change(format!("fast_{p} against {name}"), &|problem| share(problem, &in_a), &|problem| {
                share(problem, &in_b)
            }));
        }
    }
    found.into_iter().flatten().collect()
}

fn speed(baseline: &str, at: (usize, usize), pairs: &[Pair<'_>], resamples: &Resamples) -> Option<SpeedChange> {
    let mean = |problem: &RunProblem, at: usize| {
        let correct = problem.outcomes.iter().filter(|outcome| correct(outcome));
        geometric_mean(&correct.filter_map(|outcome| Some(outcome.speedups[at]?.value)).collect::<Vec<_>>())
    };
    let ratios: Vec<Option<f64>> =
        pairs.iter().map(|pair| Some((mean(pair.1, at.1)? / mean(pair.0, at.0)?).ln())).collect();
    let known: Vec<f64> = ratios.iter().copied().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let limits = resamples.mean_of_some(&ratios);
    let ratio = (known.iter().sum::<f64>() / known.len() as f64).exp();
    Some(SpeedChange {
        baseline: baseline.into(),
        ratio,
        low: limits.map(|(low, _)| low.exp()),
        high: limits.map(|(_, high)| high.exp()),
        problems: known.len() as u32,
    })
}

/// A problem that one side solves and the other, having tried, does not.
fn flip(pair: &Pair<'_>) -> Option<Flip> {
    let count = |problem: &RunProblem| {
        let decided = || problem.outcomes.iter().filter(|outcome| outcome.decided());
        (decided().filter(|outcome| correct(outcome)).count() as u32, decided().count() as u32)
    };
    let (a, b) = (count(pair.0), count(pair.1));
    let flips = a.1 > 0 && b.1 > 0 && (a.0 == 0) != (b.0 == 0);
    let failing = if a.0 == 0 { pair.0 } else { pair.1 };
    let reason =
        || failing.outcomes.iter().find(|outcome| outcome.decided())?.reason.as_ref().map(|r| r.message.clone());
    flips.then(|| Flip { id: pair.0.id.clone(), a, b, reason: reason() })
}
