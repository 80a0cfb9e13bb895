//! Sandboxed processes: confinement, the zygote and its jobs, and what this machine offers.

mod confine;
mod layers;
mod limits;
mod zygote;

pub use confine::{
    ConfineError, Confined, Confinement, PidNamespaceError, confine, enter_pid_namespace, leave_pid_namespace,
    prepare_zygote,
};
pub use layers::{Layer, Layers};
pub use limits::Limits;
pub use zygote::{CellError, Death, Job, Outcome, Versions, Zygote, ZygoteOptions};
