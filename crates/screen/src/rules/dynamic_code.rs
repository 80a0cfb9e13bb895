use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses `eval`, `exec`, `compile`, dynamic imports and unpickling.
///
/// # Why is this bad?
/// What runs is not what the file says, and a verdict is about the file.
///
/// # Example
/// ```python
/// eval(base64.b64decode(BLOB))
/// ```
///
/// # Use instead
/// Write the code out.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "dynamic-code", tier: Tier::Proof, help: "write the code out" },
    paths: &[
        "builtins.eval",
        "builtins.exec",
        "builtins.compile",
        "builtins.__import__",
        "importlib",
        "imp",
        "runpy",
        "codeop",
        "code",
        "pickle",
        "_pickle",
        "cPickle",
        "marshal",
        "shelve",
        "dill",
        "cloudpickle",
        "joblib",
        "zipimport",
        "builtins.__build_class__",
    ],
    except: &[],
    what: "makes code that the file does not show",
};
