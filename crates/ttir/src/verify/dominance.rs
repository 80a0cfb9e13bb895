//! A value is defined before it is used.

use super::Located;
use crate::ir::{Func, Op, Region, ValueId};

/// Checks every use in a function whose identifiers are known to be values.
pub(super) fn check(func: &Func) -> Located<'_> {
    let mut seen = Seen { defined: vec![false; func.values.len()], trail: Vec::new() };
    seen.region(func, &func.body)
}

struct Seen {
    /// Whether the value is defined at the point reached.
    defined: Vec<bool>,
    /// The defined values, so that leaving a block can take its definitions back.
    trail: Vec<ValueId>,
}

impl Seen {
    /// Visits the blocks along the dominator tree: what is defined in a block is known in those that it dominates.
    fn region<'a>(&mut self, func: &'a Func, region: &'a Region) -> Located<'a> {
        if region.blocks.is_empty() {
            return Ok(());
        }
        let start = self.trail.len();
        let children = dominator_tree(region);
        // Each entry: a block to visit with the length of the trail of its dominator.
        let mut pending = vec![(0, start)];
        while let Some((index, known)) = pending.pop() {
            self.forget(known);
            let block = &region.blocks[index];
            self.define(&block.args);
            for op in &block.ops {
                self.op(func, op)?;
            }
            pending.extend(children[index].iter().map(|child| (*child, self.trail.len())));
        }
        self.forget(start);
        Ok(())
    }

    fn op<'a>(&mut self, func: &'a Func, op: &'a Op) -> Located<'a> {
        let passed = op.successors.iter().flat_map(|(_, passed)| passed);
        for value in op.operands.iter().chain(passed) {
            if !self.defined[value.0 as usize] {
                let name = &func.values[value.0 as usize].name;
                return Err((Some(op), format!("`%{name}` is used before it is defined")));
            }
        }
        op.regions.iter().try_for_each(|region| self.region(func, region))?;
        self.define(&op.results);
        Ok(())
    }

    fn define(&mut self, values: &[ValueId]) {
        for value in values {
            self.defined[value.0 as usize] = true;
            self.trail.push(*value);
        }
    }

    fn forget(&mut self, length: usize) {
        for value in self.trail.drain(length..) {
            self.defined[value.0 as usize] = false;
        }
    }
}

/// For each block, the blocks that it immediately dominates. Unreachable blocks are in nobody's list: nothing in
/// them ever runs, so nothing in them can be used too early.
fn dominator_tree(region: &Region) -> Vec<Vec<usize>> {
    let count = region.blocks.len();
    let order = postorder(region);
    let mut number = vec![usize::MAX; count];
    order.iter().enumerate().for_each(|(at, block)| number[*block] = at);
    let mut predecessors = vec![Vec::new(); count];
    for block in &order {
        successors(region, *block).for_each(|target| predecessors[target].push(*block));
    }
    // Cooper, Harvey and Kennedy: intersect the predecessors' dominators until nothing changes.
    let mut dominator = vec![usize::MAX; count];
    dominator[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for block in order.iter().rev().filter(|block| **block != 0) {
            let known = predecessors[*block].iter().copied().filter(|from| dominator[*from] != usize::MAX);
            let meet = known.reduce(|mut a, mut b| {
                while a != b {
                    while number[a] < number[b] {
                        a = dominator[a];
                    }
                    while number[b] < number[a] {
                        b = dominator[b];
                    }
                }
                a
            });
            let meet = meet.unwrap_or(0);
            changed |= std::mem::replace(&mut dominator[*block], meet) != meet;
        }
    }
    let mut children = vec![Vec::new(); count];
    order.iter().filter(|block| **block != 0).for_each(|block| children[dominator[*block]].push(*block));
    children
}

fn successors(region: &Region, block: usize) -> impl Iterator<Item = usize> {
    region.blocks[block].ops.last().into_iter().flat_map(|op| op.successors.iter().map(|(target, _)| *target))
}

/// The blocks that can be reached from the first one, each after those that it leads to.
fn postorder(region: &Region) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; region.blocks.len()];
    seen[0] = true;
    let mut path = vec![(0, successors(region, 0))];
    while let Some((block, targets)) = path.last_mut() {
        match targets.next() {
            Some(target) if !seen[target] => {
                seen[target] = true;
                path.push((target, successors(region, target)));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                path.pop();
            }
        }
    }
    order
}
