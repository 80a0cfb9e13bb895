//! Rules about the whole file. One rule is one file; its doc comment is its manual.
//!
//! Rules of tier `proof` are tripwires: they refuse what no honest candidate needs. What a file that passes them
//! really does is decided by the trace.

mod advice;
mod allowed_names;
mod arange_power_of_two;
mod ascend;
mod ascend_config;
mod ascend_forward;
mod ascend_kernel;
mod autotune_key;
mod call_counter;
mod checker;
mod class_machinery;
mod concurrency;
mod cuda_graph;
mod delegated_compiler;
mod dot_precision;
mod dynamic_code;
mod elsewhere;
mod file_access;
mod foreign_gpu_library;
mod format_attribute;
mod global_state;
mod half_accumulator;
mod half_reduction;
mod import_not_allowed;
mod indirect_attribute;
mod inline_asm;
mod int32_offset;
mod introspection;
mod kernel_attribute;
mod kernel_name;
mod kernels;
mod manual;
mod native_code;
mod network;
mod no_triton_kernel;
mod overrides_operator;
mod patched_module;
mod precision_flag;
mod process_control;
mod reads_clock;
mod reads_device_state;
mod reads_environment;
mod reads_generator;
mod result_cache;
mod side_stream;
mod sniffs_identity;
mod sniffs_text;
mod sniffs_type;
mod softmax_without_max;
mod spin_loop;
mod syntax_error;
mod tensor_subclass;
mod tensors;
mod too_many_warps;
mod torch_compute;
mod torch_internals;
mod triton_internals;
mod unmasked_tail;
mod unreadable;
mod work_at_import;

use std::sync::OnceLock;

use rustc_hash::FxHashSet;
use tilewright_contract::{Finding, Tier};

pub use ascend::ascend;
pub(crate) use checker::check;
pub use inline_asm::forbidden as forbidden_assembly;
pub use manual::{Manual, manual, tier_name};

use crate::ScreenError;

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

impl Rule {
    const fn rule(&self) -> &Rule {
        self
    }
}

impl PathRule {
    const fn rule(&self) -> &Rule {
        &self.rule
    }

    pub(crate) fn covers(&self, path: &str) -> bool {
        below_any(path, self.paths) && !below_any(path, self.except)
    }
}

/// Every rule with the text of its file, which holds its manual.
macro_rules! rules {
    ($($name:ident),* $(,)?) => {
        &[$(($name::RULE.rule(), include_str!(concat!(stringify!($name), ".rs")))),*]
    };
}

const ALL: &[(&Rule, &str)] = rules![
    allowed_names,
    arange_power_of_two,
    ascend_config,
    ascend_forward,
    ascend_kernel,
    autotune_key,
    call_counter,
    class_machinery,
    concurrency,
    cuda_graph,
    delegated_compiler,
    dot_precision,
    dynamic_code,
    file_access,
    foreign_gpu_library,
    format_attribute,
    global_state,
    half_accumulator,
    half_reduction,
    import_not_allowed,
    indirect_attribute,
    inline_asm,
    int32_offset,
    introspection,
    kernel_attribute,
    kernel_name,
    native_code,
    network,
    no_triton_kernel,
    overrides_operator,
    patched_module,
    precision_flag,
    process_control,
    reads_clock,
    reads_device_state,
    reads_environment,
    reads_generator,
    result_cache,
    side_stream,
    sniffs_identity,
    sniffs_text,
    sniffs_type,
    softmax_without_max,
    spin_loop,
    syntax_error,
    tensor_subclass,
    too_many_warps,
    torch_compute,
    torch_internals,
    triton_internals,
    unmasked_tail,
    unreadable,
    work_at_import,
];

/// The rules that go by path.
pub(crate) const PATH_RULES: [&PathRule; 18] = [
    &cuda_graph::RULE,
    &reads_clock::RULE,
    &reads_device_state::RULE,
    &reads_generator::RULE,
    &side_stream::RULE,
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

/// Whether any rule that goes by path covers it.
pub(crate) fn any_covers(path: &str) -> bool {
    may_cover(path) && PATH_RULES.iter().any(|rule| rule.covers(path))
}

/// Whether a rule that goes by path may cover it, by its first two parts: most paths are settled by that.
pub(crate) fn may_cover(path: &str) -> bool {
    static HEADS: OnceLock<FxHashSet<&'static str>> = OnceLock::new();
    let heads = HEADS.get_or_init(|| PATH_RULES.iter().flat_map(|rule| rule.paths).map(|path| head(path)).collect());
    heads.contains(head(path)) || heads.contains(path.split('.').next().unwrap_or(path))
}

/// The first two parts of a path.
fn head(path: &str) -> &str {
    path.match_indices('.').nth(1).map_or(path, |(at, _)| &path[..at])
}

/// Whether `path` is one of `roots` or lies below one.
pub(crate) fn below_any(path: &str, roots: &[&str]) -> bool {
    roots.iter().any(|root| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The finding that stands for a file which cannot be screened; none if that is not the file's fault.
pub fn unscreened(error: &ScreenError) -> Option<Finding> {
    let (rule, line, column) = match error {
        ScreenError::Thread(_) => return None,
        ScreenError::Syntax { line, column, .. } => (&syntax_error::RULE, *line, *column),
        _ => (&unreadable::RULE, error.line().unwrap_or(0), 0),
    };
    let message = match error {
        ScreenError::Syntax { message, .. } => message.clone(),
        _ => error.to_string(),
    };
    Some(Finding { rule: rule.id.to_owned(), tier: rule.tier, message, line, column, help: Some(rule.help.to_owned()) })
}
