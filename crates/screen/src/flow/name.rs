//! Names: where a use of one finds its values.

use ruff_python_ast::{ExprName, Identifier};
use ruff_text_size::Ranged;

use super::engine::{CellId, Engine, NOTHING, UNBOUND};
use super::intern::Sym;
use super::library::{self};
use super::value::Set;
use crate::scope::{ScopeId, ScopeKind};

impl<'a> Engine<'_, 'a> {
    /// The symbol of a name that stands at an offset.
    pub(super) fn sym_at(&mut self, name: &Identifier) -> Sym {
        let at = name.start().to_usize();
        if self.at[at] == NOTHING {
            self.at[at] = self.interner.sym(name);
        }
        self.at[at]
    }

    /// The key of an index.
    pub(super) fn index(&mut self, index: usize) -> Sym {
        while index < 256 && self.indices.len() <= index {
            let key = self.interner.sym(&format!("#{}", self.indices.len()));
            self.indices.push(key);
        }
        self.indices.get(index).copied().unwrap_or_else(|| self.interner.sym(&format!("#{index}")))
    }

    /// A name that a class body binds, read in that body: before it is bound, it means what it means outside.
    pub(super) fn in_class_body(&mut self, cell: CellId, name: &str, class: ScopeId) -> Set {
        let mut set = self.read(cell);
        if let Some(outer) = self.scopes.get(class).parent
            && let Some((home, _)) = self.scopes.lookup(name, outer)
        {
            let sym = self.interner.sym(name);
            let cell = self.variable(home, sym);
            set.join(&self.read(cell));
        }
        set
    }

    /// What a name in the file means in the current scope.
    pub(super) fn name_at(&mut self, name: &ExprName) -> Set {
        let at = name.start().to_usize();
        match self.at[at] {
            UNBOUND => return self.unbound(&name.id),
            NOTHING => {}
            cell => return self.read(cell),
        }
        if let Some((home, _)) = self.scopes.lookup(&name.id, self.scope) {
            let sym = self.interner.sym(&name.id);
            let cell = self.variable(home, sym);
            if self.scopes.get(home).kind == ScopeKind::Class {
                return self.in_class_body(cell, &name.id, home);
            }
            self.at[at] = cell;
            return self.read(cell);
        }
        self.at[at] = UNBOUND;
        self.unbound(&name.id)
    }

    /// What a name means in the current scope.
    pub(super) fn name(&mut self, name: &str) -> Set {
        let sym = self.interner.sym(name);
        if let Some((home, _)) = self.scopes.lookup(name, self.scope) {
            let cell = self.variable(home, sym);
            return self.read(cell);
        }
        self.unbound(name)
    }

    /// What a name means that the file does not bind.
    pub(super) fn unbound(&mut self, name: &str) -> Set {
        let sym = self.interner.sym(name);
        if let Some(known) = self.unbound.get(&sym) {
            return known.clone();
        }
        let set = self.builtin(name);
        self.unbound.insert(sym, set.clone());
        set
    }

    pub(super) fn builtin(&mut self, name: &str) -> Set {
        let mut set = Set::default();
        let builtin = library::is_builtin(name);
        if builtin {
            set.add(self.path(&format!("builtins.{name}")));
        }
        for index in 0..self.scopes.stars.len().min(8) {
            let path = crate::names::canonical(&format!("{}.{name}", self.scopes.stars[index].module)).into_owned();
            if !builtin || library::is_arithmetic(&format!("builtins.{name}")) {
                set.add(self.path(&path));
            }
        }
        if set.is_empty() {
            return Set::unknown();
        }
        set
    }
}
