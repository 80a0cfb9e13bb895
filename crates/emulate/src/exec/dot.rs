//! Matrix products.

use super::Machine;
use crate::block::Block;
use crate::code::{Dot, DotScaled, Precision, ScaledKind, Step};
use crate::convert;
use crate::fault::Fault;
use crate::types::Elem;

impl Machine<'_> {
    /// `out = a * b + c`, accumulated in `f32` (`f64`, `i32`), each element's products in the order of K.
    pub(super) fn dot(&mut self, step: &Step, dot: &Dot) -> Result<(), Fault> {
        let Dot { batch, m, n, k, .. } = *dot;
        let mut out = self.out(step)?;
        out.assign(self.arg(step, 2)?);
        out.expand(batch * m * n);
        let (a, b) = (self.arg(step, 0)?.expanded(batch * m * k), self.arg(step, 1)?.expanded(batch * k * n));
        match (&*a, &*b, &mut out) {
            (Block::F32(a), Block::F32(b), Block::F32(out)) if dot.precision != Precision::Ieee => {
                split_product([batch, m, n, k], a, b, out, dot.precision);
            }
            (Block::F32(a), Block::F32(b), Block::F32(out)) => product([batch, m, n, k], a, b, out),
            (Block::F64(a), Block::F64(b), Block::F64(out)) => product([batch, m, n, k], a, b, out),
            (Block::I8(a), Block::I8(b), Block::I32(out)) => {
                let wide = |v: &[i8]| v.iter().map(|&x| i32::from(x)).collect::<Vec<_>>();
                product([batch, m, n, k], &wide(a), &wide(b), out);
            }
            _ => return Err(self.malformed("tt.dot of unexpected types")),
        }
        if let (Block::F32(out), Elem::Float(kind)) = (&mut out, dot.result) {
            convert::round_all(kind, out);
        }
        self.report.dot_flops += 2 * (batch * m * n * k) as u64;
        self.put(step, out);
        Ok(())
    }

    /// Microscaled operands: blocks of elements along K share a power-of-two scale (e8m0).
    pub(super) fn dot_scaled(&mut self, step: &Step, dot: &DotScaled) -> Result<(), Fault> {
        let DotScaled { m, n, k, .. } = *dot;
        let mut out = self.out(step)?;
        out.assign(self.arg(step, 2)?);
        out.expand(m * n);
        let mut next_scale = 3;
        let mut operands = [Vec::new(), Vec::new()];
        for side in 0..2 {
            // Rows of A and columns of B are scaled; both scale tensors are [rows, K / group].
            let rows = [m, n][side];
            let values = self.unpacked(step, dot, side)?;
            let at = |row: usize, p: usize| if side == 0 { row * k + p } else { p * n + row };
            let mut scaled = values;
            if let Some(group) = dot.scales[side] {
                let scales = self.arg(step, next_scale)?.expanded(rows * (k / group)).into_owned();
                next_scale += 1;
                let Block::I8(scales) = scales else { return Err(self.malformed("scales that are not i8")) };
                for row in 0..rows {
                    for p in 0..k {
                        let code = scales[row * (k / group) + p / group] as u8;
                        scaled[at(row, p)] *= e8m0(code);
                    }
                }
            }
            operands[side] = scaled;
        }
        let Block::F32(v) = &mut out else { return Err(self.malformed("tt.dot_scaled into an unexpected type")) };
        product([1, m, n, k], &operands[0], &operands[1], v);
        self.report.dot_flops += 2 * (m * n * k) as u64;
        self.put(step, out);
        Ok(())
    }

    /// An operand of [`Machine::dot_scaled`] as plain `f32`, `[m, k]` or `[k, n]`.
    fn unpacked(&self, step: &Step, dot: &DotScaled, side: usize) -> Result<Vec<f32>, Fault> {
        let (rows, cols) = if side == 0 { (dot.m, dot.k) } else { (dot.k, dot.n) };
        let packed = dot.kinds[side] == ScaledKind::E2M1;
        let block = self.arg(step, side)?.expanded(rows * cols / if packed { 2 } else { 1 });
        match (&*block, dot.kinds[side]) {
            (Block::F32(v), ScaledKind::Half | ScaledKind::E4M3 | ScaledKind::E5M2) => Ok(v.clone()),
            (Block::I8(v), kind @ (ScaledKind::E4M3 | ScaledKind::E5M2)) => {
                let format = if kind == ScaledKind::E4M3 { convert::E4M3 } else { convert::E5M2 };
                Ok(v.iter().map(|&code| format.decode(u32::from(code as u8))).collect())
            }
            (Block::I8(v), ScaledKind::E2M1) => {
                // Two values a byte, the lower half first, along K or along the other dimension.
                let along_columns = (side == 0) == dot.packed_along_k[side];
                let half = |row: usize, col: usize| {
                    let (byte, high) = if along_columns {
                        (row * (cols / 2) + col / 2, col % 2)
                    } else {
                        ((row / 2) * cols + col, row % 2)
                    };
                    e2m1((v[byte] as u8) >> (4 * high) & 15)
                };
                Ok((0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))).map(|(r, c)| half(r, c)).collect())
            }
            _ => Err(self.malformed("tt.dot_scaled of unexpected types")),
        }
    }
}

