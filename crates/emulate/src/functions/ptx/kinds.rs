//! Types of PTX, and elements of registers as numbers.

use super::Flags;
use crate::convert::{self, BF16_NAN, E4M3, E5M2, F16, F16_NAN, F32_NAN, F64_NAN};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Predicate,
    Bits,
    Unsigned,
    Signed,
    F16,
    Bf16,
    F32,
    F64,
    Tf32,
    E4m3,
    E5m2,
}

/// A type, of one element or of two packed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) base: Base,
    /// Of one element.
    pub(super) bits: u32,
    pub(super) lanes: u32,
}

impl Kind {
    pub(super) const PREDICATE: Kind = Kind { base: Base::Predicate, bits: 1, lanes: 1 };

    /// A type by its suffix, such as `s32` or `f16x2`.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        let (element, lanes) = match name.strip_suffix("x2") {
            Some(element) => (element, 2),
            None => (name, 1),
        };
        let (base, bits) = match element {
            "pred" => (Base::Predicate, 1),
            "f16" => (Base::F16, 16),
            "bf16" => (Base::Bf16, 16),
            "f32" => (Base::F32, 32),
            "f64" => (Base::F64, 64),
            "tf32" => (Base::Tf32, 32),
            "e4m3" => (Base::E4m3, 8),
            "e5m2" => (Base::E5m2, 8),
            _ => {
                let base = match element.as_bytes().first()? {
                    b'b' => Base::Bits,
                    b'u' => Base::Unsigned,
                    b's' => Base::Signed,
                    _ => return None,
                };
                (base, element[1..].parse().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64))?)
            }
        };
        let packed = matches!(base, Base::F16 | Base::Bf16 | Base::E4m3 | Base::E5m2 | Base::F32);
        // The 8-bit floats come in pairs only.
        let single = !matches!(base, Base::E4m3 | Base::E5m2);
        (if lanes == 2 { packed } else { single }).then_some(Self { base, bits, lanes })
    }

    pub(super) fn is_float(self) -> bool {
        !matches!(self.base, Base::Predicate | Base::Bits | Base::Unsigned | Base::Signed)
    }

    /// The bits of a register that hold a value of the type.
    pub(super) fn mask(self) -> u64 {
        u64::MAX >> (64 - (self.bits * self.lanes).clamp(1, 64))
    }

    /// An element as an integer: extended by sign or by zeros.
    pub(super) fn integer(self, register: u64) -> i128 {
        let value = register & self.mask();
        let negative = self.base == Base::Signed && value >> (self.bits - 1) == 1;
        if negative { i128::from(value) - (1i128 << self.bits) } else { i128::from(value) }
    }

    /// The bits of an integer.
    pub(super) fn wrapped(self, value: i128) -> u64 {
        value as u64 & self.mask()
    }

    /// The nearest integer of the type.
    pub(super) fn saturated(self, value: i128) -> u64 {
        let (low, high) = match self.base {
            Base::Signed => (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1),
            _ => (0, (1i128 << self.bits) - 1),
        };
        self.wrapped(value.clamp(low, high))
    }

    /// A packed element as a number.
    pub(super) fn float(self, register: u64, lane: u32) -> f64 {
        let bits = (register >> (self.bits * lane)) & (u64::MAX >> (64 - self.bits));
        match self.base {
            Base::F64 => f64::from_bits(bits),
            Base::F16 => f64::from(convert::f16_to_f32(bits as u16)),
            Base::Bf16 => f64::from(convert::bf16_to_f32(bits as u16)),
            Base::E4m3 => f64::from(E4M3.decode(bits as u32)),
            Base::E5m2 => f64::from(E5M2.decode(bits as u32)),
            _ => f64::from(f32::from_bits(bits as u32)),
        }
    }

    /// The bits of a number rounded to the type, at the place of a packed element. Every NaN is the canonical one.
    pub(super) fn rounded(self, value: f64, flags: Flags, lane: u32) -> u64 {
        let value = if flags.saturate && self.base != Base::E4m3 && self.base != Base::E5m2 {
            if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) + 0.0 }
        } else if flags.relu && (value < 0.0 || value.to_bits() == 1 << 63) {
            0.0
        } else {
            value
        };
        let nan = value.is_nan();
        let bits = match self.base {
            Base::F64 if nan => F64_NAN,
            Base::F64 => value.to_bits(),
            Base::F16 if nan => F16_NAN,
            Base::F16 => u64::from(F16.encode(F16.round(convert::to_f32_odd(value)))),
            Base::Bf16 if nan => BF16_NAN,
            Base::Bf16 => u64::from(convert::round_bf16(convert::to_f32_odd(value)).to_bits() >> 16),
            Base::E4m3 => u64::from(E4M3.encode(E4M3.round(convert::to_f32_odd(value)))),
            Base::E5m2 => u64::from(E5M2.encode(E5M2.round(convert::to_f32_odd(value)))),
            _ if nan => F32_NAN,
            Base::Tf32 => u64::from(convert::round_tf32(convert::to_f32_odd(value)).to_bits()),
            _ => u64::from(flushed(value as f32, flags.flush).to_bits()),
        };
        bits << (self.bits * lane)
    }

    /// Every packed element through a function.
    pub(super) fn each(self, flags: Flags, args: &[u64], f: impl Fn(&[f64]) -> f64) -> u64 {
        let mut numbers = [0.0; 4];
        let mut result = 0;
        for lane in 0..self.lanes {
            for (number, &register) in numbers.iter_mut().zip(args) {
                let value = self.float(register, lane);
                *number =
                    if flags.flush && self.base == Base::F32 { f64::from(flushed(value as f32, true)) } else { value };
            }
            result |= self.rounded(f(&numbers[..args.len().min(4)]), flags, lane);
        }
        result
    }
}

/// Subnormal numbers as zeros of their sign.
fn flushed(x: f32, flush: bool) -> f32 {
    if flush && x.is_subnormal() { 0f32.copysign(x) } else { x }
}
