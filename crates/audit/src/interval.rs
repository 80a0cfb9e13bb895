//! Exact confidence intervals of a share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

/// Confidence of every interval of this crate.
pub const CONFIDENCE: f64 = 0.95;

/// `count` of `of`, with the exact 95 % interval of the share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    pub count: u64,
    pub of: u64,
    /// `count / of`; none of nothing.
    pub share: Option<f64>,
    /// Clopper-Pearson limits of the true share.
    pub low: f64,
    pub high: f64,
}

impl Rate {
    pub fn new(count: u64, of: u64) -> Self {
        let (low, high) = clopper_pearson(count, of, CONFIDENCE);
        Self { count, of, share: (of > 0).then(|| count as f64 / of as f64), low, high }
    }
}

/// The limits between which a binomial share lies with at least this confidence, after `count` of `of`.
///
/// The lower limit is the share under which `count` or more happen with probability `(1 - confidence) / 2`, the upper
/// one that under which `count` or fewer do: quantiles of Beta distributions. Of nothing: 0 to 1.
/// Source: Clopper and Pearson, Biometrika 26 (1934) 404-413.
pub fn clopper_pearson(count: u64, of: u64, confidence: f64) -> (f64, f64) {
    let count = count.min(of);
    let (hits, misses) = (count as f64, (of - count) as f64);
    let tail = (1.0 - confidence) / 2.0;
    // Both shapes are positive whole numbers, so the distribution exists.
    let quantile = |a: f64, b: f64, p: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(p));
    let low = if count == 0 { 0.0 } else { quantile(hits, misses + 1.0, tail) };
    let high = if count == of { 1.0 } else { quantile(hits + 1.0, misses, 1.0 - tail) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The probability of `count` or fewer, term by term.
    fn at_most(count: u64, of: u64, share: f64) -> f64 {
        let (p, q) = (share.ln(), (-share).ln_1p());
        let mut choose = 0.0;
        let mut sum = 0.0;
        for k in 0..=count {
            if k > 0 {
                choose += ((of - k + 1) as f64).ln() - (k as f64).ln();
            }
            sum += (choose + k as f64 * p + (of - k) as f64 * q).exp();
        }
        sum
    }

    /// The share at which a falling function of it reaches `target`, by bisection.
    fn bisect(falling: impl Fn(f64) -> f64, target: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if falling(middle) > target { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    }

    fn by_tails(count: u64, of: u64, confidence: f64) -> (f64, f64) {
        let tail = (1.0 - confidence) / 2.0;
        let low = if count == 0 { 0.0 } else { bisect(|share| at_most(count - 1, of, share), 1.0 - tail) };
        let high = if count == of { 1.0 } else { bisect(|share| at_most(count, of, share), tail) };
        (low, high)
    }

    #[test]
    fn published_values() {
        // Of nothing found: the rule of three's exact form, 1 - 0.025^(1/n).
        for of in [1u64, 10, 93, 1000] {
            let (low, high) = clopper_pearson(0, of, 0.95);
            assert_eq!(low, 0.0);
            assert!((high - (1.0 - 0.025f64.powf(1.0 / of as f64))).abs() < 1e-9, "{of}: {high}");
        }
        // R: binom.test(5, 10), binom.test(1, 100), binom.test(682, 925).
        for (count, of, want) in
            [(5, 10, (0.1870860, 0.8129140)), (1, 100, (0.0002531460, 0.05445939)), (682, 925, (0.7076683, 0.7654066))]
        {
            let (low, high) = clopper_pearson(count, of, 0.95);
            assert!((low - want.0).abs() < 5e-7 && (high - want.1).abs() < 5e-7, "{count} of {of}: {low} {high}");
        }
        assert_eq!(clopper_pearson(0, 0, 0.95), (0.0, 1.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn limits_are_those_of_the_binomial_tails(of in 1u64..2000, pick: prop::sample::Index, confidence in 0.5f64..0.999) {
            let count = pick.index(of as usize + 1) as u64;
            let (low, high) = clopper_pearson(count, of, confidence);
            let want = by_tails(count, of, confidence);
            prop_assert!((low - want.0).abs() < 1e-7, "low {low}, {} by bisection", want.0);
            prop_assert!((high - want.1).abs() < 1e-7, "high {high}, {} by bisection", want.1);
        }

        #[test]
        fn limits_mirror_and_enclose_the_share(of in 1u64..5000, pick: prop::sample::Index) {
            let count = pick.index(of as usize + 1) as u64;
            let rate = Rate::new(count, of);
            let mirror = Rate::new(of - count, of);
            let share = rate.share.unwrap();
            prop_assert!(rate.low <= share && share <= rate.high);
            prop_assert!((rate.low - (1.0 - mirror.high)).abs() < 1e-9);
        }
    }
}
