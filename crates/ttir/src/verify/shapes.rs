//! Rules of what rearranges, makes and multiplies tensors.

use super::rules::check_permutation;
use super::types::{bits, is_bool, is_float, is_fp8, is_int, tensor, tensor_of};
use super::{Check, Finding, expect, expect_all, require};
use crate::ir::{Attr, FloatKind, Type};
use crate::spec::SEGMENTS;

pub(crate) fn splat(check: &Check<'_>) -> Finding {
    check.counts(1, 1)?;
    let (_, element) = tensor(check.result(0))?;
    expect("the value", check.operand(0), element)
}

pub(crate) fn unsplat(check: &Check<'_>) -> Finding {
    check.counts(1, 1)?;
    let (shape, element) = tensor(check.operand(0))?;
    require(shape.iter().all(|size| *size == 1), || format!("{} has several elements", check.operand(0)))?;
    expect("the result", check.result(0), element)
}

pub(crate) fn expand_dims(check: &Check<'_>) -> Finding {
    check.counts(1, 1)?;
    let (shape, element) = tensor(check.operand(0))?;
    let axis = check.index("axis")?;
    require(axis <= shape.len(), || format!("axis {axis} for a tensor with {} dimensions", shape.len()))?;
    let mut wider = shape.to_vec();
    wider.insert(axis, 1);
    expect("the result", check.result(0), &tensor_of(wider, element))
}

pub(crate) fn reshape(check: &Check<'_>) -> Finding {
    check.counts(1, 1)?;
    let (from, to) = (tensor(check.operand(0))?, tensor(check.result(0))?);
    let count = |shape: &[u64]| shape.iter().product::<u64>();
    let fine = from.1 == to.1 && count(from.0) == count(to.0);
    require(fine, || format!("{} has not the elements of {}", check.result(0), check.operand(0)))
}

pub(crate) fn broadcast(check: &Check<'_>) -> Finding {
    check.counts(1, 1)?;
    let (from, to) = (tensor(check.operand(0))?, tensor(check.result(0))?);
    let sizes = from.0.iter().zip(to.0);
    let fine = from.1 == to.1 && from.0.len() == to.0.len() && sizes.into_iter().all(|(a, b)| a == b || *a == 1);
    require(fine, || format!("{} does not broadcast to {}", check.operand(0), check.result(0)))
}

pub(crate) fn cat(check: &Check<'_>) -> Finding {
    check.counts(2, 1)?;
    let (shape, element) = tensor(check.operand(0))?;
    expect("the second operand", check.operand(1), check.operand(0))?;
    let [size] = shape else {
        return Err(format!("it concatenates vectors, not {}", check.operand(0)));
    };
    expect("the result", check.result(0), &tensor_of(vec![2 * size], element))
}

pub(crate) fn join(check: &Check<'_>) -> Finding {
    check.counts(2, 1)?;
    let (shape, element) = tensor(check.operand(0))?;
    expect("the second operand", check.operand(1), check.operand(0))?;
    let joined = shape.iter().copied().chain([2]).collect();
    expect("the result", check.result(0), &tensor_of(joined, element))
}

pub(crate) fn split(check: &Check<'_>) -> Finding {
    check.counts(1, 2)?;
    let (shape, element) = tensor(check.operand(0))?;
    let [outer @ .., 2] = shape else {
        return Err(format!("the last dimension of {} is not 2", check.operand(0)));
    };
    let half = tensor_of(outer.to_vec(), element);
    expect_all("the results", check.results(), [&half, &half])
}

pub(crate) fn trans(check: &Check<'_>) -> Finding {
    check.counts(1, 1)?;
    let (shape, element) = tensor(check.operand(0))?;
    let order = check.ints("order");
    check_permutation("order", order, shape.len())?;
    let moved = order.iter().map(|from| shape[*from as usize]).collect();
    expect("the result", check.result(0), &tensor_of(moved, element))
}

pub(crate) fn program_id(check: &Check<'_>) -> Finding {
    check.counts(0, 1)?;
    expect("the result", check.result(0), &Type::Int(32))
}

pub(crate) fn make_range(check: &Check<'_>) -> Finding {
    check.counts(0, 1)?;
    let bound = |name| match check.op.attrs.get(name) {
        Some(Attr::Int(value, _)) => *value,
        _ => 0,
    };
    let size = u64::try_from(bound("end") - bound("start")).unwrap_or(0);
    expect("the result", check.result(0), &tensor_of(vec![size], &Type::Int(32)))
}

/// Operands: the values, an optional mask.
pub(crate) fn histogram(check: &Check<'_>) -> Finding {
    let operands = check.op.operands.len();
    check.counts(operands.clamp(1, 2), 1)?;
    let (values, bins) = (check.operand(0), check.result(0));
    let vector = |ty: &Type| is_int(ty) && ty.shape().is_some_and(|shape| shape.len() == 1);
    require(vector(values) && vector(bins), || format!("it does not count {values} into {bins}"))?;
    let fine = operands == 1 || (is_bool(check.operand(1)) && check.operand(1).shape() == values.shape());
    require(fine, || "its mask has not the shape of its values".to_owned())
}

