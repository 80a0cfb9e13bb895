//! Advice for Ascend NPUs: what Triton-Ascend and the Triton-only check of its kernel generation pipelines refuse.
//! Asked for by name only, because none of it matters elsewhere.

use ruff_python_ast::{ModModule, StmtFunctionDef};
use tilewright_contract::Finding;

use super::kernels::{Kernels, collect};
use super::{ascend_config, ascend_forward, ascend_kernel};
use crate::ScreenError;
use crate::names::Names;
use crate::scope::Scopes;
use crate::source::Source;

/// What keeps a candidate from running on an Ascend NPU, or from passing the check of its pipelines; all of it advice.
///
/// # Errors
/// The same as [`cut`](crate::cut).
pub fn ascend(bytes: &[u8]) -> Result<Vec<Finding>, ScreenError> {
    // Bounds the nesting.
    crate::cut(bytes)?;
    let run = std::thread::scope(|threads| {
        let advise = std::thread::Builder::new().stack_size(crate::STACK).spawn_scoped(threads, || advise(bytes));
        match advise {
            Ok(thread) => thread.join().map_err(|_| "it panicked".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    });
    run.unwrap_or_else(|problem| Err(ScreenError::Thread(problem)))
}

fn advise(bytes: &[u8]) -> Result<Vec<Finding>, ScreenError> {
    let source = Source::read(bytes)?;
    let module = crate::parse::parse(&source)?;
    let scopes = Scopes::of(&module);
    let names = Names::new(&scopes);
    let found = crate::cut::discover(&module, &scopes, &names);
    let mut kernels = Kernels::new(&source, &scopes, &names);
    for kernel in collect(&module.body, &found, &scopes, &names) {
        ascend_kernel::check(&mut kernels, &kernel);
        ascend_config::check(&mut kernels, &kernel);
    }
    for forward in forwards(&module) {
        ascend_forward::check(&mut kernels, forward);
    }
    let mut findings = kernels.findings;
    findings.sort_by_key(|finding| (finding.line, finding.column));
    Ok(findings)
}

/// The `forward` methods of the file's classes.
fn forwards(module: &ModModule) -> impl Iterator<Item = &StmtFunctionDef> {
    let classes = module.body.iter().filter_map(|stmt| stmt.as_class_def_stmt());
    let methods = classes.flat_map(|class| &class.body).filter_map(|stmt| stmt.as_function_def_stmt());
    methods.filter(|method| &*method.name == "forward")
}
