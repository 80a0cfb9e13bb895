//! Rules about the whole file. One rule is one file; its doc comment is its manual.
//!
//! Rules of tier `proof` are tripwires: they refuse what no honest candidate needs. What a file that passes them
//! really does is decided by the trace.

mod checker;
mod concurrency;
mod delegated_compiler;
mod dynamic_code;
mod file_access;
mod foreign_gpu_library;
mod global_state;
mod import_not_allowed;
mod introspection;
mod native_code;
mod network;
mod no_triton_kernel;
mod patched_module;
mod precision_flag;
mod process_control;
mod reads_environment;
mod tensor_subclass;
mod torch_compute;
mod torch_internals;
mod triton_internals;

use tilewright_contract::Tier;

pub(crate) use checker::check;

/// A rule, apart from how it is found.
pub(crate) struct Rule {
    /// Stable id, in kebab case.
    pub(crate) id: &'static str,
    pub(crate) tier: Tier,
    /// What the author can do instead.
    pub(crate) help: &'static str,
}

/// A rule against naming certain imported or built-in things at all, by whatever route.
pub(crate) struct PathRule {
    pub(crate) rule: Rule,
    /// Dotted paths; each stands for itself and for everything below it.
    pub(crate) paths: &'static [&'static str],
    /// What is allowed all the same.
    pub(crate) except: &'static [&'static str],
    /// Ends the sentence "`path` …".
    pub(crate) what: &'static str,
}

impl PathRule {
    pub(crate) fn covers(&self, path: &str) -> bool {
        below_any(path, self.paths) && !below_any(path, self.except)
    }
}

/// The rules that go by path.
pub(crate) const PATH_RULES: [&PathRule; 13] = [
    &native_code::RULE,
    &foreign_gpu_library::RULE,
    &process_control::RULE,
    &network::RULE,
    &concurrency::RULE,
    &introspection::RULE,
    &dynamic_code::RULE,
    &file_access::RULE,
    &delegated_compiler::RULE,
    &torch_internals::RULE,
    &triton_internals::RULE,
    &reads_environment::RULE,
    &global_state::RULE,
];

/// Whether `path` is one of `roots` or lies below one.
pub(crate) fn below_any(path: &str, roots: &[&str]) -> bool {
    roots.iter().any(|root| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}
