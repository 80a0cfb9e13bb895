//! Reductions, scans and other operations with a region, and those that look up positions.

use super::Machine;
use super::elementwise::{float_op, int_op, round};
use super::shape::row_major;
use crate::block::{Block, both_blocks};
use crate::code::{Region, Simple, Step};
use crate::fault::Fault;

/// Threads of a warp.
const WARP: usize = 32;

impl<'a> Machine<'a> {
    fn full_operands(&self, step: &Step, numel: usize) -> Vec<Block> {
        step.args.iter().map(|&reg| self.reg(reg).expanded(numel).into_owned()).collect()
    }

    fn put_all(&mut self, step: &Step, blocks: Vec<Block>) {
        for (&reg, block) in step.outs.iter().zip(blocks) {
            *self.reg_mut(reg) = block;
        }
    }

    /// Folds neighbours along the axis until one is left: the order of operands is kept, so that a combine
    /// function need only be associative.
    pub(super) fn reduce(
        &mut self,
        step: &Step,
        [outer, extent, inner]: [usize; 3],
        region: &'a Region,
    ) -> Result<(), Fault> {
        let mut blocks = self.full_operands(step, outer * extent * inner);
        let mut n = extent;
        while n > 1 {
            let half = n / 2;
            let shape = [outer, n, inner];
            let odd = n % 2;
            let (mut left, mut right) = (empty_like(&blocks), empty_like(&blocks));
            for ((block, left), right) in blocks.iter().zip(&mut left).zip(&mut right) {
                if region.simple.is_some() {
                    // Commutative: halves against each other are contiguous.
                    block.slices(shape, 0, 1, half, left);
                    block.slices(shape, half, 1, half, right);
                } else {
                    block.slices(shape, 0, 2, half, left);
                    block.slices(shape, 1, 2, half, right);
                }
            }
            let combined = self.combine(region, left, right, outer * half * inner)?;
            blocks = if odd == 0 {
                combined
            } else {
                let next = half + 1;
                let mut joined = empty_like(&blocks);
                for ((joined, combined), block) in joined.iter_mut().zip(&combined).zip(&blocks) {
                    let mut last = Block::new(block.class());
                    block.slices(shape, n - 1, 1, 1, &mut last);
                    joined.resize(outer * next * inner);
                    joined.set_slices([outer, next, inner], 0, half, combined);
                    joined.set_slices([outer, next, inner], half, 1, &last);
                }
                joined
            };
            n = half + odd;
        }
        self.put_all(step, blocks);
        Ok(())
    }

    /// Inclusive scan by doubling distances: log(extent) rounds on whole blocks.
    pub(super) fn scan(
        &mut self,
        step: &Step,
        [outer, extent, inner]: [usize; 3],
        reverse: bool,
        region: &'a Region,
    ) -> Result<(), Fault> {
        let shape = [outer, extent, inner];
        let numel = outer * extent * inner;
        let mut blocks = self.full_operands(step, numel);
        if reverse {
            blocks = flipped(blocks, shape);
        }
        let mut distance = 1;
        while distance < extent {
            let count = extent - distance;
            let (mut left, mut right) = (empty_like(&blocks), empty_like(&blocks));
            for ((block, left), right) in blocks.iter().zip(&mut left).zip(&mut right) {
                block.slices(shape, 0, 1, count, left);
                block.slices(shape, distance, 1, count, right);
            }
            let combined = self.combine(region, left, right, outer * count * inner)?;
            for (block, combined) in blocks.iter_mut().zip(&combined) {
                block.set_slices(shape, distance, count, combined);
            }
            distance *= 2;
        }
        if reverse {
            blocks = flipped(blocks, shape);
        }
        self.put_all(step, blocks);
        Ok(())
    }

    /// Combines `n` pairs lane by lane.
    fn combine(
        &mut self,
        region: &'a Region,
        left: Vec<Block>,
        right: Vec<Block>,
        n: usize,
    ) -> Result<Vec<Block>, Fault> {
        if let (Some(simple), [a], [b]) = (region.simple, left.as_slice(), right.as_slice()) {
            let mut out = Block::new(a.class());
            self.report.flops += if matches!(simple, Simple::Float(..)) { n as u64 } else { 0 };
            let done = match simple {
                Simple::Int(op) => int_op(op, a, b, &mut out),
                Simple::Float(op, kind) => float_op(op, a, b, &mut out).and_then(|()| round(kind, &mut out)),
            };
            return done.map(|()| vec![out]).ok_or_else(|| self.malformed("a reduction of an unexpected type"));
        }
        self.run_lanes(region, left.into_iter().chain(right).collect(), n)
    }

