use ruff_python_ast::ExprAttribute;
use ruff_text_size::{Ranged, TextSize};
use tilewright_contract::Tier;

use super::checker::Checker;
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
        "traceback",
        "builtins.type.__call__",
        "builtins.object.__reduce__",
        "copyreg",
        "contextlib.sys",
        "functools._lru_cache_wrapper",
        "dataclasses._create_fn",
        "string.Formatter",
        "warnings.showwarning",
        "warnings._showwarnmsg",
        "types.coroutine",
        "types.GeneratorType",
    ],
    except: &[],
    what: "looks into the running interpreter",
};

/// Attributes that lead into frames, code and namespaces.
const INNER_ATTRIBUTES: [&str; 39] = [
    "__globals__",
    "__code__",
    "__closure__",
    "__subclasses__",
    "__builtins__",
    "__defaults__",
    "__kwdefaults__",
    "__loader__",
    "__getattribute__",
    "__self__",
    "__func__",
    "_sequence_nr",
    "__bases__",
    "__base__",
    "__mro__",
    "__reduce__",
    "__reduce_ex__",
    "__traceback__",
    "with_traceback",
    "tb_frame",
    "tb_next",
    "tb_lasti",
    "tb_lineno",
    "f_locals",
    "f_globals",
    "f_back",
    "f_code",
    "f_builtins",
    "f_trace",
    "gi_frame",
    "gi_code",
    "cr_frame",
    "cr_code",
    "ag_frame",
    "ag_code",
    "cell_contents",
    "co_consts",
    "co_code",
    "_unsafe_update_src",
];

pub(super) fn is_inner(attr: &str) -> bool {
    INNER_ATTRIBUTES.contains(&attr)
}

pub(super) fn attribute(checker: &mut Checker<'_, '_>, attribute: &ExprAttribute) {
    if is_inner(&attribute.attr) {
        report(checker, &attribute.attr, attribute.attr.start());
    }
}

pub(super) fn report(checker: &mut Checker<'_, '_>, attr: &str, at: TextSize) {
    checker.report(&RULE.rule, Some(at), format!("`{attr}` {}", RULE.what));
}
