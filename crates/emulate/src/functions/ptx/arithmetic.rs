//! What instructions compute.

use super::kinds::{Base, Kind};
use super::{Instruction, Part, Run};
use crate::convert;
use crate::functions::approximate;
use crate::functions::integers::permute;

/// An instruction by its name before the modifiers, with how many operands it takes.
pub(super) fn by_name(name: &str, kind: Kind) -> Option<(Run, usize)> {
    if kind.is_float()
        && let Some(found) = float(name)
    {
        return Some(found);
    }
    Some(match name {
        "add" => (|i, v, out| out[0] = integer(i, v, |x| x[0] + x[1]), 2),
        "sub" => (|i, v, out| out[0] = integer(i, v, |x| x[0] - x[1]), 2),
        "mul" => (|i, v, out| out[0] = multiply(i, v[0], v[1], 0), 2),
        "mad" => (|i, v, out| out[0] = multiply(i, v[0], v[1], v[2]), 3),
        "mul24" => (|i, v, out| out[0] = multiply(i, low_24(i.kind, v[0]), low_24(i.kind, v[1]), 0), 2),
        "div" => (|i, v, out| out[0] = integer(i, v, |x| if x[1] == 0 { -1 } else { x[0] / x[1] }), 2),
        "rem" => (|i, v, out| out[0] = integer(i, v, |x| if x[1] == 0 { x[0] } else { x[0] % x[1] }), 2),
        "neg" => (|i, v, out| out[0] = integer(i, v, |x| -x[0]), 1),
        "abs" => (|i, v, out| out[0] = integer(i, v, |x| x[0].abs()), 1),
        "min" => (|i, v, out| out[0] = integer(i, v, |x| x[0].min(x[1])), 2),
        "max" => (|i, v, out| out[0] = integer(i, v, |x| x[0].max(x[1])), 2),
        "sad" => (|i, v, out| out[0] = integer(i, v, |x| x[2] + (x[0] - x[1]).abs()), 3),
        "and" => (|i, v, out| out[0] = v[0] & v[1] & i.kind.mask(), 2),
        "or" => (|i, v, out| out[0] = (v[0] | v[1]) & i.kind.mask(), 2),
        "xor" => (|i, v, out| out[0] = (v[0] ^ v[1]) & i.kind.mask(), 2),
        "not" => (|i, v, out| out[0] = !v[0] & i.kind.mask(), 1),
        "cnot" => (|i, v, out| out[0] = u64::from(v[0] & i.kind.mask() == 0), 1),
        "shl" => (|i, v, out| out[0] = shift(i.kind, v, true), 2),
        "shr" => (|i, v, out| out[0] = shift(i.kind, v, false), 2),
        "shf" => (|i, v, out| out[0] = funnel(i, v), 3),
        "lop3" => (|_, v, out| out[0] = u64::from(logic(v[0] as u32, v[1] as u32, v[2] as u32, v[3] as u8)), 4),
        "prmt" => (|_, v, out| out[0] = u64::from(permute(v[0] as u32, v[1] as u32, v[2] as u32)), 3),
        "bfe" => (|i, v, out| out[0] = extract(i.kind, v), 3),
        "bfi" => (|i, v, out| out[0] = insert(i.kind, v), 4),
        "popc" => (|i, v, out| out[0] = u64::from((v[0] & i.kind.mask()).count_ones()), 1),
        "clz" => (|i, v, out| out[0] = u64::from((v[0] & i.kind.mask()).leading_zeros() - (64 - i.kind.bits)), 1),
        "brev" => (|i, v, out| out[0] = v[0].reverse_bits() >> (64 - i.kind.bits), 1),
        "bfind" => (|i, v, out| out[0] = highest(i.kind, v[0]), 1),
        "fns" => (|_, v, out| out[0] = nth_set(v[0] as u32, v[1] as u32, v[2] as i32), 3),
        "dp4a" => (|i, v, out| out[0] = dot_of_bytes(i, v), 3),
        "selp" => (|_, v, out| out[0] = if v[2] != 0 { v[0] } else { v[1] }, 3),
        _ => return None,
    })
}