/// Products of operands split as Triton's compiler does. Tensor cores cut what they are given to tf32; a NaN of the small
/// products, as infinities make them, counts for nothing.
fn split_product(sizes: [usize; 4], a: &[f32], b: &[f32], out: &mut [f32], precision: Precision) {
    let narrow: fn(f32) -> f32 = match precision {
        Precision::Ieee => |x| x,
        Precision::Tf32 => |x| f32::from_bits(x.to_bits() & 0xffff_e000),
        Precision::Tf32x3 => convert::round_tf32,
        Precision::Bf16x3 | Precision::Bf16x6 => convert::round_bf16,
    };
    // Numbers of the parts of both operands, smallest products first.
    let pairs: &[(usize, usize)] = match precision {
        Precision::Ieee | Precision::Tf32 => &[(0, 0)],
        Precision::Tf32x3 | Precision::Bf16x3 => &[(1, 0), (0, 1), (0, 0)],
        Precision::Bf16x6 => &[(1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0)],
    };
    let count = pairs.iter().map(|&(of_a, _)| of_a + 1).max().unwrap_or(1);
    let parts = |values: &[f32]| {
        let mut rest = values.to_vec();
        let part = |rest: &mut Vec<f32>| {
            let part: Vec<f32> = rest.iter().map(|&x| narrow(x)).collect();
            rest.iter_mut().zip(&part).for_each(|(rest, part)| *rest -= part);
            part
        };
        (0..count).map(|_| part(&mut rest)).collect::<Vec<_>>()
    };
    let (a, b) = (parts(a), parts(b));
    if let [_] = pairs {
        return product(sizes, &a[0], &b[0], out);
    }
    let mut sum = vec![0.0; out.len()];
    for (at, &(of_a, of_b)) in pairs.iter().enumerate() {
        if at + 1 == pairs.len() {
            sum.iter_mut().for_each(|x: &mut f32| *x = if x.is_nan() { 0.0 } else { *x });
        }
        product(sizes, &a[of_a], &b[of_b], &mut sum);
    }
    out.iter_mut().zip(&sum).for_each(|(out, sum)| *out += sum);
}

fn e8m0(code: u8) -> f32 {
    if code == 255 { f32::NAN } else { 2f64.powi(i32::from(code) - 127) as f32 }
}

fn e2m1(code: u8) -> f32 {
    let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(code & 7)];
    if code & 8 == 0 { magnitude } else { -magnitude }
}

