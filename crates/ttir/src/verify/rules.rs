//! Rules of arithmetic, casts and memory.

pub(crate) use super::control::*;
pub(crate) use super::shapes::*;

use super::types::{bits, block_of, is_bool, is_float, is_int, is_pointer};
use super::{Check, Finding, expect, expect_all, require, types};
use crate::ir::{Attr, Type};
use crate::spec::SEGMENTS;

pub(crate) fn unchecked(_: &Check<'_>) -> Finding {
    Ok(())
}

pub(crate) fn nothing(check: &Check<'_>) -> Finding {
    check.counts(0, 0)
}

/// `count` operands and a result of one type.
fn same(check: &Check<'_>, count: usize, is_right: fn(&Type) -> bool) -> Finding {
    check.counts(count, 1)?;
    let ty = check.result(0);
    require(is_right(ty), || format!("it does not compute on {ty}"))?;
    check.operands().try_for_each(|operand| expect("its operands", operand, ty))
}

pub(crate) fn int_unary(check: &Check<'_>) -> Finding {
    same(check, 1, is_int)
}

pub(crate) fn int_binary(check: &Check<'_>) -> Finding {
    same(check, 2, is_int)
}

pub(crate) fn float_unary(check: &Check<'_>) -> Finding {
    same(check, 1, is_float)
}

pub(crate) fn float_binary(check: &Check<'_>) -> Finding {
    same(check, 2, is_float)
}

pub(crate) fn float_ternary(check: &Check<'_>) -> Finding {
    same(check, 3, is_float)
}

/// A float and an integer exponent of the same shape.
pub(crate) fn float_int(check: &Check<'_>) -> Finding {
    check.counts(2, 1)?;
    expect("the base", check.operand(0), check.result(0))?;
    let fine = is_float(check.operand(0)) && is_int(check.operand(1)) && same_shape(check);
    require(fine, || "it takes a float and an integer exponent of one shape".to_owned())
}

fn same_shape(check: &Check<'_>) -> bool {
    let mut shapes = check.operands().chain(check.results()).map(Type::shape);
    let first = shapes.next();
    shapes.all(|shape| Some(shape) == first)
}

pub(crate) fn add_extended(check: &Check<'_>) -> Finding {
    check.counts(2, 2)?;
    let ty = check.result(0);
    require(is_int(ty), || format!("it does not compute on {ty}"))?;
    expect_all("its operands", check.operands(), [ty, ty])?;
    expect("the carry", check.result(1), &ty.with_scalar(Type::Int(1)))
}

pub(crate) fn mul_extended(check: &Check<'_>) -> Finding {
    check.counts(2, 2)?;
    let ty = check.result(0);
    require(is_int(ty), || format!("it does not compute on {ty}"))?;
    expect_all("its operands", check.operands(), [ty, ty])?;
    expect("the high half", check.result(1), ty)
}

fn compare(check: &Check<'_>, is_right: fn(&Type) -> bool) -> Finding {
    check.counts(2, 1)?;
    let ty = check.operand(0);
    require(is_right(ty), || format!("it does not compare {ty}"))?;
    expect("the second operand", check.operand(1), ty)?;
    expect("the result", check.result(0), &ty.with_scalar(Type::Int(1)))
}

pub(crate) fn compare_int(check: &Check<'_>) -> Finding {
    compare(check, is_int)
}

pub(crate) fn compare_float(check: &Check<'_>) -> Finding {
    compare(check, is_float)
}

pub(crate) fn select(check: &Check<'_>) -> Finding {
    check.counts(3, 1)?;
    let (condition, ty) = (check.operand(0), check.result(0));
    expect_all("the choices", check.operands().skip(1), [ty, ty])?;
    let fine = *condition == Type::Int(1) || (is_bool(condition) && condition.shape() == ty.shape());
    require(fine, || format!("a condition of type {condition} for choices of type {ty}"))
}

/// One operand, one result, one shape.
fn cast(check: &Check<'_>, is_right: impl Fn(&Type, &Type) -> bool) -> Finding {
    check.counts(1, 1)?;
    let (from, to) = (check.operand(0), check.result(0));
    let fine = from.shape() == to.shape() && is_right(from, to);
    require(fine, || format!("it does not turn {from} into {to}"))
}

fn is_fixed_int(ty: &Type) -> bool {
    matches!(ty.scalar(), Type::Int(_))
}

pub(crate) fn extend_int(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_fixed_int(from) && is_fixed_int(to) && bits(from) < bits(to))
}

