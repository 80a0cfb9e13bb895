//! Elements as float64 and as text.

use half::{bf16, f16};
use tilewright_contract::Dtype;

/// Appends every element of `bytes` to `out`. Exact for all dtypes but 64-bit integers beyond 2^53.
pub fn decode(dtype: Dtype, bytes: &[u8], out: &mut Vec<f64>) {
    macro_rules! each {
        ($size:literal, $from:expr) => {{
            let (elements, _) = bytes.as_chunks::<$size>();
            out.extend(elements.iter().map(|&raw| $from(raw)))
        }};
    }
    match dtype {
        Dtype::Bool | Dtype::U8 => each!(1, |b: [u8; 1]| f64::from(b[0])),
        Dtype::U16 => each!(2, |b| f64::from(u16::from_le_bytes(b))),
        Dtype::U32 => each!(4, |b| f64::from(u32::from_le_bytes(b))),
        Dtype::U64 => each!(8, |b| u64::from_le_bytes(b) as f64),
        Dtype::I8 => each!(1, |b| f64::from(i8::from_le_bytes(b))),
        Dtype::I16 => each!(2, |b| f64::from(i16::from_le_bytes(b))),
        Dtype::I32 => each!(4, |b| f64::from(i32::from_le_bytes(b))),
        Dtype::I64 => each!(8, |b| i64::from_le_bytes(b) as f64),
        Dtype::F8E4M3 => each!(1, |b: [u8; 1]| e4m3fn(b[0])),
        Dtype::F8E5M2 => each!(1, |b: [u8; 1]| e5m2(b[0])),
        Dtype::F16 => each!(2, |b| f16::from_le_bytes(b).to_f64()),
        Dtype::Bf16 => each!(2, |b| bf16::from_le_bytes(b).to_f64()),
        Dtype::F32 => each!(4, |b| f64::from(f32::from_le_bytes(b))),
        Dtype::F64 => each!(8, f64::from_le_bytes),
    }
}

/// `float8_e4m3fn` has no infinities, and one NaN for each sign. All else is a float16 with the exponent moved by 8.
fn e4m3fn(byte: u8) -> f64 {
    if byte & 0x7f == 0x7f {
        return f64::NAN;
    }
    let wide = (u16::from(byte & 0x80) << 8) | (u16::from(byte & 0x7f) << 7);
    f16::from_bits(wide).to_f64() * 256.0
}

/// `float8_e5m2` is the upper byte of a float16.
fn e5m2(byte: u8) -> f64 {
    f16::from_bits(u16::from(byte) << 8).to_f64()
}

/// Rounds once to the nearest value of a floating dtype, ties to even, as torch's casts do.
///
/// Not by `half::f16::from_f64`, which drops the lower half of the float64's fraction before it rounds.
pub fn round_to(dtype: Dtype, value: f64) -> f64 {
    let (mantissa, lowest, largest) = match dtype {
        Dtype::F8E4M3 => (3, -6, 448.0),
        Dtype::F8E5M2 => (2, -14, 57344.0),
        Dtype::F16 => (10, -14, 65504.0),
        Dtype::Bf16 => (7, -126, f64::from(bf16::MAX)),
        Dtype::F32 => return f64::from(value as f32),
        _ => return value,
    };
    let rounded = round_bits(value, mantissa, lowest);
    match dtype {
        _ if rounded.abs() <= largest => rounded,
        Dtype::F8E4M3 => f64::NAN,
        _ if value.is_nan() => value,
        _ => f64::INFINITY.copysign(value),
    }
}

/// Rounds to `mantissa` bits after the leading one, with subnormals below `2^lowest`.
fn round_bits(value: f64, mantissa: i32, lowest: i32) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    let stored = (value.to_bits() >> 52 & 0x7ff) as i32;
    let exponent = if stored == 0 { -1023 } else { stored - 1023 };
    let step = 2f64.powi(exponent.max(lowest) - mantissa);
    (value / step).round_ties_even() * step
}

