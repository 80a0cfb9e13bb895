use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses looks at the state of random number generators. Drawing random numbers is fine.
///
/// # Why is this bad?
/// The state tells which inputs come next, or whether a call is a repetition.
///
/// # Example
/// ```python
/// if torch.initial_seed() == 42: ...
/// ```
///
/// # Use instead
/// `torch.randint` for the seed of a kernel's own generator.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "reads-generator", tier: Tier::Proof, help: "draw a seed with torch.randint" },
    paths: &[
        "torch.initial_seed",
        "torch.get_rng_state",
        "torch.default_generator",
        "torch.random.get_rng_state",
        "torch.random.initial_seed",
        "torch.random.default_generator",
        "torch.random.fork_rng",
        "torch.cuda.initial_seed",
        "torch.cuda.get_rng_state",
        "torch.cuda.get_rng_state_all",
        "torch.cuda.default_generators",
    ],
    except: &[],
    what: "looks at the state of a random number generator",
};
