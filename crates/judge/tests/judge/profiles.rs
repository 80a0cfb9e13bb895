//! Each profile's numbers at their boundary, and the reported faults of other evaluators' comparisons.

use crate::common::{Normals, encode, expected, ints, shipped};
use proptest::prelude::*;
use tilewright_contract::{Dtype, Profile};
use tilewright_judge::{Comparison, judge, profile_names, round_to};

/// Judges `got` against `want` (float64 values, rounded to the dtype for the native reference).
fn compare(profile: &Profile, dtype: Dtype, shape: &[u64], want: &[f64], got: &[f64]) -> Comparison {
    let wide = encode(Dtype::F64, want);
    judge(profile, &expected(dtype, shape), &encode(dtype, want), Some(&wide), &encode(dtype, got)).expect("sizes fit")
}

/// Whether one element `got` passes against `want`, among 99 exact elements of the same value.
fn one_off(profile: &Profile, dtype: Dtype, want: f64, got: f64) -> bool {
    let wants = vec![want; 100];
    let mut gots = wants.clone();
    gots[40] = got;
    compare(profile, dtype, &[100], &wants, &gots).pass
}

/// Whether a tensor of one element passes.
fn alone(profile: &Profile, dtype: Dtype, want: f64, got: f64) -> bool {
    compare(profile, dtype, &[1], &[want], &[got]).pass
}

#[test]
fn elementwise_profiles_at_their_boundary() {
    // Profile, dtype, atol + rtol |g| at g = 1. Steps of half a percent around it, as float64 outputs to have the digits.
    let half = [Dtype::F16, Dtype::Bf16];
    for (name, default, halves) in [
        ("kernelbench-v0", 2e-2, [2e-2, 2e-2]),
        ("kernelbench", 2e-4, [2e-2, 2e-2]),
        ("ascend-v2-d", 2f64.powi(-13) + 1e-5, [2f64.powi(-10) + 1e-3, 2f64.powi(-7) + 1e-2]),
    ] {
        let mut profile = shipped(name);
        for (dtype, limit) in half.into_iter().zip(halves).chain([(Dtype::F32, default)]) {
            let numbers = profile.tolerance(dtype).clone();
            profile.tolerance.insert(Dtype::F64, numbers);
            assert!(one_off(&profile, Dtype::F64, 1.0, 1.0 + 0.995 * limit), "{name} {dtype:?}");
            assert!(!one_off(&profile, Dtype::F64, 1.0, 1.0 + 1.005 * limit), "{name} {dtype:?}");
            assert!(!one_off(&profile, Dtype::F64, -1.0, -1.0 + 1.005 * limit), "{name} {dtype:?}");
        }
    }
}

#[test]
fn ascend_b_bounds_the_mean_and_the_largest_relative_error() {
    let (profile, t) = (shipped("ascend-v2-b"), 2f64.powi(-13));
    // All elements off by the same: the mean decides.
    assert!(alone(&profile, Dtype::F64, 1.0, 1.0 + 0.999 * t));
    assert!(!alone(&profile, Dtype::F64, 1.0, 1.0 + 1.001 * t));
    // One of a hundred: the largest decides.
    assert!(one_off(&profile, Dtype::F64, 1.0, 1.0 + 9.99 * t));
    assert!(!one_off(&profile, Dtype::F64, 1.0, 1.0 + 10.01 * t));
    // At zero only 1e-7 divides.
    assert!(alone(&profile, Dtype::F64, 0.0, 0.99e-7 * t));
    assert!(!alone(&profile, Dtype::F64, 0.0, 1.01e-7 * t));
    for (dtype, exponent) in [(Dtype::F16, -10), (Dtype::Bf16, -7), (Dtype::F8E4M3, -3), (Dtype::F8E5M2, -2)] {
        assert_eq!(profile.tolerance(dtype).rtol, 2f64.powi(exponent));
        assert_eq!(shipped("ascend-v2-c").tolerance(dtype).rtol, 2f64.powi(exponent));
    }
}

#[test]
fn ascend_c_divides_small_values_by_the_threshold() {
    let (profile, t) = (shipped("ascend-v2-c"), 2f64.powi(-13));
    assert!(alone(&profile, Dtype::F64, 1.0, 1.0 + 0.999 * t));
    assert!(!alone(&profile, Dtype::F64, 1.0, 1.0 + 1.001 * t));
    // Below t the largest allowed |d| is 10 t^2, here 1.5e-7.
    assert!(one_off(&profile, Dtype::F64, 0.5 * t, 0.5 * t + 9.99 * t * t));
    assert!(!one_off(&profile, Dtype::F64, 0.5 * t, 0.5 * t + 10.01 * t * t));
}

