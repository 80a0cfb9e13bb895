//! Loads, stores, atomics and descriptors.

use tilewright_ttir::Op;

use super::{Frame, Lower, Result, attrs};
use crate::code::{Atomic, AtomicOp, Code, Tile};
use crate::types::{Elem, ValueType};

impl Lower<'_> {
    pub(super) fn memory(&self, frame: &Frame, op: &Op) -> Result<Option<Code>> {
        let code = match op.name.as_str() {
            "tt.load" => self.load(frame, op)?,
            "tt.store" => self.store(frame, op)?,
            "tt.atomic_rmw" => Code::AtomicRmw(self.atomic(frame, op, 1)?, self.atomic_op(op, "atomic_rmw_op")?),
            "tt.atomic_cas" => Code::AtomicCas(Atomic { mask: false, ..self.atomic(frame, op, 2)? }),
            "tt.make_tensor_ptr" => self.make_view(frame, op, 3)?,
            "tt.make_tensor_descriptor" => self.make_view(frame, op, 2)?,
            "llvm.intr.assume" => Code::Assume,
            "tt.advance" => {
                let rank = self.operand_type(frame, op, 0)?.block.len();
                if op.operands.len() != rank + 1 {
                    return Err(self.unsupported(op, "a different number of offsets than dimensions"));
                }
                Code::Advance
            }
            "tt.descriptor_load" => Code::LoadTile(self.descriptor_tile(frame, op, op.operands.len() - 1)?),
            "tt.descriptor_store" => Code::StoreTile(self.descriptor_tile(frame, op, op.operands.len() - 2)?),
            "tt.descriptor_reduce" => {
                Code::ReduceTile(self.descriptor_tile(frame, op, op.operands.len() - 2)?, self.atomic_op(op, "kind")?)
            }
            "tt.descriptor_gather" => Code::GatherTile(self.gathered_tile(frame, op, 3)?),
            "tt.descriptor_scatter" => Code::ScatterTile(self.gathered_tile(frame, op, 4)?),
            _ => return Ok(None),
        };
        Ok(Some(code))
    }

    /// The element type and number of elements of an access, which must fit the value loaded or stored.
    fn access(&self, frame: &Frame, op: &Op, value: &ValueType) -> Result<(Elem, usize)> {
        let pointer = self.operand_type(frame, op, 0)?;
        let pointee = pointer.pointee.filter(|pointee| pointer.elem == Elem::Ptr && pointee.bytes() > 0);
        match pointee {
            Some(elem) if elem == value.elem && pointer.shape == value.shape => Ok((elem, value.numel())),
            _ => Err(self.unsupported(op, "a pointer that does not fit the value")),
        }
    }

    fn load(&self, frame: &Frame, op: &Op) -> Result<Code> {
        let result = self.result_type(frame, op, 0)?;
        let pointer = self.operand_type(frame, op, 0)?;
        if pointer.elem == Elem::View {
            return Ok(Code::LoadTile(self.pointer_tile(op, &pointer, &result)?));
        }
        let (elem, _) = self.access(frame, op, &result)?;
        for index in 1..op.operands.len() {
            if self.operand_type(frame, op, index)?.numel() != result.numel() {
                return Err(self.unsupported(op, "a mask or `other` of another shape"));
            }
        }
        let row = result.shape.last().copied().unwrap_or(1);
        let volatile = attrs::flag(op, "isVolatile") || attrs::keyword(op, "cache") == Some("cv");
        Ok(Code::Load { elem, row, mask: op.operands.len() > 1, other: op.operands.len() > 2, volatile })
    }

    fn store(&self, frame: &Frame, op: &Op) -> Result<Code> {
        let value = self.operand_type(frame, op, 1)?;
        let pointer = self.operand_type(frame, op, 0)?;
        if pointer.elem == Elem::View {
            return Ok(Code::StoreTile(self.pointer_tile(op, &pointer, &value)?));
        }
        let (elem, numel) = self.access(frame, op, &value)?;
        if op.operands.len() > 2 && self.operand_type(frame, op, 2)?.numel() != numel {
            return Err(self.unsupported(op, "a mask of another shape"));
        }
        let row = value.shape.last().copied().unwrap_or(1);
        Ok(Code::Store { elem, row, mask: op.operands.len() > 2 })
    }

    /// The tile that a block pointer stands for.
    fn pointer_tile(&self, op: &Op, pointer: &ValueType, value: &ValueType) -> Result<Tile> {
        let (Some(elem), true) = (pointer.pointee, pointer.block == value.shape) else {
            return Err(self.unsupported(op, "a block pointer that does not fit the value"));
        };
        let mut checked = vec![false; pointer.block.len()];
        for dim in attrs::ints(op, "boundaryCheck").unwrap_or_default() {
            match usize::try_from(dim).ok().and_then(|dim| checked.get_mut(dim)) {
                Some(checked) => *checked = true,
                None => return Err(self.unsupported(op, "a boundary check of a dimension that is not there")),
            }
        }
        let pad_nan = attrs::keyword(op, "padding") == Some("nan") || attrs::int(op, "padding") == Some(2);
        Ok(Tile { elem, block: pointer.block.clone(), checked, pad_nan, from_operands: false })
    }

    fn descriptor_tile(&self, frame: &Frame, op: &Op, coordinates: usize) -> Result<Tile> {
        let view = self.operand_type(frame, op, 0)?;
        let value = match op.results.first() {
            Some(_) => self.result_type(frame, op, 0)?,
            None => self.operand_type(frame, op, 1)?,
        };
        let (Elem::View, Some(elem)) = (view.elem, view.pointee) else {
            return Err(self.unsupported(op, "something that is no descriptor"));
        };
        // A load may drop leading dimensions of extent 1.
        if view.block.iter().product::<usize>() != value.numel() || coordinates != view.block.len() {
            return Err(self.unsupported(op, "a descriptor that does not fit the value"));
        }
        let checked = vec![true; view.block.len()];
        Ok(Tile { elem, block: view.block, checked, pad_nan: false, from_operands: true })
    }

    /// Rows named by a tensor, of a descriptor whose block is one row.
    fn gathered_tile(&self, frame: &Frame, op: &Op, operands: usize) -> Result<Tile> {
        let (view, rows) = (self.operand_type(frame, op, 0)?, self.operand_type(frame, op, 1)?);
        let value = match op.results.first() {
            Some(_) => self.result_type(frame, op, 0)?,
            None => self.operand_type(frame, op, 3)?,
        };
        let fits =
            op.operands.len() == operands && view.block.len() == 2 && value.shape == [rows.numel(), view.block[1]];
        match view.pointee {
            Some(elem) if fits => {
                Ok(Tile { elem, block: value.shape, checked: vec![true; 2], pad_nan: false, from_operands: true })
            }
            _ => Err(self.unsupported(op, "a descriptor that does not fit the value")),
        }
    }

    fn make_view(&self, frame: &Frame, op: &Op, groups: usize) -> Result<Code> {
        let rank = self.result_type(frame, op, 0)?.block.len();
        if rank == 0 || op.operands.len() != 1 + groups * rank {
            return Err(self.unsupported(op, "a different number of extents than dimensions"));
        }
        let pad_nan = attrs::keyword(op, "padding") == Some("nan") || attrs::int(op, "padding") == Some(2);
        let elem = self.result_type(frame, op, 0)?.pointee.unwrap_or(Elem::I8);
        Ok(Code::MakeView { rank, offsets: groups == 3, pad_nan, elem })
    }

    fn atomic(&self, frame: &Frame, op: &Op, value: usize) -> Result<Atomic> {
        let (elem, numel) = self.access(frame, op, &self.operand_type(frame, op, value)?)?;
        let (acquire, release) = match attrs::keyword(op, "sem") {
            Some("relaxed") => (false, false),
            Some("acquire") => (true, false),
            Some("release") => (false, true),
            // Triton's default.
            _ => (true, true),
        };
        // Within a program alone: nothing is put in order between programs.
        let between = attrs::keyword(op, "scope") != Some("cta");
        let (acquire, release) = (acquire && between, release && between);
        Ok(Atomic { elem, numel, mask: op.operands.len() > 2, acquire, release })
    }

    fn atomic_op(&self, op: &Op, attr: &str) -> Result<AtomicOp> {
        Ok(match attrs::keyword(op, attr) {
            Some("add") => AtomicOp::Add,
            Some("fadd") => AtomicOp::AddF,
            Some("max") => AtomicOp::MaxS,
            Some("min") => AtomicOp::MinS,
            Some("umax") => AtomicOp::MaxU,
            Some("umin") => AtomicOp::MinU,
            Some("and") => AtomicOp::And,
            Some("or") => AtomicOp::Or,
            Some("xor") => AtomicOp::Xor,
            Some("exch") => AtomicOp::Exchange,
            _ => return Err(self.unsupported(op, "an unknown kind of update")),
        })
    }
}
