//! Conversions between element types.

use tilewright_ttir::FloatKind;

use crate::block::{Block, map1};
use crate::code::Cast;
use crate::codec::{Codec, with_codec};
use crate::convert;
use crate::types::Elem;

pub(super) fn cast(how: Cast, a: &Block, out: &mut Block) -> Option<()> {
    match how {
        Cast::Int { from, to, signed } => cast_int(from, to, signed, a, out),
        Cast::IntToFloat { from, to, signed } => int_to_float(from, to, signed, a, out),
        Cast::FloatToInt { to, signed } => float_to_int(signed, to == Elem::I1, a, out),
        Cast::Float { from, to, truncate } => cast_float(from, to, truncate, a, out),
        Cast::Bits { from, to } => cast_bits(from, to, a, out),
    }
}

/// `$body` with `$f` widening each integer to `i64` by sign or by zeros; an `i1` is 0 or 1, or 0 or -1 if signed.
macro_rules! widened {
    ($from:expr, $signed:expr, $a:expr, $v:ident, $f:ident => $body:expr) => {
        match ($a, $signed) {
            (Block::I8($v), true) if $from == Elem::I1 => {
                let $f = |x: i8| -i64::from(x);
                $body
            }
            (Block::I8($v), true) => {
                let $f = |x: i8| i64::from(x);
                $body
            }
            (Block::I8($v), false) => {
                let $f = |x: i8| i64::from(x as u8);
                $body
            }
            (Block::I16($v), true) => {
                let $f = |x: i16| i64::from(x);
                $body
            }
            (Block::I16($v), false) => {
                let $f = |x: i16| i64::from(x as u16);
                $body
            }
            (Block::I32($v), true) => {
                let $f = |x: i32| i64::from(x);
                $body
            }
            (Block::I32($v), false) => {
                let $f = |x: i32| i64::from(x as u32);
                $body
            }
            (Block::I64($v), _) => {
                let $f = |x: i64| x;
                $body
            }
            _ => return None,
        }
    };
}

fn cast_int(from: Elem, to: Elem, signed: bool, a: &Block, out: &mut Block) -> Option<()> {
    widened!(from, signed, a, v, f => match (to, out) {
        (Elem::I1, Block::I8(out)) => map1(v, out, |x| (f(x) & 1) as i8),
        (_, Block::I8(out)) => map1(v, out, |x| f(x) as i8),
        (_, Block::I16(out)) => map1(v, out, |x| f(x) as i16),
        (_, Block::I32(out)) => map1(v, out, |x| f(x) as i32),
        (_, Block::I64(out)) => map1(v, out, f),
        _ => return None,
    });
    Some(())
}

fn int_to_float(from: Elem, to: FloatKind, signed: bool, a: &Block, out: &mut Block) -> Option<()> {
    // The widened value of an unsigned 64-bit integer is its bits.
    let wide_unsigned = from == Elem::I64 && !signed;
    widened!(from, signed, a, v, f => match (to, out) {
        (FloatKind::F64, Block::F64(out)) if wide_unsigned => map1(v, out, |x| f(x) as u64 as f64),
        (FloatKind::F64, Block::F64(out)) => map1(v, out, |x| f(x) as f64),
        (FloatKind::F32, Block::F32(out)) if wide_unsigned => map1(v, out, |x| f(x) as u64 as f32),
        (FloatKind::F32, Block::F32(out)) => map1(v, out, |x| f(x) as f32),
        (_, Block::F32(out)) => {
            let exact = |x: i64| if wide_unsigned { i128::from(x as u64) } else { i128::from(x) };
            map1(v, out, |x| convert::to_f32_odd(convert::int_to_f64_odd(exact(f(x)))));
            convert::round_all(to, out);
        }
        _ => return None,
    });
    Some(())
}

