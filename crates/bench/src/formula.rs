//! The numbers of a benchmark, each by its definition.

/// The probability that of `k` samples drawn from `n`, of which `hits` are right, at least one is right: the unbiased
/// estimate of pass@k, `1 - C(n - hits, k) / C(n, k)`, as a product of factors below 1 so that nothing overflows.
/// None of fewer than `k` samples: a smaller `k` would be another number.
///
/// Source: Chen et al., Evaluating Large Language Models Trained on Code (2021), equation 1 and figure 3. The plug-in
/// `1 - (1 - hits/n)^k` is biased downwards.
pub fn pass_at_k(n: u32, hits: u32, k: u32) -> Option<f64> {
    if k == 0 || n < k || hits > n {
        return None;
    }
    let misses = n - hits;
    if misses < k {
        return Some(1.0);
    }
    let all_miss: f64 = (misses + 1..=n).map(|i| 1.0 - f64::from(k) / f64::from(i)).product();
    Some(1.0 - all_miss)
}

/// Whether a speedup counts in fast_p: strictly greater, as in Ouyang et al., KernelBench (2025), section 3.3. Whatever
/// is correct counts in fast_0, whether it was timed or not: no call takes no time.
pub fn is_fast(correct: bool, speedup: Option<f64>, p: f64) -> bool {
    correct && (p <= 0.0 || speedup.is_some_and(|speedup| speedup > p))
}

