use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses process-wide settings of torch that change other code: the default dtype, the number of threads, determinism.
/// Refuses changes of the environment in functions, and of variables that torch, Triton or CUDA read; other changes at
/// import are evidence.
///
/// # Why is this bad?
/// They slow the reference down, or change the inputs and outputs that come later.
///
/// # Example
/// ```python
/// torch.set_default_dtype(torch.bfloat16)
/// torch.set_num_threads(1)
/// os.environ["TRITON_INTERPRET"] = "1"
/// ```
///
/// # Use instead
/// Give dtype and device explicitly.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "global-state", tier: Tier::Proof, help: "remove it; set dtypes and devices explicitly" },
    paths: &[
        "torch.set_default_dtype",
        "torch.set_default_tensor_type",
        "torch.set_num_threads",
        "torch.set_num_interop_threads",
        "torch.use_deterministic_algorithms",
        "torch.set_deterministic_debug_mode",
        "torch.set_flush_denormal",
        "torch.set_printoptions",
        "torch.set_warn_always",
        "torch.utils.deterministic",
        "torch.set_rng_state",
        "torch.random.set_rng_state",
        "torch.cuda.set_rng_state",
        "torch.cuda.set_rng_state_all",
        "torch.cuda.set_per_process_memory_fraction",
        "torch.cuda.set_sync_debug_mode",
        "torch.cuda.tunable",
        "logging.setLoggerClass",
        "logging.setLogRecordFactory",
        "logging.disable",
        "logging.captureWarnings",
        "logging.shutdown",
        "logging.config",
        "torch.nn.modules.module.register_module_forward_hook",
        "torch.nn.modules.module.register_module_forward_pre_hook",
        "torch.nn.modules.module.register_module_full_backward_hook",
        "torch.nn.modules.module.register_module_full_backward_pre_hook",
        "torch.nn.modules.module.register_module_backward_hook",
        "torch.nn.modules.module.register_module_buffer_registration_hook",
        "torch.nn.modules.module.register_module_module_registration_hook",
        "torch.nn.modules.module.register_module_parameter_registration_hook",
        "sys.setrecursionlimit",
        "sys.setswitchinterval",
        "sys.set_int_max_str_digits",
    ],
    except: &[],
    what: "changes a setting of the whole process",
};