/// As `cvt.rzi`: towards zero, saturating. A NaN becomes 0 in narrow conversions and the lowest bit pattern with
/// the top bit set where a 64-bit type takes part.
pub(super) fn float_to_int(signed: bool, one_bit: bool, a: &Block, out: &mut Block) -> Option<()> {
    match (a, out) {
        // Integers narrower than 32 bits come out of a conversion to 16 bits.
        (Block::F32(a), Block::I8(out)) => {
            let narrow = |x: i16| if one_bit { (x & 1) as i8 } else { x as i8 };
            if signed { map1(a, out, |x| narrow(x as i16)) } else { map1(a, out, |x| narrow(x as u16 as i16)) }
        }
        (Block::F32(a), Block::I16(out)) if signed => map1(a, out, |x| x as i16),
        (Block::F32(a), Block::I16(out)) => map1(a, out, |x| x as u16 as i16),
        (Block::F32(a), Block::I32(out)) if signed => map1(a, out, |x| x as i32),
        (Block::F32(a), Block::I32(out)) => map1(a, out, |x| x as u32 as i32),
        (Block::F32(a), Block::I64(out)) => map1(a, out, |x| to_i64(f64::from(x), signed)),
        (Block::F64(a), Block::I8(out)) if signed => map1(a, out, |x| x as i16 as i8),
        (Block::F64(a), Block::I8(out)) => map1(a, out, |x| x as u16 as i8),
        (Block::F64(a), Block::I16(out)) => map1(a, out, |x| match (x.is_nan(), signed) {
            (true, _) => i16::MIN,
            (_, true) => x as i16,
            (_, false) => x as u16 as i16,
        }),
        (Block::F64(a), Block::I32(out)) => map1(a, out, |x| match (x.is_nan(), signed) {
            (true, _) => i32::MIN,
            (_, true) => x as i32,
            (_, false) => x as u32 as i32,
        }),
        (Block::F64(a), Block::I64(out)) => map1(a, out, |x| to_i64(x, signed)),
        _ => return None,
    }
    Some(())
}

fn to_i64(x: f64, signed: bool) -> i64 {
    match (x.is_nan(), signed) {
        (true, _) => i64::MIN,
        (_, true) => x as i64,
        (_, false) => x as u64 as i64,
    }
}

fn cast_float(from: FloatKind, to: FloatKind, truncate: bool, a: &Block, out: &mut Block) -> Option<()> {
    match (a, out) {
        (Block::F32(a), Block::F32(out)) => {
            out.clear();
            out.extend_from_slice(a);
            if from == to {
                return Some(());
            }
            if (from, to) == (FloatKind::E5M2, FloatKind::Bf16) {
                out.iter_mut().for_each(|x| *x = convert::e5m2_as_triton_widens_it(*x));
            }
            if truncate { convert::truncate_all(to, out) } else { convert::round_all(to, out) }
        }
        (Block::F32(a), Block::F64(out)) => map1(a, out, f64::from),
        (Block::F64(a), Block::F64(out)) => out.clone_from(a),
        (Block::F64(a), Block::F32(out)) => {
            if truncate {
                map1(a, out, convert::truncate_f64);
                convert::truncate_all(to, out);
            } else if to == FloatKind::F32 {
                map1(a, out, |x| x as f32);
            } else {
                map1(a, out, convert::to_f32_odd);
                convert::round_all(to, out);
            }
        }
        _ => return None,
    }
    Some(())
}

fn cast_bits(from: Elem, to: Elem, a: &Block, out: &mut Block) -> Option<()> {
    match (a, &mut *out) {
        (Block::F32(a), Block::I32(out)) if from.bytes() == 4 => map1(a, out, |x| x.to_bits() as i32),
        (Block::I32(a), Block::F32(out)) if to.bytes() == 4 => map1(a, out, |x| f32::from_bits(x as u32)),
        (Block::F64(a), Block::I64(out)) => map1(a, out, |x| x.to_bits() as i64),
        (Block::I64(a), Block::F64(out)) => map1(a, out, |x| f64::from_bits(x as u64)),
        _ => {
            let mut bytes = vec![0u8; a.len() * from.bytes()];
            encode_all(from, a, &mut bytes)?;
            decode_all(to, &bytes, out)?;
        }
    }
    Some(())
}

/// The bytes of all elements as they would lie in memory.
pub(super) fn encode_all(elem: Elem, block: &Block, bytes: &mut [u8]) -> Option<()> {
    fn run<C: Codec>(codec: C, v: &[C::Item], bytes: &mut [u8]) {
        for (chunk, &item) in bytes.chunks_exact_mut(C::SIZE).zip(v) {
            codec.encode(item, chunk);
        }
    }
    with_codec!(elem, block, codec, v => run(codec, v, bytes), return None);
    Some(())
}

pub(super) fn decode_all(elem: Elem, bytes: &[u8], block: &mut Block) -> Option<()> {
    fn run<C: Codec>(codec: C, v: &mut Vec<C::Item>, bytes: &[u8]) {
        v.clear();
        v.extend(bytes.chunks_exact(C::SIZE).map(|chunk| codec.decode(chunk)));
    }
    if block.class() != elem.class() {
        *block = Block::new(elem.class());
    }
    with_codec!(elem, block, codec, v => run(codec, v, bytes), return None);
    Some(())
}
