//! Decimal numbers to the bits of each floating-point format, rounded to nearest, ties to even.

use half::{bf16, f16};

use crate::ir::FloatKind;

/// Bits of `value` in the format, widened to 64. MLIR reads a decimal as a double first, and so does this.
pub(crate) fn bits_of(value: f64, kind: FloatKind) -> u64 {
    match kind {
        FloatKind::F64 => value.to_bits(),
        FloatKind::F32 => (value as f32).to_bits().into(),
        FloatKind::Tf32 => small(value, &Format { mantissa: 10, bias: 127, finite: Finite::Ieee, exponent: 8 }),
        FloatKind::F16 => f16::from_f64(value).to_bits().into(),
        FloatKind::Bf16 => bf16::from_f64(value).to_bits().into(),
        FloatKind::E5M2 => small(value, &Format { mantissa: 2, bias: 15, finite: Finite::Ieee, exponent: 5 }),
        FloatKind::E4M3 => small(value, &Format { mantissa: 3, bias: 7, finite: Finite::AllButOnes, exponent: 4 }),
        FloatKind::E4M3Uz => small(value, &Format { mantissa: 3, bias: 8, finite: Finite::All, exponent: 4 }),
        FloatKind::E5M2Uz => small(value, &Format { mantissa: 2, bias: 16, finite: Finite::All, exponent: 5 }),
        FloatKind::E4M3B11Uz => small(value, &Format { mantissa: 3, bias: 11, finite: Finite::All, exponent: 4 }),
    }
}

/// Width in bits.
pub(crate) fn width(kind: FloatKind) -> u32 {
    match kind {
        FloatKind::F64 => 64,
        FloatKind::F32 => 32,
        FloatKind::Tf32 => 19,
        FloatKind::F16 | FloatKind::Bf16 => 16,
        _ => 8,
    }
}

struct Format {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    finite: Finite,
}

#[derive(PartialEq)]
enum Finite {
    /// The largest exponent is for infinity and NaN.
    Ieee,
    /// All ones is NaN, there is no infinity.
    AllButOnes,
    /// Negative zero is NaN, there is no infinity.
    All,
}

fn small(value: f64, format: &Format) -> u64 {
    let sign_bit = 1u64 << (format.exponent + format.mantissa);
    let sign = if value.is_sign_negative() { sign_bit } else { 0 };
    let ones = (1u64 << (format.exponent + format.mantissa)) - 1;
    let infinity = ((1u64 << format.exponent) - 1) << format.mantissa;
    let (nan, largest) = match format.finite {
        Finite::Ieee => (infinity | 1 << (format.mantissa - 1), infinity - 1),
        Finite::AllButOnes => (ones, ones - 1),
        Finite::All => (sign_bit, ones),
    };
    let overflow = match format.finite {
        Finite::Ieee => sign | infinity,
        Finite::AllButOnes => sign | nan,
        Finite::All => nan,
    };
    if value.is_nan() {
        return if format.finite == Finite::All { nan } else { sign | nan };
    }
    if value.is_infinite() {
        return overflow;
    }
    // One unit in the last place at this magnitude, where subnormals share the smallest normal exponent.
    let magnitude = value.abs();
    let exponent = if magnitude == 0.0 { i32::MIN } else { magnitude.log2().floor() as i32 };
    let exponent = fix_exponent(magnitude, exponent).max(1 - format.bias);
    let unit = 2f64.powi(exponent - format.mantissa as i32);
    let units = (magnitude / unit).round_ties_even() as u64;
    // A normal number has `units` in [2^m, 2^(m+1)]; adding the exponent to it carries as it should.
    let steps = (exponent + format.bias - 1) as u64;
    let bits = (steps << format.mantissa) + units;
    match bits {
        0 if format.finite == Finite::All => 0,
        bits if bits > largest => overflow,
        bits => sign | bits,
    }
}

/// `log2` can be off by one unit next to a power of two.
fn fix_exponent(magnitude: f64, guess: i32) -> i32 {
    if guess == i32::MIN {
        return guess;
    }
    if 2f64.powi(guess) > magnitude {
        guess - 1
    } else if 2f64.powi(guess + 1) <= magnitude {
        guess + 1
    } else {
        guess
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Value of an 8-bit pattern by the format's definition; `None` for NaN.
    fn decode(bits: u64, kind: FloatKind) -> Option<f64> {
        let (exponent, mantissa, bias) = match kind {
            FloatKind::E5M2 => (5, 2, 15),
            FloatKind::E4M3 => (4, 3, 7),
            FloatKind::E4M3Uz => (4, 3, 8),
            FloatKind::E5M2Uz => (5, 2, 16),
            _ => (4, 3, 11),
        };
        let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
        let field = (bits & 0x7f) >> mantissa;
        let fraction = (bits & ((1 << mantissa) - 1)) as f64 / f64::from(1 << mantissa);
        let uz = !matches!(kind, FloatKind::E5M2 | FloatKind::E4M3);
        if (uz && bits == 0x80) || (kind == FloatKind::E4M3 && bits & 0x7f == 0x7f) {
            return None;
        }
        if kind == FloatKind::E5M2 && field == 31 {
            return if fraction == 0.0 { Some(sign * f64::INFINITY) } else { None };
        }
        let _ = exponent;
        Some(if field == 0 {
            sign * fraction * 2f64.powi(1 - bias)
        } else {
            sign * (1.0 + fraction) * 2f64.powi(field as i32 - bias)
        })
    }

    const SMALL: [FloatKind; 5] =
        [FloatKind::E5M2, FloatKind::E4M3, FloatKind::E4M3Uz, FloatKind::E5M2Uz, FloatKind::E4M3B11Uz];

    #[test]
    fn every_small_pattern_survives() {
        for kind in SMALL {
            for bits in 0..256 {
                if let Some(value) = decode(bits, kind) {
                    assert_eq!(bits_of(value, kind), bits, "{kind:?} {value}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn rounds_to_the_nearest(value in prop_oneof![-500.0f64..500.0, -0.01f64..0.01]) {
            for kind in SMALL {
                let Some(got) = decode(bits_of(value, kind), kind) else { continue };
                if got.is_infinite() { continue }
                let best = (0..256)
                    .filter_map(|bits| decode(bits, kind))
                    .filter(|x| x.is_finite())
                    .map(|x| (x - value).abs())
                    .fold(f64::INFINITY, f64::min);
                prop_assert_eq!((got - value).abs(), best);
            }
        }
    }
}
