//! Says whether a module makes sense, so that a consumer can rely on its types: counts, types, shapes, attributes,
//! definitions before uses, terminators. An operation that the table does not know is checked for structure only.

mod control;
mod dominance;
pub(crate) mod rules;
mod shapes;
mod types;

use std::collections::HashSet;

use crate::ir::{Attr, Attrs, Block, Func, LocId, Module, Op, Region, Type, ValueId};
use crate::spec::{AttrKind, AttrSpec, Presence, spec};

/// No kernel has a region of more blocks; the time to find dominators can grow with the square of their number.
const MAX_BLOCKS: usize = 4096;

/// Why a module makes no sense, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}in @{function}: {}{message}", position_prefix(.position), op_prefix(.op))]
pub struct VerifyError {
    pub function: String,
    /// The operation's name, unless the function itself is at fault.
    pub op: Option<String>,
    /// File, line and column of the source, where the text has locations.
    pub position: Option<(String, u32, u32)>,
    pub message: String,
}

fn position_prefix(position: &Option<(String, u32, u32)>) -> String {
    position.as_ref().map(|(file, line, column)| format!("{file}:{line}:{column}: ")).unwrap_or_default()
}

fn op_prefix(op: &Option<String>) -> String {
    op.as_ref().map(|op| format!("`{op}`: ")).unwrap_or_default()
}

/// What a rule finds wrong.
pub(crate) type Finding = Result<(), String>;

/// Checks one operation's operands, results and attributes.
pub(crate) type Rule = fn(&Check<'_>) -> Finding;

/// An operation in its surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Check<'a> {
    module: &'a Module,
    func: &'a Func,
    op: &'a Op,
}

/// Checks the whole module.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify(module: &Module) -> Result<(), VerifyError> {
    let mut names = HashSet::new();
    for func in &module.funcs {
        let error = |(op, message): (Option<&Op>, String)| VerifyError {
            function: func.name.clone(),
            op: op.map(|op| op.name.clone()),
            position: position(module, op.and_then(|op| op.loc).or(func.loc)),
            message,
        };
        if !names.insert(&func.name) {
            return Err(error((None, "another function has the same name".to_owned())));
        }
        check_func(module, func).map_err(error)?;
    }
    check_calls(module)
}

fn position(module: &Module, loc: Option<LocId>) -> Option<(String, u32, u32)> {
    module.position(loc?).map(|(file, line, column)| (file.to_owned(), line, column))
}

type Located<'a> = Result<(), (Option<&'a Op>, String)>;

fn check_func<'a>(module: &'a Module, func: &'a Func) -> Located<'a> {
    let whole = |finding: Finding| finding.map_err(|message| (None, message));
    whole(check_signature(func))?;
    whole(func.values.iter().try_for_each(|value| types::check(&value.ty)))?;
    if func.body.blocks.is_empty() {
        return Ok(());
    }
    check_ids(func)?;
    if func.body.blocks[0].args != func.params {
        return Err((None, "the entry block's arguments are not the parameters".to_owned()));
    }
    check_region(module, func, None, &func.body)?;
    dominance::check(func)
}

fn check_signature(func: &Func) -> Finding {
    func.results.iter().try_for_each(types::check)?;
    if func.param_attrs.len() != func.params.len() {
        return Err("the parameters and their attributes differ in number".to_owned());
    }
    if func.params.iter().any(|value| value.0 as usize >= func.values.len()) {
        return Err("a parameter that is no value".to_owned());
    }
    Ok(())
}

/// Every identifier names a value, every value is defined once.
fn check_ids(func: &Func) -> Located<'_> {
    let mut defined = vec![false; func.values.len()];
    let mut define = |value: &ValueId| match defined.get_mut(value.0 as usize) {
        Some(seen) if !*seen => {
            *seen = true;
            Ok(())
        }
        Some(_) => Err("a value is defined twice".to_owned()),
        None => Err("an identifier that is no value".to_owned()),
    };
    let mut regions = vec![&func.body];
    while let Some(region) = regions.pop() {
        for block in &region.blocks {
            block.args.iter().try_for_each(&mut define).map_err(|message| (None, message))?;
            for op in &block.ops {
                op.results.iter().try_for_each(&mut define).map_err(|message| (Some(op), message))?;
                let passed = op.successors.iter().flat_map(|(_, passed)| passed);
                if op.operands.iter().chain(passed).any(|value| value.0 as usize >= func.values.len()) {
                    return Err((Some(op), "an operand that is no value".to_owned()));
                }
                regions.extend(&op.regions);
            }
        }
    }
    Ok(())
}

