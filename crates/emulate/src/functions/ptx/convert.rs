//! `cvt`, `setp`, `set`, and what moves bits.

use super::kinds::{Base, Kind};
use super::{Flags, Instruction, Rounding};
use crate::functions::directed;

/// To `kind` from `from`.
pub(super) fn convert(i: &Instruction, v: &[u64], out: &mut [u64; 4]) {
    let (to, from) = (i.kind, i.from);
    out[0] = match (to.is_float(), from.is_float()) {
        (false, false) => {
            let value = from.integer(v[0]);
            let bits = if i.flags.saturate { to.saturated(value) } else { to.wrapped(value) };
            // The result lies in a register that may be wider: extended by its sign.
            if to.base == Base::Signed && to.bits < 32 { to.integer(bits) as u32 as u64 } else { bits }
        }
        (false, true) => to_integer(to, from, i.flags, v[0]),
        (true, false) => from_integer(to, from, i.flags, v[0]),
        (true, true) => between_floats(to, from, i.flags, v),
    };
}

/// NaN becomes 0, or the lowest bits with the top one set where 64 bits take part.
fn to_integer(to: Kind, from: Kind, flags: Flags, register: u64) -> u64 {
    let x = from.float(register, 0);
    if x.is_nan() {
        return if to.bits == 64 || from.bits == 64 { to.wrapped(1 << (to.bits - 1)) } else { 0 };
    }
    to.saturated(to_whole(x, flags.rounding) as i128)
}

pub(super) fn to_whole(x: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::NearestAway => x.round(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
    }
}

fn suffix(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::Nearest | Rounding::NearestAway => "rn",
        Rounding::Zero => "rz",
        Rounding::Down => "rd",
        Rounding::Up => "ru",
    }
}

fn from_integer(to: Kind, from: Kind, flags: Flags, register: u64) -> u64 {
    let value = from.integer(register);
    match to.base {
        Base::F32 | Base::F64 => {
            let signed = if from.base == Base::Signed { "ll" } else { "ull" };
            let target = if to.base == Base::F32 { "float" } else { "double" };
            directed::by_name(&format!("{signed}2{target}_{}", suffix(flags.rounding)))
                .map_or(0, |f| f(&[value as u64]))
        }
        _ => to.rounded(f64::from(crate::convert::to_f32_odd(crate::convert::int_to_f64_odd(value))), flags, 0),
    }
}

/// Packed results take their upper element from the first operand.
fn between_floats(to: Kind, from: Kind, flags: Flags, v: &[u64]) -> u64 {
    let one = |register: u64, lane: u32, at: u32| {
        let x = from.float(register, lane);
        if to.base == Base::Tf32 && x.is_nan() {
            return register & 0xffff_e000;
        }
        let whole = flags.piece == 1;
        match flags.rounding {
            rounding if whole => to.rounded(to_whole(x, rounding), flags, at),
            Rounding::Zero | Rounding::Down | Rounding::Up if to.bits < from.bits => toward(to, x, flags, at),
            _ => to.rounded(x, flags, at),
        }
    };
    match (to.lanes, from.lanes) {
        (2, 2) => one(v[0], 0, 0) | one(v[0], 1, 1),
        (2, _) => one(v[1], 0, 0) | one(v[0], 0, 1),
        _ => one(v[0], 0, 0),
    }
}

/// The nearest value of the type that is not beyond the number.
fn toward(to: Kind, x: f64, flags: Flags, at: u32) -> u64 {
    let nearest = to.rounded(x, flags, 0);
    let value = to.float(nearest, 0);
    let down = match flags.rounding {
        Rounding::Down => true,
        Rounding::Up => false,
        _ => x > 0.0,
    };
    let beyond = if down { value > x } else { value < x };
    if x.is_nan() || !beyond {
        return nearest << (to.bits * at);
    }
    // Bits of floats are in order: one less is the next value towards zero.
    let sign = 1u64 << (to.bits - 1);
    let away = (value < 0.0) == down;
    let moved = match (value == 0.0, away) {
        (true, _) => 1 | if down { sign } else { 0 },
        (_, true) => nearest + 1,
        _ => nearest - 1,
    };
    moved << (to.bits * at)
}

