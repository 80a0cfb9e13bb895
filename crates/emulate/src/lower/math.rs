//! Mathematical functions: the `math` dialect and libdevice.

use std::sync::Arc;

use tilewright_ttir::{FloatKind, Op};

use super::{Frame, Lower, Result, attrs};
use crate::code::{Cast, Code, FloatOp, FloatUnary, IntOp, IntUnary};
use crate::functions as f;
use crate::functions::assembly::AssemblyCall;
use crate::functions::ptx::Assembly;
use crate::types::{Elem, ValueType};

/// A function of floats by its name in the `math` dialect.
pub(super) fn float_function(name: &str, kind: FloatKind) -> Option<Code> {
    let unary = |op| Some(Code::FloatUnary(op, kind));
    match name {
        "absf" => unary(FloatUnary::Abs),
        "sqrt" => unary(FloatUnary::Sqrt),
        "rsqrt" => unary(FloatUnary::Rsqrt),
        "exp" => unary(FloatUnary::Exp),
        "exp2" => unary(FloatUnary::Exp2),
        "log" => unary(FloatUnary::Log),
        "log2" => unary(FloatUnary::Log2),
        "floor" => unary(FloatUnary::Floor),
        "ceil" => unary(FloatUnary::Ceil),
        "trunc" => unary(FloatUnary::Trunc),
        "round" => unary(FloatUnary::Round),
        "roundeven" => unary(FloatUnary::RoundEven),
        "powf" => Some(Code::Math2(libm::pow, kind)),
        "atan2" => Some(Code::Math2(libm::atan2, kind)),
        _ => Some(Code::Math1(f::unary(name)?, kind)),
    }
}

/// A call of NVIDIA's libdevice: `__nv_expf` and so on, by its documented meaning. The `fast` variants are made of
/// approximate instructions.
///
/// Triton has it built with subnormal numbers of `f32` flushed to zero, but for what only moves bits.
pub(super) fn libdevice(lower: &Lower, frame: &Frame, op: &Op) -> Result<Vec<Code>> {
    let codes = libdevice_call(lower, frame, op)?;
    let single = |ty: ValueType| ty.elem == Elem::Float(FloatKind::F32);
    let mut flushes = single(lower.result_type(frame, op, 0)?);
    for index in 0..op.operands.len() {
        flushes |= single(lower.operand_type(frame, op, index)?);
    }
    let symbol = attrs::text(op, "symbol").unwrap_or_default();
    // What only moves bits, and what H200s were seen to do with subnormal numbers all the same.
    let keeps = [
        "__nv_float_as_int",
        "__nv_float_as_uint",
        "__nv_int_as_float",
        "__nv_uint_as_float",
        "__nv_copysignf",
        "__nv_nextafterf",
        "__nv_logbf",
        "__nv_ldexpf",
        "__nv_scalbnf",
        "__nv_fdimf",
    ];
    let result = !matches!(symbol, "__nv_fmodf" | "__nv_remainderf");
    let wrap = |code| match flushes && !keeps.contains(&symbol) {
        true => Code::Flushed { code: Box::new(code), result },
        false => code,
    };
    Ok(codes.into_iter().map(wrap).collect())
}

fn libdevice_call(lower: &Lower, frame: &Frame, op: &Op) -> Result<Vec<Code>> {
    let symbol = attrs::text(op, "symbol").unwrap_or_default();
    let unsupported = || lower.unsupported(op, &format!("`{symbol}` is not implemented"));
    let Some(name) = symbol.strip_prefix("__nv_") else { return Err(unsupported()) };
    if let Some(code) = lanes_call(lower, frame, op, name)? {
        return Ok(vec![code]);
    }
    let ty = lower.operand_type(frame, op, 0)?;
    let result = lower.result_type(frame, op, 0)?;
    for index in 1..op.operands.len() {
        if lower.operand_type(frame, op, index)?.shape != ty.shape {
            return Err(lower.unsupported(op, "operands of different shapes"));
        }
    }
    let code = match ty.elem {
        Elem::Float(kind) if lower.operand_type(frame, op, 1).is_ok_and(|ty| ty.elem == Elem::I32) => {
            let name = if kind == FloatKind::F64 { name } else { name.strip_suffix('f').unwrap_or(name) };
            f::with_int(name).filter(|_| op.operands.len() == 2).map(|function| Code::FloatInt(function, kind))
        }
        Elem::Float(kind) => float_call(name, kind, &result.elem, op.operands.len()),
        elem => int_call(name, elem, result.elem),
    };
    code.map(|code| vec![code]).ok_or_else(unsupported)
}