pub(crate) fn truncate_int(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_fixed_int(from) && is_fixed_int(to) && bits(from) > bits(to))
}

pub(crate) fn extend_float(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_float(from) && is_float(to) && bits(from) < bits(to))
}

pub(crate) fn truncate_float(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_float(from) && is_float(to) && bits(from) > bits(to))
}

pub(crate) fn float_to_float(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_float(from) && is_float(to))?;
    let narrows = bits(check.operand(0)) > bits(check.result(0));
    require(!narrows || check.op.attrs.contains_key("rounding"), || "it narrows without a rounding mode".to_owned())
}

pub(crate) fn int_to_float(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_fixed_int(from) && is_float(to))
}

pub(crate) fn float_to_int(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_float(from) && is_fixed_int(to))
}

pub(crate) fn index_cast(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_int(from) && is_int(to) && is_fixed_int(from) != is_fixed_int(to))
}

/// Between pointers, or between numbers of one width.
pub(crate) fn bitcast(check: &Check<'_>) -> Finding {
    let is_number = |ty: &Type| is_fixed_int(ty) || is_float(ty);
    cast(check, |from, to| {
        (is_pointer(from) && is_pointer(to)) || (is_number(from) && is_number(to) && bits(from) == bits(to))
    })
}

pub(crate) fn int_to_ptr(check: &Check<'_>) -> Finding {
    cast(check, |from, to| *from.scalar() == Type::Int(64) && is_pointer(to))
}

pub(crate) fn ptr_to_int(check: &Check<'_>) -> Finding {
    cast(check, |from, to| is_pointer(from) && *to.scalar() == Type::Int(64))
}

/// The value has the result's type, and as many elements.
pub(crate) fn constant(check: &Check<'_>) -> Finding {
    check.counts(0, 1)?;
    let ty = check.result(0);
    let fine = match check.op.attrs.get("value") {
        Some(Attr::Dense(elements, dense)) => {
            let count = ty.shape().map(|shape| shape.iter().product::<u64>());
            dense == ty
                && (elements.len() == 1 || count == Some(elements.len() as u64))
                && elements.iter().all(|element| is_number_of(element, ty.scalar()))
        }
        Some(value) => is_number_of(value, ty),
        None => false,
    };
    require(fine, || format!("its value is not of type {ty}"))
}

fn is_number_of(attr: &Attr, ty: &Type) -> bool {
    match (attr, ty) {
        (Attr::Bool(_), Type::Int(width)) => *width == 1,
        (Attr::Int(_, of), Type::Int(_) | Type::Index) | (Attr::Float(_, of), Type::Float(_)) => of == ty,
        _ => false,
    }
}

pub(crate) fn poison(check: &Check<'_>) -> Finding {
    check.counts(0, 1)
}

pub(crate) fn assume(check: &Check<'_>) -> Finding {
    check.counts(1, 0)?;
    expect("the condition", check.operand(0), &Type::Int(1))
}

pub(crate) fn cf_assert(check: &Check<'_>) -> Finding {
    assume(check)
}

pub(crate) fn assert(check: &Check<'_>) -> Finding {
    check.counts(1, 0)?;
    require(is_bool(check.operand(0)), || format!("a condition of type {}", check.operand(0)))
}

pub(crate) fn print(check: &Check<'_>) -> Finding {
    check.counts(check.op.operands.len(), 0)?;
    let signs = check.ints("isSigned").len();
    require(signs == check.op.operands.len(), || format!("`isSigned` has {signs} entries"))
}

pub(crate) fn addptr(check: &Check<'_>) -> Finding {
    check.counts(2, 1)?;
    let (pointer, offset) = (check.operand(0), check.operand(1));
    require(is_pointer(pointer), || format!("expected a pointer, found {pointer}"))?;
    let fine = is_fixed_int(offset) && offset.shape() == pointer.shape();
    require(fine, || format!("an offset of type {offset} for a pointer of type {pointer}"))?;
    expect("the result", check.result(0), pointer)
}

/// A mask for a value of this type.
fn check_mask(mask: &Type, value: &Type) -> Finding {
    expect("the mask", mask, &value.with_scalar(Type::Int(1)))
}

