//! How far a figure could be off: 95 % limits of means over problems.
//!
//! Two questions, two intervals. *Over problems*: what if the suite had been drawn again, problems and samples alike?
//! Problems are drawn with their samples, with replacement; since each problem's figure holds the luck of its samples,
//! that luck is in the interval too, and samples must not be drawn a second time within (Davison and Hinkley,
//! Bootstrap Methods, 3.8). *Over samples*: what if the same author had answered the same problems again? Hits of each
//! problem are drawn from the binomial distribution of its share. Draws have fixed seeds: equal runs give equal limits.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_audit::clopper_pearson;

use crate::formula::pass_at_k;

/// Resamples behind every interval.
pub const RESAMPLES: usize = 1000;
/// Share of resamples on each side of an interval.
const TAIL: f64 = 0.025;
const CONFIDENCE: f64 = 1.0 - 2.0 * TAIL;

pub(crate) type Limits = (f64, f64);

/// How often each of some problems is drawn, in every resample. One set serves all figures of a group, which keeps them
/// comparable and is fast.
pub(crate) struct Resamples {
    problems: usize,
    /// By resample, then by problem.
    times: Vec<u16>,
}

impl Resamples {
    pub(crate) fn new(problems: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut times = vec![0u16; RESAMPLES * problems];
        for draw in times.chunks_mut(problems.max(1)) {
            for _ in 0..problems {
                let at = rng.random_range(0..problems);
                draw[at] = draw[at].saturating_add(1);
            }
        }
        Self { problems, times }
    }

    /// Limits of the mean of one share for each problem.
    pub(crate) fn mean(&self, shares: &[f64]) -> Option<Limits> {
        self.mean_within(shares, (0.0, 1.0))
    }

    /// Limits of the mean of one figure for each problem, none of which can be beyond `least` and `most`. Where all are
    /// equal the bootstrap sees no spread: the exact limits of a binomial share stand in, of problems that differ, by as
    /// much as a figure can. Of 0 or 1 they are those of Clopper and Pearson.
    pub(crate) fn mean_within(&self, figures: &[f64], (least, most): Limits) -> Option<Limits> {
        debug_assert_eq!(figures.len(), self.problems);
        let first = *figures.first()?;
        if figures.iter().all(|&figure| figure == first) {
            let (_, others) = clopper_pearson(0, figures.len() as u64, CONFIDENCE);
            return Some((first - others * (first - least), first + others * (most - first)));
        }
        let of = |draw: &[u16]| {
            let sum = draw.iter().zip(figures).map(|(&times, figure)| f64::from(times) * figure).sum::<f64>();
            sum / figures.len() as f64
        };
        percentiles(self.times.chunks(self.problems.max(1)).map(of).collect())
    }

    /// Limits of the mean of the figures that are there, which have no bounds: none where no two differ, as of one problem.
    pub(crate) fn mean_of_some(&self, figures: &[Option<f64>]) -> Option<Limits> {
        debug_assert_eq!(figures.len(), self.problems);
        let mut known = figures.iter().flatten();
        let first = known.next()?;
        if known.all(|figure| figure == first) {
            return None;
        }
        let of = |draw: &[u16]| {
            let pairs = draw.iter().zip(figures).filter_map(|(&times, figure)| Some((f64::from(times), (*figure)?)));
            let (sum, weight) = pairs.fold((0.0, 0.0), |(sum, of), (times, figure)| (sum + times * figure, of + times));
            (weight > 0.0).then(|| sum / weight)
        };
        percentiles(self.times.chunks(self.problems.max(1)).filter_map(of).collect())
    }
}

/// Hits and tries of one problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) n: u32,
    pub(crate) hits: u32,
}

/// pass@k of a problem; with fewer than `k` samples what all of them give, which is less than pass@k would be.
pub(crate) fn pass_at_most(tally: Tally, k: u32) -> f64 {
    pass_at_k(tally.n, tally.hits, k.min(tally.n)).unwrap_or(0.0)
}

/// The luck of each problem's samples, in every resample. One set serves all figures of a group.
pub(crate) struct Luck {
    /// From 0 to 1, by problem, then by resample.
    uniforms: Vec<f32>,
}

impl Luck {
    pub(crate) fn new(problems: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        Self { uniforms: (0..problems * RESAMPLES).map(|_| rng.random()).collect() }
    }