/// How many operands of which types a function of raw bits has, and its result.
fn lanes_call(lower: &Lower, frame: &Frame, op: &Op, name: &str) -> Result<Option<Code>> {
    let Some(function) = f::lanes(name) else { return Ok(None) };
    let result = lower.result_type(frame, op, 0)?;
    for index in 0..op.operands.len() {
        let ty = lower.operand_type(frame, op, index)?;
        if ty.shape != result.shape || !matches!(ty.elem.bytes(), 4 | 8) {
            return Err(lower.unsupported(op, "operands of these types"));
        }
    }
    Ok(Some(Code::Lanes(function, result.class())))
}

fn float_call(name: &str, kind: FloatKind, result: &Elem, operands: usize) -> Option<Code> {
    // Conversions and tests, whose results are integers.
    if let Some(code) = float_to_other(name, kind, *result) {
        return Some(code);
    }
    if let Some(fast) = name.strip_prefix("fast_").map(|name| name.strip_suffix('f').unwrap_or(name)) {
        return match operands {
            1 => Some(Code::Math1(f::approximate::unary(fast)?, kind)),
            _ => Some(Code::Math2(f::approximate::binary(fast)?, kind)),
        };
    }
    let name = name.trim_end_matches("_rn");
    let name = if kind == FloatKind::F64 { name } else { name.strip_suffix('f').unwrap_or(name) };
    let binary = |op| Some(Code::Float(op, kind));
    match (name, operands) {
        ("logb", 1) if kind == FloatKind::F32 => Some(Code::Math1(f::logb_32, kind)),
        ("fabs", 1) => float_function("absf", kind),
        ("rint" | "nearbyint", 1) => float_function("roundeven", kind),
        ("fma", 3) => Some(Code::Fma(kind)),
        ("fmin", 2) => binary(FloatOp::MinNum),
        ("fmax", 2) => binary(FloatOp::MaxNum),
        ("fmod", 2) => binary(FloatOp::Rem),
        ("copysign", 2) => binary(FloatOp::CopySign),
        ("fadd" | "dadd", 2) => binary(FloatOp::Add),
        ("fsub" | "dsub", 2) => binary(FloatOp::Sub),
        ("fmul" | "dmul", 2) => binary(FloatOp::Mul),
        ("fdiv" | "fdivide" | "ddiv", 2) => binary(FloatOp::Div),
        ("pow", 2) => Some(Code::Math2(libm::pow, kind)),
        ("saturate", 1) => Some(Code::Math1(f::saturate, kind)),
        ("fsqrt" | "dsqrt", 1) => float_function("sqrt", kind),
        ("frsqrt", 1) => float_function("rsqrt", kind),
        ("frcp" | "drcp" | "rcp64h", 1) => Some(Code::Math1(f::reciprocal, kind)),
        (_, 1) => match name {
            "acos" | "asin" | "atan" | "ceil" | "floor" | "trunc" | "round" | "sqrt" | "rsqrt" | "exp2" | "log"
            | "log2" => float_function(name, kind),
            _ => Some(Code::Math1(f::unary(name)?, kind)),
        },
        (_, 2) => Some(Code::Math2(f::binary(name)?, kind)),
        _ => None,
    }
}

fn float_to_other(name: &str, kind: FloatKind, result: Elem) -> Option<Code> {
    let test = |f| (result == Elem::I32).then_some(Code::Test(f));
    let bits = || Some(Code::Cast(Cast::Bits { from: Elem::Float(kind), to: result }));
    let to_int = |signed| result.is_int().then_some(Code::Cast(Cast::FloatToInt { to: result, signed }));
    let rounded = |round, signed| matches!(result, Elem::I32 | Elem::I64).then_some(Code::RoundToInt { round, signed });
    match name {
        "isnanf" | "isnand" => test(f::is_nan),
        "isinff" | "isinfd" => test(f::is_infinite),
        "finitef" | "isfinited" => test(f::is_finite),
        "signbitf" | "signbitd" => test(f::is_negative),
        "float_as_int" | "float_as_uint" if result == Elem::I32 => bits(),
        "double_as_longlong" if result == Elem::I64 => bits(),
        "float2int_rz" | "float2ll_rz" | "double2int_rz" | "double2ll_rz" => to_int(true),
        "float2uint_rz" | "float2ull_rz" | "double2uint_rz" | "double2ull_rz" => to_int(false),
        "float2int_rn" | "float2ll_rn" | "double2int_rn" | "double2ll_rn" => rounded(f64::round_ties_even, true),
        "float2int_rd" | "float2ll_rd" | "double2int_rd" | "double2ll_rd" => rounded(f64::floor, true),
        "float2int_ru" | "float2ll_ru" | "double2int_ru" | "double2ll_ru" => rounded(f64::ceil, true),
        "float2uint_rn" | "float2ull_rn" | "double2uint_rn" | "double2ull_rn" => rounded(f64::round_ties_even, false),
        "float2uint_rd" | "float2ull_rd" | "double2uint_rd" | "double2ull_rd" => rounded(f64::floor, false),
        "float2uint_ru" | "float2ull_ru" | "double2uint_ru" | "double2ull_ru" => rounded(f64::ceil, false),
        "llrintf" | "llrint" => rounded(f64::round_ties_even, true),
        "llroundf" | "llround" => rounded(f64::round, true),
        "ilogbf" | "ilogb" => (result == Elem::I32).then_some(Code::RoundToInt { round: f::ilogb, signed: true }),
        "double2float_rn" => match result {
            Elem::Float(to) => Some(Code::Cast(Cast::Float { from: kind, to, truncate: false })),
            _ => None,
        },
        "double2float_rz" => match result {
            Elem::Float(to) => Some(Code::Cast(Cast::Float { from: kind, to, truncate: true })),
            _ => None,
        },
        _ => None,
    }
}

