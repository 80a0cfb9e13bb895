//! The stages that run in Python, as typed functions: oracle, trace, init, compile, direct, confirm.
//!
//! Each is one job in a child of the zygote (crate `tilewright-cell`). What a hostile child answers is a claim: it is
//! checked for shape here and for truth by the stages after this one. Compiled kernels are kept in a [`Cache`], which
//! only this side writes.

mod cache;
mod compile;
mod confirm;
mod controls;
mod data;
mod error;
mod jobs;
mod locations;
mod permits;
mod resident;
mod runner;
mod teach;

pub use cache::Cache;
pub use compile::{Binary, Compiled, Ttir};
pub use confirm::ConfirmRequest;
pub use controls::{ControlResults, Controls};
pub use data::DataFile;
pub use error::{Failure, StageError};
pub use jobs::{
    ChangeRule, Direct, DirectRequest, Further, Init, InitTensor, KernelSite, Mix, OracleRequest, StageLimits,
    StageOptions, Trace, TraceRequest, Weights,
};
pub use locations::{Stripped, strip_locations};
pub use permits::{Permit, Permits};
pub use resident::{Compare, Compared, ComparedTensor, Equipment, Found, Look, Places, Rates, Ready, Resident, Same};
pub use runner::{Runner, Stage};
pub use teach::{Taught, TeachRequest, Teaching};
