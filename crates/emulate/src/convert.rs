//! Conversions between float formats.
//!
//! Formats narrower than `f32` are described by [`Format`]; rounding an `f32` to one and decoding its bits are
//! branch-free arithmetic on the bits of an `f32`, so that loops over them vectorise.

use tilewright_ttir::FloatKind;

/// A binary float format narrower than `f32`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// Explicit mantissa bits.
    pub(crate) mantissa: u32,
    pub(crate) bias: i32,
    /// The largest finite value.
    pub(crate) max: f32,
    /// What lies beyond `max`: infinity, or `max` again as the GPU's saturating conversions to fp8 do.
    pub(crate) infinity: bool,
    /// `FNUZ`: one NaN with the bits of a negative zero, no infinities.
    pub(crate) unsigned_zero: bool,
    pub(crate) bits: u32,
}

pub(crate) const F16: Format =
    Format { mantissa: 10, bias: 15, max: 65504.0, infinity: true, unsigned_zero: false, bits: 16 };
pub(crate) const E4M3: Format =
    Format { mantissa: 3, bias: 7, max: 448.0, infinity: false, unsigned_zero: false, bits: 8 };
pub(crate) const E5M2: Format =
    Format { mantissa: 2, bias: 15, max: 57344.0, infinity: false, unsigned_zero: false, bits: 8 };
pub(crate) const E4M3UZ: Format =
    Format { mantissa: 3, bias: 8, max: 240.0, infinity: false, unsigned_zero: true, bits: 8 };
pub(crate) const E5M2UZ: Format =
    Format { mantissa: 2, bias: 16, max: 57344.0, infinity: false, unsigned_zero: true, bits: 8 };
pub(crate) const E4M3B11UZ: Format =
    Format { mantissa: 3, bias: 11, max: 30.0, infinity: false, unsigned_zero: true, bits: 8 };

/// The fp8 format of a kind, if it is one.
pub(crate) fn fp8_format(kind: FloatKind) -> Option<Format> {
    Some(match kind {
        FloatKind::E4M3 => E4M3,
        FloatKind::E5M2 => E5M2,
        FloatKind::E4M3Uz => E4M3UZ,
        FloatKind::E5M2Uz => E5M2UZ,
        FloatKind::E4M3B11Uz => E4M3B11UZ,
        _ => return None,
    })
}

const SIGN: u32 = 0x8000_0000;

#[inline(always)]
const fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

impl Format {
    /// Rounds to the nearest value of the format, ties to even.
    #[inline(always)]
    pub(crate) fn round(self, x: f32) -> f32 {
        let bits = x.to_bits();
        let magnitude = f32::from_bits(bits & !SIGN);
        let drop = 23 - self.mantissa;
        let normal_min = power_of_two(1 - self.bias);
        // Adding and subtracting a power of two whose unit in the last place is the subnormal quantum rounds to it.
        let magic = power_of_two(1 - self.bias - self.mantissa as i32 + 23);
        let subnormal = (magnitude + magic) - magic;
        let half = (1u32 << (drop - 1)) - 1 + ((bits >> drop) & 1);
        let normal = f32::from_bits(((bits & !SIGN).wrapping_add(half)) & !((1u32 << drop) - 1));
        let rounded = if magnitude < normal_min { subnormal } else { normal };
        let beyond = if self.infinity { f32::INFINITY } else { self.max };
        let limited = if rounded > self.max { beyond } else { rounded };
        let value = if x.is_nan() { self.quiet(bits) } else { limited.to_bits() | (bits & SIGN) };
        f32::from_bits(if self.unsigned_zero && value == SIGN { 0 } else { value })
    }

    /// Rounds towards zero; what is beyond the largest finite value becomes it, infinities stay where they exist.
    #[inline(always)]
    pub(crate) fn truncate(self, x: f32) -> f32 {
        let bits = x.to_bits();
        let magnitude = f32::from_bits(bits & !SIGN);
        let drop = 23 - self.mantissa;
        let normal_min = power_of_two(1 - self.bias);
        let quantum = power_of_two(1 - self.bias - self.mantissa as i32);
        let subnormal = (magnitude / quantum).trunc() * quantum;
        let normal = f32::from_bits((bits & !SIGN) & !((1u32 << drop) - 1));
        let rounded = if magnitude < normal_min { subnormal } else { normal };
        let keeps_infinity = self.infinity && magnitude == f32::INFINITY;
        let limited = if rounded > self.max && !keeps_infinity { self.max } else { rounded };
        let value = if x.is_nan() { self.quiet(bits) } else { limited.to_bits() | (bits & SIGN) };
        f32::from_bits(if self.unsigned_zero && value == SIGN { 0 } else { value })
    }

    /// A quiet NaN with the payload that the format can hold.
    #[inline(always)]
    fn quiet(self, bits: u32) -> u32 {
        (bits | 0x0040_0000) & !((1u32 << (23 - self.mantissa)) - 1)
    }

    /// The bits of a value that the format holds exactly.
    #[inline(always)]
    pub(crate) fn encode(self, x: f32) -> u32 {
        let bits = x.to_bits();
        let magnitude = f32::from_bits(bits & !SIGN);
        let sign = (bits >> 31) << (self.bits - 1);
        let all_ones = (1u32 << (self.bits - 1)) - 1;
        if x.is_nan() {
            return if self.unsigned_zero {
                all_ones + 1
            } else if self.infinity {
                sign | (((bits & !SIGN) >> (23 - self.mantissa)) & all_ones)
            } else {
                sign | all_ones
            };
        }
        let subnormal = (magnitude * power_of_two(self.bias - 1 + self.mantissa as i32)) as u32;
        let rebias = ((127 - self.bias) as u32) << self.mantissa;
        let normal = ((bits & !SIGN) >> (23 - self.mantissa)).wrapping_sub(rebias);
        let code = if magnitude < power_of_two(1 - self.bias) { subnormal } else { normal };
        sign | code.min(if self.infinity { 0x1f << self.mantissa } else { all_ones })
    }