    /// Limits of the mean pass@k over the same problems, if every problem's samples were written again. None where no
    /// problem has both hits and misses, which tells nothing about luck. Problems that always or never passed add no spread here,
    /// so the interval is rather too narrow.
    ///
    /// Drawn values average to the biased `1 - (1 - hits/n)^k`; the interval is moved by the difference, so that it lies
    /// around the unbiased estimate.
    pub(crate) fn limits(&self, tallies: &[Tally], k: u32) -> Option<Limits> {
        if tallies.iter().all(|tally| tally.n < 2 || tally.hits == 0 || tally.hits == tally.n) {
            return None;
        }
        let of = tallies.len() as f64;
        let center = tallies.iter().map(|tally| pass_at_most(*tally, k)).sum::<f64>() / of;
        let mut moved = vec![0.0; RESAMPLES];
        for (tally, draws) in tallies.iter().zip(self.uniforms.chunks(RESAMPLES)) {
            if tally.hits > 0 && tally.hits < tally.n {
                let redrawn = Redrawn::new(*tally, k.min(tally.n));
                for (moved, &uniform) in moved.iter_mut().zip(draws) {
                    *moved += redrawn.draw(f64::from(uniform));
                }
            }
        }
        percentiles(moved.into_iter().map(|moved| (center + moved / of).clamp(0.0, 1.0)).collect())
    }
}

/// What a problem's figure becomes when its samples are drawn again, less what it becomes on average.
struct Redrawn {
    /// Probability of so many hits or fewer.
    at_most: Vec<f64>,
    values: Vec<f64>,
}

impl Redrawn {
    fn new(tally: Tally, k: u32) -> Self {
        let share = f64::from(tally.hits) / f64::from(tally.n);
        let values: Vec<f64> = (0..=tally.n).map(|hits| pass_at_k(tally.n, hits, k).unwrap_or(0.0)).collect();
        let (mut chance, mut sum, mut mean) = ((1.0 - share).powi(tally.n as i32), 0.0, 0.0);
        let mut at_most = Vec::new();
        for (hits, value) in values.iter().enumerate() {
            sum += chance;
            mean += chance * value;
            at_most.push(sum);
            chance *= (f64::from(tally.n) - hits as f64) / (hits as f64 + 1.0) * share / (1.0 - share);
        }
        Self { at_most, values: values.iter().map(|value| value - mean).collect() }
    }

    /// `uniform` from 0 to 1.
    fn draw(&self, uniform: f64) -> f64 {
        let at = self.at_most.iter().position(|&chance| uniform < chance).unwrap_or(self.values.len() - 1);
        self.values[at]
    }
}

