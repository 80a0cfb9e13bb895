use std::collections::BTreeMap;

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
    /// Cost of measuring, which is taken off every time: what events measure around a kernel that does nothing, less the
    /// kernel.
    pub overhead_us: f64,
    /// Median of each launch by itself, cold, in the order of the plan.
    pub launches: Vec<LaunchTime>,
    /// What the reference takes, timed in turns with the candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<BaselineTime>,
    /// What one call has to do at least, by the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// How near this comes to what the device can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// What the host needs to put one call into the device's queue, and what a call then takes end to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostTime>,
    /// The device before and after it was measured, where it says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<DeviceState>,
    /// Every autotune configuration that fits, the fastest first; empty without an autotuner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ConfigurationTime>,
}

/// A figure with its 95 % interval, which holds what varies from call to call and from one place in memory to the next.
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

/// How the reference is run to be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineKind {
    /// As it is.
    Eager,
    /// `torch.compile` with its defaults.
    Compile,
    /// `torch.compile` that tries configurations of its kernels.
    MaxAutotune,
}

impl BaselineKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Compile => "compile",
            Self::MaxAutotune => "max-autotune",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineTime {
    pub baseline: BaselineKind,
    /// One call with a cold second-level cache.
    pub device_us: Estimate,
    pub calls: u32,
    /// Recorded as a graph, as the candidate's launches are; without one, the time holds the gaps between its kernels.
    pub graph: bool,
    /// One of many calls in a row as a program makes them, Python's part included; measured by the host's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_to_end_us: Option<f64>,
    /// How many times faster the candidate is. An interval that holds 1 decides nothing.
    pub speedup: Estimate,
}

/// What one call has to do at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Floating operations of matrix products, convolutions and attentions.
    pub flops: u64,
    /// Bytes of inputs, weights and outputs, each once.
    pub bytes: u64,
    /// What of that no program can leave out.
    #[serde(default)]
    pub least: LeastWork,
}

/// What no program that computes the same can do less of, found by trying what changes the reference's results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeastWork {
    /// Bytes of inputs and weights that matter on the timed inputs.
    pub read: u64,
    /// Bytes of results.
    pub written: u64,
    /// Floating operations of one matrix product.
    pub flops: u64,
}

/// What a device could do at best, by its own measured rates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Bytes a second that a large copy within its memory moves, read and written together.
    pub bytes_per_second: f64,
    /// Operations a second of a large matrix product in the dtype of the problem's first float input.
    pub flops_per_second: f64,
    /// The longer of the times that the work's bytes and its operations take at these rates.
    pub floor_us: f64,
    /// `floor_us` over the candidate's device time: 1 is as fast as the device can be.
    pub fraction: f64,
    /// A time that no program that computes the same can stay below on this device, with a margin; 0 where the work is
    /// too small to tell.
    #[serde(default)]
    pub least_us: f64,
}

/// The time that a call takes with Python's part in it. An estimate: the candidate's Python never runs where a clock is,
/// so its steps are counted and multiplied with what each kind costs in a program of our own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostTime {
    /// A call of an empty module, the launches, and the other steps of the plan.
    pub us: f64,
    /// The longer of `us` and the device time: what one of many calls in a row takes.
    pub end_to_end_us: f64,
    /// The device waits for the host.
    pub launch_bound: bool,
}

/// What Python's part of a call costs on this machine, in microseconds, measured in a program of our own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCosts {
    /// Calling a module that does nothing.
    pub module: f64,
    /// Launching a Triton kernel.
    pub launch: f64,
    /// Another step that does not compute: allocating a tensor, a copy, a fill.
    pub step: f64,
}

/// What a device can do at best, and its host, as measured once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceLimits {
    /// The device's own identity, its driver, and the software that measured.
    pub device: String,
    pub driver: String,
    pub software: String,
    /// Seconds since 1970.
    pub measured_at: u64,
    /// Bytes a second of a large copy within its memory, read and written together.
    pub copy: f64,
    /// Bytes of the second-level cache.
    pub cache_bytes: u64,
    /// What events measure around a kernel that does nothing, in microseconds.
    pub nothing_us: f64,
    /// Operations a second of a large matrix product, by dtype.
    pub matmul: BTreeMap<String, f64>,
    pub host: HostCosts,
}

/// What a device says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceState {
    pub name: String,
    pub driver: String,
    /// MHz of the multiprocessors and of the memory.
    pub clock_mhz: u32,
    pub memory_clock_mhz: u32,
    /// Degrees Celsius.
    pub temperature: u32,
    pub power_watts: f64,
    /// Why clocks are lower than they could be, as the driver calls it: `SW_POWER_CAP`, `HW_THERMAL_SLOWDOWN`.
    pub throttled: Vec<String>,
}
