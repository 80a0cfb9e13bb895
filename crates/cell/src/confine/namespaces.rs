//! Namespaces: what a child cannot see it cannot touch.

use nix::sched::{CloneFlags, unshare};

use crate::{Layer, Layers};

/// The zygote forks into a new process id namespace (see `zygote.rs`), where the child is the first process.
pub(super) fn pid_namespace() -> Result<(), String> {
    match nix::unistd::getpid().as_raw() {
        1 => Ok(()),
        _ => Err("the zygote may not make process id namespaces".into()),
    }
}

/// Leaves the network, the IPC objects and the host name behind. Mounts follow in `filesystem.rs`.
pub(super) fn isolate(layers: &mut Layers) {
    for (layer, flag) in [
        (Layer::NetworkNamespace, CloneFlags::CLONE_NEWNET),
        (Layer::IpcNamespace, CloneFlags::CLONE_NEWIPC),
        (Layer::UtsNamespace, CloneFlags::CLONE_NEWUTS),
    ] {
        layers.note(layer, unshare(flag).map_err(|error| format!("unshare: {error}")));
    }
    if layers.has(Layer::UtsNamespace) {
        // Best effort: the name is a courtesy, not a defence.
        let _ = nix::unistd::sethostname("cell");
    }
}
