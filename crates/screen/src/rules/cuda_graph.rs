use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses CUDA graphs captured by the file, memory pools and allocators of its own, and streams made from raw handles.
///
/// # Why is this bad?
/// A graph replays on the addresses of its capture: inputs and outputs are those of an earlier call. Nobody can follow it.
///
/// # Example
/// ```python
/// self.graph = torch.cuda.CUDAGraph()
/// ```
///
/// # Use instead
/// Plain launches; whoever serves the module can capture it.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule {
        id: "cuda-graph",
        tier: Tier::Proof,
        help: "launch plainly; whoever serves the module can capture it",
    },
    paths: &[
        "torch.cuda.CUDAGraph",
        "torch.cuda.graph",
        "torch.cuda.graphs",
        "torch.cuda.graph_pool_handle",
        "torch.cuda.make_graphed_callables",
        "torch.cuda.MemPool",
        "torch.cuda.use_mem_pool",
        "torch.cuda.CUDAPluggableAllocator",
        "torch.cuda.change_current_allocator",
        "torch.cuda.caching_allocator_alloc",
        "torch.cuda.caching_allocator_delete",
        "torch.cuda.ExternalStream",
        "torch.cuda.get_stream_from_external",
        "torch.cuda.GreenContext",
    ],
    except: &[],
    what: "takes the order or the memory of launches into the file's own hands",
};
