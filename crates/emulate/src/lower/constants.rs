//! Constants, ranges and poison: registers that are set before the first program runs.

use tilewright_ttir::{Attr, FloatKind, Op};

use super::{Frame, Lower, Result, attrs};
use crate::block::Block;
use crate::convert;
use crate::types::{Class, Elem, ValueType};

impl Lower<'_> {
    pub(super) fn lower_constant(&mut self, frame: &mut Frame, op: &Op) -> Result<()> {
        let ty = self.result_type(frame, op, 0)?;
        let block = match op.name.as_str() {
            "tt.make_range" => range(op, &ty),
            // Any value is right; a loud one shows that it is used.
            "ub.poison" => elements(ty.elem, &[0x7f7f_7f7f_7f7f_7f7f]),
            _ => op.attrs.get("value").and_then(|value| constant(value, &ty)),
        };
        let block = block.ok_or_else(|| self.unsupported(op, "a constant of this form"))?;
        let reg = self.constant(&ty, block);
        self.bind(frame, op.results[0], reg, op)
    }
}

fn range(op: &Op, ty: &ValueType) -> Option<Block> {
    let (start, end) = (attrs::int(op, "start")?, attrs::int(op, "end")?);
    let count = usize::try_from(end.checked_sub(start)?).ok()?;
    (ty.elem == Elem::I32 && count == ty.numel()).then(|| Block::I32((start..end).map(|x| x as i32).collect()))
}

fn constant(value: &Attr, ty: &ValueType) -> Option<Block> {
    let bits = match value {
        Attr::Dense(items, _) => items.iter().map(scalar_bits).collect::<Option<Vec<u64>>>()?,
        value => vec![scalar_bits(value)?],
    };
    (bits.len() == 1 || bits.len() == ty.numel()).then(|| elements(ty.elem, &bits))?
}

fn scalar_bits(value: &Attr) -> Option<u64> {
    match value {
        Attr::Bool(value) => Some(u64::from(*value)),
        Attr::Int(value, _) => Some(*value as u64),
        Attr::Float(bits, _) => Some(*bits),
        _ => None,
    }
}

/// A block from elements as bits of their own type.
fn elements(elem: Elem, bits: &[u64]) -> Option<Block> {
    Some(match elem.class() {
        Class::I8 if elem == Elem::I1 => Block::I8(bits.iter().map(|&b| (b & 1) as i8).collect()),
        Class::I8 => Block::I8(bits.iter().map(|&b| b as i8).collect()),
        Class::I16 => Block::I16(bits.iter().map(|&b| b as i16).collect()),
        Class::I32 => Block::I32(bits.iter().map(|&b| b as i32).collect()),
        Class::I64 => Block::I64(bits.iter().map(|&b| b as i64).collect()),
        Class::F64 => Block::F64(bits.iter().map(|&b| f64::from_bits(b)).collect()),
        Class::F32 => {
            let Elem::Float(kind) = elem else { return None };
            Block::F32(bits.iter().map(|&b| float(kind, b)).collect())
        }
        Class::View => return None,
    })
}

fn float(kind: FloatKind, bits: u64) -> f32 {
    match kind {
        FloatKind::F16 => convert::f16_to_f32(bits as u16),
        FloatKind::Bf16 => convert::bf16_to_f32(bits as u16),
        _ => match convert::fp8_format(kind) {
            Some(format) => format.decode(bits as u32 & 0xff),
            None => f32::from_bits(bits as u32),
        },
    }
}
