//! Element types and storage classes of values.

use tilewright_ttir::{FloatKind, Type};

/// The element type of a value as the kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elem {
    I1,
    I8,
    I16,
    I32,
    I64,
    /// A virtual address.
    Ptr,
    Float(FloatKind),
    /// A tensor descriptor or a pointer to a block.
    View,
}

/// How a value's elements are held. Floats narrower than `f32` are held as `f32`: every one of their values is
/// an `f32` value, arithmetic is done in `f32` anyway, and each operation ends with one rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    View,
}

impl Elem {
    pub(crate) fn class(self) -> Class {
        match self {
            Self::I1 | Self::I8 => Class::I8,
            Self::I16 => Class::I16,
            Self::I32 => Class::I32,
            Self::I64 | Self::Ptr => Class::I64,
            Self::Float(FloatKind::F64) => Class::F64,
            Self::Float(_) => Class::F32,
            Self::View => Class::View,
        }
    }

    /// Bytes of one element in memory.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::I1 | Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 => 4,
            Self::I64 | Self::Ptr => 8,
            Self::View => 0,
            Self::Float(kind) => match kind {
                FloatKind::F16 | FloatKind::Bf16 => 2,
                FloatKind::F32 | FloatKind::Tf32 => 4,
                FloatKind::F64 => 8,
                _ => 1,
            },
        }
    }

    pub(crate) fn is_int(self) -> bool {
        matches!(self, Self::I1 | Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }
}

/// The type of a value: its element type, its shape (empty for a scalar) and what its pointers point to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueType {
    pub(crate) elem: Elem,
    pub(crate) shape: Vec<usize>,
    pub(crate) pointee: Option<Elem>,
    /// The block that a descriptor or block pointer moves.
    pub(crate) block: Vec<usize>,
}

/// Triton's own limit on the elements of a tensor is 2^20.
const MAX_ELEMENTS: usize = 1 << 21;

impl ValueType {
    pub(crate) fn of(ty: &Type) -> Option<Self> {
        let scalar = |elem, pointee| Self { elem, shape: Vec::new(), pointee, block: Vec::new() };
        match ty {
            Type::Tensor(dims, elem) => {
                let mut shape = Vec::with_capacity(dims.len());
                let mut count = 1usize;
                for &dim in dims {
                    let dim = usize::try_from(dim).ok()?;
                    count = count.checked_mul(dim).filter(|&count| count > 0 && count <= MAX_ELEMENTS)?;
                    shape.push(dim);
                }
                let inner = Self::of(elem)?;
                (inner.shape.is_empty() && inner.elem != Elem::View).then_some(Self { shape, ..inner })
            }
            Type::TensorDesc(inner) => Self::view(inner),
            Type::Ptr(inner, _) if matches!(**inner, Type::Tensor(..)) => Self::view(inner),
            Type::Ptr(inner, _) => {
                // A pointer to a pointer loads an address.
                let pointee = Self::of(inner)?.elem;
                Some(scalar(Elem::Ptr, Some(pointee)))
            }
            Type::Index | Type::Int(64) => Some(scalar(Elem::I64, None)),
            Type::Int(1) => Some(scalar(Elem::I1, None)),
            Type::Int(8) => Some(scalar(Elem::I8, None)),
            Type::Int(16) => Some(scalar(Elem::I16, None)),
            Type::Int(32) => Some(scalar(Elem::I32, None)),
            Type::Float(kind) => Some(scalar(Elem::Float(*kind), None)),
            _ => None,
        }
    }

    fn view(block: &Type) -> Option<Self> {
        let inner = Self::of(block)?;
        Some(Self { elem: Elem::View, shape: Vec::new(), pointee: Some(inner.elem), block: inner.shape })
    }

    pub(crate) fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    pub(crate) fn class(&self) -> Class {
        self.elem.class()
    }
}
