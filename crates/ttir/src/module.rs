//! What a consumer asks of a whole module.

use std::collections::BTreeSet;

use crate::ir::{Attrs, Func, Loc, LocId, Module, Op, Region, Type, ValueId};

impl Module {
    pub fn func(&self, name: &str) -> Option<&Func> {
        self.funcs.iter().find(|func| func.name == name)
    }

    /// The kernel of this name: a public function with a body and no results.
    pub fn kernel(&self, name: &str) -> Option<&Func> {
        self.func(name).filter(|func| func.public && func.results.is_empty() && !func.body.blocks.is_empty())
    }

    /// The innermost file position of a location (file, line, column): that of the code itself, not of its caller.
    pub fn position(&self, loc: LocId) -> Option<(&str, u32, u32)> {
        let mut seen = vec![false; self.locs.len()];
        let mut pending = vec![loc];
        while let Some(LocId(id)) = pending.pop() {
            let index = id as usize;
            let loc = self.locs.get(index)?;
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            match loc {
                Loc::Unknown => {}
                Loc::File { file, line, column } => return Some((file, *line, *column)),
                Loc::Named(_, child) => pending.push(*child),
                Loc::Call { callee, .. } => pending.push(*callee),
                Loc::Fused(parts) => pending.extend(parts.iter().rev()),
            }
        }
        None
    }

    /// Removes every location and printed value name, so that two modules that differ in nothing else are equal
    /// (and print equally): the form to key a cache by.
    pub fn strip_locations(&mut self) {
        self.locs.clear();
        self.loc = None;
        for func in &mut self.funcs {
            func.loc = None;
            for (index, value) in func.values.iter_mut().enumerate() {
                value.loc = None;
                value.name = index.to_string();
            }
            for_each_op_mut(&mut func.body, &mut |op| op.loc = None);
        }
    }

    /// Names of all operations in the module's functions.
    pub fn op_names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        for func in &self.funcs {
            func.body.walk(&mut |op| {
                names.insert(op.name.as_str());
            });
        }
        names
    }
}

impl Func {
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.values[value.0 as usize].ty
    }
}

impl Region {
    /// Visits every operation, outer ones before those in their regions.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Op)) {
        for op in self.blocks.iter().flat_map(|block| &block.ops) {
            visit(op);
            for region in &op.regions {
                region.walk(visit);
            }
        }
    }
}

pub(crate) fn for_each_op_mut(region: &mut Region, visit: &mut dyn FnMut(&mut Op)) {
    for op in region.blocks.iter_mut().flat_map(|block| &mut block.ops) {
        visit(op);
        for inner in &mut op.regions {
            for_each_op_mut(inner, visit);
        }
    }
}

impl Op {
    /// An operation with nothing but its name.
    pub(crate) fn named(name: &str) -> Op {
        Op {
            name: name.to_owned(),
            operands: Vec::new(),
            results: Vec::new(),
            attrs: Attrs::new(),
            regions: Vec::new(),
            successors: Vec::new(),
            loc: None,
        }
    }
}

impl Type {
    /// The element of a tensor, otherwise the type itself.
    pub fn scalar(&self) -> &Type {
        match self {
            Type::Tensor(_, element) => element,
            other => other,
        }
    }

    /// The shape of a tensor; a scalar has none.
    pub fn shape(&self) -> Option<&[u64]> {
        match self {
            Type::Tensor(shape, _) => Some(shape),
            _ => None,
        }
    }

    /// The same shape with another element: `tensor<8xf32>` with `i1` is `tensor<8xi1>`, `f32` with `i1` is `i1`.
    pub fn with_scalar(&self, scalar: Type) -> Type {
        match self {
            Type::Tensor(shape, _) => Type::Tensor(shape.clone(), Box::new(scalar)),
            _ => scalar,
        }
    }

    /// Of a tensor descriptor: its block's shape, the element as the block's values have it (signless), and
    /// whether the element is unsigned, which only minimum and maximum care about.
    pub fn descriptor_block(&self) -> Option<(&[u64], Type, bool)> {
        let Type::TensorDesc(block) = self else {
            return None;
        };
        let Type::Tensor(shape, element) = &**block else {
            return None;
        };
        let (element, unsigned) = match &**element {
            Type::Other(text) => (signless(text)?, text.starts_with('u')),
            other => (other.clone(), false),
        };
        Some((shape, element, unsigned))
    }

    /// What a pointer, or a tensor of pointers, points to, in the same shape.
    pub fn pointee(&self) -> Option<Type> {
        match self.scalar() {
            Type::Ptr(pointee, _) => Some(self.with_scalar((**pointee).clone())),
            _ => None,
        }
    }
}

/// `si32` and `ui32` are 32 bits wide.
fn signless(text: &str) -> Option<Type> {
    let width = text.strip_prefix("si").or_else(|| text.strip_prefix("ui"))?.parse().ok()?;
    Some(Type::Int(width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const TEXT: &str = r##"
#loc = loc("kernel.py":3:0)
#loc5 = loc("kernel.py":9:2)
module {
  tt.func public @kernel(%x: !tt.ptr<f32> loc("x"(#loc))) {
    %one = arith.constant 1.000000e+00 : f32 loc(#loc1)
    tt.store %x, %one : !tt.ptr<f32> loc(#loc2)
    tt.return loc(#loc3)
  } loc(#loc)
  tt.func private @helper(%x: f32) -> f32 {
    tt.return %x : f32
  }
} loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc(callsite("value"(#loc4) at #loc5))
#loc3 = loc(fused[#loc1, #loc5])
#loc4 = loc("helper.py":7:8)
"##;

    fn module() -> Module {
        parse(TEXT).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn positions_are_those_of_the_code_itself() {
        let module = module();
        let ops = &module.funcs[0].body.blocks[0].ops;
        let positions: Vec<_> = ops.iter().map(|op| op.loc.and_then(|loc| module.position(loc))).collect();
        assert_eq!(positions, [None, Some(("helper.py", 7, 8)), Some(("kernel.py", 9, 2))]);
    }

    #[test]
    fn a_kernel_is_public_and_returns_nothing() {
        let module = module();
        assert!(module.kernel("kernel").is_some());
        assert!(module.kernel("helper").is_none() && module.func("helper").is_some());
        assert!(module.kernel("other").is_none());
    }

    #[test]
    fn stripped_modules_differ_in_code_only() {
        let mut stripped = module();
        stripped.strip_locations();
        let renamed =
            TEXT.replace("%one", "%c").replace("\"helper.py\":7:8", "\"other.py\":1:1").replace("kernel.py", "k.py");
        let mut other = parse(&renamed).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(other, module());
        other.strip_locations();
        assert_eq!(other, stripped);
        assert!(!stripped.to_string().contains("loc("));
    }

    #[test]
    fn lists_operations() {
        assert_eq!(module().op_names().into_iter().collect::<Vec<_>>(), ["arith.constant", "tt.return", "tt.store"]);
    }
}
