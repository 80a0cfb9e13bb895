use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses starting or ending processes, signals, exit hooks, and the `os` module apart from reading the environment.
///
/// # Why is this bad?
/// A child process can compute the answer, and an exit hook or `os._exit` can forge a result.
///
/// # Example
/// ```python
/// os.write(1, b"correct: true"); os._exit(0)
/// ```
///
/// # Use instead
/// Nothing: raise an exception where the input cannot be handled.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "process-control", tier: Tier::Proof, help: "remove it; host code only allocates and launches" },
    paths: &[
        "subprocess",
        "multiprocessing",
        "torch.multiprocessing",
        "signal",
        "atexit",
        "os",
        "pty",
        "resource",
        "sched",
        "sys.exit",
        "builtins.exit",
        "builtins.quit",
        "faulthandler",
        "psutil",
    ],
    except: &["os.environ", "os.getenv", "os.PathLike", "os.fspath"],
    what: "controls processes or the system",
};
