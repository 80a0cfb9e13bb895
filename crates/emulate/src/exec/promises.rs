//! What a kernel promises the compiler: one that is broken is a fault, whatever this executor makes of it.

use super::Machine;
use super::shape::row_major;
use crate::block::{Block, View};
use crate::code::{Hint, Step};
use crate::fault::{Fault, Usage};

/// Bytes of the widest access of a thread, and of a descriptor's alignment. What is promised beyond is of no use.
const WIDEST: i64 = 16;

impl Machine<'_> {
    /// `tl.assume`.
    pub(super) fn assume(&mut self, step: &Step) -> Result<(), Fault> {
        if let Some(&reg) = step.args.first() {
            self.used(reg, Usage::Branch);
        }
        match self.arg(step, 0)? {
            Block::I8(conditions) if conditions.contains(&0) => self.broken("what tl.assume says is false".to_owned()),
            _ => Ok(()),
        }
    }

    /// `tl.multiple_of` and `tl.max_contiguous`. Runs may end early, as those of `offsets % n` do in the last block: it is
    /// the first number that must be a multiple, and numbers must neither skip any nor count down.
    pub(super) fn hint(&mut self, step: &Step, hint: &Hint) -> Result<(), Fault> {
        let numbers: Vec<i64> = match self.arg(step, 0)? {
            Block::I8(v) => v.iter().map(|&x| i64::from(x)).collect(),
            Block::I16(v) => v.iter().map(|&x| i64::from(x)).collect(),
            Block::I32(v) => v.iter().map(|&x| i64::from(x)).collect(),
            Block::I64(v) => v.clone(),
            _ => return Ok(()),
        };
        let Some(&first) = numbers.first() else { return Ok(()) };
        let divisor = hint.divisible.iter().copied().max().unwrap_or(1);
        // A power of two: a multiple of it is one of its smaller ones.
        let least = if divisor > WIDEST && divisor % WIDEST == 0 { WIDEST } else { divisor };
        if least > 1 && first % least != 0 {
            self.broken(format!("a number said to be a multiple of {divisor} is {first}"))?;
        }
        let steps = row_major(&hint.shape);
        for (dim, &run) in hint.contiguous.iter().enumerate().filter(|&(_, &run)| run > 1) {
            let (stride, extent) = (steps[dim], hint.shape[dim]);
            let place = |lane: usize| (lane / stride % extent) as i64 % run;
            let falls = |lane: usize| numbers[lane] < numbers[lane - stride];
            let skips = |lane: usize| numbers[lane] > numbers[lane - stride].saturating_add(1);
            let odd = |&lane: &usize| match place(lane) {
                0 => false,
                1 => skips(lane),
                _ => skips(lane) || falls(lane) && falls(lane - stride),
            };
            if numbers.len() > 1
                && let Some(lane) = (stride..numbers.len()).find(odd)
            {
                let (before, after) = (numbers[lane - stride], numbers[lane]);
                return self.broken(format!(
                    "of numbers said to follow each other, {run} at a time, {after} follows {before}"
                ));
            }
        }
        Ok(())
    }

    /// A tensor descriptor made in the kernel, of elements of so many bytes.
    pub(super) fn check_descriptor(&mut self, view: &View, bytes: usize) -> Result<(), Fault> {
        let Some((last, outer)) = view.strides.split_last() else { return Ok(()) };
        let odd = |stride: &&i64| stride.wrapping_mul(bytes as i64) % WIDEST != 0;
        if view.base % WIDEST != 0 {
            self.broken("the base of a tensor descriptor is no multiple of 16 bytes".to_owned())?;
        }
        if let Some(stride) = outer.iter().find(odd) {
            let stride = stride.wrapping_mul(bytes as i64);
            self.broken(format!("a stride of a tensor descriptor is {stride} bytes, which is no multiple of 16"))?;
        }
        if *last != 1 {
            self.broken(format!("the last stride of a tensor descriptor is {last} elements, not 1"))?;
        }
        Ok(())
    }

    fn broken(&mut self, what: String) -> Result<(), Fault> {
        let site = self.site();
        self.pass(Fault::Promise { what, site })
    }
}
