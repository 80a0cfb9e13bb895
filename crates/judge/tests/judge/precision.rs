//! Honest sums and lower precisions, computed here, against the default profile.
//!
//! `scripts/calibrate_profile.py` measures many more operations; this keeps its main finding in the test suite.

use tilewright_contract::Dtype;
use tilewright_judge::{judge, round_to};

use crate::common::{Normals, encode, expected, shipped};

const ROWS: usize = 24;
const COLUMNS: usize = 16;

/// Operands of a product of `ROWS` x `k` and `k` x `COLUMNS`, already numbers of `dtype`.
struct Product {
    dtype: Dtype,
    k: usize,
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Product {
    fn new(dtype: Dtype, k: usize, uniform: bool) -> Self {
        let mut stream = Normals::new(k as u64 + 21);
        let mut a: Vec<f64> = (0..ROWS * k).map(|_| if uniform { stream.uniform() } else { stream.next() }).collect();
        let mut b = stream.take(k * COLUMNS);
        a.iter_mut().chain(&mut b).for_each(|v| *v = round_to(dtype, *v));
        Self { dtype, k, a, b }
    }

    /// Every output from its terms, in order.
    fn each(&self, sum: impl Fn(&[(f64, f64)]) -> f64) -> Vec<f64> {
        let mut out = Vec::with_capacity(ROWS * COLUMNS);
        let mut terms = Vec::with_capacity(self.k);
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                terms.clear();
                terms.extend((0..self.k).map(|at| (self.a[row * self.k + at], self.b[at * COLUMNS + column])));
                out.push(sum(&terms));
            }
        }
        out
    }

    fn passes(&self, sum: impl Fn(&[(f64, f64)]) -> f64) -> bool {
        let wide = self.each(|terms| terms.iter().map(|(a, b)| a * b).sum());
        let sums = if self.dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 };
        let native =
            self.each(|terms| terms.chunks(32).map(|block| chain(block, sums)).fold(0.0, |s, b| round_to(sums, s + b)));
        let (native, wide) = (encode(self.dtype, &native), encode(Dtype::F64, &wide));
        let got = encode(self.dtype, &self.each(sum));
        let tensor = expected(self.dtype, &[ROWS as u64, COLUMNS as u64]);
        judge(&shipped("tilewright-1"), &tensor, &native, Some(&wide), &got).unwrap().pass
    }
}

/// A chain of fused multiply-adds whose accumulator is a number of `dtype`.
fn chain(terms: &[(f64, f64)], dtype: Dtype) -> f64 {
    terms.iter().fold(0.0, |sum, (a, b)| round_to(dtype, sum + a * b))
}

/// Blocks of `size` terms, each a chain, added up in order.
fn blocks(terms: &[(f64, f64)], size: usize, dtype: Dtype) -> f64 {
    terms.chunks(size).fold(0.0, |sum, block| round_to(dtype, sum + chain(block, Dtype::F32)))
}

/// With the operands rounded to a shorter dtype.
fn short(terms: &[(f64, f64)], dtype: Dtype) -> f64 {
    let terms: Vec<(f64, f64)> = terms.iter().map(|(a, b)| (round_to(dtype, *a), round_to(dtype, *b))).collect();
    blocks(&terms, 16, Dtype::F32)
}

#[test]
fn every_order_of_a_float32_sum_passes() {
    for k in [1, 7, 100, 1000, 4096] {
        for uniform in [false, true] {
            let product = Product::new(Dtype::F32, k, uniform);
            assert!(product.passes(|t| chain(t, Dtype::F32)), "chain, K {k}");
            assert!(product.passes(|t| blocks(t, 32, Dtype::F32)), "blocks of 32, K {k}");
            assert!(product.passes(|t| blocks(t, t.len().div_ceil(8), Dtype::F32)), "8 parts, K {k}");
            assert!(product.passes(|t| t.iter().rev().fold(0.0, |s, (a, b)| round_to(Dtype::F32, s + a * b))), "K {k}");
        }
    }
}

#[test]
fn float32_refuses_shorter_operands_and_sums() {
    for k in [7, 100, 4096] {
        for uniform in [false, true] {
            let product = Product::new(Dtype::F32, k, uniform);
            // tf32 keeps as many digits as float16.
            assert!(!product.passes(|t| short(t, Dtype::F16)), "float16 or tf32 operands, K {k}");
            assert!(!product.passes(|t| short(t, Dtype::Bf16)), "bfloat16 operands, K {k}");
            assert!(!product.passes(|t| chain(t, Dtype::F16)), "float16 sum, K {k}");
        }
    }
}

#[test]
fn float64_refuses_float32() {
    for k in [7, 1000] {
        let product = Product::new(Dtype::F64, k, false);
        assert!(product.passes(|t| t.iter().rev().map(|(a, b)| a * b).sum()));
        assert!(!product.passes(|t| chain(t, Dtype::F32)));
    }
}

/// reference-kernels #132: a tolerance was loosened and tightened, and honest low-precision kernels came and went.
#[test]
fn halves_take_a_float32_sum_and_refuse_a_sum_of_their_own() {
    for dtype in [Dtype::F16, Dtype::Bf16] {
        for k in [64, 8192] {
            let product = Product::new(dtype, k, false);
            assert!(product.passes(|t| chain(t, Dtype::F32)), "{dtype:?} {k}");
            assert!(product.passes(|t| blocks(t, 64, Dtype::F32)), "{dtype:?} {k}");
        }
        let product = Product::new(dtype, 8192, false);
        assert!(!product.passes(|t| blocks(t, 32, dtype)), "{dtype:?} sum");
        assert!(!product.passes(|t| chain(t, dtype)), "{dtype:?} chain");
    }
    assert!(!Product::new(Dtype::F16, 1000, false).passes(|t| short(t, Dtype::Bf16)));
    assert!(!Product::new(Dtype::Bf16, 1000, false).passes(|t| short(t, Dtype::F8E4M3)));
}