    /// The value of bits of the format.
    pub(crate) fn decode(self, code: u32) -> f32 {
        let top = self.bits - 1;
        let negative = code >> top & 1 == 1;
        let magnitude = code & ((1 << top) - 1);
        let exponent = magnitude >> self.mantissa;
        let fraction = magnitude & ((1 << self.mantissa) - 1);
        let exponent_bits = top - self.mantissa;
        let all_ones = (1 << exponent_bits) - 1;
        let nan = if self.unsigned_zero {
            negative && magnitude == 0
        } else if self.mantissa == 3 {
            magnitude == (1 << top) - 1
        } else {
            exponent == all_ones && fraction != 0
        };
        let value = if nan {
            f32::NAN
        } else if !self.unsigned_zero && self.mantissa != 3 && exponent == all_ones {
            f32::INFINITY
        } else if exponent == 0 {
            fraction as f32 * power_of_two(1 - self.bias - self.mantissa as i32)
        } else {
            (fraction + (1 << self.mantissa)) as f32
                * power_of_two(exponent as i32 - self.bias - self.mantissa as i32)
        };
        if negative { -value } else { value }
    }
}

#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Multiplying by 2^112 moves the exponent's bias and normalises subnormals.
    let scaled = (f32::from_bits(magnitude) * power_of_two(112)).to_bits();
    let special = magnitude | 0x7f80_0000;
    let value = if bits & 0x7c00 == 0x7c00 { special } else { scaled };
    f32::from_bits(value | (u32::from(bits & 0x8000) << 16))
}

#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline(always)]
pub(crate) fn round_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000;
    f32::from_bits(if x.is_nan() { (bits | 0x0040_0000) & 0xffff_0000 } else { rounded })
}

#[inline(always)]
fn truncate_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if x.is_nan() { (bits | 0x0040_0000) & 0xffff_0000 } else { bits & 0xffff_0000 })
}

/// Rounds to tf32 as `cvt.rna.tf32.f32` does: 10 bits of mantissa, ties away from zero.
#[inline(always)]
pub(crate) fn round_tf32(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if x.is_finite() { bits.wrapping_add(0x1000) & 0xffff_e000 } else { bits })
}

/// Rounds every element to a format that is held as `f32`.
pub(crate) fn round_all(kind: FloatKind, values: &mut [f32]) {
    fn each(values: &mut [f32], f: impl Fn(f32) -> f32) {
        crate::block::vectorised(|| {
            for value in values {
                *value = f(*value);
            }
        });
    }
    match kind {
        FloatKind::F16 => each(values, |x| F16.round(x)),
        FloatKind::Bf16 => each(values, round_bf16),
        FloatKind::Tf32 => each(values, round_tf32),
        FloatKind::E4M3 => each(values, |x| E4M3.round(x)),
        FloatKind::E5M2 => each(values, |x| E5M2.round(x)),
        FloatKind::E4M3Uz => each(values, |x| E4M3UZ.round(x)),
        FloatKind::E5M2Uz => each(values, |x| E5M2UZ.round(x)),
        FloatKind::E4M3B11Uz => each(values, |x| E4M3B11UZ.round(x)),
        FloatKind::F32 | FloatKind::F64 => {}
    }
}

/// [`round_all`] towards zero.
pub(crate) fn truncate_all(kind: FloatKind, values: &mut [f32]) {
    let one = |x: f32| match kind {
        FloatKind::F16 => F16.truncate(x),
        FloatKind::Bf16 => truncate_bf16(x),
        FloatKind::Tf32 => f32::from_bits(x.to_bits() & 0xffff_e000),
        FloatKind::F32 | FloatKind::F64 => x,
        _ => fp8_format(kind).map_or(x, |format| format.truncate(x)),
    };
    for value in values {
        *value = one(*value);
    }
}

/// Rounds to `f32` so that a further rounding to a narrower format is as if done once: to odd.
pub(crate) fn to_f32_odd(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) == x || !nearest.is_finite() && !x.is_finite() || x.is_nan() {
        return nearest;
    }
    // Truncate, then set the last bit to say that something was cut off.
    let bits = nearest.to_bits();
    let truncated = if f64::from(nearest).abs() > x.abs() { bits - 1 } else { bits };
    f32::from_bits(truncated | 1)
}

/// [`to_f32_odd`] for the rounding to `f64` of an integer.
pub(crate) fn int_to_f64_odd(x: i128) -> f64 {
    let magnitude = x.unsigned_abs();
    let excess = 128u32.saturating_sub(magnitude.leading_zeros()).saturating_sub(53);
    let cut = magnitude >> excess;
    let odd = if cut << excess == magnitude { cut } else { cut | 1 };
    let value = (odd << excess) as f64;
    if x < 0 { -value } else { value }
}

/// `f64` to `f32` towards zero.
pub(crate) fn truncate_f64(x: f64) -> f32 {
    let nearest = x as f32;
    if x.is_finite() && f64::from(nearest).abs() > x.abs() { f32::from_bits(nearest.to_bits() - 1) } else { nearest }
}
