//! Statistics of measured times, and when there are enough of them. Times are device times in microseconds.
//!
//! Medians, because a time has a floor and a long tail; bootstrap intervals (Efron 1979, percentile method), because
//! nothing is known about the distribution. The draws have a fixed seed: equal times give an equal answer.
//!
//! Times of one preparation share what is new in the next: where memory lies, how the device's clocks stand. Resampling them
//! does not show that, so that intervals are widened by a scatter that was measured between preparations.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_contract::Estimate;

/// Resamples behind an interval.
const RESAMPLES: usize = 1000;
/// Share of resamples on each side of an interval.
const TAIL: f64 = 0.025;

/// Standard deviations of a normal distribution within which 95 % lie, on each side of the mean.
const NORMAL: f64 = 1.96;

/// Half the width of the median's 95 % interval as a share of the median. By the ranks between which the median lies
/// (Conover, Practical Nonparametric Statistics, 3.2): one sort, cheap enough to be asked after every block of calls.
pub fn spread(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable_by(f64::total_cmp);
    let Some(median) = sorted_median(&times) else { return f64::INFINITY };
    let (count, reach) = (times.len() as f64, 0.98 * (times.len() as f64).sqrt());
    let rank = |at: f64| times[(at.max(0.0) as usize).min(times.len() - 1)];
    (rank((count / 2.0 + reach).ceil()) - rank((count / 2.0 - reach).floor() - 1.0)) / (2.0 * median)
}

/// The middle value; the mean of the two in the middle where their number is even. None of no times.
pub fn median(times: &[f64]) -> Option<f64> {
    let mut times = times.to_vec();
    times.sort_unstable_by(f64::total_cmp);
    sorted_median(&times)
}

fn sorted_median(times: &[f64]) -> Option<f64> {
    let middle = times.len() / 2;
    let upper = *times.get(middle)?;
    Some(if times.len() % 2 == 1 { upper } else { (times[middle - 1] + upper) / 2.0 })
}

/// The median of some times.
pub fn estimate(times: &[f64]) -> Option<Estimate> {
    let mut resamples = Resamples::new(times)?;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let (low, high) = interval((0..RESAMPLES).map(|_| resamples.median(&mut rng)).collect())?;
    Some(Estimate { value: median(times)?, low, high })
}

/// How many times faster `times` are than `baseline`: the quotient of the medians, both resampled.
pub fn speedup(baseline: &[f64], times: &[f64]) -> Option<Estimate> {
    let value = median(baseline)? / median(times)?;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let (mut baselines, mut resamples) = (Resamples::new(baseline)?, Resamples::new(times)?);
    let quotients = (0..RESAMPLES).map(|_| baselines.median(&mut rng) / resamples.median(&mut rng));
    let (low, high) = interval(quotients.collect())?;
    Some(Estimate { value, low, high })
}

/// The same with what differs from one preparation to the next: `scatter` is its standard deviation as a share of the
/// value. Half-widths add as independent errors do, on the scale of logarithms, where a share is a difference.
pub fn widen(found: Estimate, scatter: f64) -> Estimate {
    let Estimate { value, low, high } = found;
    if value <= 0.0 || low <= 0.0 {
        return found;
    }
    let reach = |end: f64| (end / value).ln().hypot(NORMAL * scatter);
    Estimate { value, low: value * (-reach(low)).exp(), high: value * reach(high).exp() }
}

