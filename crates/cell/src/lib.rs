//! Sandboxed processes: confinement, the zygote and its jobs, and what this machine offers.

mod confine;
mod inspect;
mod layers;
mod limits;
mod python;
mod zygote;

pub use confine::{
    ConfineError, Confined, Confinement, PidNamespaceError, Prepared, confine, die_with_parent, enter_pid_namespace,
    leave_pid_namespace, prepare_zygote,
};
pub use inspect::{Cuda, Finding, Gpu, Report, inspect};
pub use layers::{Layer, Layers};
pub use limits::Limits;
pub use python::{PythonError, PythonReport, TORCH_VERSION, TRITON_VERSION, find_python, probe_python};
pub use zygote::{CellError, Death, Job, Outcome, Versions, Zygote, ZygoteOptions};