#[test]
fn ascend_e_asks_for_all_three_conditions() {
    let profile = shipped("ascend-v2-e");
    let (rel, cap) = (2f64.powi(-13), 1e-3 + 2f64.powi(-13));
    // The cap on one element.
    assert!(one_off(&profile, Dtype::F64, 1.0, 1.0 + 0.99 * cap));
    assert!(!one_off(&profile, Dtype::F64, 1.0, 1.0 + 1.01 * cap));
    // The mean.
    assert!(alone(&profile, Dtype::F64, 1.0, 1.0 + 0.999 * rel));
    assert!(!alone(&profile, Dtype::F64, 1.0, 1.0 + 1.001 * rel));
    // The share of matched elements: small values off by more than 2^-30, with a mean held down by large ones.
    let share = |off: usize| {
        let want: Vec<f64> = (0..100).map(|i| if i < 20 { 2f64.powi(-15) } else { 1.0 }).collect();
        let got: Vec<f64> =
            want.iter().enumerate().map(|(i, w)| if i < off { w + 1.5 * 2f64.powi(-30) } else { *w }).collect();
        compare(&profile, Dtype::F64, &[100], &want, &got).pass
    };
    assert!(share(10));
    assert!(!share(11));
    let numbers = |dtype: Dtype| {
        let t = profile.tolerance(dtype).clone();
        [t.small_threshold.log2(), t.small_error.log2(), t.mean_rel.log2(), t.atol, t.rtol.log2()]
    };
    assert_eq!(numbers(Dtype::F32), [-14.0, -30.0, -13.0, 1e-3, -13.0]);
    assert_eq!(numbers(Dtype::F16), [-11.0, -16.0, -10.0, 9e-2, -10.0]);
    assert_eq!(numbers(Dtype::Bf16), [-8.0, -16.0, -7.0, 1e-1, -7.0]);
    assert_eq!(numbers(Dtype::F8E4M3), [-4.0, -6.0, -3.0, 1e-3, -13.0]);
    assert_eq!(numbers(Dtype::F8E5M2), [-3.0, -5.0, -2.0, 1e-3, -13.0]);
}

#[test]
fn the_operator_profile_takes_a_correctly_rounded_bfloat16() {
    let profile = shipped("operator-0.1pct");
    let want = Normals::new(3).take(4096);
    assert!(compare(&profile, Dtype::Bf16, &[4096], &want, &want).pass);
    // The same against the wide reference is off by 0.14 % in the mean, so the rounding matters.
    let off: Vec<f64> = want.iter().map(|w| w * 1.0015).collect();
    assert!(!compare(&profile, Dtype::F32, &[4096], &want, &off).pass);
    let near: Vec<f64> = want.iter().map(|w| w * 1.0009).collect();
    assert!(compare(&profile, Dtype::F32, &[4096], &want, &near).pass);
    // Four of 4096 elements may be off, five may not.
    for (wrong, pass) in [(4, true), (5, false)] {
        let got: Vec<f64> = want.iter().enumerate().map(|(i, w)| if i < wrong { w * 1.01 } else { *w }).collect();
        assert_eq!(compare(&profile, Dtype::F32, &[4096], &want, &got).pass, pass);
    }
}

#[test]
fn integers_and_bools_are_exact_under_every_profile() {
    for name in profile_names() {
        let profile = shipped(name);
        let want = ints(&[1_000_000, 7, -3]);
        let tensor = expected(Dtype::I64, &[3]);
        assert!(judge(&profile, &tensor, &want, None, &want).unwrap().pass);
        let off = judge(&profile, &tensor, &want, None, &ints(&[1_000_001, 7, -3])).unwrap();
        assert!(!off.pass, "{name}: an index off by one in a million");
        assert_eq!(off.metrics.max_abs, 1.0);
        let worst = off.metrics.worst.unwrap();
        assert_eq!((worst.index, worst.got.as_str(), worst.want.as_str()), (vec![0], "1000001", "1000000"));
        let flags = expected(Dtype::Bool, &[2]);
        assert!(!judge(&profile, &flags, &[1, 0], None, &[1, 1]).unwrap().pass);
        assert!(!judge(&profile, &flags, &[1, 0], None, &[255, 0]).unwrap().pass);
    }
}