fn float(name: &str) -> Option<(Run, usize)> {
    Some(match name {
        "add" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| x[0] + x[1]), 2),
        "sub" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| x[0] - x[1]), 2),
        "mul" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| x[0] * x[1]), 2),
        "div" => (
            |i, v, out| {
                out[0] = i
                    .kind
                    .each(i.flags, v, |x| if i.flags.approximate { approximate::div(x[0], x[1]) } else { x[0] / x[1] })
            },
            2,
        ),
        "fma" | "mad" => (|i, v, out| out[0] = fused(i, v), 3),
        "neg" => (|i, v, out| out[0] = (v[0] ^ signs(i.kind)) & i.kind.mask(), 1),
        "abs" => (|i, v, out| out[0] = v[0] & !signs(i.kind) & i.kind.mask(), 1),
        "min" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| extreme(x, i.flags.propagate_nan, false)), 2),
        "max" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| extreme(x, i.flags.propagate_nan, true)), 2),
        "copysign" => (|i, v, out| out[0] = (v[0] & signs(i.kind) | v[1] & !signs(i.kind)) & i.kind.mask(), 2),
        "ex2" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| approximate::ex2(x[0])), 1),
        "lg2" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| approximate::lg2(x[0])), 1),
        "sin" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| approximate::sin(x[0])), 1),
        "cos" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| approximate::cos(x[0])), 1),
        "tanh" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| approximate::tanh(x[0])), 1),
        "rcp" => (
            |i, v, out| {
                out[0] =
                    i.kind.each(i.flags, v, |x| if i.flags.approximate { approximate::rcp(x[0]) } else { 1.0 / x[0] })
            },
            1,
        ),
        "sqrt" => (
            |i, v, out| {
                out[0] =
                    i.kind.each(i.flags, v, |x| if i.flags.approximate { approximate::sqrt(x[0]) } else { x[0].sqrt() })
            },
            1,
        ),
        "rsqrt" => (|i, v, out| out[0] = i.kind.each(i.flags, v, |x| approximate::rsqrt(x[0])), 1),
        _ => return None,
    })
}

/// The sign bits of all elements.
fn signs(kind: Kind) -> u64 {
    (0..kind.lanes).fold(0, |bits, lane| bits | 1 << (kind.bits * (lane + 1) - 1))
}

fn fused(i: &Instruction, v: &[u64]) -> u64 {
    let kind = i.kind;
    kind.each(i.flags, v, |x| match kind.base {
        Base::F64 => x[0].mul_add(x[1], x[2]),
        Base::F32 => f64::from((x[0] as f32).mul_add(x[1] as f32, x[2] as f32)),
        // Rounded to odd, so that the rounding to 16 bits is the only one.
        _ => f64::from(convert::fma_odd(x[0] as f32, x[1] as f32, x[2] as f32)),
    })
}

/// The other operand where one is NaN, unless NaN is wanted then; -0 is less than 0.
fn extreme(x: &[f64], propagate_nan: bool, greatest: bool) -> f64 {
    use crate::numeric::Float;
    match (propagate_nan, greatest) {
        (true, true) => Float::maximum(x[0], x[1]),
        (true, false) => Float::minimum(x[0], x[1]),
        (false, true) => x[0].max_num(x[1]),
        (false, false) => x[0].min_num(x[1]),
    }
}

fn integer(i: &Instruction, v: &[u64], f: impl Fn(&[i128]) -> i128) -> u64 {
    let mut numbers = [0; 3];
    numbers.iter_mut().zip(v).for_each(|(number, &register)| *number = i.kind.integer(register));
    let value = f(&numbers);
    if i.flags.saturate { i.kind.saturated(value) } else { i.kind.wrapped(value) }
}

/// The part of a product that is asked for, plus a third number: of twice the width for `.wide`.
fn multiply(i: &Instruction, a: u64, b: u64, c: u64) -> u64 {
    let kind = i.kind;
    let product = kind.integer(a) * kind.integer(b);
    match i.flags.part {
        Part::Low => kind.wrapped(product + kind.integer(c)),
        Part::High => kind.wrapped((product >> kind.bits) + kind.integer(c)),
        Part::Wide => {
            let wide = Kind { bits: (2 * kind.bits).min(64), ..kind };
            wide.wrapped(product + wide.integer(c))
        }
    }
}

