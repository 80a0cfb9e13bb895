//! What the zygote needs so that its children can be confined.

use std::fs::File;
use std::sync::OnceLock;

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

use super::identity;

/// The zygote's own process id namespace, to come back to after a fork.
static OWN_NAMESPACE: OnceLock<Option<File>> = OnceLock::new();

/// The process is in neither of the two namespaces that it should be in.
#[derive(Debug, thiserror::Error)]
#[error("failed to return to the zygote's process id namespace: {0}")]
pub struct PidNamespaceError(nix::Error);

/// Called once by the zygote, before it has a second thread: without the right to make namespaces, a user namespace
/// gives it that right over its own children. Says what it found.
pub fn prepare_zygote() -> String {
    let prepared = match unshare(CloneFlags::CLONE_NEWUTS) {
        Ok(()) => "not needed".to_owned(),
        Err(_) => match enter_user_namespace() {
            Ok(()) => "entered".to_owned(),
            Err(why) => format!("not available: {why}"),
        },
    };
    OWN_NAMESPACE.get_or_init(|| File::open("/proc/self/ns/pid").ok());
    prepared
}

/// The next fork makes a child in a new process id namespace. False where that is not allowed.
pub fn enter_pid_namespace() -> bool {
    matches!(OWN_NAMESPACE.get(), Some(Some(_))) && unshare(CloneFlags::CLONE_NEWPID).is_ok()
}

/// Forks make children in the zygote's own namespace again.
pub fn leave_pid_namespace() -> Result<(), PidNamespaceError> {
    match OWN_NAMESPACE.get() {
        Some(Some(own)) => match setns(own, CloneFlags::CLONE_NEWPID) {
            // Without the right to enter, there was nothing to leave.
            Ok(()) | Err(nix::Error::EPERM) => Ok(()),
            Err(error) => Err(PidNamespaceError(error)),
        },
        _ => Ok(()),
    }
}

fn enter_user_namespace() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    let process = identity::own_process_folder().map_err(|error| error.to_string())?;
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("unshare: {error}"))?;
    identity::map_to_itself(&process, user, group)
}
