//! The documents that pass between stages, as plain serde types without IO.
//!
//! Each document is versioned (`schema`), and its JSON schema is generated into `docs/reference/`.

mod controls;
mod dtype;
mod finding;
mod kernel;
mod launch;
mod number;
mod open_call;
mod opinion;
mod plan;
mod problem;
mod profile;
mod sanitize;
mod screen;
mod tensor;
mod timing;
mod verdict;

pub use controls::{Certificate, Control, ControlKind, Mark, ProfileCertificate};
pub use dtype::Dtype;
pub use finding::{Finding, Tier};
pub use kernel::{CompiledKernel, Constexpr, KernelSpec, LaunchOptions, Param, Resources, Target};
pub use launch::{LaunchReport, TensorSummary};
pub use number::Number;
pub use open_call::{OpenCall, Watched};
pub use opinion::{Opinion, OpinionAnswer, OpinionRole};
pub use plan::{Arg, Buffer, BufferSource, Choice, Distribution, Plan, PlanError, Step};
pub use problem::{
    Blob, CallData, CaseSignature, Expected, ExpectedTensor, Gradients, NamedTensor, OUTPUT, OracleCase, OracleData,
    Trial,
};
pub use profile::{Golden, NonFinite, Profile, ProfileError, Rule, Tolerance};
pub use sanitize::{Deed, Hazard, HazardKind, Party, SanitizeOutcome, SanitizeReport, Stopped};
pub use screen::{ScreenedFile, Screening};
pub use tensor::{TensorRef, Value, View, result_name};
pub use timing::{
    BaselineKind, BaselineTime, ConfigurationTime, DeviceLimits, DeviceState, Estimate, HostCosts, HostTime,
    LaunchTime, LeastWork, Limit, Timing, Work,
};
pub use verdict::{
    CandidateId, Fault, LaunchCost, Metrics, ProfileOutcome, Reason, StageTime, Trust, Verdict, VerdictKind, Worst,
};