    /// Runs a region on blocks of `n` lanes: all at once, or one after the other if it branches.
    fn run_lanes(&mut self, region: &'a Region, args: Vec<Block>, n: usize) -> Result<Vec<Block>, Fault> {
        if region.args.len() != args.len() {
            return Err(self.malformed("a region with another number of arguments"));
        }
        if !region.branches {
            for (&reg, block) in region.args.iter().zip(args) {
                *self.reg_mut(reg) = block;
            }
            self.run_region(region)?;
            return Ok(region.results.iter().map(|&reg| self.reg(reg).expanded(n).into_owned()).collect());
        }
        let mut results: Vec<Block> = Vec::new();
        for lane in 0..n {
            self.tick()?;
            for (&reg, block) in region.args.iter().zip(&args) {
                let mut one = std::mem::take(self.reg_mut(reg));
                if one.class() != block.class() {
                    one = Block::new(block.class());
                }
                block.take(std::iter::once(lane), &mut one);
                *self.reg_mut(reg) = one;
            }
            self.run_region(region)?;
            if results.is_empty() {
                results = region.results.iter().map(|&reg| Block::new(self.reg(reg).class())).collect();
            }
            for (result, &reg) in results.iter_mut().zip(&region.results) {
                let value = &self.task.regs[reg.0 as usize];
                both_blocks!(result, value, result, value => result.extend_from_slice(value), ());
            }
        }
        Ok(results)
    }

    /// `pack` neighbouring elements of each operand go into one run of the region.
    pub(super) fn map_elementwise(
        &mut self,
        step: &Step,
        numel: usize,
        pack: usize,
        region: &'a Region,
    ) -> Result<(), Fault> {
        let operands = self.full_operands(step, numel);
        let runs = numel / pack;
        let mut args = Vec::with_capacity(operands.len() * pack);
        for operand in &operands {
            for place in 0..pack {
                let mut part = Block::new(operand.class());
                operand.slices([runs, pack, 1], place, 1, 1, &mut part);
                args.push(part);
            }
        }
        let results = self.run_lanes(region, args, runs)?;
        let blocks = results
            .chunks(pack)
            .map(|parts| {
                let mut whole = Block::new(parts[0].class());
                whole.resize(numel);
                for (place, part) in parts.iter().enumerate() {
                    whole.set_slices([runs, pack, 1], place, 1, part);
                }
                whole
            })
            .collect();
        self.put_all(step, blocks);
        Ok(())
    }

    pub(super) fn histogram(&mut self, step: &Step, bins: usize, numel: usize, mask: bool) -> Result<(), Fault> {
        let values = self.arg(step, 0)?.expanded(numel).into_owned();
        let mask = if mask { Some(self.arg(step, 1)?.expanded(numel).into_owned()) } else { None };
        let mut counts = vec![0i32; bins];
        let mut count = |lane: usize, value: i64| {
            let on = !matches!(&mask, Some(Block::I8(mask)) if mask[lane] == 0);
            // A GPU looks at the low bits alone: as many as name a bin, or a thread of a warp where bins are fewer.
            let bin = value as usize & (bins.next_power_of_two().max(WARP) - 1);
            if let (true, Some(count)) = (on, counts.get_mut(bin)) {
                *count += 1;
            }
        };
        match &values {
            Block::I8(v) => v.iter().enumerate().for_each(|(lane, &x)| count(lane, i64::from(x))),
            Block::I16(v) => v.iter().enumerate().for_each(|(lane, &x)| count(lane, i64::from(x))),
            Block::I32(v) => v.iter().enumerate().for_each(|(lane, &x)| count(lane, i64::from(x))),
            Block::I64(v) => v.iter().enumerate().for_each(|(lane, &x)| count(lane, x)),
            _ => return Err(self.malformed("tt.histogram of an unexpected type")),
        }
        self.put(step, Block::I32(counts));
        Ok(())
    }

    pub(super) fn gather(&mut self, step: &Step, source: &[usize], index: &[usize], axis: usize) -> Result<(), Fault> {
        let numel = index.iter().product();
        let values = self.arg(step, 0)?.expanded(source.iter().product()).into_owned();
        let rows: Vec<i64> = match &*self.arg(step, 1)?.expanded(numel) {
            Block::I8(v) => v.iter().map(|&x| i64::from(x)).collect(),
            Block::I16(v) => v.iter().map(|&x| i64::from(x)).collect(),
            Block::I32(v) => v.iter().map(|&x| i64::from(x)).collect(),
            Block::I64(v) => v.clone(),
            _ => return Err(self.malformed("tt.gather with positions that are no integers")),
        };
        let (source_steps, index_steps) = (row_major(source), row_major(index));
        let mut positions = Vec::with_capacity(numel);
        for (position, &row) in rows.iter().enumerate() {
            let row = match usize::try_from(row) {
                Ok(inside) if inside < source[axis] => inside,
                _ => {
                    let site = self.site();
                    self.pass(Fault::Position { position: row, extent: source[axis], site })?;
                    0
                }
            };
            let place: usize = (0..index.len())
                .map(|dim| {
                    let coordinate = if dim == axis { row } else { position / index_steps[dim] % index[dim] };
                    coordinate * source_steps[dim]
                })
                .sum();
            positions.push(place);
        }
        let mut out = Block::new(values.class());
        values.take(positions.into_iter(), &mut out);
        self.put(step, out);
        Ok(())
    }
}

fn empty_like(blocks: &[Block]) -> Vec<Block> {
    blocks.iter().map(|block| Block::new(block.class())).collect()
}

fn flipped(blocks: Vec<Block>, [outer, extent, inner]: [usize; 3]) -> Vec<Block> {
    let flip = |block: Block| {
        let mut out = Block::new(block.class());
        let positions = (0..outer).flat_map(move |o| {
            (0..extent).rev().flat_map(move |e| (0..inner).map(move |i| (o * extent + e) * inner + i))
        });
        block.take(positions, &mut out);
        out
    };
    blocks.into_iter().map(flip).collect()
}
