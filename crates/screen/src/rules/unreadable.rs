use tilewright_contract::Tier;

use super::Rule;

/// # What it does
/// Refuses a file that is empty, larger than 1 MiB, not UTF-8, declares another encoding, holds a NUL byte or is nested
/// more deeply than Python itself allows.
///
/// # Why is this bad?
/// What the screen reads and what Python would run could differ. The verdict of such a file is `compile_error`.
///
/// # Example
/// ```python
/// # coding: utf-7
/// ```
///
/// # Use instead
/// Plain UTF-8 text of ordinary size.
pub(crate) const RULE: Rule =
    Rule { id: "unreadable", tier: Tier::Proof, help: "write it as plain UTF-8 text of ordinary size and nesting" };
