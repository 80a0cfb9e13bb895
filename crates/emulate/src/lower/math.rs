//! Mathematical functions: the `math` dialect and libdevice.

use tilewright_ttir::{FloatKind, Op};

use super::{Frame, Lower, Result, attrs};
use crate::code::{Cast, Code, FloatOp, FloatUnary, IntOp, IntUnary};
use crate::functions as f;
use crate::types::Elem;

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

/// A call of NVIDIA's libdevice: `__nv_expf` and so on, by its documented meaning. The `fast` variants are their
/// accurate namesakes.
pub(super) fn libdevice(lower: &Lower, frame: &Frame, op: &Op) -> Result<Vec<Code>> {
    let symbol = attrs::text(op, "symbol").unwrap_or_default();
    let unsupported = || lower.unsupported(op, &format!("`{symbol}` is not implemented"));
    let Some(name) = symbol.strip_prefix("__nv_") else { return Err(unsupported()) };
    let ty = lower.operand_type(frame, op, 0)?;
    let result = lower.result_type(frame, op, 0)?;
    for index in 1..op.operands.len() {
        if lower.operand_type(frame, op, index)?.shape != ty.shape {
            return Err(lower.unsupported(op, "operands of different shapes"));
        }
    }
    let code = match ty.elem {
        Elem::Float(kind) => float_call(name, kind, &result.elem, op.operands.len()),
        elem => int_call(name, elem, result.elem),
    };
    code.map(|code| vec![code]).ok_or_else(unsupported)
}

fn float_call(name: &str, kind: FloatKind, result: &Elem, operands: usize) -> Option<Code> {
    // Conversions and tests, whose results are integers.
    if let Some(code) = float_to_other(name, kind, *result) {
        return Some(code);
    }
    let name = name.strip_prefix("fast_").unwrap_or(name);
    let name = if kind == FloatKind::F64 { name } else { name.strip_suffix('f').unwrap_or(name) };
    let name = name.trim_end_matches("_rn");
    let binary = |op| Some(Code::Float(op, kind));
    match (name, operands) {
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
            "acos" | "asin" | "atan" | "ceil" | "floor" | "trunc" | "round" | "sqrt" | "rsqrt" | "exp" | "exp2"
            | "log" | "log2" => float_function(name, kind),
            _ => Some(Code::Math1(f::unary(name)?, kind)),
        },
        (_, 2) => Some(Code::Math2(f::binary(name)?, kind)),
        _ => None,
    }
}

fn float_to_other(name: &str, kind: FloatKind, result: Elem) -> Option<Code> {
    let test = |f| (result == Elem::I32).then_some(Code::Test(f));
    let bits = || Some(Code::Cast(Cast::Bits { from: Elem::Float(kind), to: result }));
    let to_int = |signed| result.is_int().then_some(Code::Cast(Cast::FloatToInt { from: kind, to: result, signed }));
    match name {
        "isnanf" | "isnand" => test(f::is_nan),
        "isinff" | "isinfd" => test(f::is_infinite),
        "finitef" | "isfinited" => test(f::is_finite),
        "signbitf" | "signbitd" => test(f::is_negative),
        "float_as_int" | "float_as_uint" if result == Elem::I32 => bits(),
        "double_as_longlong" if result == Elem::I64 => bits(),
        "float2int_rz" | "float2ll_rz" | "double2int_rz" | "double2ll_rz" => to_int(true),
        "float2uint_rz" | "float2ull_rz" | "double2uint_rz" | "double2ull_rz" => to_int(false),
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
    let unary = |op| (result == elem).then_some(Code::IntUnary(op));
    let to_float = |signed| match result {
        Elem::Float(to) => Some(Code::Cast(Cast::IntToFloat { from: elem, to, signed })),
        _ => None,
    };
    match name {
        "abs" | "llabs" => unary(IntUnary::Abs),
        "clz" => unary(IntUnary::LeadingZeros),
        "popc" => unary(IntUnary::Population),
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
