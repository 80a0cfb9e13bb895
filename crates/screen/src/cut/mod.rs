//! Cuts the kernels out of a candidate.

mod closure;
mod discover;
mod emit;
mod obstacle;
mod pure;
mod signature;

use ruff_python_ast::{ModModule, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};
use tilewright_contract::{Finding, Tier};

pub(crate) use closure::functions_used;
use closure::{Closure, Needed};
pub(crate) use discover::{Discovered, discover};
use emit::{Emitter, def_keyword};
use obstacle::{Obstacle, Reason};
use signature::Reader;
pub use signature::{Config, Parameter};

use crate::names::Names;
use crate::scope::Scopes;
use crate::source::Source;

/// A jit function of the kernel-only module.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Its name, in the candidate and in the module.
    pub name: String,
    /// 1-based line of the `def`.
    pub line: u32,
    /// 1-based line of the first decorator: what Python calls the function's first line.
    pub first_line: u32,
    /// In order.
    pub params: Vec<Parameter>,
    /// The first configuration of `@triton.autotune`, where it is written in literals.
    pub config: Option<Config>,
    /// Triton's decorators in the candidate, outermost first. The module keeps `jit` only.
    pub decorators: Vec<Decorator>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decorator {
    Jit,
    Autotune,
    Heuristics,
}

pub(crate) struct Pieces {
    pub(crate) module: String,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) findings: Vec<Finding>,
}

pub(crate) fn pieces<'a>(
    source: &Source,
    scopes: &Scopes<'a>,
    names: &Names<'_, 'a>,
    found: &Discovered<'a>,
) -> Pieces {
    let mut jitted: Vec<_> = found.jitted.values().collect();
    jitted.sort_by_key(|jitted| jitted.def.start());
    let mut closure = Closure::new(scopes, names, found, source);
    let (mut needed, mut kernels, mut findings) = (Needed::new(), Vec::new(), Vec::new());
    for jitted in jitted {
        match closure.add(jitted, &mut needed) {
            Ok(()) => {
                let is_live = needed.get(&*jitted.def.name).is_some_and(|(_, items)| {
                    items.iter().any(
                        |item| matches!(item, closure::Item::Kernel { def, .. } if def.range() == jitted.def.range()),
                    )
                });
                // A definition that a later one of the same name replaces is no kernel of the module.
                if is_live {
                    kernels.push(kernel(jitted, source, names));
                }
            }
            Err(obstacle) => findings.push(obstacle.finding(&jitted.def.name, source)),
        }
    }
    for &at in &found.strange {
        let message = "`triton.jit` is applied to something that is not a `def` of this file";
        findings.push(Obstacle::new(Reason::NotPlain, at, message).finding("?", source));
    }
    let module = if kernels.is_empty() { String::new() } else { Emitter::new(source, names).module(&needed) };
    check(Pieces { module, kernels, findings })
}

fn kernel(jitted: &discover::Jitted<'_>, source: &Source, names: &Names<'_, '_>) -> Kernel {
    let def = jitted.def;
    let reader = Reader { source, names, scope: jitted.scope };
    let line = source.line(TextSize::new(def_keyword(def, &source.text) as u32));
    Kernel {
        name: def.name.to_string(),
        line,
        first_line: def.decorator_list.first().map_or(line, |decorator| source.line(decorator.start())),
        params: reader.parameters(def),
        config: reader.config(def),
        decorators: jitted.decorators.clone(),
    }
}

/// Parses what was written: a cut that is no Python is our fault and must not reach the compiler.
fn check(pieces: Pieces) -> Pieces {
    if pieces.module.is_empty() {
        return pieces;
    }
    // Its pieces nest no deeper than the candidate does.
    let written = Source::read(pieces.module.as_bytes()).and_then(|source| {
        let module: ModModule = crate::parse::parse(&source)?;
        let defs = module.body.iter().filter_map(Stmt::as_function_def_stmt);
        let line = |def: &StmtFunctionDef| source.line(TextSize::new(def_keyword(def, &source.text) as u32));
        Ok(defs.map(|def| (def.name.to_string(), line(def))).collect::<std::collections::HashSet<_>>())
    });
    let problem = match written {
        Ok(lines) => match pieces.kernels.iter().find(|kernel| !lines.contains(&(kernel.name.clone(), kernel.line))) {
            None => return pieces,
            Some(kernel) => format!("kernel `{}` is not on line {} of it", kernel.name, kernel.line),
        },
        Err(error) => error.to_string(),
    };
    let mut findings = pieces.findings;
    findings.push(Finding {
        rule: "cut-failed".to_owned(),
        tier: Tier::Unsupported,
        message: format!("the kernel-only module is wrong: {problem}"),
        line: 0,
        column: 0,
        help: Some("this is a fault of the screen, not of the candidate".to_owned()),
    });
    Pieces { module: String::new(), kernels: Vec::new(), findings }
}
