//! Prints a module in MLIR's generic form, which Triton reads as well as its own.

use std::fmt::{self, Formatter};

use crate::enums::EnumKind;
use crate::ir::{Attr, Attrs, Block, Func, Loc, LocId, Module, Op, Region, Type, ValueId};
use crate::parse::float_name;
use crate::spec::{AttrKind, SEGMENTS, Spec, spec};

impl fmt::Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, loc) in self.locs.iter().enumerate() {
            writeln!(f, "#loc{index} = loc({loc})")?;
        }
        f.write_str("module ")?;
        if !self.attrs.is_empty() {
            write!(f, "attributes {} ", Dict(&self.attrs, None))?;
        }
        f.write_str("{\n")?;
        self.funcs.iter().try_for_each(|func| write_func(f, func))?;
        writeln!(f, "}}{}", Trailing(self.loc))
    }
}

fn write_func(f: &mut Formatter<'_>, func: &Func) -> fmt::Result {
    let inputs: Vec<_> = func.params.iter().map(|value| func.ty(*value).clone()).collect();
    let mut properties = Attrs::new();
    if func.param_attrs.iter().any(|attrs| !attrs.is_empty()) {
        let attrs = func.param_attrs.iter().cloned().map(Attr::Dict).collect();
        properties.insert("arg_attrs".to_owned(), Attr::Array(attrs));
    }
    let ty = Type::Function(inputs, func.results.clone());
    properties.insert("function_type".to_owned(), Attr::Type(ty));
    properties.insert("sym_name".to_owned(), Attr::Str(func.name.clone()));
    let visibility = if func.public { "public" } else { "private" };
    properties.insert("sym_visibility".to_owned(), Attr::Str(visibility.to_owned()));
    let (inherent, other): (Attrs, Attrs) = func.attrs.clone().into_iter().partition(|(name, _)| name == "res_attrs");
    properties.extend(inherent);
    write!(f, "  \"tt.func\"() <{}> (", Dict(&properties, None))?;
    Writer { func, indent: 2 }.region(f, &func.body)?;
    f.write_str(")")?;
    if !other.is_empty() {
        write!(f, " {}", Dict(&other, None))?;
    }
    writeln!(f, " : () -> (){}", Trailing(func.loc))
}

struct Writer<'a> {
    func: &'a Func,
    indent: usize,
}

impl Writer<'_> {
    fn region(&self, f: &mut Formatter<'_>, region: &Region) -> fmt::Result {
        f.write_str("{\n")?;
        for (index, block) in region.blocks.iter().enumerate() {
            self.block(f, index, block)?;
        }
        write!(f, "{:width$}}}", "", width = self.indent)
    }

    fn block(&self, f: &mut Formatter<'_>, index: usize, block: &Block) -> fmt::Result {
        if index > 0 || !block.args.is_empty() {
            write!(f, "{:width$}^bb{index}", "", width = self.indent)?;
            if !block.args.is_empty() {
                write_list(f, ("(", ")"), &block.args, |f, arg| {
                    let loc = self.func.values[arg.0 as usize].loc;
                    write!(f, "%{}: {}{}", arg.0, self.func.ty(*arg), Trailing(loc))
                })?;
            }
            f.write_str(":\n")?;
        }
        block.ops.iter().try_for_each(|op| self.op(f, op))
    }

    fn op(&self, f: &mut Formatter<'_>, op: &Op) -> fmt::Result {
        write!(f, "{:width$}", "", width = self.indent + 2)?;
        if !op.results.is_empty() {
            write_list(f, ("", " = "), &op.results, |f, value| write!(f, "%{}", value.0))?;
        }
        let mut operands = op.operands.clone();
        op.successors.iter().for_each(|(_, passed)| operands.extend(passed));
        write!(f, "{}", Quoted(&op.name))?;
        write_list(f, ("(", ")"), &operands, |f, value| write!(f, "%{}", value.0))?;
        if !op.successors.is_empty() {
            write_list(f, ("[", "]"), &op.successors, |f, (block, _)| write!(f, "^bb{block}"))?;
        }
        let spec = spec(&op.name);
        let known = |name: &str| name == SEGMENTS || spec.is_some_and(|spec| spec.has_attr(name));
        let (mut inherent, other): (Attrs, Attrs) = op.attrs.clone().into_iter().partition(|(name, _)| known(name));
        if op.successors.len() > 1 {
            let sizes = op.successors.iter().map(|(_, passed)| passed.len() as i64);
            let sizes = std::iter::once(op.operands.len() as i64).chain(sizes).collect();
            inherent.insert(SEGMENTS.to_owned(), Attr::DenseArray(sizes));
        }
        if !inherent.is_empty() {
            write!(f, " <{}>", Dict(&inherent, spec))?;
        }
        if !op.regions.is_empty() {
            let inner = Writer { func: self.func, indent: self.indent + 2 };
            write_list(f, (" (", ")"), &op.regions, |f, region| inner.region(f, region))?;
        }
        if !other.is_empty() {
            write!(f, " {}", Dict(&other, spec))?;
        }
        let types = |values: &[ValueId]| values.iter().map(|value| self.func.ty(*value).clone()).collect();
        writeln!(f, " : {}{}", Type::Function(types(&operands), types(&op.results)), Trailing(op.loc))
    }
}

fn write_list<T>(
    f: &mut Formatter<'_>,
    (open, close): (&str, &str),
    items: &[T],
    mut write_item: impl FnMut(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write_item(f, item)?;
    }
    f.write_str(close)
}