/// What is left of some figures without the tails.
pub(crate) fn percentiles(mut figures: Vec<f64>) -> Option<Limits> {
    figures.sort_unstable_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)? as f64;
    Some((figures[(last * TAIL).round() as usize], figures[(last * (1.0 - TAIL)).round() as usize]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Over problems: of 300 suites drawn from a known distribution, 95 % of intervals hold its mean; fewer than 88 %
    /// would be seen with odds of less than 1 in 10,000.
    #[test]
    fn the_interval_over_problems_covers_the_truth() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let covered = (0..300).filter(|_| {
            // A problem passes with a probability drawn evenly from 0 to 1, and is tried 4 times: mean 1/2.
            let shares: Vec<f64> = (0..60)
                .map(|_| {
                    let ease: f64 = rng.random();
                    f64::from((0..4).map(|_| u8::from(rng.random::<f64>() < ease)).sum::<u8>()) / 4.0
                })
                .collect();
            let (low, high) = Resamples::new(60).mean(&shares).unwrap();
            (low..=high).contains(&0.5)
        });
        assert!(covered.count() > 264);
    }

    /// Over samples: the problems stay, their samples are drawn again.
    #[test]
    fn the_interval_over_samples_covers_the_truth() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for k in [1, 3] {
            let eases: Vec<f64> = (0..40).map(|at| 0.2 + 0.6 * f64::from(at) / 39.0).collect();
            let truth = eases.iter().map(|ease| 1.0 - (1.0 - ease).powi(k)).sum::<f64>() / 40.0;
            let covered = (0..200).filter(|_| {
                let tallies: Vec<Tally> = eases
                    .iter()
                    .map(|&ease| Tally { n: 10, hits: (0..10).map(|_| u32::from(rng.random::<f64>() < ease)).sum() })
                    .collect();
                let (low, high) = Luck::new(40).limits(&tallies, k as u32).unwrap();
                (low..=high).contains(&truth)
            });
            let covered = covered.count();
            assert!(covered > 170, "k {k}: {covered} of 200");
        }
    }

    /// SciPy 1.17: `stats.bootstrap((shares,), np.mean, method="percentile", n_resamples=1_000_000)` gives 0.3375 to 0.65.
    #[test]
    fn the_interval_over_problems_is_that_of_another_program() {
        let eighths = [0, 2, 2, 4, 6, 8, 8, 1, 3, 0, 7, 8, 4, 2, 0, 5, 8, 6, 1, 4];
        let shares: Vec<f64> = eighths.into_iter().map(|eighth| f64::from(eighth) / 8.0).collect();
        let (low, high) = Resamples::new(20).mean(&shares).unwrap();
        assert!((low - 0.3375).abs() < 0.015 && (high - 0.65).abs() < 0.015, "{low} to {high}");
    }

    #[test]
    fn samples_that_agree_say_nothing_about_luck() {
        assert_eq!(Luck::new(2).limits(&[Tally { n: 8, hits: 8 }, Tally { n: 8, hits: 0 }], 1), None);
        assert_eq!(Luck::new(2).limits(&[Tally { n: 1, hits: 1 }, Tally { n: 1, hits: 0 }], 1), None);
    }

    #[test]
    fn nothing_seen_is_not_nothing_possible() {
        let (low, high) = Resamples::new(20).mean(&[0.0; 20]).unwrap();
        assert!(low == 0.0 && (high - (1.0 - 0.025f64.powf(1.0 / 20.0))).abs() < 1e-9);
        let (low, high) = Resamples::new(20).mean(&[1.0; 20]).unwrap();
        assert!(low > 0.8 && high == 1.0);
        assert_eq!(Resamples::new(0).mean(&[]), None);
    }

    /// What agrees tells how often others could differ, and not that they cannot: one problem tells next to nothing.
    #[test]
    fn figures_that_agree_leave_room_for_others() {
        for (count, value) in [(1, 0.375), (1, 1.0), (7, 0.5), (54, 0.0)] {
            let others = 1.0 - 0.025f64.powf(1.0 / f64::from(count));
            let figures = vec![value; count as usize];
            let resamples = Resamples::new(count as usize);
            let (low, high) = resamples.mean(&figures).unwrap();
            assert!((low - value * (1.0 - others)).abs() < 1e-9, "{count} of {value}: {low}");
            assert!((high - (value + (1.0 - value) * others)).abs() < 1e-9, "{count} of {value}: {high}");
            // Differences reach from -1 to 1.
            let (low, high) = resamples.mean_within(&figures, (-1.0, 1.0)).unwrap();
            assert!((value - low - others * (value + 1.0)).abs() < 1e-9, "{count} of {value}: {low}");
            assert!((high - value - others * (1.0 - value)).abs() < 1e-9, "{count} of {value}: {high}");
            // Without bounds nothing can be said.
            let some: Vec<_> = figures.into_iter().map(Some).collect();
            assert_eq!(resamples.mean_of_some(&some), None);
        }
        assert_eq!(Resamples::new(3).mean_of_some(&[None, Some(2.0), None]), None);
        assert!(Resamples::new(3).mean_of_some(&[None, Some(2.0), Some(1.0)]).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Limits enclose the mean of the figures, and are limits of a share.
        #[test]
        fn limits_enclose_the_mean(shares in prop::collection::vec(0f64..=1.0, 5..80)) {
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let (low, high) = Resamples::new(shares.len()).mean(&shares).unwrap();
            prop_assert!(0.0 <= low && low <= mean && mean <= high && high <= 1.0);
            let some: Vec<_> = shares.iter().copied().map(Some).collect();
            let (low_some, high_some) = Resamples::new(shares.len()).mean_of_some(&some).unwrap();
            prop_assert!((low - low_some).abs() < 1e-12 && (high - high_some).abs() < 1e-12);
        }

        /// The table of chances is the binomial distribution: it ends at 1, and drawn values average to nothing.
        #[test]
        fn redrawing_averages_to_nothing(n in 2u32..40, hits: prop::sample::Index, k: prop::sample::Index) {
            let (hits, k) = (1 + hits.index(n as usize - 1) as u32, 1 + k.index(n as usize) as u32);
            let redrawn = Redrawn::new(Tally { n, hits }, k);
            prop_assert!((redrawn.at_most[n as usize] - 1.0).abs() < 1e-9);
            let mut before = 0.0;
            let mean: f64 = redrawn.at_most.iter().zip(&redrawn.values).map(|(&at_most, value)| {
                let chance = at_most - before;
                before = at_most;
                chance * value
            }).sum();
            prop_assert!(mean.abs() < 1e-9);
        }
    }
}