trait Element: Copy + Default {
    fn mul_add_separate(self, a: Self, b: Self) -> Self;
}
impl Element for f32 {
    #[inline(always)]
    fn mul_add_separate(self, a: f32, b: f32) -> f32 {
        self + a * b
    }
}
impl Element for f64 {
    #[inline(always)]
    fn mul_add_separate(self, a: f64, b: f64) -> f64 {
        self + a * b
    }
}
impl Element for i32 {
    #[inline(always)]
    fn mul_add_separate(self, a: i32, b: i32) -> i32 {
        self.wrapping_add(a.wrapping_mul(b))
    }
}

/// `c += a * b` over dense row-major matrices.
fn product<T: Element>([batch, m, n, k]: [usize; 4], a: &[T], b: &[T], c: &mut [T]) {
    for i in 0..batch {
        let (a, b, c) = (&a[i * m * k..][..m * k], &b[i * k * n..][..k * n], &mut c[i * m * n..][..m * n]);
        pulp::Arch::new().dispatch(Product { m, n, k, a, b, c });
    }
}

/// One product, as a type so that all of it is compiled for the machine's vectors: a closure this long is not inlined.
struct Product<'a, T> {
    m: usize,
    n: usize,
    k: usize,
    a: &'a [T],
    b: &'a [T],
    c: &'a mut [T],
}

impl<T: Element> pulp::NullaryFnOnce for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { m, n, k, a, b, c } = self;
        let (whole_rows, whole_cols) = (m - m % 4, n - n % 16);
        for row in (0..whole_rows).step_by(4) {
            for col in (0..whole_cols).step_by(16) {
                tile::<T, 4, 16>(k, &a[row * k..], k, &b[col..], n, &mut c[row * n + col..]);
            }
        }
        edge(0..whole_rows, whole_cols..n, k, a, b, n, c);
        edge(whole_rows..m, 0..n, k, a, b, n, c);
    }
}

/// One tile of the result, held in registers over the whole of K.
#[inline(always)]
fn tile<T: Element, const R: usize, const C: usize>(k: usize, a: &[T], lda: usize, b: &[T], n: usize, c: &mut [T]) {
    let mut sums = [[T::default(); C]; R];
    for (r, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&c[r * n..r * n + C]);
    }
    let rows: [&[T]; R] = std::array::from_fn(|r| &a[r * lda..r * lda + k]);
    for p in 0..k {
        let Some(b) = b[p * n..].first_chunk::<C>() else { return };
        for r in 0..R {
            let x = rows[r][p];
            for s in 0..C {
                sums[r][s] = sums[r][s].mul_add_separate(x, b[s]);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        c[r * n..r * n + C].copy_from_slice(sums);
    }
}

#[inline(always)]
fn edge<T: Element>(
    rows: std::ops::Range<usize>,
    cols: std::ops::Range<usize>,
    k: usize,
    a: &[T],
    b: &[T],
    n: usize,
    c: &mut [T],
) {
    if cols.is_empty() {
        return;
    }
    for row in rows {
        let out = &mut c[row * n..][cols.clone()];
        for (p, &x) in a[row * k..][..k].iter().enumerate() {
            for (o, &y) in out.iter_mut().zip(&b[p * n..][cols.clone()]) {
                *o = o.mul_add_separate(x, y);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn products_are_sums_in_order(m in 1usize..24, n in 1usize..40, k in 1usize..20, seed in any::<u32>()) {
            let value = |i: usize| (seed.wrapping_mul(i as u32 + 1).wrapping_mul(2_654_435_761) >> 8) as f32 * 1e-6 - 8.0;
            let a: Vec<f32> = (0..m * k).map(value).collect();
            let b: Vec<f32> = (0..k * n).map(|i| value(i + 1000)).collect();
            let start: Vec<f32> = (0..m * n).map(|i| value(i + 5000)).collect();
            let mut c = start.clone();
            product([1, m, n, k], &a, &b, &mut c);
            for row in 0..m {
                for col in 0..n {
                    let want = (0..k).fold(start[row * n + col], |sum, p| sum + a[row * k + p] * b[p * n + col]);
                    prop_assert_eq!(c[row * n + col].to_bits(), want.to_bits());
                }
            }
        }
    }
}