fn int_call(name: &str, elem: Elem, result: Elem) -> Option<Code> {
    if !elem.is_int() {
        return None;
    }
    let int = |op| Some(Code::Int(op));
    let unary = |op| (result == elem || result == Elem::I32).then_some(Code::IntUnary(op));
    let to_float = |signed| match result {
        Elem::Float(to) => Some(Code::Cast(Cast::IntToFloat { from: elem, to, signed })),
        _ => None,
    };
    match name {
        "abs" | "llabs" => unary(IntUnary::Abs),
        "ffs" | "ffsll" => unary(IntUnary::FirstSet),
        "clz" | "clzll" => unary(IntUnary::LeadingZeros),
        "popc" | "popcll" => unary(IntUnary::Population),
        "brev" | "brevll" => unary(IntUnary::Reverse),
        "min" | "llmin" => int(IntOp::MinS),
        "max" | "llmax" => int(IntOp::MaxS),
        "umin" | "ullmin" => int(IntOp::MinU),
        "umax" | "ullmax" => int(IntOp::MaxU),
        "mulhi" | "mul64hi" => int(IntOp::MulHighS),
        "umulhi" | "umul64hi" => int(IntOp::MulHighU),
        "int_as_float" | "uint_as_float" | "longlong_as_double" => {
            (elem.bytes() == result.bytes()).then_some(Code::Cast(Cast::Bits { from: elem, to: result }))
        }
        "int2float_rn" | "ll2float_rn" | "int2double_rn" | "ll2double_rn" => to_float(true),
        "uint2float_rn" | "ull2float_rn" | "uint2double_rn" | "ull2double_rn" => to_float(false),
        _ => None,
    }
}

/// Instructions of programmatic dependent launches: waiting for the launch before, which has ended here, and letting the
/// next one begin.
pub(super) fn does_nothing(op: &Op) -> bool {
    let text = attrs::text(op, "asm_string").unwrap_or_default();
    let lines = text.split(['\n', ';']).map(|line| line.split("//").next().unwrap_or_default().trim());
    let mut instructions = lines.filter(|line| !line.is_empty()).peekable();
    instructions.peek().is_some()
        && instructions.all(|line| matches!(line, "griddepcontrol.wait" | "griddepcontrol.launch_dependents"))
}

/// Inline assembly, one step a result.
pub(super) fn inline_asm(lower: &Lower, frame: &Frame, op: &Op) -> Result<Vec<Code>> {
    let text = attrs::text(op, "asm_string").unwrap_or_default();
    let constraints = attrs::text(op, "constraints").unwrap_or_default();
    let refused = |why: String| lower.unsupported(op, &format!("inline assembly: {why}"));
    let assembly = Arc::new(Assembly::new(text, constraints).map_err(refused)?);
    let pack = attrs::int(op, "packed_element").and_then(|pack| usize::try_from(pack).ok()).unwrap_or(1);
    let shape = lower.result_type(frame, op, 0)?.shape;
    let elem = |ty: ValueType| if ty.shape == shape { Ok(ty.elem) } else { Err(refused("several shapes".to_owned())) };
    let inputs: Vec<Elem> = (0..op.operands.len())
        .map(|index| lower.operand_type(frame, op, index).and_then(elem))
        .collect::<Result<_>>()?;
    let outputs: Vec<Elem> =
        (0..op.results.len()).map(|index| lower.result_type(frame, op, index).and_then(elem)).collect::<Result<_>>()?;
    let numel = shape.iter().product();
    let call = |result| AssemblyCall::new(assembly.clone(), &inputs, &outputs, result, pack, numel);
    (0..outputs.len()).map(|result| call(result).map(|call| Code::Assembly(Box::new(call))).map_err(refused)).collect()
}
