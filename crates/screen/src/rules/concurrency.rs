use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses threads, executors, event loops and context variables.
///
/// # Why is this bad?
/// `forward` can return an empty buffer that a thread fills before the check, so that the work is never timed.
///
/// # Example
/// ```python
/// threading.Thread(target=launch, args=(out,)).start(); return out
/// ```
///
/// # Use instead
/// Launch the kernels in `forward`.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "concurrency", tier: Tier::Proof, help: "launch the kernels in order, from forward" },
    paths: &["threading", "_thread", "concurrent", "asyncio", "greenlet", "gevent", "queue", "contextvars"],
    except: &[],
    what: "runs code concurrently",
};
