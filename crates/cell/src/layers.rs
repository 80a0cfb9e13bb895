//! The layers of a confinement, and which of them are in force.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// One layer of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Own process ids: the job sees and can signal only its own descendants, which die with it.
    PidNamespace,
    /// Own file system: a private root that holds only what the job may read, and a size-limited scratch.
    MountNamespace,
    /// Own, empty network: no interface.
    NetworkNamespace,
    /// Own System V IPC and POSIX message queues.
    IpcNamespace,
    /// Own host name.
    UtsNamespace,
    /// An identity that no other process has: a user id of its own, or a user namespace of its own.
    Identity,
    /// No process can gain privileges by starting a program.
    NoNewPrivileges,
    /// Landlock: reads within an allow-list, writes within the scratch, no TCP.
    Landlock,
    /// seccomp: system calls that a compiler or a tracer never needs are refused.
    Seccomp,
    /// Resource limits: memory, processor time, file size, processes, descriptors, no core dumps.
    ResourceLimits,
    /// A control group of its own that bounds the memory and the processes of the whole job.
    ControlGroup,
}

impl Layer {
    /// All layers, outermost first.
    pub const ALL: [Self; 11] = [
        Self::PidNamespace,
        Self::MountNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::Identity,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::ResourceLimits,
        Self::ControlGroup,
    ];

    /// Whether `strict` refuses to run without this layer. A control group needs rights that few users have, and
    /// the resource limits bound the same things for each process.
    pub fn required_when_strict(self) -> bool {
        self != Self::ControlGroup
    }

    /// Whether no confinement at all is given without this layer: every Linux that we support has it.
    pub fn always_required(self) -> bool {
        matches!(self, Self::NoNewPrivileges | Self::Seccomp | Self::ResourceLimits)
    }
}

/// What a confinement achieved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Layers in force.
    pub active: BTreeSet<Layer>,
    /// Layers that are not, each with the reason.
    pub missing: BTreeMap<Layer, String>,
}

impl Layers {
    /// Whether `layer` is in force.
    pub fn has(&self, layer: Layer) -> bool {
        self.active.contains(&layer)
    }

    /// Notes the outcome of applying `layer`, and gives whether it is in force.
    pub(crate) fn note(&mut self, layer: Layer, outcome: Result<(), String>) -> bool {
        match outcome {
            Ok(()) => self.active.insert(layer),
            Err(why) => {
                self.missing.insert(layer, why);
                return false;
            }
        };
        true
    }

    /// The first layer that is missing although it must be there.
    pub fn first_unmet(&self, strict: bool) -> Option<(Layer, &str)> {
        self.missing
            .iter()
            .find(|(layer, _)| layer.always_required() || (strict && layer.required_when_strict()))
            .map(|(layer, why)| (*layer, why.as_str()))
    }
}