/// The standard deviation of some figures as a share, on the scale of logarithms; none of less than two.
pub fn scatter(figures: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
    (logs.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}

/// Draws as many times from some as there are, again and again. A GPU waits for what is done with them, so it is the ranks
/// that are drawn: the middle one of some integers is found faster than that of floats.
struct Resamples {
    sorted: Vec<f64>,
    ranks: Vec<u32>,
}

impl Resamples {
    /// None of no times.
    fn new(times: &[f64]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        (!sorted.is_empty()).then(|| Self { ranks: vec![0; sorted.len()], sorted })
    }

    /// The median of one draw.
    fn median(&mut self, rng: &mut impl Rng) -> f64 {
        let count = self.sorted.len();
        self.ranks.fill_with(|| rng.random_range(0..count as u32));
        let (below, &mut upper, _) = self.ranks.select_nth_unstable(count / 2);
        let time = |rank: u32| self.sorted[rank as usize];
        match below.iter().max() {
            Some(&lower) if count.is_multiple_of(2) => (time(lower) + time(upper)) / 2.0,
            _ => time(upper),
        }
    }
}

/// What is left of some figures without the tails.
fn interval(mut figures: Vec<f64>) -> Option<(f64, f64)> {
    figures.sort_unstable_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)? as f64;
    Some((figures[(last * TAIL).round() as usize], figures[(last * (1.0 - TAIL)).round() as usize]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_has_no_median() {
        assert_eq!(median(&[]), None);
        assert_eq!(estimate(&[]), None);
        assert_eq!(speedup(&[1.0], &[]), None);
    }

    #[test]
    fn medians_of_few() {
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
    }

    /// The interval holds the true median about as often as it says: of 400 samples of a skewed distribution whose
    /// median is ln 2, 95 % are expected, and 90 % would be seen with odds of 1 in 10,000.
    #[test]
    fn the_interval_covers_the_median() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let covered = (0..400).filter(|_| {
            let times: Vec<f64> = (0..60).map(|_| 10.0 - (1.0 - rng.random::<f64>()).ln()).collect();
            let estimate = estimate(&times).unwrap();
            (estimate.low..=estimate.high).contains(&(10.0 + std::f64::consts::LN_2))
        });
        assert!(covered.count() > 360);
    }

    /// The median of a draw is one that drawing from the times themselves gives, as often.
    #[test]
    fn drawn_ranks_have_the_median_of_drawn_times() {
        for count in [1, 2, 7, 8] {
            let times: Vec<f64> = (0..count).map(|at| f64::from((at * 5) % count)).collect();
            let (mut ours, mut plain) = (ChaCha8Rng::seed_from_u64(1), ChaCha8Rng::seed_from_u64(2));
            let mut resamples = Resamples::new(&times).unwrap();
            let draws = 20_000;
            let mean = |sum: f64| sum / f64::from(draws);
            let ours = mean((0..draws).map(|_| resamples.median(&mut ours)).sum());
            let drawn = |rng: &mut ChaCha8Rng| -> Vec<f64> {
                times.iter().map(|_| times[rng.random_range(0..times.len())]).collect()
            };
            let plain = mean((0..draws).map(|_| median(&drawn(&mut plain)).unwrap()).sum());
            assert!((ours - plain).abs() < 0.05, "{count}: {ours} {plain}");
        }
    }

    /// A kernel that is 2 % slower is told from one that is not, on noise of 1 %.
    #[test]
    fn two_percent_are_seen_through_one_percent_of_noise() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut times = |us: f64| -> Vec<f64> { (0..100).map(|_| us * (1.0 + 0.01 * rng.random::<f64>())).collect() };
        let (base, same, slow) = (times(50.0), times(50.0), times(51.0));
        let (same, slow) = (speedup(&base, &same).unwrap(), speedup(&base, &slow).unwrap());
        assert!(same.low <= 1.0 && same.high >= 1.0, "{same:?}");
        assert!(slow.high < 1.0, "{slow:?}");
    }

    /// Verdicts whose preparations scatter by `scatter` around a time, with 0.2 % of noise within each.
    fn verdicts(us: f64, scatter: f64, rng: &mut ChaCha8Rng) -> Estimate {
        // Twelve uniform numbers add up to a normal one.
        let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let us = us * (scatter * normal).exp();
        let times: Vec<f64> = (0..20).map(|_| us * (1.0 + 0.002 * rng.random::<f64>())).collect();
        widen(estimate(&times).unwrap(), scatter)
    }

    /// Of equal candidates, few are told apart; without the scatter between preparations, most would be. A 2 % slower one
    /// is told apart nearly always while preparations scatter by 0.2 %, and a 5 % slower one while they do by 0.5 %.
    #[test]
    fn equal_candidates_are_not_told_apart_and_slower_ones_are() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut apart = |slower: f64, scatter: f64| {
            let found = (0..100).filter(|_| {
                let (a, b) = (verdicts(50.0, scatter, &mut rng), verdicts(50.0 * slower, scatter, &mut rng));
                a.high < b.low || b.high < a.low
            });
            found.count() as f64 / 100.0
        };
        for scatter in [0.002, 0.01] {
            let share = apart(1.0, scatter);
            assert!(share < 0.05, "{scatter}: {share}");
        }
        for (slower, scatter) in [(1.02, 0.002), (1.05, 0.005)] {
            let share = apart(slower, scatter);
            assert!(share > 0.95, "{slower} {scatter}: {share}");
        }
    }

    #[test]
    fn scatter_is_a_share() {
        assert_eq!(scatter(&[5.0]), None);
        assert_eq!(scatter(&[5.0, 5.0, 5.0]), Some(0.0));
        // Two figures that differ by d have a standard deviation of d over the root of 2.
        let found = scatter(&[100.0, 101.0]).unwrap();
        assert!((found - 1.01f64.ln() / 2f64.sqrt()).abs() < 1e-12);
        assert!((scatter(&[1.0, 1.01]).unwrap() - found).abs() < 1e-12);
    }

    /// The ranks say about what the resamples say.
    #[test]
    fn the_quick_spread_is_that_of_the_interval() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let times: Vec<f64> = (0..400).map(|_| 50.0 + rng.random::<f64>()).collect();
        let slow = estimate(&times).unwrap();
        let slow = (slow.high - slow.low) / (2.0 * slow.value);
        assert!((spread(&times) / slow - 1.0).abs() < 0.3, "{} {slow}", spread(&times));
        assert_eq!(spread(&[]), f64::INFINITY);
        assert_eq!(spread(&[5.0; 60]), 0.0);
    }

    proptest! {
        /// Half of the times lie on each side of the median, and the value lies in its interval.
        #[test]
        fn the_median_is_in_the_middle(times in prop::collection::vec(0.1f64..1e6, 1..200)) {
            let found = estimate(&times).unwrap();
            let below = times.iter().filter(|&&time| time < found.value).count();
            let above = times.iter().filter(|&&time| time > found.value).count();
            prop_assert!(below * 2 <= times.len() && above * 2 <= times.len());
            prop_assert!(found.low <= found.value && found.value <= found.high);
        }

        /// Wider the more preparations scatter, around the same value; unchanged where they do not.
        #[test]
        fn widening_widens(
            times in prop::collection::vec(1f64..100.0, 1..50),
            (a, b) in (0f64..0.1, 0f64..0.1),
        ) {
            let found = estimate(&times).unwrap();
            let (less, more) = (widen(found, a.min(b)), widen(found, a.max(b)));
            prop_assert!(more.low <= less.low && less.high <= more.high && more.value == found.value);
            prop_assert!(less.low <= found.low * (1.0 + 1e-12) && found.high <= less.high * (1.0 + 1e-12));
            let same = widen(found, 0.0);
            prop_assert!((same.low / found.low - 1.0).abs() < 1e-9 && (same.high / found.high - 1.0).abs() < 1e-9);
        }

        /// Speedup does not depend on the unit, and is the inverse the other way round.
        #[test]
        fn speedup_is_a_quotient(
            a in prop::collection::vec(1f64..100.0, 1..50),
            b in prop::collection::vec(1f64..100.0, 1..50),
        ) {
            let found = speedup(&a, &b).unwrap().value;
            let scaled = speedup(&a.iter().map(|t| t * 8.0).collect::<Vec<_>>(), &b.iter().map(|t| t * 8.0).collect::<Vec<_>>());
            prop_assert_eq!(found, scaled.unwrap().value);
            prop_assert!((found * speedup(&b, &a).unwrap().value - 1.0).abs() < 1e-12);
        }
    }
}
