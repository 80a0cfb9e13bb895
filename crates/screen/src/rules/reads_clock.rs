use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Reports clocks and timers.
///
/// # Why is this bad?
/// A file that knows the time can tell a measurement from a check. A trace cannot follow it: where the time is really asked
/// for, the verdict is `untraceable`.
///
/// # Example
/// ```python
/// start.elapsed_time(end)
/// ```
///
/// # Use instead
/// `triton.autotune`, or a fixed configuration.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "reads-clock", tier: Tier::Evidence, help: "use triton.autotune, or a fixed configuration" },
    paths: &[
        "time",
        "timeit",
        "datetime",
        "torch.cuda.Event",
        "torch.Event",
        "torch.utils.benchmark",
        "triton.testing",
    ],
    except: &["triton.testing.assert_close"],
    what: "measures time",
};