fn low_24(kind: Kind, register: u64) -> u64 {
    let low = register << 8 & 0xffff_ffff;
    if kind.base == Base::Signed { ((low as u32 as i32) >> 8) as u32 as u64 } else { low >> 8 }
}

/// Amounts beyond the width shift everything out.
fn shift(kind: Kind, v: &[u64], left: bool) -> u64 {
    let by = (v[1] & 0xffff_ffff).min(u64::from(kind.bits)) as u32;
    let value = kind.integer(v[0]);
    kind.wrapped(if left { value << by } else { value >> by })
}

/// `part` is high for shifts to the right; a saturating shift clamps the amount, the others take it modulo 32.
fn funnel(i: &Instruction, v: &[u64]) -> u64 {
    let wide = u128::from(v[1] as u32) << 32 | u128::from(v[0] as u32);
    let by = if i.flags.saturate { (v[2] as u32).min(32) } else { v[2] as u32 & 31 };
    (if i.flags.part == Part::High { wide >> by } else { wide << by >> 32 }) as u64 & 0xffff_ffff
}

/// Each bit of the table is the result for one combination of the operands' bits.
fn logic(a: u32, b: u32, c: u32, table: u8) -> u32 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |bits, row| {
        let pick = |x: u32, bit: u8| if row & bit != 0 { x } else { !x };
        bits | pick(a, 4) & pick(b, 2) & pick(c, 1)
    })
}

/// A field from a position on, extended by the sign bit of the field or of what there is of it.
fn extract(kind: Kind, v: &[u64]) -> u64 {
    let (start, length) = (v[1] as u32 & 255, v[2] as u32 & 255);
    let value = v[0] & kind.mask();
    let field = if start >= kind.bits { 0 } else { value >> start };
    let low = field & if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let last = (start + length).wrapping_sub(1).min(kind.bits - 1);
    let negative = kind.base == Base::Signed && length > 0 && value >> last & 1 == 1;
    let upper = if length >= 64 { 0 } else { u64::MAX << length };
    // Beyond the register's end the sign goes on.
    let missing = if start + length > kind.bits { u64::MAX << kind.bits.saturating_sub(start).min(63) } else { 0 };
    if negative { (low | upper | missing) & kind.mask() } else { low }
}

/// The low bits of one operand at a place of another.
fn insert(kind: Kind, v: &[u64]) -> u64 {
    let (start, length) = (v[2] as u32 & 255, v[3] as u32 & 255);
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let (field, hole) = if start >= 64 { (0, 0) } else { ((v[0] & ones) << start, ones << start) };
    (v[1] & !hole | field) & kind.mask()
}

/// The position of the highest bit that is not the sign.
fn highest(kind: Kind, register: u64) -> u64 {
    let value = kind.integer(register);
    let plain = (if value < 0 { !value } else { value }) as u64;
    if plain == 0 { 0xffff_ffff } else { u64::from(63 - plain.leading_zeros()) }
}

/// The position of the nth set bit from a place on, upwards or for a negative number downwards; all ones if there is none.
fn nth_set(bits: u32, from: u32, n: i32) -> u64 {
    let set = |at: &u32| bits >> at & 1 == 1;
    let found = match n {
        _ if from > 31 => None,
        0 => Some(from).filter(set),
        1.. => (from..32).filter(set).nth(n as usize - 1),
        _ => (0..=from).rev().filter(set).nth(n.unsigned_abs() as usize - 1),
    };
    found.map_or(0xffff_ffff, u64::from)
}

fn dot_of_bytes(i: &Instruction, v: &[u64]) -> u64 {
    let byte = |kind: Kind, x: u64, at: u32| {
        let byte = (x >> (8 * at)) as u8;
        if kind.base == Base::Signed { i64::from(byte as i8) } else { i64::from(byte) }
    };
    let sum: i64 = (0..4).map(|at| byte(i.kind, v[0], at) * byte(i.from, v[1], at)).sum();
    (sum as u64).wrapping_add(v[2]) & 0xffff_ffff
}
