use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long an accepted candidate takes on the problem's own shapes: device time, measured by events on the device
/// around the whole plan, on inputs that are put back before each call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// One call with a cold second-level cache.
    pub device_us: Estimate,
    /// One call right after its inputs were written: what fits is in the second-level cache.
    pub warm_us: Estimate,
    /// Calls behind `device_us`.
    pub calls: u32,
    /// Median of each launch by itself, cold, in the order of the plan.
    pub launches: Vec<LaunchTime>,
    /// Every autotune configuration that fits, the fastest first; empty without an autotuner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ConfigurationTime>,
}

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchTime {
    pub kernel: String,
    /// Line of the launch in the candidate.
    pub line: u32,
    pub us: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationTime {
    /// Each autotuner with the configuration it takes.
    pub choices: String,
    pub us: f64,
}
