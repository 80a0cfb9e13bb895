use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Reports questions about memory in use, clocks, temperature and processes of the GPU.
///
/// # Why is this bad?
/// The answers change from call to call and tell how the file is run.
///
/// # Example
/// ```python
/// if torch.cuda.memory_allocated() > 0: ...
/// ```
///
/// # Use instead
/// What does not change: `torch.cuda.get_device_properties`, `get_device_capability`.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule {
        id: "reads-device-state",
        tier: Tier::Evidence,
        help: "ask for what does not change, such as get_device_properties",
    },
    paths: &[
        "torch.cuda.memory",
        "torch.cuda.memory_allocated",
        "torch.cuda.memory_cached",
        "torch.cuda.memory_reserved",
        "torch.cuda.memory_snapshot",
        "torch.cuda.memory_stats",
        "torch.cuda.memory_stats_as_nested_dict",
        "torch.cuda.memory_summary",
        "torch.cuda.memory_usage",
        "torch.cuda.max_memory_allocated",
        "torch.cuda.max_memory_cached",
        "torch.cuda.max_memory_reserved",
        "torch.cuda.host_memory_stats",
        "torch.cuda.mem_get_info",
        "torch.cuda.device_memory_used",
        "torch.cuda.list_gpu_processes",
        "torch.cuda.utilization",
        "torch.cuda.temperature",
        "torch.cuda.power_draw",
        "torch.cuda.clock_rate",
        "torch.accelerator.memory",
        "torch.cuda.is_current_stream_capturing",
    ],
    except: &[],
    what: "asks for a state of the device that changes",
};