fn check_region<'a>(
    module: &'a Module,
    func: &'a Func,
    parent: Option<(&'a Op, usize)>,
    region: &'a Region,
) -> Located<'a> {
    if region.blocks.len() > MAX_BLOCKS {
        return Err((parent.map(|(op, _)| op), format!("more than {MAX_BLOCKS} blocks")));
    }
    for block in &region.blocks {
        let Some((last, before)) = block.ops.split_last() else {
            return Err((parent.map(|(op, _)| op), "a block without a terminator".to_owned()));
        };
        if let Some(op) = before.iter().find(|op| control::is_terminator(&op.name)) {
            return Err((Some(op), "a terminator before the end of its block".to_owned()));
        }
        control::check_terminator(parent, last).map_err(|message| (Some(last), message))?;
        for op in &block.ops {
            check_successors(func, region, op).map_err(|message| (Some(op), message))?;
            for (index, inner) in op.regions.iter().enumerate() {
                check_region(module, func, Some((op, index)), inner)?;
            }
            check_op(Check { module, func, op }).map_err(|message| (Some(op), message))?;
        }
    }
    Ok(())
}

fn check_successors(func: &Func, region: &Region, op: &Op) -> Finding {
    for (target, passed) in &op.successors {
        let Some(block) = region.blocks.get(*target).filter(|_| *target > 0) else {
            return Err("it goes to a block that it cannot go to".to_owned());
        };
        let wanted = block.args.iter().map(|value| func.ty(*value));
        if !passed.iter().map(|value| func.ty(*value)).eq(wanted) {
            return Err(format!("what it passes to ^bb{target} does not have the types of the block's arguments"));
        }
    }
    Ok(())
}

fn check_op(check: Check<'_>) -> Finding {
    let op = check.op;
    let Some(spec) = spec(&op.name) else {
        return Ok(());
    };
    let regions = control::region_count(&op.name);
    if op.regions.len() != regions {
        return Err(format!("expected {regions} regions, found {}", op.regions.len()));
    }
    let successors = control::successor_count(&op.name);
    if op.successors.len() != successors {
        return Err(format!("expected {successors} successors, found {}", op.successors.len()));
    }
    spec.attrs.iter().try_for_each(|attr| check_attr(&op.attrs, attr))?;
    (spec.row.rule)(&check)
}

fn check_attr(attrs: &Attrs, spec: &AttrSpec) -> Finding {
    let Some(attr) = attrs.get(spec.name) else {
        return match spec.presence {
            Presence::Optional => Ok(()),
            _ => Err(format!("attribute `{}` is missing", spec.name)),
        };
    };
    let right = match (spec.kind, attr) {
        (AttrKind::Enum(kind), Attr::Enum(case)) => kind.has(case),
        (AttrKind::Bool, Attr::Bool(_)) | (AttrKind::Text, Attr::Str(_)) | (AttrKind::Unit, Attr::Unit) => true,
        (AttrKind::I32, Attr::Int(_, Type::Int(32))) => true,
        (AttrKind::Ints, Attr::DenseArray(_)) | (AttrKind::Symbol, Attr::Symbol(_)) | (AttrKind::Any, _) => true,
        _ => false,
    };
    if right { Ok(()) } else { Err(format!("attribute `{}` cannot be {attr}", spec.name)) }
}

