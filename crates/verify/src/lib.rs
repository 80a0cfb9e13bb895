//! The spine: one candidate through screen, trace, compile, replay and judge to one verdict.
//!
//! The main path is [`Verifier::verify`] in `pipeline`; the design is in `docs/design/overview.md`.

mod batch;
mod build;
mod comparison;
mod configurations;
mod confirm;
mod controls;
mod coverage;
mod direct;
mod draft;
mod execute;
mod figures;
mod floor;
mod judging;
mod keep;
mod kernel;
mod lane;
mod launch;
mod limits;
mod log;
mod opinion;
mod options;
mod oracle;
mod pipeline;
mod problem;
mod replay;
mod room;
mod sanitize;
mod shared;
mod shelf;
mod target;
mod timing;
mod twin;
mod weights;

pub use batch::{Group, Task, Width, batch, serve};
pub use build::kernel_name;
pub use draft::Watch;
pub use launch::{BindError, Bound, Fill, Given, GivenTensor, Launched, Launching, bind, integer, launch};
pub use log::{Log, LogError};
pub use options::{Mode, Options};
pub use pipeline::Verifier;
pub use problem::{Problem, digest};
pub use target::{Device, TargetError, arch_name, parse_arch};