/// ` loc(#loc1)` if there is one.
struct Trailing(Option<LocId>);

impl fmt::Display for Trailing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(LocId(id)) => write!(f, " loc(#loc{id})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Loc::Unknown => f.write_str("unknown"),
            Loc::File { file, line, column } => write!(f, "{}:{line}:{column}", Quoted(file)),
            Loc::Named(name, child) => write!(f, "{}(#loc{})", Quoted(name), child.0),
            Loc::Call { callee, caller } => write!(f, "callsite(#loc{} at #loc{})", callee.0, caller.0),
            Loc::Fused(parts) => write_list(f, ("fused[", "]"), parts, |f, part| write!(f, "#loc{}", part.0)),
        }
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for byte in self.0.bytes() {
            match byte {
                b'\\' => f.write_str("\\\\")?,
                b'"' | 0..0x20 | 0x7f.. => write!(f, "\\{byte:02X}")?,
                _ => write!(f, "{}", byte as char)?,
            }
        }
        f.write_str("\"")
    }
}

/// A dictionary; the operation's description says which attributes are enumerations.
struct Dict<'a>(&'a Attrs, Option<&'static Spec>);

impl fmt::Display for Dict<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Dict(attrs, spec) = self;
        let attrs: Vec<_> = attrs.iter().collect();
        write_list(f, ("{", "}"), &attrs, |f, (name, attr)| {
            if is_bare(name) {
                f.write_str(name)?
            } else {
                write!(f, "{}", Quoted(name))?
            }
            match (attr, spec.and_then(|spec| spec.attr_kind(name))) {
                (Attr::Unit, _) => Ok(()),
                (Attr::Enum(case), Some(AttrKind::Enum(kind))) => write_case(f, kind, case),
                _ => write!(f, " = {attr}"),
            }
        })
    }
}

fn write_case(f: &mut Formatter<'_>, kind: &EnumKind, case: &str) -> fmt::Result {
    match kind.encode(case) {
        Some(attr) => write!(f, " = {attr}"),
        None => write!(f, " = {}", Quoted(case)),
    }
}

fn is_bare(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'.'))
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Attr::Unit => f.write_str("unit"),
            Attr::Bool(_) => write_element(f, self),
            Attr::Int(_, ty) | Attr::Float(_, ty) => {
                write_element(f, self)?;
                write!(f, " : {ty}")
            }
            Attr::Str(text) | Attr::Enum(text) => write!(f, "{}", Quoted(text)),
            Attr::Symbol(name) if is_bare(name) => write!(f, "@{name}"),
            Attr::Symbol(name) => write!(f, "@{}", Quoted(name)),
            Attr::Type(ty) => write!(f, "{ty}"),
            Attr::Array(items) => write_list(f, ("[", "]"), items, |f, item| write!(f, "{item}")),
            Attr::DenseArray(items) if items.is_empty() => f.write_str("array<i32>"),
            Attr::DenseArray(items) => write_list(f, ("array<i32: ", ">"), items, |f, item| write!(f, "{item}")),
            Attr::Dense(elements, ty) => {
                f.write_str("dense<")?;
                match elements.as_slice() {
                    [splat] => write_element(f, splat)?,
                    elements => write_elements(f, elements, ty.shape().unwrap_or_default())?,
                }
                write!(f, "> : {ty}")
            }
            Attr::Dict(attrs) => write!(f, "{}", Dict(attrs, None)),
            Attr::Raw(text) => f.write_str(text),
        }
    }
}

fn write_elements(f: &mut Formatter<'_>, elements: &[Attr], shape: &[u64]) -> fmt::Result {
    match shape {
        [_, inner @ ..] if !inner.is_empty() => {
            let row = inner.iter().product::<u64>().max(1) as usize;
            let rows: Vec<_> = elements.chunks(row).collect();
            write_list(f, ("[", "]"), &rows, |f, row| write_elements(f, row, inner))
        }
        _ => write_list(f, ("[", "]"), elements, write_element),
    }
}

/// A number without its type. Floating-point numbers are printed by their bits, so that none is rounded.
fn write_element(f: &mut Formatter<'_>, attr: &Attr) -> fmt::Result {
    match attr {
        Attr::Bool(value) => write!(f, "{value}"),
        Attr::Int(value, _) => write!(f, "{value}"),
        Attr::Float(bits, Type::Float(kind)) => {
            let digits = crate::parse::width(*kind).div_ceil(4) as usize;
            write!(f, "0x{bits:0digits$X}")
        }
        Attr::Float(bits, _) => write!(f, "{bits:#X}"),
        other => write!(f, "{other}"),
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Type::Int(width) => write!(f, "i{width}"),
            Type::Index => f.write_str("index"),
            Type::Float(kind) => f.write_str(float_name(*kind)),
            Type::Ptr(pointee, 1) => write!(f, "!tt.ptr<{pointee}>"),
            Type::Ptr(pointee, space) => write!(f, "!tt.ptr<{pointee}, {space}>"),
            Type::Tensor(shape, element) => {
                f.write_str("tensor<")?;
                shape.iter().try_for_each(|size| write!(f, "{size}x"))?;
                write!(f, "{element}>")
            }
            Type::TensorDesc(block) => write!(f, "!tt.tensordesc<{block}>"),
            Type::Function(inputs, results) => {
                write_list(f, ("(", ")"), inputs, |f, ty| write!(f, "{ty}"))?;
                write_list(f, (" -> (", ")"), results, |f, ty| write!(f, "{ty}"))
            }
            Type::Other(text) => f.write_str(text),
        }
    }
}
