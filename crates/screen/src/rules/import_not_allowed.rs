use tilewright_contract::Tier;

use super::Rule;

/// # What it does
/// Refuses imports of modules that are not on a short list, where the imported name is used. An unused import, or
/// one inside `try` with a handler for its absence, is reported as evidence only.
///
/// # Why is this bad?
/// Host code of a candidate allocates and launches, and must be a pure function of shapes, dtypes and modes. Clocks,
/// random numbers, hashes of data, files and other array libraries have no place in it.
///
/// # Example
/// ```python
/// import time
/// if time.monotonic() - start > 2: return cached
/// ```
///
/// # Use instead
/// `torch`, `triton`, `math`, `functools`, `itertools`, `typing`, `dataclasses`, `collections`, `enum`, `contextlib`,
/// `operator`, `warnings`, `abc`, `numbers`, `string`, `copy`, `types`.
pub(crate) const RULE: Rule = Rule {
    id: "import-not-allowed",
    tier: Tier::Proof,
    help: "use torch, triton, math, functools, itertools, typing, dataclasses, collections, enum, contextlib or operator",
};

/// Top-level modules that may be imported. `os` and `sys` may, and rules of their own say which parts.
const ALLOWED: [&str; 24] = [
    "torch",
    "triton",
    "math",
    "typing",
    "typing_extensions",
    "functools",
    "itertools",
    "dataclasses",
    "collections",
    "enum",
    "operator",
    "contextlib",
    "warnings",
    "abc",
    "__future__",
    "numbers",
    "string",
    "copy",
    "types",
    "os",
    "sys",
    "cmath",
    "textwrap",
    "logging",
];

pub(crate) fn is_allowed(module: &str) -> bool {
    module.split('.').next().is_some_and(|root| ALLOWED.contains(&root))
}
