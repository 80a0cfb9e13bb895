//! What a failed candidate is told: the cause has to be named from the figures alone.

use crate::common::{Normals, encode, expected, ints, shipped};
use insta::assert_snapshot;
use tilewright_contract::{Dtype, ExpectedTensor};
use tilewright_judge::{Judged, OWN_CASE, OWN_REGIME, Place, Tally, profile_names, round_to};

const OWN: Place = Place { case: OWN_CASE, regime: OWN_REGIME, call: 0 };
const POISON: u8 = 0xa5;

struct Case {
    tensor: ExpectedTensor,
    want: Vec<f64>,
}

impl Case {
    fn new(dtype: Dtype, shape: &[u64]) -> Self {
        let count = shape.iter().product::<u64>() as usize;
        Self { tensor: expected(dtype, shape), want: Normals::new(11).take(count) }
    }

    fn add(&self, tally: &mut Tally, place: Place, got: &[u8]) {
        let (native, wide) = (encode(self.tensor.dtype, &self.want), encode(Dtype::F64, &self.want));
        tally.add(place, &self.tensor, &native, Some(&wide), got).expect("sizes fit");
    }

    fn judged(&self, got: &[u8]) -> Judged {
        let mut tally = Tally::new(vec![shipped("tilewright-1")], Some(POISON));
        self.add(&mut tally, OWN, got);
        tally.finish()
    }

    fn each(&self, change: impl Fn(usize, f64) -> f64) -> Vec<u8> {
        let got: Vec<f64> = self.want.iter().enumerate().map(|(at, &w)| change(at, w)).collect();
        encode(self.tensor.dtype, &got)
    }

    fn said(&self, change: impl Fn(usize, f64) -> f64) -> String {
        said(&self.judged(&self.each(change)))
    }
}

fn said(judged: &Judged) -> String {
    let lines =
        judged.reasons.iter().map(|r| format!("{} | {} | {}", r.code, r.message, r.help.as_deref().unwrap_or("")));
    lines.collect::<Vec<_>>().join("\n")
}

fn matrix() -> Case {
    Case::new(Dtype::F32, &[40, 100])
}

#[test]
fn a_right_answer_needs_no_reason() {
    let judged = matrix().judged(&matrix().each(|_, w| w));
    assert!(judged.pass && judged.reasons.is_empty());
    assert!(judged.outcomes["tilewright-1"].pass);
}

