//! Which types values have, and predicates on them.

use crate::ir::{FloatKind, Type};
use crate::parse::width;

use super::{Finding, require};

/// Triton's own limit on the elements of a tensor.
const MAX_ELEMENTS: u64 = 1 << 20;

/// A type that a value of a Triton kernel can have.
pub(super) fn check(ty: &Type) -> Finding {
    match ty {
        Type::Tensor(shape, element) => {
            let elements = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
            let fine = elements.is_some_and(|count| count.is_power_of_two() && count <= MAX_ELEMENTS);
            require(fine, || format!("the elements of {ty} are no power of two up to {MAX_ELEMENTS}"))?;
            check_element(element)
        }
        Type::TensorDesc(_) => match ty.descriptor_block() {
            Some((shape, element, _)) => check(&tensor_of(shape.to_vec(), &element)),
            None => Err(format!("{ty} does not describe a tensor")),
        },
        Type::Ptr(block, _) if matches!(**block, Type::Tensor(..)) => check(block),
        Type::Index => Ok(()),
        scalar => check_element(scalar),
    }
}

/// A number, or a pointer to a number or pointer. Pointers to blocks are in no tensor and in no memory.
fn check_element(ty: &Type) -> Finding {
    let mut last = ty;
    while let Type::Ptr(pointee, _) = last {
        last = pointee;
    }
    match last {
        Type::Int(1 | 8 | 16 | 32 | 64) | Type::Float(_) => Ok(()),
        _ => Err(format!("{ty} is not a type of Triton's values")),
    }
}

pub(super) fn is_int(ty: &Type) -> bool {
    matches!(ty.scalar(), Type::Int(_) | Type::Index)
}

pub(super) fn is_float(ty: &Type) -> bool {
    matches!(ty.scalar(), Type::Float(_))
}

/// A pointer to a scalar, or a tensor of such pointers.
pub(super) fn is_pointer(ty: &Type) -> bool {
    matches!(ty.scalar(), Type::Ptr(pointee, _) if !matches!(**pointee, Type::Tensor(..)))
}

/// What a pointer to a block of a tensor points to.
pub(super) fn block_of(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Ptr(pointee, _) if matches!(**pointee, Type::Tensor(..)) => Some(pointee),
        _ => None,
    }
}

pub(super) fn is_bool(ty: &Type) -> bool {
    *ty.scalar() == Type::Int(1)
}

pub(super) fn bits(ty: &Type) -> u32 {
    match ty.scalar() {
        Type::Int(width) => *width,
        Type::Float(kind) => width(*kind),
        _ => 64,
    }
}

pub(super) fn is_fp8(kind: FloatKind) -> bool {
    width(kind) == 8
}

/// Shape and element of a tensor.
pub(super) fn tensor(ty: &Type) -> Result<(&[u64], &Type), String> {
    match ty {
        Type::Tensor(shape, element) => Ok((shape, element)),
        _ => Err(format!("expected a tensor, found {ty}")),
    }
}

pub(super) fn tensor_of(shape: Vec<u64>, element: &Type) -> Type {
    Type::Tensor(shape, Box::new(element.clone()))
}
