use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses Triton's run time, compiler, backends and launch hooks.
///
/// # Why is this bad?
/// They can replace what a launch does, or pretend that one took place.
///
/// # Example
/// ```python
/// triton.runtime.jit.JITFunction.run = run
/// triton.knobs.runtime.launch_enter_hook(...)
/// ```
///
/// # Use instead
/// `triton.jit`, `triton.autotune`, `triton.heuristics`, `triton.language`.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule {
        id: "triton-internals",
        tier: Tier::Proof,
        help: "use triton.jit, triton.autotune, triton.heuristics and triton.language",
    },
    paths: &[
        "triton._C",
        "triton.compiler",
        "triton.backends",
        "triton.runtime.jit",
        "triton.runtime.interpreter",
        "triton.runtime.build",
        "triton.runtime.cache",
        "triton.runtime._async_compile",
        "triton.runtime.driver.set_active",
        "triton.runtime.driver.reset_active",
        "triton._internal_testing",
        "triton._utils",
        "triton._filecheck",
        "triton.knobs.runtime",
        "triton.knobs.compilation",
        "triton.knobs.cache",
        "triton.knobs.build",
        "triton.instrumentation",
        "triton.reinterpret",
        "triton.compile",
        "triton.profiler",
    ],
    except: &[
        "triton.compiler.CompilationError",
        "triton.compiler.errors",
        "triton.compiler.compiler.CompilationError",
    ],
    what: "reaches into the private parts of Triton",
};
