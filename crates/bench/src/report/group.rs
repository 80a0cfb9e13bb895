//! Shares, means and their limits over groups of problems.

use std::collections::BTreeSet;

use tilewright_contract::Mark;

use crate::bootstrap::{Luck, Resamples, Tally, pass_at_most};
use crate::formula::{geometric_mean, is_fast, pass_at_k};
use crate::outcome::{Outcome, Run, RunProblem, Speedup};
use crate::report::{CurvePoint, Fast, Group, Limits, Marks, MeanSpeedup, PassAt, Share, Speed, Standard};

/// Everything under one profile.
pub(super) fn standard(run: &Run, at: usize, profile: &str, ks: &[u32], ps: &[f64]) -> Standard {
    let name = Run::profile_name(profile);
    let all: Vec<&RunProblem> = run.problems.iter().collect();
    let any_unsound = sound(&all, name).len() < all.len();
    let any_collapsible = straight(&all, at, name).len() < sound(&all, name).len();
    let mut groups = Vec::new();
    let mut add = |label: &str, level: Option<u32>, problems: Vec<&RunProblem>| {
        let of = |name: String, (sound, straight): (bool, bool), problems: &[&RunProblem]| {
            let figures = Figures {
                run,
                profile: at,
                resamples: Resamples::new(problems.len()),
                luck: Luck::new(problems.len()),
                problems,
            };
            Group { sound, straight, ..figures.group(name, level, ks, ps) }
        };
        groups.push(of(label.to_owned(), (false, false), &problems));
        if any_unsound {
            groups.push(of(format!("{label}, sound"), (true, false), &sound(&problems, name)));
        }
        if any_collapsible {
            groups.push(of(format!("{label}, sound, none collapsible"), (true, true), &straight(&problems, at, name)));
        }
    };
    add("all", None, all.clone());
    let levels: BTreeSet<u32> = all.iter().filter_map(|problem| problem.level).collect();
    for &level in levels.iter().filter(|_| levels.len() > 1) {
        let of_level = all.iter().copied().filter(|problem| problem.level == Some(level)).collect();
        add(&format!("level {level}"), Some(level), of_level);
    }
    let collapsible = all.iter().filter(|problem| problem.collapsible(at, name)).count() as u32;
    let marks = Marks { collapsible, ..marks(&all, name) };
    Standard { profile: profile.into(), decides: at == 0, marks, groups }
}

/// Those that can tell right from wrong, or of which it is not known.
fn sound<'a>(problems: &[&'a RunProblem], profile: &str) -> Vec<&'a RunProblem> {
    let is_sound = |problem: &RunProblem| mark(problem, profile).is_none_or(|mark| mark < Mark::Degenerate);
    problems.iter().copied().filter(|problem| is_sound(problem)).collect()
}

/// Those of the sound ones whose reference is not written with more operations than a right answer needs.
fn straight<'a>(problems: &[&'a RunProblem], at: usize, profile: &str) -> Vec<&'a RunProblem> {
    let mut straight = sound(problems, profile);
    straight.retain(|problem| !problem.collapsible(at, profile));
    straight
}

fn mark(problem: &RunProblem, profile: &str) -> Option<Mark> {
    problem.marks.get(profile).map(|(mark, _)| *mark)
}

fn marks(problems: &[&RunProblem], profile: &str) -> Marks {
    let mut marks = Marks::default();
    for problem in problems {
        let count = match mark(problem, profile) {
            None => &mut marks.unknown,
            Some(Mark::Ok) => &mut marks.ok,
            Some(Mark::PrecisionBlind) => &mut marks.precision_blind,
            Some(Mark::Degenerate) => &mut marks.degenerate,
            Some(Mark::Defect) => &mut marks.defect,
        };
        *count += 1;
    }
    marks
}

/// Figures of some problems under one profile.
struct Figures<'a> {
    run: &'a Run,
    profile: usize,
    problems: &'a [&'a RunProblem],
    resamples: Resamples,
    luck: Luck,
}

