//! What a forked child does to itself before it runs anything that is not ours. Design: `docs/design/cell.md`.
//!
//! [`confine`] is called in the child, which has one thread, by the Python side through `tilewright._core`.

mod control_group;
mod filesystem;
mod identity;
mod namespaces;
mod resources;
mod syscalls;
mod zygote;

use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::PathBuf;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

pub(crate) use control_group::ControlGroup;
pub(crate) use resources::OUT_OF_TIME_STATUS;
pub use zygote::{PidNamespaceError, Prepared, enter_pid_namespace, leave_pid_namespace, prepare_zygote};

use crate::{Layer, Layers, Limits};

/// What a child is confined to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Confinement {
    /// The one folder that the job may write. Must exist and be empty.
    pub scratch: PathBuf,
    /// What the job may use.
    pub limits: Limits,
    /// Trusted code gets the limits only: it keeps the file system, the network and the user's identity.
    pub trusted: bool,
    /// Refuse to run when a layer is missing.
    pub strict: bool,
    /// Files and folders that can be read.
    pub read_paths: Vec<PathBuf>,
    /// Files and folders that can be read and executed, where `limits.processes` allows another process.
    pub execute_paths: Vec<PathBuf>,
    /// Device files that can be read and written.
    pub devices: Vec<PathBuf>,
    /// Control groups to join.
    pub control_groups: Vec<PathBuf>,
    /// A number that no job running at the same time has: it gives the job an identity of its own.
    pub number: u32,
}

/// A confinement in force.
#[derive(Debug, Serialize)]
pub struct Confined {
    /// What is in force.
    pub layers: Layers,
    /// The scratch folder, where it is a file system of the job's own that the parent cannot reach by its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch_fd: Option<i32>,
}

/// Why a child must not run.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// A layer that must be there is missing.
    #[error("the sandbox layer {layer:?} is not available: {why}")]
    Missing {
        /// The layer.
        layer: Layer,
        /// What the kernel said.
        why: String,
    },
    /// A step failed half-way, after which the process is of no use.
    #[error("failed to {0}")]
    Step(String),
}

/// Confines the calling process, which must have one thread. On an error it must end at once.
pub fn confine(confinement: &Confinement) -> Result<Confined, ConfineError> {
    let mut layers = Layers::default();
    let control = control_group::join(&confinement.control_groups);
    layers.note(Layer::ControlGroup, control);
    let pid = namespaces::pid_namespace();
    layers.note(Layer::PidNamespace, pid);
    // A session of its own: `kill(0, …)` must not reach the zygote's process group.
    nix::unistd::setsid().map_err(|error| ConfineError::Step(format!("start a session: {error}")))?;
    // The private root need not have a /proc to read this from.
    let memory = resources::private_memory();
    if confinement.trusted {
        if layers.has(Layer::PidNamespace) {
            filesystem::show_own_processes();
        }
        layers.note(Layer::ResourceLimits, resources::limit(&confinement.limits, memory));
        die_with_parent()?;
        return Ok(Confined { layers, scratch_fd: None });
    }

    let process = identity::own_process_folder()?;
    namespaces::isolate(&mut layers);
    let identity = identity::choose(confinement.number);
    let scratch = filesystem::private_root(confinement, &identity, &mut layers)?;
    layers.note(Layer::ResourceLimits, resources::limit(&confinement.limits, memory));
    identity::assume(identity, process, confinement, &mut layers)?;
    if layers.has(Layer::Identity) {
        resources::limit_processes(&confinement.limits);
    }
    die_with_parent()?;
    layers.note(Layer::NoNewPrivileges, prctl::set_no_new_privs().map_err(|error| error.to_string()));
    let private_root = layers.has(Layer::MountNamespace);
    layers.note(Layer::Landlock, filesystem::landlock(confinement, private_root));
    // Without the mark the process does not own its entries of /proc, where CUDA names its threads.
    prctl::set_dumpable(!confinement.devices.is_empty())
        .map_err(|error| ConfineError::Step(format!("forbid dumps: {error}")))?;
    let own_pids = layers.has(Layer::PidNamespace);
    layers.note(Layer::Seccomp, syscalls::filter(&confinement.limits, own_pids, !confinement.devices.is_empty()));
    if let Some((layer, why)) = layers.first_unmet(confinement.strict) {
        return Err(ConfineError::Missing { layer, why: why.to_owned() });
    }
    Ok(Confined { layers, scratch_fd: scratch.map(OwnedFd::into_raw_fd) })
}

/// Has the kernel kill the calling process when its parent, the zygote, dies. Changing the user id clears it, so it comes after that.
/// A zygote that died before this is noticed too: the job socket then closes before the request comes.
pub fn die_with_parent() -> Result<(), ConfineError> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| ConfineError::Step(format!("die with the zygote: {error}")))
}