/// No function calls itself, however indirectly: a GPU has no stack to speak of, and neither has an executor.
fn check_calls(module: &Module) -> Result<(), VerifyError> {
    let calls = |func: &Func| {
        let mut callees = Vec::new();
        func.body.walk(&mut |op| {
            if let (true, Some(Attr::Symbol(callee))) = (op.name == "tt.call", op.attrs.get("callee")) {
                callees.extend(module.funcs.iter().position(|func| func.name == *callee));
            }
        });
        callees
    };
    let callees: Vec<Vec<usize>> = module.funcs.iter().map(calls).collect();
    // Functions whose callees are all done are done; what is left over calls in a circle.
    let mut done = vec![false; callees.len()];
    loop {
        let ready = (0..callees.len()).find(|at| !done[*at] && callees[*at].iter().all(|callee| done[*callee]));
        match ready {
            Some(at) => done[at] = true,
            None => break,
        }
    }
    match module.funcs.iter().zip(done).find(|(_, done)| !done) {
        None => Ok(()),
        Some((func, _)) => Err(VerifyError {
            function: func.name.clone(),
            op: None,
            position: position(module, func.loc),
            message: "its calls form a circle".to_owned(),
        }),
    }
}

impl<'a> Check<'a> {
    fn counts(&self, operands: usize, results: usize) -> Finding {
        let (found_operands, found_results) = (self.op.operands.len(), self.op.results.len());
        if (found_operands, found_results) == (operands, results) {
            return Ok(());
        }
        Err(format!("expected {operands} operands and {results} results, found {found_operands} and {found_results}"))
    }

    fn operand(&self, index: usize) -> &'a Type {
        self.func.ty(self.op.operands[index])
    }

    fn operands(&self) -> impl ExactSizeIterator<Item = &'a Type> + use<'a> {
        let func = self.func;
        self.op.operands.iter().map(move |value| func.ty(*value))
    }

    fn result(&self, index: usize) -> &'a Type {
        self.func.ty(self.op.results[index])
    }

    fn results(&self) -> impl ExactSizeIterator<Item = &'a Type> + use<'a> {
        let func = self.func;
        self.op.results.iter().map(move |value| func.ty(*value))
    }

    /// The attribute as an index; `check_attr` has seen that it is an integer.
    fn index(&self, name: &str) -> Result<usize, String> {
        match self.op.attrs.get(name) {
            Some(Attr::Int(value, _)) => usize::try_from(*value).map_err(|_| format!("attribute `{name}` is {value}")),
            _ => Err(format!("attribute `{name}` is missing")),
        }
    }

    fn ints(&self, name: &str) -> &'a [i64] {
        match self.op.attrs.get(name) {
            Some(Attr::DenseArray(values)) => values,
            _ => &[],
        }
    }

    fn case(&self, name: &str) -> &'a str {
        match self.op.attrs.get(name) {
            Some(Attr::Enum(case)) => case,
            _ => "",
        }
    }

    /// The only block of a region.
    fn block(&self, region: usize) -> Result<&'a Block, String> {
        match self.op.regions.get(region).map(|region| region.blocks.as_slice()) {
            Some([block]) => Ok(block),
            _ => Err("its region must be one block".to_owned()),
        }
    }

    fn arg_types(&self, block: &'a Block) -> Vec<&'a Type> {
        block.args.iter().map(|value| self.func.ty(*value)).collect()
    }

    /// Types of what a block's terminator hands over.
    fn yielded(&self, block: &'a Block) -> Vec<&'a Type> {
        let operands = block.ops.last().map(|op| op.operands.as_slice()).unwrap_or_default();
        operands.iter().map(|value| self.func.ty(*value)).collect()
    }
}

fn expect(what: &str, found: &Type, wanted: &Type) -> Finding {
    if found == wanted { Ok(()) } else { Err(format!("{what} must have type {wanted}, found {found}")) }
}

/// Element by element.
fn expect_all<'a>(
    what: &str,
    found: impl IntoIterator<Item = &'a Type>,
    wanted: impl IntoIterator<Item = &'a Type>,
) -> Finding {
    let (found, wanted): (Vec<_>, Vec<_>) = (found.into_iter().collect(), wanted.into_iter().collect());
    if found == wanted {
        return Ok(());
    }
    let list = |types: &[&Type]| types.iter().map(|ty| ty.to_string()).collect::<Vec<_>>().join(", ");
    Err(format!("{what} must have types ({}), found ({})", list(&wanted), list(&found)))
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err(message()) }
}
