//! Which values flow where in host code, what `forward` reaches, and what of that only a trace can clear.
//!
//! See `docs/design/screen.md`.

mod args;
mod arms;
mod attribute;
mod call;
mod class;
mod container;
mod engine;
mod expr;
mod intern;
mod library;
mod name;
mod object;
mod order;
mod report;
mod special;
mod stmt;
mod value;

use ruff_python_ast::ModModule;
use ruff_text_size::{Ranged, TextSize};
use tilewright_contract::{Finding, OpenCall};

use crate::Calls;
use crate::cut::Discovered;
use crate::names::Names;
use crate::scope::Scopes;
use crate::source::Source;
use engine::Engine;

/// What the analysis of host code says.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) calls: Vec<OpenCall>,
    pub(crate) findings: Vec<Finding>,
}

pub(crate) fn analyse<'a>(
    module: &'a ModModule,
    source: &Source,
    scopes: &Scopes<'a>,
    names: &Names<'_, 'a>,
    found: &Discovered<'a>,
    calls: Calls,
) -> Flow {
    let mut engine = Engine::new(&module.body, source.text.len(), scopes, names, found);
    engine.called = calls;
    if !engine.run() {
        // Nothing honest is so entangled; what cannot be analysed is not cleared.
        let end = module.body.last().map_or(TextSize::new(0), Ranged::end);
        let start = module.body.first().map_or(TextSize::new(0), Ranged::start);
        return Flow { calls: vec![report::open_call(source, start, end, true)], findings: Vec::new() };
    }
    let mut report = engine.round();
    let (calls, findings) = engine.finish(&mut report, source);
    Flow { calls, findings }
}