#[test]
fn wrong_patterns_are_named() {
    let case = matrix();
    assert_snapshot!(case.said(|_, _| 0.0), @r"all-zeros | output: every element is 0; at [37, 83] got 0, want -4.316491519; rms error is 1.00 of the reference's rms, 3.5e-6 allowed | check that the kernel stores its result to the tensor that forward returns");
    assert_snapshot!(case.said(|_, _| 0.25), @r"constant | output: every element is 0.25; at [37, 83] got 0.25, want -4.316491519; rms error is 1.03 of the reference's rms, 3.5e-6 allowed | check that each program reads and writes its own block (program_id in the offsets)");
    assert_snapshot!(case.said(|at, w| if at == 320 { f64::NAN } else { w }), @r"nan | output: 1 of 4000 elements are NaN where the reference is finite, the first at [3, 20]; at [3, 20] got NaN, want -0.8851357938 | look for an exp without the maximum subtracted, a division by zero, a sum in float16, or other=… missing on a masked load");
    assert_snapshot!(case.said(|at, w| if at % 100 == 99 { f64::INFINITY } else { w }), @r"infinite | output: 40 of 4000 elements are infinite where the reference is finite, the first at [0, 99]; at [0, 99] got inf, want -0.8534241333 | look for an exp without the maximum subtracted, a division by zero, a sum in float16, or other=… missing on a masked load");
    assert_snapshot!(case.said(|_, w| w * 0.125), @r"scaled | output: every element is 0.125 times what it should be; at [37, 83] got -0.53956145, want -4.316491519; rms error is 0.87 of the reference's rms, 3.5e-6 allowed | look for a scale that is missing, applied twice, or inverted");
    assert_snapshot!(case.said(|_, w| -w), @r"scaled | output: every element is -1 times what it should be; at [37, 83] got 4.3164916, want -4.316491519; rms error is 2.00 of the reference's rms, 3.5e-6 allowed | look for a scale that is missing, applied twice, or inverted");
    assert_snapshot!(case.said(|_, w| w + 0.5), @r"offset | output: every element is off by 0.50; at [3, 78] got 0.49988273, want -0.0001172665239; rms error is 0.51 of the reference's rms, 3.5e-6 allowed | look for a bias or a constant that is missing or added twice");
    assert_snapshot!(case.said(|at, w| if at % 100 >= 64 { w + 1.0 } else { w }), @r"partial | output: only the first 64 of 100 on axis 1 are right; the last 36 are wrong; at [3, 78] got 0.99988276, want -0.0001172665239; rms error is 0.61 of the reference's rms, 3.5e-6 allowed | look at the last block: its mask, the rounding of the grid, or a carry that is lost between blocks");
    assert_snapshot!(case.said(|at, w| if at / 100 == 7 { w * 1.5 } else { w }), @r"partial | output: only index 7 of 40 on axis 0 is wrong; at [7, 28] got 4.363786, want 2.909190824; rms error is 0.08 of the reference's rms, 3.5e-6 allowed | look at what is special at that index: a boundary or a first block");
    assert_snapshot!(case.said(|at, _| case.want[at % 100 * 40 + at / 100 % 40]), @r"permuted | output: the values are right, but in another order; at [23, 94] got -4.3164916, want -0.08009553811; rms error is 1.42 of the reference's rms, 3.5e-6 allowed | check the offsets of the load or of the store against the strides");
    assert_snapshot!(case.said(|at, _| case.want[(at + 1) % 4000]), @r"permuted | output: the values are right, but in another order; at [37, 82] got -4.3164916, want 0.02068703578; rms error is 1.41 of the reference's rms, 3.5e-6 allowed | check the offsets of the load or of the store against the strides");
}

#[test]
fn values_from_wrong_addresses_and_lost_values_are_named() {
    let case = matrix();
    let other = Normals::new(99).take(4000);
    assert_snapshot!(case.said(|at, _| other[at]), @r"unrelated | output: the values have the right size, but little to do with the right ones (correlation 0.00); at [12, 10] got -3.8412478, want 0.1377653798; rms error is 1.43 of the reference's rms, 3.5e-6 allowed | data is read or written at wrong addresses: check every stride (an input may be transposed or sliced) and the row pitch");
    assert_snapshot!(case.said(|at, w| if at / 100 % 3 == 0 { 0.0 } else { w }), @r"zeros | output: 1293 of 4000 elements are 0 where the reference is not; at [12, 7] got 0, want -3.404594202; rms error is 0.59 of the reference's rms, 3.5e-6 allowed | look for a sum that overflows to infinity before a division (accumulate in tl.float32), a mask that is too narrow, or a step that is left out");
}

#[test]
fn a_tensor_changed_in_place_is_named() {
    let step = expected(Dtype::I64, &[]);
    let run = |path: &str| {
        let mut tally = Tally::new(vec![shipped("tilewright-1")], Some(POISON));
        let tensor = ExpectedTensor { path: path.into(), ..step.clone() };
        tally.add(OWN, &tensor, &ints(&[1]), None, &ints(&[0])).unwrap();
        said(&tally.finish())
    };
    assert_snapshot!(run("state.steps"), @r"all-zeros | state.steps: it is 0; at [] got 0, want 1 | the reference changes this tensor in place on every call: store the new values to it");
    assert_snapshot!(run("output[1]"), @r"all-zeros | output[1]: it is 0; at [] got 0, want 1 | check that the kernel stores its result to the tensor that forward returns");
}

#[test]
fn an_index_that_counts_from_its_block_is_named() {
    let tensor = expected(Dtype::I64, &[5]);
    let mut tally = Tally::new(vec![shipped("tilewright-1")], Some(POISON));
    tally.add(OWN, &tensor, &ints(&[5, 631, 1030, 70, 900]), None, &ints(&[5, 119, 6, 70, 388])).unwrap();
    assert_snapshot!(said(&tally.finish()), @r"block-offset | output: every difference is a multiple of 512; at [2] got 6, want 1030 | an index counts from the start of its block or chunk: add the block's own offset");
}

