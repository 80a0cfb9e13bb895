//! Conversion of elements between dtypes as torch's `Tensor.to` does it.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use tilewright_contract::{Dtype, Number};

/// An element on its way between dtypes: integers stay exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Element {
    Int(i64),
    /// Bits above `i64::MAX` of a uint64.
    Unsigned(u64),
    Float(f64),
}

impl From<Number> for Element {
    fn from(number: Number) -> Self {
        match number {
            Number::Bool(b) => Self::Int(i64::from(b)),
            Number::Int(i) => Self::Int(i),
            Number::Unsigned(u) => Self::Unsigned(u),
            Number::Float(f) => Self::Float(f),
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(i) => write!(f, "{i}"),
            Self::Unsigned(u) => write!(f, "{u}"),
            Self::Float(x) => write!(f, "{x}"),
        }
    }
}

impl Element {
    /// Whether both are the same number.
    pub(crate) fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Float(f), whole) | (whole, Self::Float(f)) => f.fract() == 0.0 && f == whole.as_f64(),
            (Self::Unsigned(a), Self::Unsigned(b)) => a == b,
            (Self::Unsigned(u), Self::Int(i)) | (Self::Int(i), Self::Unsigned(u)) => u64::try_from(i) == Ok(u),
            (Self::Int(a), Self::Int(b)) => a == b,
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Int(i) => i as f64,
            Self::Unsigned(u) => u as f64,
            Self::Float(f) => f,
        }
    }

    /// C's conversion to an integer: truncation, then the low bits; saturating outside 64 bits.
    fn as_bits(self) -> u64 {
        match self {
            Self::Int(i) => i as u64,
            Self::Unsigned(u) => u,
            Self::Float(f) if f < 0.0 => f as i64 as u64,
            Self::Float(f) => f as u64,
        }
    }
}

/// Reads one element; `bytes` has the dtype's size.
pub(crate) fn read(dtype: Dtype, bytes: &[u8]) -> Element {
    let mut word = [0u8; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    match dtype {
        Dtype::Bool => Element::Int(i64::from(bits != 0)),
        Dtype::U8 | Dtype::U16 | Dtype::U32 => Element::Int(bits as i64),
        Dtype::U64 => Element::Unsigned(bits),
        Dtype::I8 => Element::Int(i64::from(bits as i8)),
        Dtype::I16 => Element::Int(i64::from(bits as i16)),
        Dtype::I32 => Element::Int(i64::from(bits as i32)),
        Dtype::I64 => Element::Int(bits as i64),
        Dtype::F8E4M3 => Element::Float(F8E4M3::from_bits(bits as u8).to_f64()),
        Dtype::F8E5M2 => Element::Float(F8E5M2::from_bits(bits as u8).to_f64()),
        Dtype::F16 => Element::Float(f16::from_bits(bits as u16).to_f64()),
        Dtype::Bf16 => Element::Float(bf16::from_bits(bits as u16).to_f64()),
        Dtype::F32 => Element::Float(f64::from(f32::from_bits(bits as u32))),
        Dtype::F64 => Element::Float(f64::from_bits(bits)),
    }
}

/// Writes one element into `bytes` of the dtype's size. Floats narrower than 32 bits round through float32, as torch does.
pub(crate) fn write(dtype: Dtype, element: Element, bytes: &mut [u8]) {
    let bits = match dtype {
        Dtype::Bool => u64::from(element.as_f64() != 0.0),
        Dtype::F8E4M3 => u64::from(F8E4M3::from_f32(element.as_f64() as f32).to_bits()),
        Dtype::F8E5M2 => u64::from(F8E5M2::from_f32(element.as_f64() as f32).to_bits()),
        Dtype::F16 => u64::from(f16::from_f32(element.as_f64() as f32).to_bits()),
        Dtype::Bf16 => u64::from(bf16::from_f32(element.as_f64() as f32).to_bits()),
        Dtype::F32 => u64::from(as_f32(element).to_bits()),
        Dtype::F64 => element.as_f64().to_bits(),
        _ => element.as_bits(),
    };
    bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
}

/// One rounding from an integer, not two.
fn as_f32(element: Element) -> f32 {
    match element {
        Element::Int(i) => i as f32,
        Element::Unsigned(u) => u as f32,
        Element::Float(f) => f as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn convert(from: Dtype, to: Dtype, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; to.size() as usize];
        write(to, read(from, bytes), &mut out);
        out
    }

    #[test]
    fn every_half_survives_the_way_through_float64() {
        for bits in 0..=u16::MAX {
            for dtype in [Dtype::F16, Dtype::Bf16] {
                let bytes = bits.to_le_bytes();
                let wide = convert(dtype, Dtype::F64, &bytes);
                if !f64::from_le_bytes(wide.clone().try_into().unwrap()).is_nan() {
                    assert_eq!(convert(Dtype::F64, dtype, &wide), bytes);
                }
            }
        }
    }

    #[test]
    fn floats_truncate_towards_zero_and_booleans_are_nonzero() {
        assert_eq!(convert(Dtype::F32, Dtype::I32, &(-1.9f32).to_le_bytes()), (-1i32).to_le_bytes());
        assert_eq!(convert(Dtype::F32, Dtype::Bool, &0.25f32.to_le_bytes()), [1]);
        assert_eq!(convert(Dtype::I64, Dtype::I8, &300i64.to_le_bytes()), [44]);
    }

    proptest! {
        #[test]
        fn integers_convert_as_rust_casts(v: i64) {
            let bytes = v.to_le_bytes();
            prop_assert_eq!(convert(Dtype::I64, Dtype::I32, &bytes), (v as i32).to_le_bytes());
            prop_assert_eq!(convert(Dtype::I64, Dtype::U16, &bytes), (v as u16).to_le_bytes());
            prop_assert_eq!(convert(Dtype::I64, Dtype::F32, &bytes), (v as f32).to_le_bytes());
        }
    }
}
