use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CandidateId, Dtype, Hazard, KernelSpec, LaunchCost, SanitizeOutcome, Stopped, Target};

/// One kernel, launched by itself in the emulator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchReport {
    /// `tilewright.run/1`
    pub schema: String,
    pub outcome: SanitizeOutcome,
    pub file: CandidateId,
    /// Line of the kernel's definition.
    pub line: u32,
    pub kernel: KernelSpec,
    pub grid: [u32; 3],
    /// What the kernel was compiled for.
    pub arch: Target,
    /// The tensors that were passed, as the launch left them.
    pub tensors: Vec<TensorSummary>,
    pub hazards: Vec<Hazard>,
    /// Where NaN and infinities are made that outputs hold, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub births: Vec<Hazard>,
    /// Why the kernel was not compiled or not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<LaunchCost>,
    /// The emulator's time for the launch with all checks, in seconds.
    pub seconds: f64,
    pub notes: Vec<String>,
}

impl LaunchReport {
    pub const SCHEMA: &'static str = "tilewright.run/1";

    /// Process exit code: 0 clean, 1 hazards or a kernel that does not compile, 3 not run through no fault of its own.
    pub fn exit_code(&self) -> u8 {
        self.outcome.exit_code(self.stopped.as_ref())
    }
}

/// A tensor after a launch. Figures are over its finite elements, none if there are none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TensorSummary {
    /// The parameter that it was passed for.
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    pub nans: u64,
    pub infinities: u64,
    /// Elements whose bits the launch changed, or that it wrote where nothing was before.
    pub changed: u64,
    /// Elements that nothing ever wrote; the figures leave them out.
    pub unwritten: u64,
    /// The first elements as text, `?` for one that nothing wrote.
    pub first: Vec<String>,
}