/// The type that is read or written through a pointer, a tensor of pointers, or a pointer to a block.
fn accessed(check: &Check<'_>) -> Result<Type, String> {
    let pointer = check.operand(0);
    if let Some(block) = block_of(pointer) {
        let rank = block.shape().map_or(0, <[u64]>::len) as i64;
        let fine = check.ints("boundaryCheck").iter().all(|dimension| (0..rank).contains(dimension));
        require(fine, || "`boundaryCheck` names a dimension that the block does not have".to_owned())?;
        return Ok(block.clone());
    }
    require(check.ints("boundaryCheck").is_empty(), || "`boundaryCheck` without a block".to_owned())?;
    match pointer.pointee() {
        Some(pointee) if is_pointer(pointer) => Ok(pointee),
        _ => Err(format!("expected a pointer, found {pointer}")),
    }
}

/// Operands: pointer, mask and other, the last two optional.
pub(crate) fn load(check: &Check<'_>) -> Finding {
    let sizes = check.ints(SEGMENTS);
    let [1, mask @ (0 | 1), other @ (0 | 1)] = sizes else {
        return Err(format!("`{SEGMENTS}` is {sizes:?}"));
    };
    check.counts(1 + (mask + other) as usize, 1)?;
    let value = accessed(check)?;
    if *mask == 1 {
        check_mask(check.operand(1), &value)?;
    }
    if *other == 1 {
        require(*mask == 1, || "a value for masked elements, but no mask".to_owned())?;
        expect("the value for masked elements", check.operand(2), &value)?;
    }
    let blocks = block_of(check.operand(0)).is_some();
    require(!blocks || sizes == [1, 0, 0], || "a block has no mask".to_owned())?;
    expect("the result", check.result(0), &value)
}

/// Operands: pointer, value, optional mask.
pub(crate) fn store(check: &Check<'_>) -> Finding {
    let operands = check.op.operands.len();
    check.counts(operands.clamp(2, 3), 0)?;
    let value = accessed(check)?;
    expect("the value", check.operand(1), &value)?;
    if operands == 3 {
        require(block_of(check.operand(0)).is_none(), || "a block has no mask".to_owned())?;
        check_mask(check.operand(2), &value)?;
    }
    Ok(())
}

/// Operands: pointer, value, optional mask.
pub(crate) fn atomic_rmw(check: &Check<'_>) -> Finding {
    let operands = check.op.operands.len();
    check.counts(operands.clamp(2, 3), 1)?;
    let value = accessed(check)?;
    expect("the value", check.operand(1), &value)?;
    if operands == 3 {
        check_mask(check.operand(2), &value)?;
    }
    let operation = check.case("atomic_rmw_op");
    let fine = match operation {
        "fadd" => is_float(&value),
        "exch" => is_float(&value) || is_fixed_int(&value),
        _ => is_fixed_int(&value),
    };
    require(fine, || format!("`{operation}` does not compute on {value}"))?;
    expect("the result", check.result(0), &value)
}

/// Operands: pointer, compared value, new value.
pub(crate) fn atomic_cas(check: &Check<'_>) -> Finding {
    check.counts(3, 1)?;
    let value = accessed(check)?;
    let number = is_float(&value) || is_fixed_int(&value);
    require(number, || format!("it does not compare {value}"))?;
    expect_all("the values", check.operands().skip(1).chain(check.results()), [&value; 3])
}

/// Operands: the pointer to a block, an offset for each dimension.
pub(crate) fn advance(check: &Check<'_>) -> Finding {
    let Some(block) = check.op.operands.first().and_then(|_| block_of(check.operand(0))) else {
        return Err("expected a pointer to a block".to_owned());
    };
    let rank = block.shape().map_or(0, <[u64]>::len);
    check.counts(1 + rank, 1)?;
    expect_all("the offsets", check.operands().skip(1), vec![&Type::Int(32); rank])?;
    expect("the result", check.result(0), check.operand(0))
}

/// Operands: the base, then for each dimension a size, then a stride, then an offset.
pub(crate) fn make_tensor_ptr(check: &Check<'_>) -> Finding {
    check.counts(check.op.operands.len(), 1)?;
    let Some(block) = block_of(check.result(0)) else {
        return Err(format!("expected a pointer to a block, found {}", check.result(0)));
    };
    let (shape, element) = types::tensor(block)?;
    let rank = shape.len();
    check.counts(1 + 3 * rank, 1)?;
    let base = match check.result(0) {
        Type::Ptr(_, space) => Type::Ptr(Box::new(element.clone()), *space),
        other => other.clone(),
    };
    expect("the base", check.operand(0), &base)?;
    let wanted = [vec![&Type::Int(64); 2 * rank], vec![&Type::Int(32); rank]].concat();
    expect_all("sizes, strides and offsets", check.operands().skip(1), wanted)?;
    check_permutation("order", check.ints("order"), rank)
}