#[test]
fn a_wrong_statistic_of_a_row_is_named() {
    let case = matrix();
    let factor = |at: usize| 1.0 + 0.01 * (at / 100 % 7) as f64;
    let bias = |at: usize| 0.1 * (at % 100) as f64 / 100.0;
    assert_snapshot!(case.said(|at, w| (w - bias(at)) * factor(at) + bias(at)), @r"rows | output: every row is scaled or shifted by an amount of its own (factors 1 to 1.0603); at [34, 24] got 3.12038, want 2.945113205; rms error is 0.04 of the reference's rms, 3.5e-6 allowed | look at what the kernel computes once for a row: its mean, variance, eps, maximum or sum, and how many elements it counts");
    assert_snapshot!(case.said(|at, w| w + 0.01 * (at / 100) as f64), @r"rows | output: every row is scaled or shifted by an amount of its own (factors 1 to 1); at [39, 74] got 0.40285113, want 0.01285112396; rms error is 0.23 of the reference's rms, 3.5e-6 allowed | look at what the kernel computes once for a row: its mean, variance, eps, maximum or sum, and how many elements it counts");
}

#[test]
fn a_transposed_store_is_named() {
    let case = matrix();
    // got, read as [100, 40], holds the transpose.
    assert_snapshot!(case.said(|at, _| case.want[at % 40 * 100 + at / 40]), @r"transposed | output: the values are right, but the last two axes are swapped in memory; at [33, 57] got -4.3164916, want 1.399492652; rms error is 1.42 of the reference's rms, 3.5e-6 allowed | swap the two offsets or the two strides in the store");
}

#[test]
fn unwritten_elements_are_named_by_their_poison() {
    let case = matrix();
    let mut got = case.each(|_, w| w);
    got[15_872..].fill(POISON);
    assert_snapshot!(said(&case.judged(&got)), @r"unwritten | output: 32 of 4000 elements were never written, the first at [39, 68]; at [39, 84] got -2.8735182e-16, want 1.628710713; rms error is 0.06 of the reference's rms, 3.5e-6 allowed | cover every element: round the grid up with triton.cdiv and mask the last block");
    got.fill(POISON);
    assert_snapshot!(said(&case.judged(&got)), @r"unwritten | output: nothing was written to the output; at [37, 83] got -2.8735182e-16, want -4.316491519; rms error is 1.00 of the reference's rms, 3.5e-6 allowed | cover every element: round the grid up with triton.cdiv and mask the last block");
}

