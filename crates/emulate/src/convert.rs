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

/// The bits of the NaN that the GPU's instructions give.
pub(crate) const F16_NAN: u64 = 0x7fff;
pub(crate) const BF16_NAN: u64 = 0x7fff;
pub(crate) const F32_NAN: u64 = 0x7fff_ffff;
pub(crate) const F64_NAN: u64 = 0x7ff8_0000_0000_0000;

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
        let keeps_infinity = self.has_infinity() && magnitude == f32::INFINITY;
        let limited = if rounded > self.max && !keeps_infinity { self.max } else { rounded };
        let value = if x.is_nan() { self.quiet(bits) } else { limited.to_bits() | (bits & SIGN) };
        f32::from_bits(if self.unsigned_zero && value == SIGN { 0 } else { value })
    }

    /// Whether codes of the highest exponent are infinities and NaNs.
    #[inline(always)]
    const fn has_infinity(self) -> bool {
        !self.unsigned_zero && self.mantissa != 3
    }

    /// A quiet NaN with the payload that the format can hold; conversions to fp8 give one with all bits set.
    #[inline(always)]
    fn quiet(self, bits: u32) -> u32 {
        let bits = if self.bits == 8 { bits | 0x007f_ffff } else { bits };
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
            } else if self.has_infinity() {
                sign | (((bits & !SIGN) >> (23 - self.mantissa)) & all_ones)
            } else {
                sign | all_ones
            };
        }
        let subnormal = (magnitude * power_of_two(self.bias - 1 + self.mantissa as i32)) as u32;
        let rebias = ((127 - self.bias) as u32) << self.mantissa;
        let normal = ((bits & !SIGN) >> (23 - self.mantissa)).wrapping_sub(rebias);
        let code = if magnitude < power_of_two(1 - self.bias) { subnormal } else { normal };
        sign | code.min(if self.has_infinity() { 0x1f << self.mantissa } else { all_ones })
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
            // With its payload, so that copies keep it.
            let payload = if self.has_infinity() { fraction << (23 - self.mantissa) } else { 0x007f_ffff };
            f32::from_bits(0x7f80_0000 | payload)
        } else if self.has_infinity() && exponent == all_ones {
            f32::INFINITY
        } else if exponent == 0 {
            fraction as f32 * power_of_two(1 - self.bias - self.mantissa as i32)
        } else {
            (fraction + (1 << self.mantissa)) as f32 * power_of_two(exponent as i32 - self.bias - self.mantissa as i32)
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

/// Triton moves the bits of an fp8e5 to those of a bf16 and scales: an infinity becomes 65536, and NaNs what follows it.
pub(crate) fn e5m2_as_triton_widens_it(x: f32) -> f32 {
    let exponent_31 = (31 - 15 + 127) << 23;
    if x.is_finite() { x } else { f32::from_bits((x.to_bits() & (SIGN | 0x0060_0000)) | exponent_31) }
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

/// `a * b + c` of values of 11 bits or less, rounded to odd: a further rounding to such a format is as if done once.
#[inline(always)]
pub(crate) fn fma_odd(a: f32, b: f32, c: f32) -> f32 {
    // The product is exact; the sum is rounded to odd by way of its error.
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let part = sum - product;
    let error = (product - (sum - part)) + (c - part);
    let cut = error != 0.0 && sum.is_finite() && sum.to_bits() & 1 == 0;
    // One step towards the error makes the last bit odd.
    let towards = if (error > 0.0) == (sum > 0.0) { sum.to_bits() + 1 } else { sum.to_bits().wrapping_sub(1) };
    to_f32_odd(if cut { f64::from_bits(towards) } else { sum })
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

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use proptest::prelude::*;

    use super::*;

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    /// Any bit pattern, and values around the bounds of the narrow formats.
    fn floats() -> impl Strategy<Value = f32> {
        prop_oneof![
            any::<u32>().prop_map(f32::from_bits),
            (-40i32..20, any::<u32>())
                .prop_map(|(exponent, bits)| f32::from_bits(bits & 0x807f_ffff | ((exponent + 127) as u32) << 23)),
            any::<u16>().prop_map(|bits| f16::from_bits(bits).to_f32() * (1.0 + f32::EPSILON)),
        ]
    }

    #[test]
    fn all_codes_survive() {
        for code in 0..=u16::MAX {
            let wide = f16_to_f32(code);
            assert!(same(wide, f16::from_bits(code).to_f32()), "{code:#x}");
            let again = F16.encode(wide) as u16;
            assert!(again == code || wide.is_nan() && f16::from_bits(again).is_nan(), "{code:#x} {again:#x}");
            assert!(same(bf16_to_f32(code), bf16::from_bits(code).to_f32()));
        }
        for format in [E4M3, E5M2, E4M3UZ, E5M2UZ, E4M3B11UZ] {
            for code in 0..=255u32 {
                let value = format.decode(code);
                let rounded = format.round(value);
                if value.is_finite() {
                    assert_eq!(rounded.to_bits(), value.to_bits(), "{format:?} {code:#x}");
                    assert_eq!(format.encode(value), code, "{format:?} {code:#x}");
                } else if value.is_nan() {
                    assert!(format.decode(format.encode(rounded)).is_nan(), "{format:?} {code:#x}");
                }
            }
        }
    }

    /// The nearest code by trying them all; of two as near, the even one.
    fn nearest(format: Format, x: f32) -> f32 {
        let codes = (0..1u32 << format.bits).filter(|&code| format.decode(code).is_finite());
        // What is far beyond the largest value would be equally far from several in double precision.
        let x = x.clamp(-2.0 * format.max, 2.0 * format.max);
        let distance = |code: u32| (f64::from(format.decode(code)) - f64::from(x)).abs();
        let best = codes.min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
        format.decode(best.unwrap_or_default())
    }

    proptest! {
        #[test]
        fn f16_rounds_as_half(x in floats()) {
            prop_assert!(same(F16.round(x), f16::from_f32(x).to_f32()), "{x:e} {:e}", F16.round(x));
            let code = F16.encode(F16.round(x)) as u16;
            prop_assert!(code == f16::from_f32(x).to_bits() || x.is_nan());
        }

        #[test]
        fn bf16_rounds_as_half(x in floats()) {
            prop_assert!(same(round_bf16(x), bf16::from_f32(x).to_f32()));
        }

        #[test]
        fn fp8_rounds_to_the_nearest(x in floats()) {
            for format in [E4M3, E5M2, E4M3UZ, E5M2UZ, E4M3B11UZ] {
                let got = format.round(x);
                prop_assert!(if x.is_nan() { got.is_nan() } else { got == nearest(format, x) }, "{format:?} {x:e} {got:e}");
            }
        }

        #[test]
        fn truncation_never_grows(x in floats()) {
            for format in [F16, E4M3, E5M2] {
                let got = format.truncate(x);
                if x.is_finite() {
                    prop_assert!(got.abs() <= x.abs());
                    prop_assert!(format.round(got) == got);
                    // The next value away from zero lies beyond, unless there is none.
                    let next = format.decode((format.encode(got) & !(1 << (format.bits - 1))) + 1);
                    prop_assert!(next.abs() > x.abs() || got.abs() == format.max, "{x:e} {got:e}");
                }
            }
        }

        #[test]
        fn doubles_round_once(x in any::<f64>(), scale in -30i32..20) {
            for x in [x, x.fract() * 2f64.powi(scale)] {
                let odd = to_f32_odd(x);
                let got = F16.round(odd);
                // Correct rounding, by exact comparison with the neighbours.
                if got.is_finite() && x.is_finite() {
                    let error = (f64::from(got) - x).abs();
                    for code in [F16.encode(got).wrapping_sub(1), F16.encode(got) + 1] {
                        let other = f16::from_bits(code as u16).to_f64();
                        prop_assert!(!other.is_finite() || error <= (other - x).abs(), "{x:e}");
                    }
                }
            }
        }

        #[test]
        fn integers_round_once(x in any::<i64>(), shift in 0u32..63) {
            let x = i128::from(x >> shift);
            let got = to_f32_odd(int_to_f64_odd(x));
            // To odd: exact, or off in the last bit only.
            prop_assert!((got as i128 - x).abs() < (x.abs() >> 22).max(1));
            prop_assert_eq!(int_to_f64_odd(x) as i128 == x, (int_to_f64_odd(x).to_bits() & 1 == 0) || int_to_f64_odd(x) as i128 == x);
            prop_assert_eq!(F16.round(to_f32_odd(int_to_f64_odd(x))), f16::from_f64(x as f64).to_f32());
        }

        #[test]
        fn tf32_rounds_half_away(x in any::<u32>().prop_map(f32::from_bits)) {
            let got = round_tf32(x);
            if x.is_finite() && got.is_finite() {
                prop_assert_eq!(got.to_bits() & 0x1fff, 0);
                let unit = f64::from(f32::from_bits((x.to_bits() & 0x7f80_0000).max(1 << 23))) * 2f64.powi(-10);
                let error = (f64::from(got) - f64::from(x)).abs();
                prop_assert!(error <= unit / 2.0);
                prop_assert!(error < unit / 2.0 || got.abs() > x.abs());
            }
        }
    }
}