/// The smallest positive value of a floating dtype: no result can be closer than half of it.
pub(crate) fn quantum(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F8E4M3 => 2f64.powi(-9),
        Dtype::F8E5M2 => 2f64.powi(-16),
        Dtype::F16 => 2f64.powi(-24),
        Dtype::Bf16 => 2f64.powi(-133),
        Dtype::F32 => 2f64.powi(-149),
        Dtype::F64 => f64::from_bits(1),
        _ => 0.0,
    }
}

/// An integer or bool element; `None` for floats.
pub(crate) fn integer(dtype: Dtype, raw: &[u8]) -> Option<i128> {
    if dtype.is_float() {
        return None;
    }
    let signed = matches!(dtype, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64);
    let fill = if signed && raw.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
    let mut wide = [fill; 16];
    wide[..raw.len()].copy_from_slice(raw);
    Some(i128::from_le_bytes(wide))
}

/// One element in the shortest text that tells it from its neighbours in its dtype.
pub fn text(dtype: Dtype, raw: &[u8]) -> String {
    if let Some(value) = integer(dtype, raw) {
        return match (dtype, value) {
            (Dtype::Bool, 0) => "false".into(),
            (Dtype::Bool, 1) => "true".into(),
            (Dtype::Bool, other) => format!("{other} (not a bool)"),
            _ => value.to_string(),
        };
    }
    let mut value = Vec::with_capacity(1);
    decode(dtype, raw, &mut value);
    let value = value.first().copied().unwrap_or(f64::NAN);
    match dtype {
        Dtype::F64 => number(value),
        _ => float32(value as f32),
    }
}

/// A float64 as text: scientific where plain digits would be long.
pub(crate) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() || value == 0.0 || (1e-4..1e7).contains(&magnitude) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

