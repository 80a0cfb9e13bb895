//! What this machine offers: the data behind `tilewright doctor`.

mod cuda;
mod sandbox;

use std::path::Path;

use serde::Serialize;

pub use cuda::{Cuda, Gpu};

use crate::{Layer, Layers, PythonReport, find_python, probe_python};

/// Something that is there, or why it is not and what to do about it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding<T> {
    /// It is there.
    Found(T),
    /// It is not.
    Missing {
        /// What was tried, and what came of it.
        why: String,
        /// What the user can do.
        hint: String,
    },
}

/// What this machine offers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The kernel's name and release.
    pub kernel: String,
    /// The processor's architecture.
    pub architecture: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// Memory that is free or can be freed, in bytes.
    pub memory_available_bytes: u64,
    /// The interpreter that would be used.
    pub python: Finding<PythonReport>,
    /// The layers that a child really got.
    pub sandbox: Finding<Layers>,
    /// The CUDA driver and its devices.
    pub cuda: Finding<Cuda>,
}

/// Looks at this machine, and tries the sandbox in a child. `python` is the `--python` option.
pub fn inspect(python: Option<&Path>) -> Report {
    let python = find_python(python).and_then(|python| probe_python(&python));
    let sandbox = match &python {
        Ok(report) if report.tilewright.is_some() => sandbox::try_out(&report.path),
        _ => Finding::Missing {
            why: "the sandbox is part of the Python package".into(),
            hint: "run `make venv` first".into(),
        },
    };
    let (memory_bytes, memory_available_bytes) = memory();
    let kernel = nix::sys::utsname::uname()
        .map(|name| format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()));
    Report {
        kernel: kernel.unwrap_or_else(|error| error.to_string()),
        architecture: std::env::consts::ARCH.to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes,
        memory_available_bytes,
        python: match python {
            Ok(report) => Finding::Found(report),
            Err(error) => Finding::Missing { why: error.to_string(), hint: "run `make venv`".into() },
        },
        sandbox,
        cuda: cuda::look(),
    }
}

impl Layer {
    /// What a user can do to get this layer.
    pub fn hint(self) -> &'static str {
        match self {
            Self::PidNamespace
            | Self::MountNamespace
            | Self::NetworkNamespace
            | Self::IpcNamespace
            | Self::UtsNamespace => {
                "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces, \
                 kernel.apparmor_restrict_unprivileged_userns=0), or, in a container, run it with \
                 --security-opt seccomp=unconfined or --cap-add SYS_ADMIN"
            }
            Self::Identity => "allow user namespaces; as root, make Python and its packages readable by other users",
            Self::Landlock => "use Linux 5.13 or newer with `landlock` in the kernel's lsm= list",
            Self::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER",
            Self::NoNewPrivileges | Self::ResourceLimits => "this should work on every Linux: please report it",
            Self::ControlGroup => {
                "optional: run as root, or in a delegated control group; without it each process is limited by itself"
            }
        }
    }
}

/// Total and available memory in bytes.
fn memory() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
            .map_or(0, |kilobytes| kilobytes << 10)
    };
    (field("MemTotal:"), field("MemAvailable:"))
}
