//! Elements to bytes and back, little-endian as on every target.

use std::sync::LazyLock;

use tilewright_ttir::FloatKind;

use crate::convert::{self, Format};

/// How an element of memory becomes an element of a block and back.
pub(crate) trait Codec: Copy {
    type Item: crate::exec::Update;
    const SIZE: usize;
    fn decode(self, bytes: &[u8]) -> Self::Item;
    fn encode(self, item: Self::Item, bytes: &mut [u8]);
    /// Makes an element one that memory can hold.
    fn round(self, item: Self::Item) -> Self::Item {
        item
    }
}

macro_rules! plain_codec {
    ($name:ident, $item:ty, $size:literal) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl Codec for $name {
            type Item = $item;
            const SIZE: usize = $size;
            #[inline(always)]
            fn decode(self, bytes: &[u8]) -> $item {
                let mut raw = [0; $size];
                raw.copy_from_slice(&bytes[..$size]);
                <$item>::from_le_bytes(raw)
            }
            #[inline(always)]
            fn encode(self, item: $item, bytes: &mut [u8]) {
                bytes[..$size].copy_from_slice(&item.to_le_bytes());
            }
        }
    };
}
plain_codec!(I8, i8, 1);
plain_codec!(I16, i16, 2);
plain_codec!(I32, i32, 4);
plain_codec!(I64, i64, 8);
plain_codec!(F32, f32, 4);
plain_codec!(F64, f64, 8);

/// Booleans, as Triton keeps them in memory: one byte, of which the lowest bit counts.
#[derive(Clone, Copy)]
pub(crate) struct I1;
impl Codec for I1 {
    type Item = i8;
    const SIZE: usize = 1;
    #[inline(always)]
    fn decode(self, bytes: &[u8]) -> i8 {
        (bytes[0] & 1) as i8
    }
    #[inline(always)]
    fn encode(self, item: i8, bytes: &mut [u8]) {
        bytes[0] = item as u8 & 1;
    }
}

#[derive(Clone, Copy)]
pub(crate) struct F16;
impl Codec for F16 {
    type Item = f32;
    const SIZE: usize = 2;
    #[inline(always)]
    fn decode(self, bytes: &[u8]) -> f32 {
        convert::f16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]]))
    }
    #[inline(always)]
    fn encode(self, item: f32, bytes: &mut [u8]) {
        bytes[..2].copy_from_slice(&(convert::F16.encode(item) as u16).to_le_bytes());
    }
    fn round(self, item: f32) -> f32 {
        convert::F16.round(item)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Bf16;
impl Codec for Bf16 {
    type Item = f32;
    const SIZE: usize = 2;
    #[inline(always)]
    fn decode(self, bytes: &[u8]) -> f32 {
        convert::bf16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]]))
    }
    #[inline(always)]
    fn encode(self, item: f32, bytes: &mut [u8]) {
        bytes[..2].copy_from_slice(&((item.to_bits() >> 16) as u16).to_le_bytes());
    }
    fn round(self, item: f32) -> f32 {
        convert::round_bf16(item)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct F8 {
    format: Format,
    table: &'static [f32; 256],
}
impl Codec for F8 {
    type Item = f32;
    const SIZE: usize = 1;
    #[inline(always)]
    fn decode(self, bytes: &[u8]) -> f32 {
        self.table[usize::from(bytes[0])]
    }
    #[inline(always)]
    fn encode(self, item: f32, bytes: &mut [u8]) {
        bytes[0] = self.format.encode(item) as u8;
    }
    fn round(self, item: f32) -> f32 {
        self.format.round(item)
    }
}

/// The codec of an fp8 kind.
pub(crate) fn f8(kind: FloatKind) -> F8 {
    type Tables = [[f32; 256]; 5];
    static TABLES: LazyLock<Tables> = LazyLock::new(|| {
        [convert::E4M3, convert::E5M2, convert::E4M3UZ, convert::E5M2UZ, convert::E4M3B11UZ]
            .map(|format| std::array::from_fn(|code| format.decode(code as u32)))
    });
    let (index, format) = match kind {
        FloatKind::E5M2 => (1, convert::E5M2),
        FloatKind::E4M3Uz => (2, convert::E4M3UZ),
        FloatKind::E5M2Uz => (3, convert::E5M2UZ),
        FloatKind::E4M3B11Uz => (4, convert::E4M3B11UZ),
        _ => (0, convert::E4M3),
    };
    F8 { format, table: &TABLES[index] }
}

/// Runs an expression with `$codec` bound to the codec of an element type and `$v` to the vector of a block of
/// its class; a block of another class gives `$other`.
macro_rules! with_codec {
    ($elem:expr, $block:expr, $codec:ident, $v:ident => $body:expr, $other:expr) => {{
        use tilewright_ttir::FloatKind as Kind;
        use $crate::block::Block;
        use $crate::types::Elem;
        match ($elem, $block) {
            (Elem::I1, Block::I8($v)) => {
                let $codec = $crate::codec::I1;
                $body
            }
            (Elem::I8, Block::I8($v)) => {
                let $codec = $crate::codec::I8;
                $body
            }
            (Elem::I16, Block::I16($v)) => {
                let $codec = $crate::codec::I16;
                $body
            }
            (Elem::I32, Block::I32($v)) => {
                let $codec = $crate::codec::I32;
                $body
            }
            (Elem::I64 | Elem::Ptr, Block::I64($v)) => {
                let $codec = $crate::codec::I64;
                $body
            }
            (Elem::Float(Kind::F64), Block::F64($v)) => {
                let $codec = $crate::codec::F64;
                $body
            }
            (Elem::Float(Kind::F32 | Kind::Tf32), Block::F32($v)) => {
                let $codec = $crate::codec::F32;
                $body
            }
            (Elem::Float(Kind::F16), Block::F32($v)) => {
                let $codec = $crate::codec::F16;
                $body
            }
            (Elem::Float(Kind::Bf16), Block::F32($v)) => {
                let $codec = $crate::codec::Bf16;
                $body
            }
            (Elem::Float(kind), Block::F32($v)) => {
                let $codec = $crate::codec::f8(kind);
                $body
            }
            _ => $other,
        }
    }};
}
pub(crate) use with_codec;