#[test]
fn a_lower_precision_is_named_with_the_way_out() {
    let mut noise = Normals::new(12);
    let noise = noise.take(4000);
    let wide = matrix();
    assert_snapshot!(wide.said(|at, w| w + 1e-5 * noise[at]), @r"precision | output: the error, 1.0e-5 of the reference's rms, is typical of float32 sums of poor order, or approximate functions; at [38, 19] got -0.1382493, want -0.1382179005; rms error is 1.0e-5 of the reference's rms, 3.5e-6 allowed | sum by blocks (tl.sum over a tile) instead of one by one; avoid fast-math approximations");
    assert_snapshot!(wide.said(|at, w| w + 3e-4 * noise[at]), @r#"precision | output: the error, 3.0e-4 of the reference's rms, is typical of tf32 or float16 computing; at [38, 19] got -0.13915962, want -0.1382179005; rms error is 3.0e-4 of the reference's rms, 3.5e-6 allowed | if it comes from tl.dot, pass input_precision="ieee" (the default for float32 is tf32); accumulate in tl.float32"#);
    assert_snapshot!(wide.said(|at, w| w + 3e-3 * noise[at]), @r"precision | output: the error, 3.0e-3 of the reference's rms, is typical of bfloat16 computing, or sums in float16; at [38, 19] got -0.14763507, want -0.1382179005; rms error is 3.0e-3 of the reference's rms, 3.5e-6 allowed | load as float32 and keep it; accumulate in tl.float32");
    // One element that is far off is no precision.
    assert_snapshot!(wide.said(|at, w| if at == 5 { w + 0.02 } else { w }), @r"values | output: rms error is 3.2e-4 of the reference's rms, 3.5e-6 allowed; at [0, 5] got 0.6316001, want 0.6116000759 |");
    assert_snapshot!(wide.said(|_, w| round_to(Dtype::F16, w)), @r"precision | output: every value is a float16 number: the result was rounded to float16 on its way; at [39, 20] got -2.2167969, want -2.217762189; rms error is 2.1e-4 of the reference's rms, 3.5e-6 allowed | keep float32 from load to store; cast nothing to tl.float16");
    assert_snapshot!(wide.said(|_, w| round_to(Dtype::Bf16, w)), @r"precision | output: every value is a bfloat16 number: the result was rounded to bfloat16 on its way; at [22, 35] got 2.03125, want 2.023656219; rms error is 1.6e-3 of the reference's rms, 3.5e-6 allowed | keep float32 from load to store; cast nothing to tl.bfloat16");
    let half = Case::new(Dtype::F16, &[40, 100]);
    assert_snapshot!(half.said(|at, w| w + 3e-3 * noise[at]), @r"precision | output: the error, 3.0e-3 of the reference's rms, is typical of bfloat16 computing, or sums in float16; at [38, 19] got -0.14758301, want -0.1382179005; rms error is 3.0e-3 of the reference's rms, 6.5e-4 allowed | accumulate in tl.float32 and keep intermediates in float32 until the store");
    assert_snapshot!(half.said(|_, w| round_to(Dtype::Bf16, w)), @r"precision | output: every value is a bfloat16 number: the result was rounded to bfloat16 on its way; at [22, 35] got 2.03125, want 2.023656219; rms error is 1.6e-3 of the reference's rms, 6.5e-4 allowed | keep float16 from load to store; cast nothing to tl.bfloat16");
    let brain = Case::new(Dtype::Bf16, &[40, 100]);
    assert_snapshot!(brain.said(|at, w| w + 3e-2 * noise[at]), @r"precision | output: the error, 0.03 of the reference's rms, is typical of fp8 computing, or sums in bfloat16; at [38, 19] got -0.23242188, want -0.1382179005; rms error is 0.03 of the reference's rms, 6.0e-3 allowed | accumulate in tl.float32; do not cast operands to float8");
    let double = Case::new(Dtype::F64, &[40, 100]);
    assert_snapshot!(double.said(|_, w| round_to(Dtype::F32, w)), @r"precision | output: the error, 2.5e-8 of the reference's rms, is typical of float32 computing; at [23, 75] got -2.1729493141174316, want -2.1729491950333504; rms error is 2.5e-8 of the reference's rms, 1.0e-12 allowed | keep float64 throughout; write constants as tl.full(…, tl.float64)");
}

#[test]
fn integers_are_named_by_their_difference() {
    let tensor = expected(Dtype::I64, &[6]);
    let mut tally = Tally::new(vec![shipped("tilewright-1")], Some(POISON));
    tally.add(OWN, &tensor, &ints(&[5, 0, 3, 9, 9, 1]), None, &ints(&[5, 0, 3, 9, 8, 1])).unwrap();
    assert_snapshot!(said(&tally.finish()), @r"partial | output: only index 4 of 6 is wrong; at [4] got 8, want 9 | look at what is special at that index: a boundary or a first block");
    let regime = Place { regime: "constant-rows", ..OWN };
    let mut tally = Tally::new(vec![shipped("tilewright-1")], Some(POISON));
    tally.add(OWN, &tensor, &ints(&[1; 6]), None, &ints(&[1; 6])).unwrap();
    tally.add(regime, &tensor, &ints(&[0; 6]), None, &ints(&[6; 6])).unwrap();
    assert_snapshot!(said(&tally.finish()), @r"block-offset | output (regime constant-rows): every difference is a multiple of 6; at [0] got 6, want 0; right on the problem's own inputs | ties: torch returns the first index");
}

#[test]
fn a_regime_decides_ours_and_informs_a_foreign_profile() {
    let case = matrix();
    let mut tally = Tally::new(["tilewright-1", "kernelbench"].map(shipped).into(), Some(POISON));
    case.add(&mut tally, OWN, &case.each(|_, w| w));
    case.add(&mut tally, Place { regime: "large", ..OWN }, &case.each(|at, w| if at < 100 { f64::NAN } else { w }));
    case.add(
        &mut tally,
        Place { case: "n=97", regime: OWN_REGIME, call: 1 },
        &case.each(|at, w| if at < 100 { 0.0 } else { w }),
    );
    let judged = tally.finish();
    assert!(!judged.pass && !judged.outcomes["tilewright-1"].pass);
    assert_snapshot!(said(&judged), @r"nan | output (regime large): 100 of 4000 elements are NaN where the reference is finite, the first at [0, 0]; at [0, 0] got NaN, want -0.3758724936; right on the problem's own inputs | subtract the maximum before exp; keep sums of squares in float32");
    let worst = judged.outcomes["tilewright-1"].metrics.worst.clone().unwrap();
    assert_eq!((worst.case.as_str(), worst.regime.as_str()), ("default", "large"));
    let foreign = &judged.outcomes["kernelbench"];
    assert!(foreign.pass && foreign.metrics.elements == 4000);
    assert_snapshot!(foreign.robustness.join("\n"), @r"
    output (regime large): 100 of 4000 elements are NaN where the reference is a number; at [0, 0] got NaN, want -0.3758725
    output (case n=97, call 2): 100 of 4000 elements are outside the tolerance, the worst 7.4e3 times; at [0, 98] got 0, want -2.8259783
    ");
}

/// What is ill-conditioned in a regime is honest noise; what is lost there is not.
#[test]
fn a_regime_looks_for_more_than_precision() {
    let case = matrix();
    for (error, pass) in [(1e-4, true), (1e-2, false)] {
        let near = case.each(|_, w| w * (1.0 + error));
        let judged = |regime| {
            let mut tally = Tally::new(vec![shipped("tilewright-1")], None);
            case.add(&mut tally, Place { regime, ..OWN }, &near);
            tally.finish().pass
        };
        assert!(!judged(OWN_REGIME));
        assert_eq!(judged("constant-rows"), pass);
    }
}

#[test]
fn the_first_profile_decides() {
    let case = matrix();
    let near = case.each(|_, w| w * 1.00005);
    for (names, pass) in [(["kernelbench", "tilewright-1"], true), (["tilewright-1", "kernelbench"], false)] {
        let mut tally = Tally::new(names.map(shipped).into(), None);
        case.add(&mut tally, OWN, &near);
        let judged = tally.finish();
        assert_eq!((judged.pass, judged.reasons.is_empty()), (pass, pass));
        assert!(judged.outcomes["kernelbench"].pass && !judged.outcomes["tilewright-1"].pass);
    }
}

#[test]
fn one_reason_a_tensor_and_the_worst_own_input_first() {
    let mut tally = Tally::new(vec![shipped("tilewright-1")], None);
    for at in 0..12 {
        let mut case = Case::new(Dtype::F32, &[100]);
        case.tensor.path = format!("output[{at}]");
        case.add(&mut tally, Place { regime: "large", ..OWN }, &case.each(|_, _| f64::NAN));
        case.add(&mut tally, OWN, &case.each(|i, w| if i == 3 { w + 0.1 * f64::from(at) } else { w }));
    }
    let judged = tally.finish();
    assert_eq!(judged.reasons.len(), 9);
    assert!(judged.reasons[0].message.starts_with("output[11]: "));
    assert_eq!(judged.reasons[8].message, "4 more tensors are wrong");
    // The one that is right on its own inputs comes last of all, in the uncounted rest.
    assert!(judged.reasons.iter().all(|r| !r.message.contains("regime")));
}

/// A verdict is JSON, which has no NaN and no infinity.
#[test]
fn figures_survive_json_whatever_the_candidate_returns() {
    let case = matrix();
    for wrong in [f64::NAN, f64::INFINITY, f64::from(f32::MAX), f64::from(f32::MIN)] {
        let mut tally = Tally::new(profile_names().map(shipped).collect(), None);
        case.add(&mut tally, OWN, &case.each(|_, _| wrong));
        let judged = tally.finish();
        for outcome in judged.outcomes.values() {
            let text = serde_json::to_string(outcome).unwrap();
            assert!(!text.contains("null,\"") && !text.contains(":null"), "{text}");
            let _: tilewright_contract::ProfileOutcome = serde_json::from_str(&text).unwrap();
        }
    }
}

#[test]
fn draws_stand_for_every_profile() {
    let mut stream = Normals::new(13);
    let x = stream.take(2000);
    let mut draw = |p: f64| {
        let kept: Vec<f64> = x.iter().map(|v| if stream.uniform() < p { 0.0 } else { v / (1.0 - p) }).collect();
        encode(Dtype::F32, &kept)
    };
    let mut draws = |p: f64| (0..8).map(|_| draw(p)).collect::<Vec<_>>();
    let (want, right, wrong) = (draws(0.5), draws(0.5), draws(0.1));
    let judged = |got: &[Vec<u8>]| {
        let mut tally = Tally::new(["tilewright-1", "kernelbench"].map(shipped).into(), None);
        let want: Vec<&[u8]> = want.iter().map(Vec::as_slice).collect();
        let got: Vec<&[u8]> = got.iter().map(Vec::as_slice).collect();
        tally.add_draws(OWN, &expected(Dtype::F32, &[2000]), &want, &got).unwrap();
        tally.finish()
    };
    let (good, bad) = (judged(&right), judged(&wrong));
    assert!(good.pass && good.outcomes["kernelbench"].pass);
    assert!(good.notes[0].contains("judged in distribution"));
    assert!(!bad.pass && !bad.outcomes["kernelbench"].pass);
    assert!(said(&bad).contains("share of zeros"), "{}", said(&bad));
}

/// TritonBench #7: a file that printed nothing equalled a gold file that printed nothing.
#[test]
fn nothing_compared_is_no_pass() {
    let judged = Tally::new(vec![shipped("tilewright-1")], None).finish();
    assert!(!judged.pass && !judged.outcomes["tilewright-1"].pass);
    assert_eq!(judged.reasons[0].code, "nothing-compared");
}

/// The mean of many numbers of both signs may be close to zero in one call; its rounding error is not.
#[test]
fn a_scalar_is_judged_at_the_scale_it_has_over_all_calls() {
    let run = |wrong: f64| {
        let mut tally = Tally::new(vec![shipped("tilewright-1")], None);
        for (call, want) in [1e-3, -8e-4, 2e-7, 5e-4].into_iter().enumerate() {
            let case = Case { tensor: expected(Dtype::F32, &[]), want: vec![want] };
            let got = encode(Dtype::F32, &[want + 1e-9 + if call == 2 { wrong } else { 0.0 }]);
            case.add(&mut tally, Place { call, ..OWN }, &got);
        }
        tally.finish()
    };
    assert!(run(0.0).pass);
    let judged = run(2e-7);
    assert!(!judged.pass);
    assert!(judged.reasons[0].message.starts_with("output (call 3): "), "{}", said(&judged));
}

#[test]
fn numbers_where_the_reference_has_none_are_told() {
    let mut case = matrix();
    for (at, want) in case.want.iter_mut().enumerate() {
        match at % 100 {
            98 => *want = f64::NAN,
            99 => *want = f64::NEG_INFINITY,
            _ => {}
        }
    }
    let said = case.said(|_, w| if w.is_finite() { w } else { -87.5 });
    assert_snapshot!(said, @"finite | output: 80 of 4000 elements are numbers where the reference is NaN or infinite, the first at [0, 98]; at [0, 98] got -87.5, want NaN | look for a clamp, a maximum or an epsilon that the reference does not have (tl.maximum and tl.minimum drop NaN)");
    let judged = case.judged(&case.each(|_, w| w));
    assert!(judged.pass);
}