pub(crate) fn gather(check: &Check<'_>) -> Finding {
    check.counts(2, 1)?;
    let (source, element) = tensor(check.operand(0))?;
    let (indices, index) = tensor(check.operand(1))?;
    let axis = check.index("axis")?;
    let rank = source.len();
    let fine = is_int(index) && indices.len() == rank && axis < rank;
    require(fine, || format!("indices of type {} along axis {axis} of {}", check.operand(1), check.operand(0)))?;
    let within = (0..rank).all(|at| at == axis || indices[at] <= source[at]);
    require(within, || format!("{} reaches beyond {}", check.operand(1), check.operand(0)))?;
    expect("the result", check.result(0), &tensor_of(indices.to_vec(), element))
}

/// Batch (0 or 1 dimensions), rows and columns of a matrix.
fn matrix(ty: &Type) -> Result<(&[u64], u64, u64, &Type), String> {
    match tensor(ty)? {
        ([batch @ .., rows, columns], element) if batch.len() <= 1 => Ok((batch, *rows, *columns, element)),
        _ => Err(format!("expected a matrix or a batch of them, found {ty}")),
    }
}

/// `(m, k) x (k, n) + (m, n)`
pub(crate) fn dot(check: &Check<'_>) -> Finding {
    check.counts(3, 1)?;
    let (batch_a, m, k, a) = matrix(check.operand(0))?;
    let (batch_b, k_b, n, b) = matrix(check.operand(1))?;
    let (batch_c, m_c, n_c, c) = matrix(check.operand(2))?;
    let shapes = (batch_a, k, m, n) == (batch_b, k_b, m_c, n_c) && batch_a == batch_c;
    require(shapes, || {
        format!("{} x {} + {} have no matching shapes", check.operand(0), check.operand(1), check.operand(2))
    })?;
    let fp8 = |ty: &Type| matches!(ty, Type::Float(kind) if is_fp8(*kind));
    let elements = if is_float(c) { is_float(a) && (a == b || (fp8(a) && fp8(b))) } else { is_int(a) && a == b };
    require(elements, || format!("it does not multiply {a} and {b} into {c}"))?;
    expect("the result", check.result(0), check.operand(2))
}

/// Operands: a, b, c, then the scales of a and of b, both optional.
pub(crate) fn dot_scaled(check: &Check<'_>) -> Finding {
    let sizes = check.ints(SEGMENTS);
    let [1, 1, 1, scale_a @ (0 | 1), scale_b @ (0 | 1)] = sizes else {
        return Err(format!("`{SEGMENTS}` is {sizes:?}"));
    };
    check.counts(3 + (scale_a + scale_b) as usize, 1)?;
    let (batch_a, rows, k_a, a) = matrix(check.operand(0))?;
    let (batch_b, k_b, columns, b) = matrix(check.operand(1))?;
    let (batch_c, m, n, c) = matrix(check.operand(2))?;
    check_scaled_element(a, check.case("a_elem_type"))?;
    check_scaled_element(b, check.case("b_elem_type"))?;
    let (rows, k_a) = unpack(check, "a_elem_type", "lhs_k_pack", rows, k_a);
    let (columns, k_b) = unpack(check, "b_elem_type", "rhs_k_pack", columns, k_b);
    let shapes = (batch_a, batch_b) == (batch_c, batch_c) && (rows, columns, k_a) == (m, n, k_b);
    require(shapes && is_float(c), || {
        format!("{} x {} + {} do not match", check.operand(0), check.operand(1), check.operand(2))
    })?;
    let mut next = 3;
    for (present, side) in [(scale_a, m), (scale_b, n)] {
        if *present == 1 {
            check_scale(check.operand(next), batch_c, side, k_a)?;
            next += 1;
        }
    }
    expect("the result", check.result(0), check.operand(2))
}

/// Two fp4 values share a byte, along k or along the other dimension.
fn unpack(check: &Check<'_>, elements: &str, packing: &str, side: u64, k: u64) -> (u64, u64) {
    if check.case(elements) != "e2m1" {
        return (side, k);
    }
    match check.op.attrs.get(packing) {
        Some(Attr::Bool(false)) => (side.saturating_mul(2), k),
        _ => (side, k.saturating_mul(2)),
    }
}

fn check_scaled_element(element: &Type, kind: &str) -> Finding {
    let wanted = match kind {
        "e4m3" => Type::Float(FloatKind::E4M3),
        "e5m2" => Type::Float(FloatKind::E5M2),
        "bf16" => Type::Float(FloatKind::Bf16),
        "fp16" => Type::Float(FloatKind::F16),
        _ => Type::Int(8),
    };
    expect("the elements", element, &wanted)
}

/// One scale for each group of values along k.
fn check_scale(scale: &Type, batch: &[u64], side: u64, k: u64) -> Finding {
    let (scale_batch, rows, groups, element) = matrix(scale)?;
    let fine = scale_batch == batch && rows == side && k.is_multiple_of(groups) && bits(element) == 8;
    require(fine, || format!("scales of type {scale} for {side} x {k} values"))
}