impl Figures<'_> {
    fn group(&self, name: String, level: Option<u32>, ks: &[u32], ps: &[f64]) -> Group {
        let correct = self.tallies(|outcome| self.correct(outcome));
        let baselines = self.run.setting.baselines.iter().enumerate();
        let pass_at = |&k: &u32| Some(PassAt { k, share: self.share(&correct, k)? });
        Group {
            name,
            level,
            sound: false,
            straight: false,
            problems: self.problems.len() as u32,
            samples: correct.iter().map(|tally| tally.n).sum(),
            valid: self.share(&self.tallies(|outcome| outcome.valid), 1),
            compiled: self.share(&self.tallies(|outcome| outcome.compiled), 1),
            correct: self.share(&correct, 1),
            pass_at: ks.iter().filter_map(pass_at).collect(),
            speed: baselines.map(|(at, name)| self.speed(at, name, ps, level.is_none())).collect(),
        }
    }

    fn correct(&self, outcome: &Outcome) -> bool {
        outcome.passes.get(self.profile).copied().unwrap_or(false)
    }

    /// Decided samples of each problem, and those that something is true of.
    fn tallies(&self, hit: impl Fn(&Outcome) -> bool) -> Vec<Tally> {
        let of = |problem: &&RunProblem| {
            let decided = problem.outcomes.iter().filter(|outcome| outcome.decided());
            decided.fold(Tally { n: 0, hits: 0 }, |tally, outcome| Tally {
                n: tally.n + 1,
                hits: tally.hits + u32::from(hit(outcome)),
            })
        };
        self.problems.iter().map(of).collect()
    }

    /// The mean of pass@k over all problems; none of none.
    fn share(&self, tallies: &[Tally], k: u32) -> Option<Share> {
        let known: Vec<Option<f64>> = tallies.iter().map(|tally| pass_at_k(tally.n, tally.hits, k)).collect();
        let values: Vec<f64> = tallies.iter().map(|tally| pass_at_most(*tally, k)).collect();
        let (low, high) = self.resamples.mean(&values)?;
        let enough: Vec<f64> = known.iter().copied().flatten().collect();
        Some(Share {
            value: mean(&values)?,
            low,
            high,
            samples: self.luck.limits(tallies, k).map(|(low, high)| Limits { low, high }),
            short: (values.len() - enough.len()) as u32,
            without_short: mean(&enough),
        })
    }

    fn speed(&self, baseline: usize, name: &str, ps: &[f64], with_curve: bool) -> Speed {
        let speedup = |outcome: &Outcome| outcome.speedups.get(baseline).copied().flatten();
        let correct = || {
            let outcomes = self.problems.iter().flat_map(|problem| &problem.outcomes);
            outcomes.filter(|outcome| self.correct(outcome))
        };
        let timed = correct().filter(|outcome| speedup(outcome).is_some()).count() as u32;
        Speed {
            baseline: name.into(),
            timed,
            untimed: correct().count() as u32 - timed,
            fast: ps.iter().filter_map(|&p| self.fast(p, &speedup)).collect(),
            mean: self.mean_speedup(&speedup),
            curve: if with_curve && timed > 0 { self.curve(&speedup) } else { Vec::new() },
        }
    }

    fn fast(&self, p: f64, speedup: &impl Fn(&Outcome) -> Option<Speedup>) -> Option<Fast> {
        let at = |of: fn(&Speedup) -> f64| {
            self.tallies(|outcome| is_fast(self.correct(outcome), speedup(outcome).as_ref().map(of), p))
        };
        let tallies = at(|speedup| speedup.value);
        let share_of = |tallies: &[Tally]| {
            mean(&tallies.iter().map(|tally| f64::from(tally.hits) / f64::from(tally.n.max(1))).collect::<Vec<_>>())
        };
        let best: Vec<f64> = tallies.iter().map(|tally| f64::from(u8::from(tally.hits > 0))).collect();
        Some(Fast {
            p,
            share: self.share(&tallies, 1)?,
            surely: share_of(&at(|speedup| speedup.limits.map_or(speedup.value, |limits| limits.0)))?,
            possibly: share_of(&at(|speedup| speedup.limits.map_or(speedup.value, |limits| limits.1)))?,
            best: mean(&best)?,
        })
    }

    fn mean_speedup(&self, speedup: &impl Fn(&Outcome) -> Option<Speedup>) -> Option<MeanSpeedup> {
        let of = |problem: &&RunProblem| {
            let correct = problem.outcomes.iter().filter(|outcome| self.correct(outcome));
            let speedups: Vec<f64> = correct.filter_map(|outcome| Some(speedup(outcome)?.value)).collect();
            geometric_mean(&speedups).map(f64::ln)
        };
        let logs: Vec<Option<f64>> = self.problems.iter().map(of).collect();
        let known: Vec<f64> = logs.iter().copied().flatten().collect();
        let limits = self.resamples.mean_of_some(&logs);
        Some(MeanSpeedup {
            geometric: mean(&known)?.exp(),
            low: limits.map(|(low, _)| low.exp()),
            high: limits.map(|(_, high)| high.exp()),
            median: tilewright_clock::median(&known)?.exp(),
            problems: known.len() as u32,
        })
    }

    /// From an eighth to sixteen times, eight points to each doubling.
    fn curve(&self, speedup: &impl Fn(&Outcome) -> Option<Speedup>) -> Vec<CurvePoint> {
        let ps = (-24..=32).map(|eighth| f64::from(eighth) / 8.0).map(f64::exp2);
        let point = |p: f64| {
            let of = |outcome: &Outcome| is_fast(self.correct(outcome), speedup(outcome).map(|of| of.value), p);
            let shares: Vec<f64> =
                self.tallies(of).iter().map(|tally| f64::from(tally.hits) / f64::from(tally.n.max(1))).collect();
            let (low, high) = self.resamples.mean(&shares)?;
            Some(CurvePoint { p, value: mean(&shares)?, low, high })
        };
        ps.filter_map(point).collect()
    }
}

fn mean(figures: &[f64]) -> Option<f64> {
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}
