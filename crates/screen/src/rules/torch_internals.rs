use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses the C bindings, the dispatcher's modes and other private modules of torch.
///
/// # Why is this bad?
/// They can switch off the dispatch that records what `forward` does, and they compute.
///
/// # Example
/// ```python
/// with torch.utils._python_dispatch._disable_current_modes(): ...
/// torch._C._nn.gelu(x)
/// ```
///
/// # Use instead
/// Public names of torch.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "torch-internals", tier: Tier::Proof, help: "use the public names of torch" },
    paths: &[
        "torch._C",
        "torch._subclasses",
        "torch._ops",
        "torch._guards",
        "torch._functorch",
        "torch._prims",
        "torch._prims_common",
        "torch._refs",
        "torch._decomp",
        "torch._higher_order_ops",
        "torch._library",
        "torch._dispatch",
        "torch._custom_op",
        "torch._custom_ops",
        "torch._meta_registrations",
        "torch._lowrank",
        "torch._python_dispatcher",
        "torch._tensor",
        "torch._logging",
        "torch._jit_internal",
        "torch._sources",
        "torch._weights_only_unpickler",
        "torch.utils._python_dispatch",
        "torch.utils._mode_utils",
        "torch.overrides",
        "torch.fx.experimental",
        "torch.testing._internal",
    ],
    except: &[],
    what: "reaches into the private parts of torch",
};