#[test]
fn an_empty_output_passes_under_every_profile() {
    for name in profile_names() {
        for dtype in [Dtype::F32, Dtype::I64] {
            let result = judge(&shipped(name), &expected(dtype, &[3, 0, 2]), &[], None, &[]).unwrap();
            assert!(result.pass && result.metrics.elements == 0, "{name}");
        }
    }
}

#[test]
fn a_nan_or_infinity_where_the_reference_is_finite_fails_everywhere() {
    let want = Normals::new(1).take(200);
    for name in profile_names() {
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for dtype in [Dtype::F32, Dtype::F16, Dtype::F64] {
                let mut got = want.clone();
                got[150] = wrong;
                let result = compare(&shipped(name), dtype, &[200], &want, &got);
                assert!(!result.pass && result.severity.is_infinite(), "{name} {wrong}");
                assert_eq!(result.metrics.worst.unwrap().index, [150]);
            }
        }
    }
}

/// reference-kernels 4ae0781: a legitimate pattern of non-finite values has to be reproduced, not refused.
#[test]
fn the_references_own_pattern_passes_and_another_fails() {
    let mut want = Normals::new(2).take(100);
    (want[1], want[2], want[3]) = (f64::INFINITY, f64::NEG_INFINITY, f64::NAN);
    for name in profile_names() {
        let allclose = name.starts_with("kernelbench");
        assert_eq!(compare(&shipped(name), Dtype::F32, &[100], &want, &want).pass, !allclose, "{name}");
        for (at, wrong) in [(1, f64::NEG_INFINITY), (1, 1.0), (3, 0.0), (3, f64::INFINITY), (2, f64::NAN)] {
            let mut got = want.clone();
            got[at] = wrong;
            assert!(!compare(&shipped(name), Dtype::F32, &[100], &want, &got).pass, "{name} {at} {wrong}");
        }
    }
}

#[test]
fn a_reference_without_a_finite_number_passes_by_pattern_and_says_so() {
    let want = vec![f64::NAN; 70];
    let result = compare(&shipped("tilewright-1"), Dtype::F32, &[70], &want, &want);
    assert!(result.pass && result.note.unwrap().contains("no finite number"));
    assert!(!compare(&shipped("ascend-v2-b"), Dtype::F32, &[70], &want, &vec![0.0; 70]).pass);
}

/// A candidate that is right where the reference overflows in float16 is not wrong.
#[test]
fn where_only_the_native_reference_overflows_either_answer_is_right() {
    let wide = Normals::new(4).take(64);
    let mut native = wide.clone();
    native[5] = f64::INFINITY;
    let tensor = expected(Dtype::F16, &[64]);
    let run = |got: &[f64]| {
        let (native, wide) = (encode(Dtype::F16, &native), encode(Dtype::F64, &wide));
        judge(&shipped("tilewright-1"), &tensor, &native, Some(&wide), &encode(Dtype::F16, got)).unwrap().pass
    };
    assert!(run(&native) && run(&wide));
    let mut wrong = wide.clone();
    wrong[5] = f64::NAN;
    assert!(!run(&wrong));
    wrong[5] = wide[5] + 1.0;
    assert!(!run(&wrong));
    // And where the exact result lies beyond float16, infinity is right.
    let mut huge = wide.clone();
    huge[9] = 1e6;
    assert!(compare(&shipped("tilewright-1"), Dtype::F16, &[64], &huge, &huge).pass);
}

/// KernelBench #165: an absolute tolerance above the signal lets zeros pass.
#[test]
fn zeros_for_a_long_softmax_fail_under_tilewright_1() {
    let mut stream = Normals::new(5);
    let rows: Vec<f64> =
        (0..2).flat_map(|_| softmax(&(0..65536).map(|_| stream.uniform()).collect::<Vec<_>>())).collect();
    let zeros = vec![0.0; rows.len()];
    assert!(compare(&shipped("kernelbench"), Dtype::F32, &[2, 65536], &rows, &zeros).pass, "the known defect");
    let result = compare(&shipped("tilewright-1"), Dtype::F32, &[2, 65536], &rows, &zeros);
    assert!(!result.pass && result.severity > 1e4);
}

