//! Dropout and its neighbours, right and wrong, judged in distribution.

use crate::common::{Normals, encode, expected};
use tilewright_contract::Dtype;
use tilewright_judge::{Comparison, judge_stochastic};

const DRAWS: usize = 16;

/// Draws of `maker`, which gets the inputs and a stream of random numbers.
fn draws(seed: u64, dtype: Dtype, x: &[f64], maker: impl Fn(&[f64], &mut Normals) -> Vec<f64>) -> Vec<Vec<u8>> {
    let mut stream = Normals::new(seed);
    (0..DRAWS).map(|_| encode(dtype, &maker(x, &mut stream))).collect()
}

fn dropout(p: f64, scale: f64) -> impl Fn(&[f64], &mut Normals) -> Vec<f64> {
    move |x, stream| x.iter().map(|v| if stream.uniform() < p { 0.0 } else { v * scale }).collect()
}

/// Dropout, then a product with a matrix of ones and a ReLU: zero is no mask there.
fn hidden(p: f64, scale: f64) -> impl Fn(&[f64], &mut Normals) -> Vec<f64> {
    move |x, stream| {
        let kept = dropout(p, scale)(x, stream);
        kept.chunks(8).flat_map(|row| [row.iter().sum::<f64>().max(0.0), row.iter().map(|v| v * v).sum()]).collect()
    }
}

fn judged(
    dtype: Dtype,
    count: usize,
    reference: impl Fn(&[f64], &mut Normals) -> Vec<f64>,
    got: impl Fn(&[f64], &mut Normals) -> Vec<f64>,
) -> Comparison {
    let x = Normals::new(77).take(count);
    let (want, have) = (draws(1, dtype, &x, reference), draws(2, dtype, &x, got));
    let elements = want[0].len() as u64 / dtype.size();
    let want: Vec<&[u8]> = want.iter().map(Vec::as_slice).collect();
    let have: Vec<&[u8]> = have.iter().map(Vec::as_slice).collect();
    judge_stochastic(&expected(dtype, &[elements]), &want, &have).expect("sizes fit")
}

#[test]
fn another_mask_of_the_same_kind_passes() {
    for p in [0.1, 0.2, 0.5, 0.9] {
        for count in [16, 400, 20_000] {
            for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
                let scale = 1.0 / (1.0 - p);
                let result = judged(dtype, count, dropout(p, scale), dropout(p, scale));
                assert!(result.pass, "p {p}, {count} of {dtype:?}: {:?}", result.why);
                let result = judged(dtype, count, hidden(p, scale), hidden(p, scale));
                assert!(result.pass, "hidden, p {p}, {count} of {dtype:?}: {:?}", result.why);
            }
        }
    }
}

#[test]
fn a_right_candidate_passes_whatever_the_seed() {
    for seed in 0..200 {
        let x = Normals::new(seed + 1000).take(300);
        let (want, have) = (
            draws(seed, Dtype::F32, &x, dropout(0.3, 1.0 / 0.7)),
            draws(seed + 5000, Dtype::F32, &x, dropout(0.3, 1.0 / 0.7)),
        );
        let want: Vec<&[u8]> = want.iter().map(Vec::as_slice).collect();
        let have: Vec<&[u8]> = have.iter().map(Vec::as_slice).collect();
        let result = judge_stochastic(&expected(Dtype::F32, &[300]), &want, &have).unwrap();
        assert!(result.pass && result.severity < 0.9, "{seed}: {:?} {}", result.why, result.severity);
    }
}

#[test]
fn wrong_dropouts_fail_and_say_why() {
    let right = || dropout(0.2, 1.25);
    let said = |got: &dyn Fn(&[f64], &mut Normals) -> Vec<f64>| {
        let result = judged(Dtype::F32, 4000, right(), got);
        assert!(!result.pass && result.severity > 1.0);
        result.why.unwrap()
    };
    let why = said(&|x, _| x.to_vec());
    assert!(why.contains("share of zeros over 16 draws is 0"), "no dropout at all: {why}");
    let why = said(&|x, s| dropout(0.2, 1.0)(x, s));
    assert!(why.contains("rms"), "scale left out: {why}");
    let why = said(&|x, s| dropout(0.25, 1.0 / 0.75)(x, s));
    assert!(why.contains("share of zeros"), "wrong keep-probability: {why}");
    let why = said(&|x, _| dropout(0.2, 1.25)(x, &mut Normals::new(5)));
    assert!(why.contains("every draw is the same"), "a fixed mask: {why}");
    let why = said(&|x, s| {
        dropout(0.2, 1.25)(x, s).into_iter().enumerate().map(|(at, v)| if at < 40 { -v } else { v }).collect()
    });
    assert!(why.contains("the means of the elements"), "a wrong row: {why}");
    let why = said(&|x, s| dropout(0.2, 1.25)(x, s).into_iter().map(|v| v * 1.0003).collect());
    assert!(why.contains("values that are kept"), "a slight scale: {why}");
    let why = said(&|x, s| {
        dropout(0.2, 1.25)(x, s).into_iter().enumerate().map(|(at, v)| if at == 7 { f64::NAN } else { v }).collect()
    });
    assert!(why.contains("NaN"), "{why}");
    let why = said(&|x, _| vec![0.0; x.len()]);
    assert!(why.contains("rms over 16 draws is 0"), "{why}");
}

/// KernelBench level 2, 66: at a loose tolerance zeros passed for dropout and softmax of small values.
#[test]
fn zeros_and_the_mean_fail_where_the_mask_is_hidden() {
    let right = || hidden(0.2, 1.25);
    for (name, got) in [
        ("zeros", &(|x: &[f64], _: &mut Normals| vec![0.0; x.len() / 4]) as &dyn Fn(&[f64], &mut Normals) -> Vec<f64>),
        ("no dropout", &|x, s| hidden(0.0, 1.0)(x, s)),
        ("scale left out", &|x, s| hidden(0.2, 1.0)(x, s)),
        ("a fixed mask", &|x, _| hidden(0.2, 1.25)(x, &mut Normals::new(5))),
    ] {
        assert!(!judged(Dtype::F32, 8000, right(), got).pass, "{name}");
    }
}

#[test]
fn random_noise_is_held_against_its_mean_and_spread() {
    let noise =
        |mean: f64, std: f64| move |x: &[f64], s: &mut Normals| x.iter().map(|_| mean + std * s.next()).collect();
    assert!(judged(Dtype::F32, 1000, noise(0.0, 1.0), noise(0.0, 1.0)).pass);
    for (mean, std) in [(0.2, 1.0), (0.0, 1.2), (0.0, 0.0)] {
        assert!(!judged(Dtype::F32, 1000, noise(0.0, 1.0), noise(mean, std)).pass, "{mean} {std}");
    }
}

#[test]
fn one_draw_is_an_error_and_an_empty_output_passes() {
    let one: [&[u8]; 1] = [&[0; 4]];
    let error = judge_stochastic(&expected(Dtype::F32, &[1]), &one, &one).unwrap_err();
    assert_eq!(error.to_string(), "output: 1 draws, at least 4 needed");
    let empty: [&[u8]; 4] = [&[]; 4];
    assert!(judge_stochastic(&expected(Dtype::F32, &[0]), &empty, &empty).unwrap().pass);
}
