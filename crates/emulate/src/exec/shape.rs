//! Operations that move elements: broadcasts, transposes, joins.

use super::Machine;
use crate::block::{Block, both_blocks};
use crate::code::Step;
use crate::fault::Fault;

impl Machine<'_> {
    pub(super) fn broadcast(&mut self, step: &Step, from: &[usize], to: &[usize]) -> Result<(), Fault> {
        let mut out = self.out(step)?;
        let source = self.arg(step, 0)?;
        if source.len() == 1 {
            out.assign(source);
        } else {
            both_blocks!(source, &mut out, source, out => broadcast(source, from, to, out), ());
        }
        self.put(step, out);
        Ok(())
    }

    pub(super) fn transpose(&mut self, step: &Step, shape: &[usize], order: &[usize]) -> Result<(), Fault> {
        let mut out = self.out(step)?;
        let source = self.arg(step, 0)?;
        if source.len() == 1 {
            out.assign(source);
        } else {
            both_blocks!(source, &mut out, source, out => transpose(source, shape, order, out), ());
        }
        self.put(step, out);
        Ok(())
    }

    /// A new last dimension of two.
    pub(super) fn join(&mut self, step: &Step, numel: usize) -> Result<(), Fault> {
        let mut out = self.out(step)?;
        let (a, b) = (self.arg(step, 0)?.expanded(numel), self.arg(step, 1)?.expanded(numel));
        match (&*a, &*b, &mut out) {
            (Block::I8(a), Block::I8(b), Block::I8(out)) => interleave(a, b, out),
            (Block::I16(a), Block::I16(b), Block::I16(out)) => interleave(a, b, out),
            (Block::I32(a), Block::I32(b), Block::I32(out)) => interleave(a, b, out),
            (Block::I64(a), Block::I64(b), Block::I64(out)) => interleave(a, b, out),
            (Block::F32(a), Block::F32(b), Block::F32(out)) => interleave(a, b, out),
            (Block::F64(a), Block::F64(b), Block::F64(out)) => interleave(a, b, out),
            _ => return Err(self.malformed("tt.join of different types")),
        }
        self.put(step, out);
        Ok(())
    }

    pub(super) fn split(&mut self, step: &Step, numel: usize) -> Result<(), Fault> {
        let source = self.arg(step, 0)?.expanded(numel).into_owned();
        for (half, &reg) in step.outs.iter().enumerate() {
            let mut out = std::mem::take(self.reg_mut(reg));
            source.slices([numel / 2, 2, 1], half, 1, 1, &mut out);
            *self.reg_mut(reg) = out;
        }
        Ok(())
    }

    pub(super) fn cat(&mut self, step: &Step, numel: [usize; 2]) -> Result<(), Fault> {
        let mut out = self.out(step)?;
        let (a, b) = (self.arg(step, 0)?.expanded(numel[0]), self.arg(step, 1)?.expanded(numel[1]));
        out.assign(&a);
        both_blocks!(&mut out, &*b, out, b => out.extend_from_slice(b), ());
        self.put(step, out);
        Ok(())
    }
}

pub(super) fn transpose<T: Copy>(source: &[T], shape: &[usize], order: &[usize], out: &mut Vec<T>) {
    let strides = row_major(shape);
    let dims: Vec<(usize, usize)> = order.iter().map(|&dim| (shape[dim], strides[dim])).collect();
    out.clear();
    out.reserve(source.len());
    walk(&dims, 0, &mut |start, count, stride| {
        out.extend((0..count).map(|i| source[start + i * stride]));
    });
}

pub(super) fn interleave<T: Copy>(a: &[T], b: &[T], out: &mut Vec<T>) {
    out.clear();
    out.extend(a.iter().zip(b).flat_map(|(&x, &y)| [x, y]));
}

/// Strides in elements of a dense tensor.
pub(super) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim];
    }
    strides
}

/// Visits the innermost rows of a strided tensor (extent and stride by dimension) in order: start, count, stride.
fn walk(dims: &[(usize, usize)], start: usize, row: &mut impl FnMut(usize, usize, usize)) {
    match dims {
        [] => row(start, 1, 1),
        [(count, stride)] => row(start, *count, *stride),
        [(count, stride), rest @ ..] => {
            for i in 0..*count {
                walk(rest, start + i * stride, row);
            }
        }
    }
}

pub(super) fn broadcast<T: Copy>(source: &[T], from: &[usize], to: &[usize], out: &mut Vec<T>) {
    out.clear();
    out.reserve(to.iter().product());
    // Trailing dimensions that are not broadcast are copied as one row.
    let same = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
    let (outer, inner) = to.split_at(to.len() - same);
    let row: usize = inner.iter().product();
    let strides = row_major(from);
    let dims: Vec<(usize, usize)> =
        outer.iter().enumerate().map(|(dim, &count)| (count, if from[dim] == 1 { 0 } else { strides[dim] })).collect();
    walk(&dims, 0, &mut |start, count, stride| {
        if row == 1 && stride == 0 {
            out.resize(out.len() + count, source[start]);
        } else {
            for i in 0..count {
                out.extend_from_slice(&source[start + i * stride..][..row]);
            }
        }
    });
}
