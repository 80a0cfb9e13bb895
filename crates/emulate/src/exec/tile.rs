//! Blocks of strided tensors: tensor descriptors and block pointers.

use super::Machine;
use super::atomic::Ordering;
use super::port::Lanes;
use super::shape::row_major;
use crate::block::{Block, View};
use crate::code::{AtomicOp, Reg, Step, Tile};
use crate::fault::{Fault, Usage};
use crate::marks::Marks;
use crate::types::Elem;

/// Addresses of a block's elements, and which of them lie within the tensor.
struct Addresses {
    pointers: Vec<i64>,
    mask: Vec<i8>,
}

/// Where the block starts: by dimension, one start or one a row (gather and scatter).
enum Starts<'a> {
    Block(Vec<i64>),
    Rows { rows: &'a [i64], column: i64 },
}

impl Machine<'_> {
    /// Operands: base, shape, strides, and for a block pointer offsets; otherwise a descriptor of elements of a type.
    pub(super) fn make_view(
        &mut self,
        step: &Step,
        rank: usize,
        descriptor: Option<Elem>,
        pad_nan: bool,
    ) -> Result<(), Fault> {
        let take = |machine: &Self, from: usize| -> Result<Vec<i64>, Fault> {
            (from..from + rank).map(|index| machine.scalar(step, index)).collect()
        };
        let view = View {
            base: self.scalar(step, 0)?,
            shape: take(self, 1)?,
            strides: take(self, 1 + rank)?,
            offsets: if descriptor.is_none() { take(self, 1 + 2 * rank)? } else { vec![0; rank] },
            pad_nan,
        };
        if let Some(elem) = descriptor {
            self.check_descriptor(&view, elem.bytes())?;
        }
        self.put(step, Block::View(Box::new(view)));
        Ok(())
    }

    pub(super) fn advance(&mut self, step: &Step) -> Result<(), Fault> {
        let mut view = self.view(step, 0)?.clone();
        for (dim, offset) in view.offsets.iter_mut().enumerate() {
            *offset = offset.wrapping_add(self.scalar(step, dim + 1)?);
        }
        self.put(step, Block::View(Box::new(view)));
        Ok(())
    }

    pub(super) fn load_tile(&mut self, step: &Step, tile: &Tile) -> Result<(), Fault> {
        let starts = self.block_starts(step, tile)?;
        self.load_at(step, tile, &starts)
    }

    pub(super) fn gather_tile(&mut self, step: &Step, tile: &Tile) -> Result<(), Fault> {
        let rows = self.row_numbers(step, tile)?;
        let starts = Starts::Rows { rows: &rows, column: self.scalar(step, 2)? };
        self.load_at(step, tile, &starts)
    }

    fn load_at(&mut self, step: &Step, tile: &Tile, starts: &Starts) -> Result<(), Fault> {
        let view = self.view(step, 0)?;
        let pad_nan = view.pad_nan || tile.pad_nan;
        let addresses = self.addresses(view, tile, starts)?;
        self.used_places(&step.args);
        let mut out = self.out(step)?;
        out.resize(1);
        match &mut out {
            Block::F32(v) => v[0] = if pad_nan { f32::NAN } else { 0.0 },
            Block::F64(v) => v[0] = if pad_nan { f64::NAN } else { 0.0 },
            Block::I8(v) => v[0] = 0,
            Block::I16(v) => v[0] = 0,
            Block::I32(v) => v[0] = 0,
            Block::I64(v) => v[0] = 0,
            Block::View(_) => {}
        }
        out.expand(addresses.pointers.len());
        let seen = self.load_lanes(tile.elem, &addresses.lanes(tile), false, &mut out)?;
        let marks = self.loaded_marks(seen, &step.args, None);
        self.put(step, out);
        step.outs.iter().for_each(|&reg| self.set_marks(reg, marks.clone()));
        Ok(())
    }

    pub(super) fn store_tile(&mut self, step: &Step, tile: &Tile) -> Result<(), Fault> {
        let starts = self.block_starts(step, tile)?;
        self.store_at(step, tile, &starts)
    }

    pub(super) fn scatter_tile(&mut self, step: &Step, tile: &Tile) -> Result<(), Fault> {
        let rows = self.row_numbers(step, tile)?;
        let starts = Starts::Rows { rows: &rows, column: self.scalar(step, 2)? };
        self.store_at(step, tile, &starts)
    }

    fn store_at(&mut self, step: &Step, tile: &Tile, starts: &Starts) -> Result<(), Fault> {
        let addresses = self.addresses(self.view(step, 0)?, tile, starts)?;
        let values = self.last(step)?.clone();
        let marks = match step.args.split_last() {
            Some((&value, places)) => {
                self.used_places(places);
                self.stored_marks(value, places)
            }
            None => Marks::Pure,
        };
        self.store_lanes(tile.elem, &addresses.lanes(tile), &values, &marks)
    }

    pub(super) fn reduce_tile(&mut self, step: &Step, tile: &Tile, op: AtomicOp) -> Result<(), Fault> {
        let starts = self.block_starts(step, tile)?;
        let addresses = self.addresses(self.view(step, 0)?, tile, &starts)?;
        let mut values = self.last(step)?.clone();
        values.expand(addresses.pointers.len());
        self.used_places(&step.args[..step.args.len() - 1]);
        let op = (op, Ordering::RELAXED);
        self.update_lanes(op, tile.elem, &addresses.pointers, Some(&addresses.mask), &mut values).map(drop)
    }

    /// Notes defects in what says where an access goes.
    fn used_places(&mut self, places: &[Reg]) {
        places.iter().for_each(|&reg| self.used(reg, Usage::Address));
    }

    fn last(&self, step: &Step) -> Result<&Block, Fault> {
        self.arg(step, step.args.len().saturating_sub(1))
    }

    /// The coordinates that a descriptor's access names, or a block pointer's offsets.
    fn block_starts(&self, step: &Step, tile: &Tile) -> Result<Starts<'static>, Fault> {
        let view = self.view(step, 0)?;
        if view.shape.len() != tile.block.len() || view.strides.len() != view.shape.len() {
            return Err(self.malformed("a descriptor of another rank"));
        }
        let starts = match tile.from_operands {
            true => (1..=tile.block.len()).map(|index| self.scalar(step, index)).collect::<Result<_, _>>()?,
            false => view.offsets.clone(),
        };
        Ok(Starts::Block(starts))
    }

    fn row_numbers(&self, step: &Step, tile: &Tile) -> Result<Vec<i64>, Fault> {
        let count = tile.block.first().copied().unwrap_or(1);
        match &*self.arg(step, 1)?.expanded(count) {
            Block::I16(rows) => Ok(rows.iter().map(|&row| i64::from(row)).collect()),
            Block::I32(rows) => Ok(rows.iter().map(|&row| i64::from(row)).collect()),
            Block::I64(rows) => Ok(rows.clone()),
            _ => Err(self.malformed("row numbers that are no integers")),
        }
    }

    fn addresses(&self, view: &View, tile: &Tile, starts: &Starts) -> Result<Addresses, Fault> {
        let rank = tile.block.len();
        if view.shape.len() != rank || view.strides.len() != rank || rank == 0 {
            return Err(self.malformed("a descriptor of another rank"));
        }
        let numel: usize = tile.block.iter().product();
        let size = tile.elem.bytes() as i64;
        let steps = row_major(&tile.block);
        let mut pointers = vec![view.base; numel];
        let mut mask = vec![1i8; numel];
        for dim in 0..rank {
            let scale = view.strides[dim].wrapping_mul(size);
            for (position, (pointer, mask)) in pointers.iter_mut().zip(&mut mask).enumerate() {
                let index = position / steps[dim] % tile.block[dim];
                let coordinate = match starts {
                    Starts::Block(starts) => starts[dim].wrapping_add(index as i64),
                    Starts::Rows { rows, .. } if dim == 0 => rows[index],
                    Starts::Rows { column, .. } => column.wrapping_add(index as i64),
                };
                *pointer = pointer.wrapping_add(coordinate.wrapping_mul(scale));
                if tile.checked[dim] && !(0..view.shape[dim]).contains(&coordinate) {
                    *mask = 0;
                }
            }
        }
        Ok(Addresses { pointers, mask })
    }
}

impl Addresses {
    fn lanes(&self, tile: &Tile) -> Lanes<'_> {
        let row = tile.block.last().copied().unwrap_or(1);
        Lanes { pointers: &self.pointers, mask: Some(&self.mask), row }
    }
}
