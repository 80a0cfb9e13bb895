//! Strings as small numbers.

use rustc_hash::FxHashMap;

pub(super) type Sym = u32;

/// Longest string that is kept, in bytes.
pub(super) const LONGEST: usize = 256;

/// Interned strings, and dotted paths built from them.
#[derive(Default)]
pub(super) struct Interner {
    strings: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, Sym>,
    extended: FxHashMap<(Sym, Sym), Sym>,
}

impl Interner {
    pub(super) fn sym(&mut self, text: &str) -> Sym {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.strings.len() as Sym;
        self.strings.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    pub(super) fn text(&self, sym: Sym) -> &str {
        &self.strings[sym as usize]
    }

    /// `base.attr`, unless that is too long.
    pub(super) fn extend(&mut self, base: Sym, attr: Sym) -> Option<Sym> {
        if let Some(&known) = self.extended.get(&(base, attr)) {
            return Some(known);
        }
        let (left, right) = (self.text(base), self.text(attr));
        if left.len() + right.len() >= LONGEST {
            return None;
        }
        let path = crate::names::canonical(&format!("{left}.{right}")).into_owned();
        let id = self.sym(&path);
        self.extended.insert((base, attr), id);
        Some(id)
    }

    /// `base()`: what calling it gives.
    pub(super) fn result(&mut self, base: Sym) -> Option<Sym> {
        let text = self.text(base);
        if text.len() + 2 >= LONGEST {
            return None;
        }
        let path = format!("{text}()");
        Some(self.sym(&path))
    }
}
