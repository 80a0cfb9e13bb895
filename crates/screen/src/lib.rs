//! Static analysis of a candidate: cuts its kernels out into a module of their own, and reports what refuses it.
//!
//! Nothing is ever executed here. Input is hostile: size, encoding and nesting are bounded, and what is nested more
//! than people write is analysed on a thread with a large stack.

mod cut;
mod error;
mod flow;
mod names;
mod normal;
mod parse;
mod rules;
mod scope;
mod source;

use tilewright_contract::{Finding, OpenCall};

pub use cut::{Config, Decorator, Kernel, Parameter};
pub use error::ScreenError;
pub use normal::normal_form;
pub use rules::{Manual, ascend, forbidden_assembly, manual, tier_name, unscreened};
pub use source::MAX_BYTES;

/// Stack of the thread that analyses deeply nested files, in bytes.
const STACK: usize = 64 << 20;

/// Nesting up to which a file is analysed on the caller's stack: more than people write.
const SHALLOW: usize = 64;

/// What the screen makes of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Python source with the kernels, the device functions, constants and imports they need, and nothing else.
    /// Every line is the candidate's line. Empty if there is no kernel.
    pub module: String,
    /// The jit functions in `module`, in source order.
    pub kernels: Vec<Kernel>,
    /// In source order. A finding of tier `untraceable` is about one kernel that is not in `kernels`:
    /// it decides only if that kernel is launched.
    pub findings: Vec<Finding>,
    /// Calls and tensor operators that only a trace can clear, in source order.
    pub calls: Vec<OpenCall>,
}

/// A candidate's text as the screen reads it: without a byte order mark, with `\n` line ends.
///
/// # Errors
/// The file is too large or not UTF-8.
pub fn decode(bytes: &[u8]) -> Result<String, ScreenError> {
    source::Source::read(bytes).map(|source| source.text)
}

/// Reads, parses and screens a candidate.
///
/// # Errors
/// The file is too large, not UTF-8, not Python, nested too deeply or empty.
pub fn cut(source: &[u8]) -> Result<Cut, ScreenError> {
    cut_for(source, Calls::Forward)
}

/// What a call of the candidate runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    Forward,
    /// `forward`, and then the `backward` of each `autograd.Function` that it applies.
    ForwardAndBackward,
}

/// The same as [`cut`], for problems whose calls run more than `forward`.
///
/// # Errors
/// As of [`cut`].
pub fn cut_for(source: &[u8], calls: Calls) -> Result<Cut, ScreenError> {
    let source = source::Source::read(source)?;
    let run = if parse::depth(&source.text)? <= SHALLOW {
        std::panic::catch_unwind(|| analyse(&source, calls)).map_err(|_| "it panicked".to_owned())
    } else {
        std::thread::scope(|threads| {
            let analyse =
                std::thread::Builder::new().stack_size(STACK).spawn_scoped(threads, || analyse(&source, calls));
            match analyse {
                Ok(thread) => thread.join().map_err(|_| "it panicked".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
    };
    run.unwrap_or_else(|problem| Err(ScreenError::Thread(problem)))
}

/// The nesting of `source` is bounded.
fn analyse(source: &source::Source, calls: Calls) -> Result<Cut, ScreenError> {
    let module = parse::parse(source)?;
    let scopes = scope::Scopes::of(&module);
    let names = names::Names::new(&scopes);
    let found = cut::discover(&module, &scopes, &names);
    let pieces = cut::pieces(source, &scopes, &names, &found);
    let mut findings = pieces.findings;
    findings.extend(rules::check(&module, source, &scopes, &names, &found));
    let flow = flow::analyse(&module, source, &scopes, &names, &found, calls);
    findings.extend(flow.findings);
    findings.sort_by(|a, b| (a.line, a.column, &a.rule).cmp(&(b.line, b.column, &b.rule)));
    Ok(Cut { module: pieces.module, kernels: pieces.kernels, findings, calls: flow.calls })
}