fn softmax(x: &[f64]) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = x.iter().map(|v| (v - most).exp()).sum();
    x.iter().map(|v| (v - most).exp() / sum).collect()
}

/// reference-kernels #150: garbage in a small matrix hides behind a large one under a global norm.
#[test]
fn a_wrong_small_matrix_beside_a_large_one_fails() {
    let mut stream = Normals::new(6);
    let mut want = stream.take(2 * 32 * 32);
    want[..1024].iter_mut().for_each(|v| *v *= 1e6);
    let mut got = want.clone();
    got[1024..].iter_mut().for_each(|v| *v = stream.next());
    assert!(!compare(&shipped("tilewright-1"), Dtype::F32, &[2, 32, 32], &want, &got).pass);
    // One wrong row of a matrix, too.
    let want = stream.take(100 * 80);
    let mut got = want.clone();
    got[37 * 80..38 * 80].iter_mut().for_each(|v| *v *= 1.0 + 1e-4);
    assert!(!compare(&shipped("tilewright-1"), Dtype::F32, &[100, 80], &want, &got).pass);
}

/// kernelbench.com: a fixed absolute tolerance misfires when inputs are rescaled.
#[test]
fn tilewright_1_does_not_depend_on_the_scale() {
    let mut stream = Normals::new(7);
    let want = stream.take(1000);
    let honest: Vec<f64> = want.iter().map(|w| w + 5e-7 * stream.next()).collect();
    for scale in [1e-30, 1e-3, 1.0, 1e3, 1e30] {
        let scaled = |values: &[f64]| values.iter().map(|v| v * scale).collect::<Vec<_>>();
        assert!(compare(&shipped("tilewright-1"), Dtype::F32, &[1000], &scaled(&want), &scaled(&honest)).pass);
        assert!(!compare(&shipped("tilewright-1"), Dtype::F32, &[1000], &scaled(&want), &[0.0; 1000]).pass);
    }
}

#[test]
fn float64_values_whose_squares_overflow_or_vanish_are_judged_all_the_same() {
    let mut stream = Normals::new(8);
    let want = stream.take(500);
    for scale in [1e-300, 1e-160, 1e160, 1e300] {
        let scaled: Vec<f64> = want.iter().map(|v| v * scale).collect();
        let near: Vec<f64> = scaled.iter().map(|v| v * (1.0 + 1e-13)).collect();
        let far: Vec<f64> = scaled.iter().map(|v| v * (1.0 + 1e-8)).collect();
        let profile = shipped("tilewright-1");
        assert!(compare(&profile, Dtype::F64, &[500], &scaled, &near).pass, "{scale}");
        let result = compare(&profile, Dtype::F64, &[500], &scaled, &far);
        assert!(!result.pass, "{scale}");
        assert!((result.metrics.rms / 1e-8 - 1.0).abs() < 1e-3 && result.metrics.max_abs > 1e-9 * scale);
    }
}

#[test]
fn a_copied_output_must_be_equal_bit_by_bit_where_the_profile_says_so() {
    let mut tensor = expected(Dtype::F32, &[2]);
    tensor.copy_only = true;
    let (want, got) = (encode(Dtype::F32, &[1.0, 2.0]), encode(Dtype::F32, &[1.0, 2.0000002]));
    for (name, pass) in [("tilewright-1", false), ("ascend-v2-e", false), ("kernelbench", true), ("ascend-v2-d", true)]
    {
        assert_eq!(judge(&shipped(name), &tensor, &want, None, &got).unwrap().pass, pass, "{name}");
        assert!(judge(&shipped(name), &tensor, &want, None, &want).unwrap().pass);
    }
}

