//! Runs Triton IR on a CPU: exact types, every access checked against its allocation, every stored byte marked.
//!
//! [`Kernel::new`] lowers a function of a parsed module to steps over registers; [`launch`] runs them for each
//! program of a grid, one step on a whole block at a time. Programs run one after the other in one thread, so a
//! launch is deterministic; separate launches on separate memories may run in parallel.

mod block;
mod code;
mod codec;
mod convert;
mod defects;
mod exec;
mod fault;
mod findings;
mod functions;
mod kernel;
mod lower;
mod marks;
mod memory;
mod numeric;
mod types;

pub use fault::{Access, Birth, Defect, DefectKind, Fault, Limits, Report, Site, Unsupported, Usage};
pub use kernel::{Arg, Kernel, launch};
pub use memory::{AllocId, Init, Memory, shadow};