/// Comparisons by number, as the parser codes them.
pub(super) const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

/// How a predicate is combined with a comparison: not at all, `and`, `or`, `xor`.
pub(super) const COMBINATIONS: [&str; 4] = ["", "and", "or", "xor"];

fn holds(i: &Instruction, a: u64, b: u64, lane: u32) -> bool {
    let name = COMPARISONS[usize::from(i.flags.comparison & 31) % COMPARISONS.len()];
    let kind = i.from;
    if kind.is_float() {
        let (x, y) = (kind.float(a, lane), kind.float(b, lane));
        let unordered = x.is_nan() || y.is_nan();
        return match name {
            "eq" => x == y,
            "ne" => x != y && !unordered,
            "lt" => x < y,
            "le" => x <= y,
            "gt" => x > y,
            "ge" => x >= y,
            "equ" => x == y || unordered,
            "neu" => x != y,
            "ltu" => x < y || unordered,
            "leu" => x <= y || unordered,
            "gtu" => x > y || unordered,
            "geu" => x >= y || unordered,
            "num" => !unordered,
            _ => unordered,
        };
    }
    let (x, y) = (kind.integer(a), kind.integer(b));
    match name {
        "eq" => x == y,
        "ne" => x != y,
        "lt" | "lo" => x < y,
        "le" | "ls" => x <= y,
        "gt" | "hi" => x > y,
        _ => x >= y,
    }
}

/// `setp` and its complement; of packed operands one predicate an element.
pub(super) fn set_predicate(i: &Instruction, v: &[u64], out: &mut [u64; 4]) {
    let with = |holds: bool| match (i.flags.comparison >> 5, v.get(2)) {
        (1, Some(&other)) => holds && other != 0,
        (2, Some(&other)) => holds || other != 0,
        (3, Some(&other)) => holds != (other != 0),
        _ => holds,
    };
    let first = holds(i, v[0], v[1], 0);
    out[0] = u64::from(with(first));
    out[1] = u64::from(if i.from.lanes == 2 { with(holds(i, v[0], v[1], 1)) } else { with(!first) });
}

/// All bits set, or 1 as a float, where a comparison holds.
pub(super) fn set(i: &Instruction, v: &[u64], out: &mut [u64; 4]) {
    let mut flags = [0; 4];
    set_predicate(i, v, &mut flags);
    out[0] = match (flags[0] != 0, i.kind.is_float()) {
        (false, _) => 0,
        (true, true) => i.kind.rounded(1.0, Flags::default(), 0),
        (true, false) => i.kind.mask(),
    };
}

pub(super) fn test_float(i: &Instruction, v: &[u64], out: &mut [u64; 4]) {
    let x = i.from.float(v[0], 0);
    out[0] = u64::from(match i.flags.piece {
        0 => x.is_finite(),
        1 => x.is_infinite(),
        2 => !x.is_nan(),
        3 => x.is_nan(),
        4 => {
            if i.from.base == Base::F32 {
                (x as f32).is_normal()
            } else {
                x.is_normal()
            }
        }
        _ => {
            if i.from.base == Base::F32 {
                (x as f32).is_subnormal()
            } else {
                x.is_subnormal()
            }
        }
    });
}

/// One register, several that are packed, or one that is unpacked.
pub(super) fn move_bits(i: &Instruction, v: &[u64], out: &mut [u64; 4]) {
    let piece = i.flags.piece;
    let ones = u64::MAX >> (64 - piece.clamp(1, 64));
    if i.outs.len() > 1 {
        out.iter_mut().zip(0u32..).take(i.outs.len()).for_each(|(out, at)| *out = v[0] >> (piece * at) & ones);
    } else {
        out[0] = v.iter().zip(0u32..).fold(0, |bits, (&part, at)| bits | (part & ones) << (piece * at)) & i.kind.mask();
    }
}
