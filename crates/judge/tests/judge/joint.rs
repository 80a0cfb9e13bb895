//! Random outputs that are right element by element, and wrong together.

use crate::common::{Normals, encode, expected};
use tilewright_contract::Dtype;
use tilewright_judge::{Comparison, Side, judge_stochastic, judge_together};

const DRAWS: usize = 16;
const SHAPE: [u64; 2] = [64, 64];

type Maker<'a> = &'a dyn Fn(usize, &[f64], &mut Normals) -> Vec<f64>;

/// Sixteen draws of a maker, which gets the number of the draw, the inputs and random numbers.
fn draws(seed: u64, maker: Maker) -> Vec<Vec<u8>> {
    let x: Vec<f64> = Normals::new(9).take(4096).iter().map(|v| v.abs() + 0.5).collect();
    let mut stream = Normals::new(seed);
    (0..DRAWS).map(|draw| encode(Dtype::F32, &maker(draw, &x, &mut stream))).collect()
}

fn judged(seed: u64, right: Maker, got: Maker) -> Comparison {
    let (want, have) = (draws(seed, right), draws(seed + 10_000, got));
    let want: Vec<&[u8]> = want.iter().map(Vec::as_slice).collect();
    let have: Vec<&[u8]> = have.iter().map(Vec::as_slice).collect();
    judge_stochastic(&expected(Dtype::F32, &SHAPE), &want, &have).expect("sizes fit")
}

/// A mask with one draw for each group of elements.
fn dropout(x: &[f64], stream: &mut Normals, group: impl Fn(usize) -> usize) -> Vec<f64> {
    let drawn: Vec<f64> = x.iter().map(|_| stream.uniform()).collect();
    x.iter().enumerate().map(|(at, v)| if drawn[group(at)] < 0.3 { 0.0 } else { v / 0.7 }).collect()
}

fn noise(x: &[f64], stream: &mut Normals, of: impl Fn(&mut Normals) -> f64) -> Vec<f64> {
    x.iter().map(|v| v + 0.1 * of(stream)).collect()
}

fn normal(stream: &mut Normals) -> f64 {
    stream.take(1)[0]
}

fn one_hot(x: &[f64], stream: &mut Normals) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    for row in 0..64 {
        out[row * 64 + (stream.uniform() * 64.0) as usize % 64] = 1.0;
    }
    out
}

#[test]
fn the_same_law_passes_whatever_the_seed_and_however_its_elements_depend() {
    let laws: [(&str, Maker); 7] = [
        ("dropout", &|_, x, s| dropout(x, s, |at| at)),
        ("a mask for each row", &|_, x, s| dropout(x, s, |at| at / 64)),
        ("a mask for each column", &|_, x, s| dropout(x, s, |at| at % 64)),
        ("noise", &|_, x, s| noise(x, s, normal)),
        ("one-hot rows", &|_, x, s| one_hot(x, s)),
        ("one number for all", &|_, x, s| {
            let factor = 1.0 + 0.1 * normal(s);
            x.iter().map(|v| v * factor).collect()
        }),
        ("rare and large", &|_, x, s| x.iter().map(|v| if s.uniform() < 0.002 { 50.0 * v } else { *v }).collect()),
    ];
    for (name, law) in laws {
        for seed in 0..6 {
            let result = judged(seed, law, law);
            assert!(result.pass, "{name}, {seed}: {:?} {}", result.why, result.severity);
        }
    }
}

#[test]
fn dependence_and_laws_of_their_own_fail_and_say_why() {
    let right: Maker = &|_, x, s| dropout(x, s, |at| at);
    let noisy: Maker = &|_, x, s| noise(x, s, normal);
    let wrong: [(&str, Maker, Maker, &str); 10] = [
        ("rows", right, &|_, x, s| dropout(x, s, |at| at / 64), "variance of sums over"),
        ("columns", right, &|_, x, s| dropout(x, s, |at| at % 64), "variance of sums over"),
        ("four neighbours", right, &|_, x, s| dropout(x, s, |at| at / 4), "variance of sums over"),
        (
            "periodic",
            right,
            &|_, x, s| {
                let shift = (s.uniform() * 1000.0) as usize;
                x.iter().enumerate().map(|(at, v)| if (at + shift) % 10 < 7 { v / 0.7 } else { 0.0 }).collect()
            },
            "variance of sums over",
        ),
        (
            "eight masks",
            right,
            &|_, x, s| {
                let mask = (s.uniform() * 8.0) as u64;
                dropout(x, &mut Normals::new(400 + mask), |at| at)
            },
            "pairs of 16 draws are the same",
        ),
        ("a sign", noisy, &|_, x, s| noise(x, s, |s| (s.uniform() - 0.5).signum()), "moment"),
        ("uniform", noisy, &|_, x, s| noise(x, s, |s| 12f64.sqrt() * (s.uniform() - 0.5)), "moment"),
        (
            "rows of noise",
            noisy,
            &|_, x, s| {
                let rows = s.take(64);
                x.iter().enumerate().map(|(at, v)| v + 0.1 * rows[at / 64]).collect()
            },
            "variance of sums over",
        ),
        (
            "no one-hot rows",
            &|_, x, s| one_hot(x, s),
            &|_, x, s| x.iter().map(|_| f64::from(u8::from(s.uniform() < 1.0 / 64.0))).collect(),
            "variance of sums over",
        ),
        ("independent rows", &|_, x, s| dropout(x, s, |at| at / 64), right, "variance of sums over"),
    ];
    for (name, law, got, words) in wrong {
        let result = judged(3, law, got);
        let why = result.why.unwrap_or_default();
        assert!(!result.pass && why.contains(words), "{name}: {why}");
    }
}

#[test]
fn a_returned_mask_is_the_one_that_was_applied() {
    let masked = |seed: u64, other: bool| -> [Vec<Vec<u8>>; 2] {
        let both = |own: bool| {
            draws(seed, &|_, x, s| {
                let (first, second) = (dropout(x, s, |at| at), dropout(x, s, |at| at));
                let mask = if other { second } else { first.clone() };
                if own { first } else { mask.into_iter().map(|v| f64::from(u8::from(v != 0.0))).collect() }
            })
        };
        [both(true), both(false)]
    };
    let passes = |seed, other| {
        let (want, have) = (masked(seed, false), masked(seed + 1000, other));
        let tensor = expected(Dtype::F32, &SHAPE);
        let all = [&want[0], &have[0], &want[1], &have[1]];
        let [a, b, c, d] = all.map(|draws| draws.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let first = Side { expected: &tensor, reference: &a, got: &b };
        let second = Side { expected: &tensor, reference: &c, got: &d };
        judge_together(first, second).unwrap()
    };
    for seed in 0..20 {
        let result = passes(seed, false);
        assert!(result.pass && result.severity < 0.9, "{:?}", result.why);
    }
    let why = passes(1, true).why.unwrap();
    assert!(why.contains("the correlation of the elements is"), "{why}");
}