/// Operands: the base, then for each dimension a size, then a stride.
pub(crate) fn make_tensor_descriptor(check: &Check<'_>) -> Finding {
    check.counts(check.op.operands.len(), 1)?;
    let (shape, element) = descriptor_block(check.result(0))?;
    let rank = shape.len();
    check.counts(1 + 2 * rank, 1)?;
    let fine = matches!(check.operand(0), Type::Ptr(pointee, _) if **pointee == element);
    require(fine, || format!("a base of type {} for elements of type {element}", check.operand(0)))?;
    let wanted = [vec![&Type::Int(32); rank], vec![&Type::Int(64); rank]].concat();
    expect_all("sizes and strides", check.operands().skip(1), wanted)
}

/// Shape and signless element of a descriptor's block.
fn descriptor_block(ty: &Type) -> Result<(&[u64], Type), String> {
    match ty.descriptor_block() {
        Some((shape, element, _)) => Ok((shape, element)),
        None => Err(format!("expected a tensor descriptor, found {ty}")),
    }
}

/// A tensor with the elements of the descriptor's block; dimensions of size 1 may be left out.
fn check_block_value(check: &Check<'_>, value: &Type) -> Result<usize, String> {
    require(!check.op.operands.is_empty(), || "it has no descriptor".to_owned())?;
    let (block, element) = descriptor_block(check.operand(0))?;
    let (shape, found) = types::tensor(value)?;
    let real = |shape: &[u64]| shape.iter().copied().filter(|size| *size != 1).collect::<Vec<_>>();
    let fine = *found == element && real(shape) == real(block);
    require(fine, || format!("{value} is not a block of {}", check.operand(0)))?;
    Ok(block.len())
}

/// Operands: the descriptor, an offset for each dimension.
pub(crate) fn descriptor_load(check: &Check<'_>) -> Finding {
    check.counts(check.op.operands.len(), 1)?;
    let rank = check_block_value(check, check.result(0))?;
    check.counts(1 + rank, 1)?;
    expect_all("the offsets", check.operands().skip(1), vec![&Type::Int(32); rank])
}

/// Operands: the descriptor, the value, an offset for each dimension.
pub(crate) fn descriptor_store(check: &Check<'_>) -> Finding {
    require(check.op.operands.len() >= 2, || "it has no value".to_owned())?;
    let rank = check_block_value(check, check.operand(1))?;
    check.counts(2 + rank, 0)?;
    expect_all("the offsets", check.operands().skip(2), vec![&Type::Int(32); rank])
}

/// Rows of a two-dimensional tensor, at the given row numbers, from one column on.
fn check_rows(check: &Check<'_>, value: &Type) -> Finding {
    let (block, element) = descriptor_block(check.operand(0))?;
    let (rows, row_type) = types::tensor(check.operand(1))?;
    let fine = matches!((block, rows), ([1, _], [_])) && *row_type == Type::Int(32);
    require(fine, || format!("row numbers of type {} for {}", check.operand(1), check.operand(0)))?;
    expect("the column", check.operand(2), &Type::Int(32))?;
    expect("the value", value, &types::tensor_of(vec![rows[0], block[1]], &element))
}

pub(crate) fn descriptor_gather(check: &Check<'_>) -> Finding {
    check.counts(3, 1)?;
    check_rows(check, check.result(0))
}

pub(crate) fn descriptor_scatter(check: &Check<'_>) -> Finding {
    check.counts(4, 0)?;
    check_rows(check, check.operand(3))
}

pub(super) fn check_permutation(name: &str, order: &[i64], rank: usize) -> Finding {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    let fine = sorted.iter().copied().eq(0..rank as i64);
    require(fine, || format!("`{name}` is {order:?}, which is no order of {rank} dimensions"))
}

/// Operands and result of one shape.
pub(crate) fn extern_elementwise(check: &Check<'_>) -> Finding {
    check.counts(check.op.operands.len(), 1)?;
    require(same_shape(check), || "its operands and result differ in shape".to_owned())
}

pub(crate) fn inline_asm(check: &Check<'_>) -> Finding {
    let packed = check.index("packed_element")?;
    require(packed > 0 && !check.op.results.is_empty(), || "it has no results, or packs none of them".to_owned())?;
    require(same_shape(check), || "its operands and results differ in shape".to_owned())
}
