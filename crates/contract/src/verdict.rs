use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Finding, Opinion, Resources, Target, Timing};

/// What was decided about one candidate, by which evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// `tilewright.verdict/1`
    pub schema: String,
    pub verdict: VerdictKind,
    pub fault: Fault,
    pub problem: CandidateId,
    pub candidate: CandidateId,
    /// `cpu` or `cuda:N`.
    pub target: String,
    /// What the kernels were compiled for.
    pub arch: Option<Target>,
    pub trust: Trust,
    /// Outcome under each asked profile; the first one decided.
    pub profiles: BTreeMap<String, ProfileOutcome>,
    /// Why, the deciding reason first.
    pub reasons: Vec<Reason>,
    /// Findings that did not decide.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// By kernel function and configuration.
    pub resources: BTreeMap<String, Resources>,
    pub timing: Option<Timing>,
    /// What each launch of one call moved and computed, on the problem's own shapes; counted where the emulator ran it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<LaunchCost>,
    pub stages: Vec<StageTime>,
    /// How weights were matched: `state_dict`, `value`, `folded`, `none`.
    pub weights: Option<String>,
    /// Remarks: float64 not available, a case left out, and the like.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What a language model thinks of an accepted candidate, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<Opinion>,
}

impl Verdict {
    pub const SCHEMA: &'static str = "tilewright.verdict/1";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    Accepted,
    Rejected,
    Incorrect,
    CompileError,
    LaunchError,
    MemoryFault,
    Race,
    Nondeterministic,
    Timeout,
    OutOfMemory,
    Untraceable,
    Unsupported,
    ProblemDefect,
    Infrastructure,
}

impl VerdictKind {
    pub const ALL: [Self; 14] = [
        Self::Accepted,
        Self::Rejected,
        Self::Incorrect,
        Self::CompileError,
        Self::LaunchError,
        Self::MemoryFault,
        Self::Race,
        Self::Nondeterministic,
        Self::Timeout,
        Self::OutOfMemory,
        Self::Untraceable,
        Self::Unsupported,
        Self::ProblemDefect,
        Self::Infrastructure,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Incorrect => "incorrect",
            Self::CompileError => "compile_error",
            Self::LaunchError => "launch_error",
            Self::MemoryFault => "memory_fault",
            Self::Race => "race",
            Self::Nondeterministic => "nondeterministic",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out_of_memory",
            Self::Untraceable => "untraceable",
            Self::Unsupported => "unsupported",
            Self::ProblemDefect => "problem_defect",
            Self::Infrastructure => "infrastructure",
        }
    }

    /// Whose fault it is.
    pub fn fault(self) -> Fault {
        match self {
            Self::Accepted => Fault::None,
            Self::ProblemDefect => Fault::Problem,
            Self::Unsupported | Self::Infrastructure => Fault::Infrastructure,
            _ => Fault::Candidate,
        }
    }

    /// Process exit code: 0 accepted, 1 not accepted, 3 not decided through no fault of the candidate.
    pub fn exit_code(self) -> u8 {
        match self.fault() {
            Fault::None => 0,
            Fault::Candidate => 1,
            Fault::Problem | Fault::Infrastructure => 3,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    None,
    Candidate,
    Problem,
    Infrastructure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The candidate's Python never saw data.
    Replay,
    /// The candidate ran on real data in its own process.
    Direct,
}

/// A file and the digest of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateId {
    pub path: String,
    /// `blake3:…`
    pub digest: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileOutcome {
    pub pass: bool,
    pub version: u32,
    /// The worst figures over all deciding trials.
    pub metrics: Metrics,
    /// Regimes and cases that fail but do not decide this profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub robustness: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Largest absolute difference over finite elements.
    pub max_abs: f64,
    /// Largest relative difference `|d| / max(|g|, tiny)`.
    pub max_rel: f64,
    /// Mean relative error as the profile defines it.
    pub mean_rel: f64,
    /// `rms(d) / rms(g)`.
    pub rms: f64,
    /// Elements outside the tolerance.
    pub mismatched: u64,
    pub elements: u64,
    pub worst: Option<Worst>,
}

/// The element that is worst off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worst {
    /// `output[1]`, `state.running_mean`.
    pub path: String,
    pub index: Vec<u64>,
    /// As text: JSON has no NaN.
    pub got: String,
    pub want: String,
    pub case: String,
    pub regime: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Kebab-case code, stable: `torch-compute`, `wrong-dtype`, `values`, `out-of-bounds`.
    pub code: String,
    pub message: String,
    /// Line in the candidate, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The next thing to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// What one launch moved and computed, counted by the emulator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchCost {
    pub kernel: String,
    /// Line of the launch in the candidate.
    pub line: u32,
    pub grid: [u32; 3],
    pub bytes_loaded: u64,
    pub bytes_stored: u64,
    /// Bytes touched at least once, in sectors of 32: what must cross the memory's pins when every cache is perfect.
    pub unique_bytes: u64,
    /// Sectors of 32 bytes touched by groups of 32 lanes, and the fewest that could hold what they access. The quotient
    /// estimates how well accesses coalesce.
    pub sectors: u64,
    pub least_sectors: u64,
    /// Elements touched by atomic operations.
    pub atomics: u64,
    /// Floating operations on single elements.
    pub flops: u64,
    /// Multiplications plus additions of `tl.dot`.
    pub dot_flops: u64,
    /// `least_sectors / sectors`: 1 where every group of 32 lanes accesses memory side by side, 0.125 where each lane of
    /// 4 bytes takes a sector of its own. None without an access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<f64>,
    /// Arithmetic intensity: `(flops + dot_flops) / unique_bytes`, in operations per byte. None without an access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intensity: Option<f64>,
}

impl LaunchCost {
    /// Fills in the figures that follow from the counts.
    pub fn with_ratios(mut self) -> Self {
        let ratio = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        self.coalescing = ratio(self.least_sectors, self.sectors);
        self.intensity = ratio(self.flops.saturating_add(self.dot_flops), self.unique_bytes);
        self
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageTime {
    pub stage: String,
    pub seconds: f64,
    /// Whether a cache answered.
    pub cached: bool,
}

impl From<&Finding> for Reason {
    fn from(finding: &Finding) -> Self {
        Self {
            code: finding.rule.clone(),
            message: finding.message.clone(),
            line: (finding.line != 0).then_some(finding.line),
            help: finding.help.clone(),
        }
    }
}