fn float32(value: f32) -> String {
    let magnitude = value.abs();
    if !value.is_finite() || value == 0.0 || (1e-4..1e7).contains(&magnitude) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

/// A figure for a message: two significant digits.
pub(crate) fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if (0.01..1000.0).contains(&value.abs()) { format!("{value:.2}") } else { format!("{value:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An independent decoder: sign, exponent and fraction by powers of two. `fnuz`-free formats only.
    fn by_parts(bits: u64, exponent_bits: u32, fraction_bits: u32, has_infinity: bool) -> f64 {
        let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -1.0 } else { 1.0 };
        let exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
        let fraction = bits & ((1 << fraction_bits) - 1);
        let bias = (1i32 << (exponent_bits - 1)) - 1;
        let share = fraction as f64 / 2f64.powi(fraction_bits as i32);
        let top = exponent == (1 << exponent_bits) - 1;
        if top && has_infinity {
            return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        if top && fraction == (1 << fraction_bits) - 1 {
            return f64::NAN;
        }
        if exponent == 0 {
            return sign * share * 2f64.powi(1 - bias);
        }
        sign * (1.0 + share) * 2f64.powi(exponent as i32 - bias)
    }

    fn same(a: f64, b: f64) -> bool {
        (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
    }

    fn one(dtype: Dtype, raw: &[u8]) -> f64 {
        let mut out = Vec::new();
        decode(dtype, raw, &mut out);
        assert_eq!(out.len(), 1);
        out[0]
    }

    #[test]
    fn every_small_float_decodes_as_its_parts_say() {
        for bits in 0..=u8::MAX {
            let wide = u64::from(bits);
            assert!(same(one(Dtype::F8E4M3, &[bits]), by_parts(wide, 4, 3, false)), "e4m3fn {bits:#x}");
            assert!(same(one(Dtype::F8E5M2, &[bits]), by_parts(wide, 5, 2, true)), "e5m2 {bits:#x}");
        }
        for bits in 0..=u16::MAX {
            let wide = u64::from(bits);
            assert!(same(one(Dtype::F16, &bits.to_le_bytes()), by_parts(wide, 5, 10, true)), "float16 {bits:#x}");
            assert!(same(one(Dtype::Bf16, &bits.to_le_bytes()), by_parts(wide, 8, 7, true)), "bfloat16 {bits:#x}");
        }
    }

    #[test]
    fn every_small_float_rounds_to_itself_and_halves_go_to_even() {
        for dtype in [Dtype::F8E4M3, Dtype::F8E5M2, Dtype::F16, Dtype::Bf16] {
            let size = dtype.size() as usize;
            let mut values: Vec<f64> =
                (0..1u32 << (8 * size)).map(|bits| one(dtype, &bits.to_le_bytes()[..size])).collect();
            for &value in &values {
                assert!(same(round_to(dtype, value), value), "{dtype:?} {value}");
            }
            values.retain(|v| v.is_finite() && *v >= 0.0);
            values.sort_by(f64::total_cmp);
            values.dedup();
            for (at, pair) in values.windows(2).enumerate() {
                let middle = f64::midpoint(pair[0], pair[1]);
                assert_eq!(round_to(dtype, middle), pair[at % 2], "{dtype:?} {middle}");
                assert_eq!(round_to(dtype, middle.next_down()), pair[0]);
                assert_eq!(round_to(dtype, -middle.next_up()), -pair[1]);
            }
            assert_eq!(quantum(dtype), values[1]);
        }
    }

    #[test]
    fn rounding_past_the_largest_value_overflows_as_torch_does() {
        assert_eq!(round_to(Dtype::F16, 65519.9), 65504.0);
        assert_eq!(round_to(Dtype::F16, 65520.0), f64::INFINITY);
        assert_eq!(round_to(Dtype::F8E4M3, 464.0), 448.0);
        assert!(round_to(Dtype::F8E4M3, 464.1).is_nan());
        assert_eq!(round_to(Dtype::F8E5M2, -61439.0), -57344.0);
        assert_eq!(round_to(Dtype::F8E5M2, -61440.0), f64::NEG_INFINITY);
        assert_eq!(round_to(Dtype::F32, 1e39), f64::INFINITY);
    }

    #[test]
    fn integers_keep_sign_and_width() {
        assert_eq!(integer(Dtype::I8, &[0xff]), Some(-1));
        assert_eq!(integer(Dtype::U8, &[0xff]), Some(255));
        assert_eq!(integer(Dtype::U64, &u64::MAX.to_le_bytes()), Some(i128::from(u64::MAX)));
        assert_eq!(integer(Dtype::I64, &i64::MIN.to_le_bytes()), Some(i128::from(i64::MIN)));
        assert_eq!(integer(Dtype::F32, &[0; 4]), None);
    }

    #[test]
    fn text_is_short_and_exact() {
        assert_eq!(text(Dtype::F32, &0.1f32.to_le_bytes()), "0.1");
        assert_eq!(text(Dtype::F32, &1e-20f32.to_le_bytes()), "1e-20");
        assert_eq!(text(Dtype::F64, &0.1f64.to_le_bytes()), "0.1");
        assert_eq!(text(Dtype::F16, &f16::NEG_INFINITY.to_le_bytes()), "-inf");
        assert_eq!(text(Dtype::Bf16, &bf16::NAN.to_le_bytes()), "NaN");
        assert_eq!(text(Dtype::Bool, &[1]), "true");
        assert_eq!(text(Dtype::Bool, &[255]), "255 (not a bool)");
        assert_eq!(text(Dtype::I64, &(-3i64).to_le_bytes()), "-3");
    }

    proptest! {
        #[test]
        fn wide_dtypes_decode_as_rust_reads_them(values in prop::collection::vec(any::<u64>(), 0..40)) {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let mut got = Vec::new();
            decode(Dtype::F64, &bytes, &mut got);
            prop_assert!(got.iter().zip(&values).all(|(g, &v)| g.to_bits() == v));
            got.clear();
            decode(Dtype::I64, &bytes, &mut got);
            prop_assert!(got.iter().zip(&values).all(|(g, &v)| *g == v as i64 as f64));
            got.clear();
            decode(Dtype::I32, &bytes, &mut got);
            prop_assert_eq!(got.len(), values.len() * 2);
        }
    }
}