#[test]
fn buffers_of_the_wrong_size_are_an_error_and_not_a_verdict() {
    let result = judge(&shipped("tilewright-1"), &expected(Dtype::F32, &[3]), &[0; 12], None, &[0; 8]);
    assert_eq!(result.unwrap_err().to_string(), "output: the output has 8 bytes, but the shape and dtype need 12");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_wider_tolerance_never_turns_a_pass_into_a_fail(seed: u64, error in -9.0..0.0f64, widen in 1.0..50.0f64, name in prop::sample::select(profile_names().collect::<Vec<_>>())) {
        let mut stream = Normals::new(seed);
        let want = stream.take(300);
        let got: Vec<f64> = want.iter().map(|w| w + 10f64.powf(error) * stream.next()).collect();
        let profile = shipped(name);
        let mut wide = profile.clone();
        let t = &mut wide.default;
        for number in [&mut t.rtol, &mut t.atol, &mut t.small_error, &mut t.mean_rel, &mut t.rms_tol, &mut t.atol_scaled, &mut t.mismatch] {
            *number *= widen;
        }
        let narrow = compare(&profile, Dtype::F32, &[300], &want, &got);
        let widened = compare(&wide, Dtype::F32, &[300], &want, &got);
        prop_assert!(!narrow.pass || widened.pass);
        prop_assert!(widened.severity <= narrow.severity * 1.000001);
        prop_assert_eq!(narrow.pass, narrow.why.is_none());
    }

    #[test]
    fn the_order_of_the_elements_does_not_change_the_figures(seed: u64, name in prop::sample::select(profile_names().collect::<Vec<_>>())) {
        let mut stream = Normals::new(seed);
        let want = stream.take(90);
        let got: Vec<f64> = want.iter().map(|w| w + 1e-4 * stream.next()).collect();
        let mut order: Vec<usize> = (0..90).collect();
        order.sort_by_key(|&i| (seed >> (i % 40)) ^ (i as u64 * 7919));
        let pick = |values: &[f64]| order.iter().map(|&i| values[i]).collect::<Vec<_>>();
        let a = compare(&shipped(name), Dtype::F32, &[90], &want, &got);
        let b = compare(&shipped(name), Dtype::F32, &[90], &pick(&want), &pick(&got));
        prop_assert_eq!(a.pass, b.pass);
        prop_assert_eq!(a.metrics.mismatched, b.metrics.mismatched);
        prop_assert_eq!(a.metrics.max_abs, b.metrics.max_abs);
        prop_assert!((a.metrics.mean_rel / b.metrics.mean_rel - 1.0).abs() < 1e-9);
        prop_assert!((a.metrics.rms / b.metrics.rms - 1.0).abs() < 1e-9);
    }

    #[test]
    fn figures_and_decision_equal_a_naive_reading(seed: u64, error in -6.0..-1.0f64, rows in 1u64..40, columns in 1u64..90) {
        let mut stream = Normals::new(seed);
        let count = (rows * columns) as usize;
        let want: Vec<f64> = stream.take(count).into_iter().map(|w| round_to(Dtype::F32, w)).collect();
        let got: Vec<f64> = want.iter().map(|w| round_to(Dtype::F32, w + 10f64.powf(error) * stream.next())).collect();
        let result = compare(&shipped("kernelbench"), Dtype::F32, &[rows, columns], &want, &got);
        let off: Vec<f64> = want.iter().zip(&got).map(|(w, g)| (g - w).abs()).collect();
        let outside = want.iter().zip(&off).filter(|(w, d)| **d > 1e-4 + 1e-4 * w.abs()).count();
        let most = off.iter().copied().fold(0.0, f64::max);
        let squares = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>();
        prop_assert_eq!(result.pass, outside == 0);
        prop_assert_eq!(result.metrics.mismatched, outside as u64);
        prop_assert_eq!(result.metrics.max_abs, most);
        prop_assert!((result.metrics.rms - (squares(&off) / squares(&want)).sqrt()).abs() < 1e-9 * result.metrics.rms);
        let mean = want.iter().zip(&off).map(|(w, d)| d / (w.abs() + 1e-7)).sum::<f64>() / count as f64;
        prop_assert!((result.metrics.mean_rel - mean).abs() <= 1e-9 * mean);
    }
}

/// KernelBench #146: the comparison of a large output must not need several more of its size.
#[test]
fn a_large_output_is_read_in_pieces_and_sums_are_reproducible() {
    let mut stream = Normals::new(9);
    let shape = [3u64, 250_001];
    let want = stream.take(750_003);
    let got: Vec<f64> = want.iter().map(|w| w * (1.0 + 1e-7 * stream.next())).collect();
    let first = compare(&shipped("tilewright-1"), Dtype::F32, &shape, &want, &got);
    assert!(first.pass && first.metrics.elements == 750_003);
    assert_eq!(first, compare(&shipped("tilewright-1"), Dtype::F32, &shape, &want, &got));
    let mut wrong = got.clone();
    wrong[700_000] += 1.0;
    let result = compare(&shipped("tilewright-1"), Dtype::F32, &shape, &want, &wrong);
    assert_eq!(result.metrics.worst.unwrap().index, [2, 700_000 - 500_002]);
}
