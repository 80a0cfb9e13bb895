use tilewright_contract::Tier;

use super::{Rule, below_any};

/// # What it does
/// Reports torch's precision and tuning flags.
///
/// # Why is this bad?
/// It is harmless for the kernels of a candidate, but it changes what torch's own operations compute, and a
/// candidate should compute with its kernels only.
///
/// # Example
/// ```python
/// torch.backends.cuda.matmul.allow_tf32 = True
/// ```
///
/// # Use instead
/// `input_precision="tf32"` in `tl.dot`.
pub(crate) const RULE: Rule = Rule {
    id: "precision-flag",
    tier: Tier::Evidence,
    help: "state the precision in the kernel: `tl.dot(…, input_precision=…)`",
};

const CALLS: [&str; 6] = [
    "torch.set_float32_matmul_precision",
    "torch.set_default_device",
    "torch.manual_seed",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "torch.seed",
];

const FLAGS: [&str; 5] = [
    "allow_tf32",
    "fp32_precision",
    "benchmark",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
];

/// Whether `path` seeds a generator of the process.
pub(crate) fn is_seed(path: &str) -> bool {
    path.contains("seed")
}

pub(crate) fn is_call(path: &str) -> bool {
    below_any(path, &CALLS)
}

/// Whether `base.attr = …` sets such a flag.
pub(crate) fn is_flag(base: &str, attr: &str) -> bool {
    below_any(base, &["torch.backends"]) && FLAGS.contains(&attr)
}
