use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses frames, the garbage collector, the table of loaded modules, function internals and code objects.
///
/// # Why is this bad?
/// They lead to the reference model, its outputs, and the code that judges.
///
/// # Example
/// ```python
/// for t in gc.get_objects(): ...
/// sys._getframe(1).f_locals
/// ```
///
/// # Use instead
/// The arguments of `forward` and the attributes of `self`.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule {
        id: "introspection",
        tier: Tier::Proof,
        help: "use the arguments of forward and the attributes of self only",
    },
    paths: &[
        "gc",
        "inspect",
        "dis",
        "builtins.breakpoint",
        "builtins.__builtins__",
        "builtins.__loader__",
        "builtins.__spec__",
        "sys._getframe",
        "sys._current_frames",
        "sys._current_exceptions",
        "sys.settrace",
        "sys.setprofile",
        "sys.modules",
        "sys.meta_path",
        "sys.path",
        "sys.path_hooks",
        "sys.path_importer_cache",
        "sys.addaudithook",
        "sys.getrefcount",
        "sys.excepthook",
        "sys.displayhook",
        "sys.unraisablehook",
        "sys.monitoring",
        "types.FunctionType",
        "types.LambdaType",
        "types.CodeType",
        "types.CellType",
        "types.FrameType",
        "types.TracebackType",
        "types.ModuleType",
        "weakref",
        "tracemalloc",
        "pdb",
        "bdb",
        "trace",
        "linecache",
        "pkgutil",
        "site",
        "ast",
        "symtable",
    ],
    except: &[],
    what: "looks into the running interpreter",
};
