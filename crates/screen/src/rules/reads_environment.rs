use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses reading environment variables and the command line in functions and methods; at module level it is evidence.
///
/// # Why is this bad?
/// Host code must be a pure function of shapes, dtypes and modes. The trace repeats with
/// another environment, but cannot know the variable that a file waits for.
///
/// # Example
/// ```python
/// if os.environ.get("FAST"): ...
/// ```
///
/// # Use instead
/// A literal.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "reads-environment", tier: Tier::Evidence, help: "use a literal" },
    paths: &["os.environ", "os.getenv", "sys.argv", "sys.orig_argv", "sys.flags", "sys.stdin"],
    except: &[],
    what: "makes the file depend on the environment",
};
