//! Control flow: terminators, loops, branches, calls, and the regions of reductions.

use super::{Check, Finding, expect, expect_all, require, types};
use crate::ir::{Attr, Block, Op, Type};

const TERMINATORS: &[&str] = &[
    "tt.return",
    "cf.br",
    "cf.cond_br",
    "scf.yield",
    "scf.condition",
    "tt.reduce.return",
    "tt.scan.return",
    "tt.map_elementwise.return",
];

pub(super) fn is_terminator(name: &str) -> bool {
    TERMINATORS.contains(&name)
}

pub(super) fn region_count(name: &str) -> usize {
    match name {
        "scf.if" | "scf.while" => 2,
        "scf.for" | "tt.reduce" | "tt.scan" | "tt.map_elementwise" => 1,
        _ => 0,
    }
}

pub(super) fn successor_count(name: &str) -> usize {
    match name {
        "cf.br" => 1,
        "cf.cond_br" => 2,
        _ => 0,
    }
}

/// The last operation of a block in the given region of `parent` (of the function, if there is none).
pub(super) fn check_terminator(parent: Option<(&Op, usize)>, last: &Op) -> Finding {
    let own = match parent {
        None => "tt.return",
        Some((op, index)) => match (op.name.as_str(), index) {
            ("scf.while", 0) => "scf.condition",
            ("scf.for" | "scf.if" | "scf.while", _) => "scf.yield",
            ("tt.reduce", _) => "tt.reduce.return",
            ("tt.scan", _) => "tt.scan.return",
            ("tt.map_elementwise", _) => "tt.map_elementwise.return",
            _ => return require(is_terminator(&last.name), || "expected a terminator".to_owned()),
        },
    };
    let branches = parent.is_none_or(|(op, _)| op.name == "tt.map_elementwise");
    let right = last.name == own || (branches && last.name.starts_with("cf.") && is_terminator(&last.name));
    require(right, || format!("expected the terminator `{own}` here"))
}

pub(crate) fn branch(check: &Check<'_>) -> Finding {
    check.counts(0, 0)
}

pub(crate) fn cond_branch(check: &Check<'_>) -> Finding {
    check.counts(1, 0)?;
    expect("the condition", check.operand(0), &Type::Int(1))
}

/// The operation around it checks what it hands over.
pub(crate) fn region_yield(check: &Check<'_>) -> Finding {
    check.counts(check.op.operands.len(), 0)
}

pub(crate) fn scf_condition(check: &Check<'_>) -> Finding {
    require(!check.op.operands.is_empty(), || "it has no condition".to_owned())?;
    check.counts(check.op.operands.len(), 0)?;
    expect("the condition", check.operand(0), &Type::Int(1))
}

/// Operands: low, high, step, initial values; the block: the induction variable, carried values.
pub(crate) fn scf_for(check: &Check<'_>) -> Finding {
    let operands = check.op.operands.len();
    require(operands >= 3, || "it has no bounds and step".to_owned())?;
    check.counts(operands, operands - 3)?;
    let bound = check.operand(0);
    require(matches!(bound, Type::Int(_) | Type::Index), || format!("its bounds have type {bound}"))?;
    expect_all("its bounds and step", check.operands().take(3), [bound; 3])?;
    let carried: Vec<_> = check.operands().skip(3).collect();
    let body = check.block(0)?;
    let args = std::iter::once(bound).chain(carried.iter().copied());
    expect_all("the arguments of its body", check.arg_types(body), args)?;
    expect_all("what its body yields", check.yielded(body), carried.iter().copied())?;
    expect_all("its results", check.results(), carried)
}

pub(crate) fn scf_if(check: &Check<'_>) -> Finding {
    check.counts(1, check.op.results.len())?;
    expect("the condition", check.operand(0), &Type::Int(1))?;
    let without_else = check.op.regions[1].blocks.is_empty();
    require(!without_else || check.op.results.is_empty(), || "it has results, but no `else`".to_owned())?;
    let regions = if without_else { 1 } else { 2 };
    for index in 0..regions {
        let block = check.block(index)?;
        require(block.args.is_empty(), || "its blocks take no arguments".to_owned())?;
        expect_all("what its blocks yield", check.yielded(block), check.results())?;
    }
    Ok(())
}