/// `exp(mean(ln x))`. None of no figures, nor if one of them is not positive and finite.
pub fn geometric_mean(figures: &[f64]) -> Option<f64> {
    let usable = figures.iter().all(|&figure| figure > 0.0 && figure.is_finite());
    if figures.is_empty() || !usable {
        return None;
    }
    Some((figures.iter().map(|figure| figure.ln()).sum::<f64>() / figures.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By counting: every choice of `k` of `n` samples, the first `hits` of which are right.
    fn by_counting(n: u32, hits: u32, k: u32) -> f64 {
        let choices = (0u32..1 << n).filter(|choice| choice.count_ones() == k);
        let (mut all, mut with) = (0u32, 0u32);
        for choice in choices {
            all += 1;
            with += u32::from(choice & ((1 << hits) - 1) != 0);
        }
        f64::from(with) / f64::from(all)
    }

    /// By factorials of exact integers.
    fn by_binomials(n: u32, hits: u32, k: u32) -> f64 {
        let choose = |n: u32, k: u32| (0..k).fold(1u128, |of, i| of * u128::from(n - i) / u128::from(i + 1));
        if n - hits < k { 1.0 } else { 1.0 - choose(n - hits, k) as f64 / choose(n, k) as f64 }
    }

    #[test]
    fn every_small_case_by_counting() {
        for n in 1..=10 {
            for hits in 0..=n {
                for k in 1..=n {
                    let (got, want) = (pass_at_k(n, hits, k).unwrap(), by_counting(n, hits, k));
                    assert!((got - want).abs() < 1e-12, "n {n}, hits {hits}, k {k}: {got}, {want} by counting");
                }
            }
        }
    }

    /// Values worked out by hand from the definition, and the limits.
    #[test]
    fn known_values() {
        assert!((pass_at_k(5, 2, 1).unwrap() - 0.4).abs() < 1e-15);
        // 1 - C(3,2)/C(5,2) = 1 - 3/10; 1 - C(197,10)/C(200,10), with 190*189*188 / (200*199*198).
        assert!((pass_at_k(5, 2, 2).unwrap() - 0.7).abs() < 1e-15);
        let want = 1.0 - (190.0 * 189.0 * 188.0) / (200.0 * 199.0 * 198.0);
        assert!((pass_at_k(200, 3, 10).unwrap() - want).abs() < 1e-13);
        // The biased estimate of the same: lower.
        assert!(1.0 - (1.0 - 3.0f64 / 200.0).powi(10) < want);
        assert_eq!(pass_at_k(200, 0, 100), Some(0.0));
        assert_eq!(pass_at_k(200, 200, 1), Some(1.0));
        assert_eq!(pass_at_k(8, 1, 8), Some(1.0));
    }

    /// HumanEval's README gives 0.4999999999999999 for its example of six samples; the others are the same paper's NumPy
    /// form, and `1 - math.comb(n - c, k) / math.comb(n, k)`, in Python.
    #[test]
    fn published_values_and_those_of_another_program() {
        let cases = [
            (6, 3, 1, 0.4999999999999999),
            (200, 3, 10, 0.14330744632252168),
            (100, 37, 5, 0.90663994510644),
            (8, 2, 4, 0.7857142857142857),
            (20, 7, 10, 0.9984520123839009),
            (1000, 13, 100, 0.7480262507962616),
        ];
        for (n, hits, k, want) in cases {
            let got = pass_at_k(n, hits, k).unwrap();
            assert!((got - want).abs() < 1e-13, "n {n}, hits {hits}, k {k}: {got}, not {want}");
        }
        // scipy.stats.gmean of the same.
        assert!((geometric_mean(&[0.5, 1.7, 3.2, 0.9, 12.0]).unwrap() - 1.9660679877412934).abs() < 1e-13);
    }

    #[test]
    fn too_few_samples_have_no_value_instead_of_another_k() {
        assert_eq!(pass_at_k(5, 5, 6), None);
        assert_eq!(pass_at_k(0, 0, 1), None);
        assert_eq!(pass_at_k(5, 5, 0), None);
        assert_eq!(pass_at_k(5, 6, 1), None);
    }

    #[test]
    fn fast_is_strict_and_correct_only() {
        assert!(!is_fast(true, Some(1.0), 1.0));
        assert!(is_fast(true, Some(1.000_001), 1.0));
        assert!(!is_fast(false, Some(100.0), 1.0));
        assert!(!is_fast(false, Some(100.0), 0.0));
        assert!(is_fast(true, None, 0.0) && !is_fast(true, None, 0.5));
    }

    /// A failed timing (-1), a shape timed as 0 and a missing figure must not become a mean.
    #[test]
    fn a_geometric_mean_of_what_is_no_speedup_is_none() {
        for wrong in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(geometric_mean(&[10.0, wrong, 10.0]), None);
        }
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[0.5, 2.0]).unwrap() - 1.0).abs() < 1e-15);
        assert!((geometric_mean(&[1.0, 10.0, 100.0]).unwrap() - 10.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn stable_form_is_the_quotient_of_binomials(n in 1u32..60, hits: prop::sample::Index, k: prop::sample::Index) {
            let (hits, k) = (hits.index(n as usize + 1) as u32, 1 + k.index(n as usize) as u32);
            prop_assert!((pass_at_k(n, hits, k).unwrap() - by_binomials(n, hits, k)).abs() < 1e-9);
        }

        #[test]
        fn grows_with_k_and_with_hits(n in 2u32..2000, hits: prop::sample::Index, k: prop::sample::Index) {
            let (hits, k) = (hits.index(n as usize) as u32, 1 + k.index(n as usize - 1) as u32);
            let value = pass_at_k(n, hits, k).unwrap();
            prop_assert!((0.0..=1.0).contains(&value));
            prop_assert!(value <= pass_at_k(n, hits, k + 1).unwrap() + 1e-12);
            prop_assert!(value <= pass_at_k(n, hits + 1, k).unwrap() + 1e-12);
            prop_assert!((pass_at_k(n, hits, 1).unwrap() - f64::from(hits) / f64::from(n)).abs() < 1e-12);
            prop_assert_eq!(pass_at_k(n, hits, n), Some(if hits > 0 { 1.0 } else { 0.0 }));
        }

        /// fast_p falls with p, and fast_0 is the share of the correct.
        #[test]
        fn fast_falls_with_p(correct: bool, speedup in prop::option::of(0.001f64..100.0), p in 0f64..10.0, more in 0f64..10.0) {
            prop_assert!(is_fast(correct, speedup, p) >= is_fast(correct, speedup, p + more));
            prop_assert_eq!(is_fast(correct, speedup, 0.0), correct);
        }
    }
}
