//! Operations that become one step: arithmetic, casts, shapes, products.

use tilewright_ttir::{FloatKind, Op};

use super::{Frame, Lower, Result, attrs, math};
use crate::code::{
    Cast, Code, Dot, DotScaled, FloatOp, FloatRelation, FloatUnary, IntOp, IntPredicate, IntUnary, Precision, Reg,
    ScaledKind,
};
use crate::functions;
use crate::types::{Class, Elem, ValueType};

impl Lower<'_> {
    /// The code of an operation, one per result where it has several independent ones.
    pub(super) fn plain(&self, frame: &Frame, op: &Op) -> Result<Vec<Code>> {
        let name = op.name.as_str();
        let code = match name {
            "tt.get_program_id" | "tt.get_num_programs" => {
                let axis = match (attrs::keyword(op, "axis"), attrs::int(op, "axis")) {
                    (Some("x"), _) | (_, Some(0)) => 0,
                    (Some("y"), _) | (_, Some(1)) => 1,
                    (Some("z"), _) | (_, Some(2)) => 2,
                    _ => return Err(self.unsupported(op, "an unknown axis")),
                };
                if name == "tt.get_program_id" { Code::ProgramId(axis) } else { Code::NumPrograms(axis) }
            }
            "arith.cmpi" => self.compare_int(frame, op)?,
            "arith.cmpf" => self.compare_float(op)?,
            "arith.select" => {
                self.same_shape(frame, op, 1)?;
                Code::Select
            }
            "arith.mulsi_extended" => return Ok(vec![Code::Int(IntOp::Mul), Code::Int(IntOp::MulHighS)]),
            "arith.mului_extended" => return Ok(vec![Code::Int(IntOp::Mul), Code::Int(IntOp::MulHighU)]),
            "tt.addptr" => {
                let pointer = self.operand_type(frame, op, 0)?;
                self.same_shape(frame, op, 0)?;
                let Some(pointee) = pointer.pointee else {
                    return Err(self.unsupported(op, "a pointer to nothing"));
                };
                Code::AddPtr(pointee.bytes() as i64)
            }
            "tt.broadcast" => self.broadcast(frame, op)?,
            "tt.trans" => self.transpose(frame, op)?,
            "tt.join" => {
                self.same_shape(frame, op, 0)?;
                Code::Join { numel: self.operand_type(frame, op, 0)?.numel() }
            }
            "tt.split" => {
                let ty = self.operand_type(frame, op, 0)?;
                if ty.shape.last() != Some(&2) || op.results.len() != 2 {
                    return Err(self.unsupported(op, "a last dimension that is not 2"));
                }
                Code::Split { numel: ty.numel() }
            }
            "tt.cat" => Code::Cat {
                numel: [self.operand_type(frame, op, 0)?.numel(), self.operand_type(frame, op, 1)?.numel()],
            },
            "tt.dot" => self.dot(frame, op)?,
            "tt.dot_scaled" => self.dot_scaled(frame, op)?,
            "tt.histogram" => {
                let (ty, result) = (self.operand_type(frame, op, 0)?, self.result_type(frame, op, 0)?);
                if result.elem != Elem::I32 {
                    return Err(self.unsupported(op, "counts that are not i32"));
                }
                Code::Histogram { bins: result.numel(), numel: ty.numel(), mask: op.operands.len() > 1 }
            }
            "tt.gather" => self.gather(frame, op)?,
            "tt.assert" | "cf.assert" => {
                let message = attrs::text(op, "message").or_else(|| attrs::text(op, "msg")).unwrap_or_default();
                Code::Assert(message.to_owned())
            }
            "math.fpowi" => {
                self.same_shape(frame, op, 0)?;
                let elems = (self.operand_type(frame, op, 0)?.elem, self.operand_type(frame, op, 1)?.elem);
                let (Elem::Float(kind), Elem::I32, Some(function)) = (elems.0, elems.1, functions::with_int("powi"))
                else {
                    return Err(self.unsupported(op, "operands of these types"));
                };
                Code::FloatInt(function, kind)
            }
            "tt.elementwise_inline_asm" => return math::inline_asm(self, frame, op),
            "tt.extern_elementwise" => return math::libdevice(self, frame, op),
            _ => {
                if let Some(code) = self.int_arithmetic(frame, op)? {
                    code
                } else if let Some(code) = self.float_arithmetic(frame, op)? {
                    code
                } else if let Some(cast) = self.cast(frame, op)? {
                    Code::Cast(cast)
                } else if let Some(code) = self.memory(frame, op)? {
                    code
                } else {
                    return Err(self.unsupported(op, "not implemented"));
                }
            }
        };
        Ok(vec![code])
    }

    /// Operands from `first` on have the shape of the first result or are scalars in a select.
    fn same_shape(&self, frame: &Frame, op: &Op, first: usize) -> Result<()> {
        let wanted = self.operand_type(frame, op, first)?;
        for index in first + 1..op.operands.len() {
            if self.operand_type(frame, op, index)?.shape != wanted.shape {
                return Err(self.unsupported(op, "operands of different shapes"));
            }
        }
        Ok(())
    }

    fn int_arithmetic(&self, frame: &Frame, op: &Op) -> Result<Option<Code>> {
        let int = match op.name.as_str() {
            "arith.addi" => IntOp::Add,
            "arith.subi" => IntOp::Sub,
            "arith.muli" => IntOp::Mul,
            "arith.divsi" => IntOp::DivS,
            "arith.divui" => IntOp::DivU,
            "arith.ceildivsi" => IntOp::CeilDivS,
            "arith.ceildivui" => IntOp::CeilDivU,
            "arith.floordivsi" => IntOp::FloorDivS,
            "arith.remsi" => IntOp::RemS,
            "arith.remui" => IntOp::RemU,
            "arith.andi" => IntOp::And,
            "arith.ori" => IntOp::Or,
            "arith.xori" => IntOp::Xor,
            "arith.shli" => IntOp::Shl,
            "arith.shrsi" => IntOp::ShrS,
            "arith.shrui" => IntOp::ShrU,
            "arith.minsi" => IntOp::MinS,
            "arith.maxsi" => IntOp::MaxS,
            "arith.minui" => IntOp::MinU,
            "arith.maxui" => IntOp::MaxU,
            "tt.mulhiui" => IntOp::MulHighU,
            "math.absi" => return Ok(Some(Code::IntUnary(IntUnary::Abs))),
            "math.ctlz" => return Ok(Some(Code::IntUnary(IntUnary::LeadingZeros))),
            "math.cttz" => return Ok(Some(Code::IntUnary(IntUnary::TrailingZeros))),
            "math.ctpop" => return Ok(Some(Code::IntUnary(IntUnary::Population))),
            _ => return Ok(None),
        };
        self.same_shape(frame, op, 0)?;
        let elem = self.result_type(frame, op, 0)?.elem;
        if elem != Elem::I1 {
            return Ok(Some(Code::Int(int)));
        }
        // An i1 is held as 0 or 1; as a signed number its 1 is -1.
        let boolean = match int {
            IntOp::And | IntOp::Or | IntOp::Xor => int,
            IntOp::Add | IntOp::Sub => IntOp::Xor,
            IntOp::Mul | IntOp::MinU | IntOp::MaxS => IntOp::And,
            IntOp::MaxU | IntOp::MinS => IntOp::Or,
            _ => return Err(self.unsupported(op, "of type i1")),
        };
        Ok(Some(Code::Int(boolean)))
    }

    fn float_arithmetic(&self, frame: &Frame, op: &Op) -> Result<Option<Code>> {
        let kind = |lower: &Self| match lower.operand_type(frame, op, 0)?.elem {
            Elem::Float(kind) => Ok(kind),
            _ => Err(lower.unsupported(op, "of a type that is no float")),
        };
        let binary = match op.name.as_str() {
            "arith.addf" => FloatOp::Add,
            "arith.subf" => FloatOp::Sub,
            "arith.mulf" => FloatOp::Mul,
            "arith.divf" | "tt.precise_divf" => FloatOp::Div,
            "arith.remf" => {
                self.same_shape(frame, op, 0)?;
                let kind = kind(self)?;
                let double = kind == FloatKind::F64;
                return Ok(Some(Code::Math2(
                    if double { functions::remainder_64 } else { functions::remainder_32 },
                    kind,
                )));
            }
            "arith.minnumf" => FloatOp::MinNum,
            "arith.maxnumf" => FloatOp::MaxNum,
            "arith.minimumf" => FloatOp::Minimum,
            "arith.maximumf" => FloatOp::Maximum,
            "math.copysign" => FloatOp::CopySign,
            "arith.negf" => return Ok(Some(Code::FloatUnary(FloatUnary::Neg, kind(self)?))),
            "tt.precise_sqrt" => return Ok(Some(Code::FloatUnary(FloatUnary::Sqrt, kind(self)?))),
            "math.fma" => {
                self.same_shape(frame, op, 0)?;
                return Ok(Some(Code::Fma(kind(self)?)));
            }
            "tt.clampf" => {
                self.same_shape(frame, op, 0)?;
                let propagate_nan = attrs::keyword(op, "propagateNan") == Some("all");
                return Ok(Some(Code::Clamp { kind: kind(self)?, propagate_nan }));
            }
            name => {
                let Some(function) = name.strip_prefix("math.") else { return Ok(None) };
                self.same_shape(frame, op, 0)?;
                return match math::float_function(function, kind(self)?) {
                    Some(code) => Ok(Some(code)),
                    None => Ok(None),
                };
            }
        };
        self.same_shape(frame, op, 0)?;
        Ok(Some(Code::Float(binary, kind(self)?)))
    }

    fn compare_int(&self, frame: &Frame, op: &Op) -> Result<Code> {
        self.same_shape(frame, op, 0)?;
        let boolean = self.operand_type(frame, op, 0)?.elem == Elem::I1;
        let predicate = match attrs::keyword(op, "predicate") {
            Some("eq") => IntPredicate::Eq,
            Some("ne") if self.booleans.contains(&self.reg_of(frame, op.operands[0], op)?) => return Ok(Code::Truth),
            Some("ne") => IntPredicate::Ne,
            // A true i1 is -1 as a signed number, but is held as 1.
            Some("slt") => {
                if boolean {
                    IntPredicate::GtU
                } else {
                    IntPredicate::LtS
                }
            }
            Some("sle") => {
                if boolean {
                    IntPredicate::GeU
                } else {
                    IntPredicate::LeS
                }
            }
            Some("sgt") => {
                if boolean {
                    IntPredicate::LtU
                } else {
                    IntPredicate::GtS
                }
            }
            Some("sge") => {
                if boolean {
                    IntPredicate::LeU
                } else {
                    IntPredicate::GeS
                }
            }
            Some("ult") => IntPredicate::LtU,
            Some("ule") => IntPredicate::LeU,
            Some("ugt") => IntPredicate::GtU,
            Some("uge") => IntPredicate::GeU,
            _ => return Err(self.unsupported(op, "an unknown predicate")),
        };
        Ok(Code::CompareInt(predicate))
    }

    fn compare_float(&self, op: &Op) -> Result<Code> {
        let (relation, ordered) = match attrs::keyword(op, "predicate") {
            Some("false") => (FloatRelation::Never, true),
            Some("oeq") => (FloatRelation::Eq, true),
            Some("ogt") => (FloatRelation::Gt, true),
            Some("oge") => (FloatRelation::Ge, true),
            Some("olt") => (FloatRelation::Lt, true),
            Some("ole") => (FloatRelation::Le, true),
            Some("one") => (FloatRelation::Ne, true),
            Some("ord") => (FloatRelation::Always, true),
            Some("ueq") => (FloatRelation::Eq, false),
            Some("ugt") => (FloatRelation::Gt, false),
            Some("uge") => (FloatRelation::Ge, false),
            Some("ult") => (FloatRelation::Lt, false),
            Some("ule") => (FloatRelation::Le, false),
            Some("une") => (FloatRelation::Ne, false),
            Some("uno") => (FloatRelation::Never, false),
            Some("true") => (FloatRelation::Always, false),
            _ => return Err(self.unsupported(op, "an unknown predicate")),
        };
        Ok(Code::CompareFloat { relation, ordered })
    }

    fn cast(&self, frame: &Frame, op: &Op) -> Result<Option<Cast>> {
        let name = op.name.as_str();
        let casts = matches!(
            name,
            "arith.extsi"
                | "arith.extui"
                | "arith.trunci"
                | "arith.index_cast"
                | "arith.index_castui"
                | "arith.extf"
                | "arith.truncf"
                | "tt.fp_to_fp"
                | "arith.sitofp"
                | "arith.uitofp"
                | "arith.fptosi"
                | "arith.fptoui"
                | "arith.bitcast"
                | "tt.bitcast"
                | "tt.int_to_ptr"
                | "tt.ptr_to_int"
        );
        if !casts {
            return Ok(None);
        }
        let (from_ty, to_ty) = (self.operand_type(frame, op, 0)?, self.result_type(frame, op, 0)?);
        if from_ty.numel() != to_ty.numel() {
            return Err(self.unsupported(op, "a cast to another shape"));
        }
        let (from, to) = (from_ty.elem, to_ty.elem);
        let cast = match (name, from, to) {
            ("arith.extsi" | "arith.index_cast" | "arith.trunci", from, to) if from.is_int() && to.is_int() => {
                Cast::Int { from, to, signed: true }
            }
            ("arith.extui" | "arith.index_castui", from, to) if from.is_int() && to.is_int() => {
                Cast::Int { from, to, signed: false }
            }
            ("tt.int_to_ptr" | "tt.ptr_to_int", from, to) => Cast::Int { from, to, signed: false },
            ("arith.extf" | "arith.truncf" | "tt.fp_to_fp", Elem::Float(from), Elem::Float(to)) => {
                let rounding = attrs::keyword(op, "rounding").or_else(|| attrs::keyword(op, "roundingmode"));
                let truncate = match rounding {
                    None | Some("rtne" | "to_nearest_even") => false,
                    Some("rtz" | "toward_zero") => true,
                    Some(_) => return Err(self.unsupported(op, "another rounding mode")),
                };
                Cast::Float { from, to, truncate }
            }
            ("arith.sitofp" | "arith.uitofp", from, Elem::Float(to)) if from.is_int() => {
                Cast::IntToFloat { from, to, signed: name == "arith.sitofp" }
            }
            ("arith.fptosi" | "arith.fptoui", Elem::Float(_), to) if to.is_int() => {
                Cast::FloatToInt { to, signed: name == "arith.fptosi" }
            }
            ("arith.bitcast" | "tt.bitcast", from, to) if from.bytes() == to.bytes() && from.bytes() > 0 => {
                Cast::Bits { from, to }
            }
            _ => return Err(self.unsupported(op, "a cast between these types")),
        };
        Ok(Some(cast))
    }

    /// Casts that leave the held elements as they are.
    pub(super) fn is_renaming_cast(&self, frame: &Frame, op: &Op) -> Result<bool> {
        let name = op.name.as_str();
        if !matches!(
            name,
            "arith.bitcast"
                | "tt.bitcast"
                | "tt.int_to_ptr"
                | "tt.ptr_to_int"
                | "arith.index_cast"
                | "arith.index_castui"
                | "tt.reinterpret_tensor_descriptor"
        ) {
            return Ok(false);
        }
        let (from, to) = (self.operand_type(frame, op, 0)?.elem, self.result_type(frame, op, 0)?.elem);
        let long = |elem| matches!(elem, Elem::I64 | Elem::Ptr);
        Ok(from == to || long(from) && long(to))
    }

    fn broadcast(&self, frame: &Frame, op: &Op) -> Result<Code> {
        let (from, to) = (self.operand_type(frame, op, 0)?, self.result_type(frame, op, 0)?);
        let fits = from.shape.len() == to.shape.len()
            && from.shape.iter().zip(&to.shape).all(|(&from, &to)| from == to || from == 1);
        if !fits || from.elem != to.elem {
            return Err(self.unsupported(op, "shapes that do not fit"));
        }
        Ok(Code::Broadcast { from: from.shape, to: to.shape })
    }

    fn transpose(&self, frame: &Frame, op: &Op) -> Result<Code> {
        let shape = self.operand_type(frame, op, 0)?.shape;
        let order = attrs::ints(op, "order").unwrap_or_default();
        let order: Vec<usize> = order.iter().filter_map(|&dim| usize::try_from(dim).ok()).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..shape.len()) {
            return Err(self.unsupported(op, "an order that is no permutation"));
        }
        Ok(Code::Transpose { shape, order })
    }

    fn gather(&self, frame: &Frame, op: &Op) -> Result<Code> {
        let (source, index) = (self.operand_type(frame, op, 0)?.shape, self.operand_type(frame, op, 1)?.shape);
        let axis = attrs::axis(op, source.len()).filter(|&axis| {
            source.len() == index.len() && (0..source.len()).all(|dim| dim == axis || index[dim] <= source[dim])
        });
        match axis {
            Some(axis) => Ok(Code::Gather { source, index, axis }),
            None => Err(self.unsupported(op, "shapes that do not fit")),
        }
    }

    fn dot(&self, frame: &Frame, op: &Op) -> Result<Code> {
        let types: Vec<ValueType> = (0..3).map(|index| self.operand_type(frame, op, index)).collect::<Result<_>>()?;
        let [a, b, c] = [&types[0], &types[1], &types[2]].map(|ty| ty.shape.as_slice());
        let (batch, [m, k], [k2, n], result) = match (a, b, c) {
            (&[m, k], &[k2, n], &[rm, rn]) => (1, [m, k], [k2, n], [rm, rn]),
            (&[batch, m, k], &[batch2, k2, n], &[batch3, rm, rn]) if batch == batch2 && batch == batch3 => {
                (batch, [m, k], [k2, n], [rm, rn])
            }
            _ => return Err(self.unsupported(op, "operands of these ranks")),
        };
        if k != k2 || result != [m, n] {
            return Err(self.unsupported(op, "shapes that do not fit"));
        }
        let operands = [types[0].elem, types[1].elem];
        let single = operands.contains(&Elem::Float(FloatKind::F32));
        let precision = match attrs::keyword(op, "inputPrecision") {
            Some("tf32") if single => Precision::Tf32,
            Some("tf32x3") if single => Precision::Tf32x3,
            Some("bf16x3") if single => Precision::Bf16x3,
            Some("bf16x6") if single => Precision::Bf16x6,
            _ => Precision::Ieee,
        };
        let fits = match types[2].elem.class() {
            Class::I32 => operands == [Elem::I8; 2],
            class => operands.iter().all(|elem| elem.class() == class) && matches!(class, Class::F32 | Class::F64),
        };
        if !fits {
            return Err(self.unsupported(op, "operands of these types"));
        }
        Ok(Code::Dot(Dot { batch, m, n, k, precision, result: types[2].elem }))
    }

    fn dot_scaled(&self, frame: &Frame, op: &Op) -> Result<Code> {
        let segments = attrs::ints(op, "operandSegmentSizes").unwrap_or_else(|| vec![1, 1, 1, 0, 0]);
        let (a, b, c) =
            (self.operand_type(frame, op, 0)?, self.operand_type(frame, op, 1)?, self.operand_type(frame, op, 2)?);
        let kind = |name| match attrs::keyword(op, name) {
            Some("e2m1") => Ok(ScaledKind::E2M1),
            Some("e4m3") => Ok(ScaledKind::E4M3),
            Some("e5m2") => Ok(ScaledKind::E5M2),
            Some("bf16" | "fp16") => Ok(ScaledKind::Half),
            _ => Err(self.unsupported(op, "operands of these formats")),
        };
        let kinds = [kind("a_elem_type")?, kind("b_elem_type")?];
        let packed_along_k = ["lhs_k_pack", "rhs_k_pack"]
            .map(|name| !matches!(op.attrs.get(name), Some(tilewright_ttir::Attr::Bool(false))));
        let (&[ra, ca], &[rb, cb], &[m, n]) = (a.shape.as_slice(), b.shape.as_slice(), c.shape.as_slice()) else {
            return Err(self.unsupported(op, "operands of these ranks"));
        };
        let unpack = |kind: ScaledKind, packed: bool, along: usize, other: usize| match (kind, packed) {
            (ScaledKind::E2M1, true) => (along * 2, other),
            (ScaledKind::E2M1, false) => (along, other * 2),
            _ => (along, other),
        };
        let (k, am) = unpack(kinds[0], packed_along_k[0], ca, ra);
        let (bk, bn) = unpack(kinds[1], packed_along_k[1], rb, cb);
        let mut next = 3;
        let mut scales = [None, None];
        for (side, rows) in [m, n].into_iter().enumerate() {
            if segments.get(3 + side) == Some(&1) {
                let ty = self.operand_type(frame, op, next)?;
                next += 1;
                let groups = match ty.shape.as_slice() {
                    &[scale_rows, groups] if scale_rows == rows && ty.elem == Elem::I8 => groups,
                    _ => return Err(self.unsupported(op, "scales of this type")),
                };
                if groups == 0 || !k.is_multiple_of(groups) {
                    return Err(self.unsupported(op, "scales that do not fit"));
                }
                scales[side] = Some(k / groups);
            }
        }
        if k != bk || [am, bn] != [m, n] || c.elem != Elem::Float(FloatKind::F32) {
            return Err(self.unsupported(op, "shapes that do not fit"));
        }
        Ok(Code::DotScaled(Box::new(DotScaled { m, n, k, kinds, packed_along_k, scales })))
    }

    /// Operands in the order that the step takes them.
    pub(super) fn arranged_operands(&self, frame: &Frame, op: &Op) -> Result<Vec<Reg>> {
        let mut regs = self.operand_regs(frame, op)?;
        if matches!(op.name.as_str(), "tt.descriptor_store" | "tt.descriptor_reduce") && regs.len() > 1 {
            // The value stands before the coordinates.
            let value = regs.remove(1);
            regs.push(value);
        }
        Ok(regs)
    }
}