/// The first block takes the operands and hands the results over, to the second block or to the outside.
pub(crate) fn scf_while(check: &Check<'_>) -> Finding {
    let (before, after) = (check.block(0)?, check.block(1)?);
    expect_all("the arguments of its condition", check.arg_types(before), check.operands())?;
    let passed = check.yielded(before).into_iter().skip(1);
    expect_all("what its condition hands over", passed, check.results())?;
    expect_all("the arguments of its body", check.arg_types(after), check.results())?;
    expect_all("what its body yields", check.yielded(after), check.operands())
}

pub(crate) fn func_return(check: &Check<'_>) -> Finding {
    check.counts(check.op.operands.len(), 0)?;
    expect_all("what it returns", check.operands(), &check.func.results)
}

pub(crate) fn call(check: &Check<'_>) -> Finding {
    let Some(Attr::Symbol(name)) = check.op.attrs.get("callee") else {
        return Err("attribute `callee` is missing".to_owned());
    };
    let Some(callee) = check.module.func(name).filter(|callee| !callee.body.blocks.is_empty()) else {
        return Err(format!("@{name} is not a function of this module"));
    };
    let known = callee.params.iter().all(|value| (value.0 as usize) < callee.values.len());
    require(known, || format!("@{name} has parameters that are no values"))?;
    let params = callee.params.iter().map(|value| callee.ty(*value));
    expect_all("the arguments", check.operands(), params)?;
    expect_all("the results", check.results(), &callee.results)
}

/// The block combines two groups of elements, one of each operand, into one group.
fn check_combiner(check: &Check<'_>, block: &Block) -> Finding {
    let elements: Vec<_> = check.operands().map(Type::scalar).collect();
    let both = elements.iter().chain(&elements).copied();
    expect_all("the arguments of its block", check.arg_types(block), both)?;
    expect_all("what its block returns", check.yielded(block), elements)
}

/// Operands of a reduction or scan: tensors of one shape that has the axis. Returns shape and axis.
fn along_axis<'a>(check: &Check<'a>) -> Result<(&'a [u64], usize), String> {
    require(!check.op.operands.is_empty(), || "it has no operands".to_owned())?;
    let (shape, _) = types::tensor(check.operand(0))?;
    let same = check.operands().all(|ty| ty.shape() == Some(shape));
    require(same, || "its operands differ in shape".to_owned())?;
    let axis = check.index("axis")?;
    require(axis < shape.len(), || format!("axis {axis} of a tensor with {} dimensions", shape.len()))?;
    Ok((shape, axis))
}

pub(crate) fn reduce(check: &Check<'_>) -> Finding {
    let (shape, axis) = along_axis(check)?;
    check_combiner(check, check.block(0)?)?;
    let mut left = shape.to_vec();
    left.remove(axis);
    let reduced: Vec<_> = check
        .operands()
        .map(|ty| if left.is_empty() { ty.scalar().clone() } else { types::tensor_of(left.clone(), ty.scalar()) })
        .collect();
    expect_all("its results", check.results(), &reduced)
}

pub(crate) fn scan(check: &Check<'_>) -> Finding {
    along_axis(check)?;
    check_combiner(check, check.block(0)?)?;
    expect_all("its results", check.results(), check.operands())
}

/// The region computes `pack` elements of each result from `pack` elements of each operand.
pub(crate) fn map_elementwise(check: &Check<'_>) -> Finding {
    let pack = check.index("pack")?;
    let shape = check.operands().next().map(Type::shape);
    require(pack > 0 && shape.is_some(), || "it has no operands, or packs none of them".to_owned())?;
    let same = check.operands().chain(check.results()).all(|ty| Some(ty.shape()) == shape);
    require(same, || "its operands and results differ in shape".to_owned())?;
    let packed = |ty| std::iter::repeat_n(Type::scalar(ty), pack);
    let Some(entry) = check.op.regions[0].blocks.first() else {
        return Err("its region is empty".to_owned());
    };
    expect_all("the arguments of its region", check.arg_types(entry), check.operands().flat_map(packed))?;
    for block in &check.op.regions[0].blocks {
        if block.ops.last().is_some_and(|op| op.name == "tt.map_elementwise.return") {
            expect_all("what its region returns", check.yielded(block), check.results().flat_map(packed))?;
        }
    }
    Ok(())
}
