//! What the zygote needs so that its children can be confined.

use std::fs::File;
use std::sync::OnceLock;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, getegid, geteuid};

use super::identity;

/// The zygote's own process id namespace, to come back to after a fork.
static OWN_NAMESPACE: OnceLock<Option<File>> = OnceLock::new();

/// The process is in neither of the two namespaces that it should be in.
#[derive(Debug, thiserror::Error)]
#[error("failed to return to the zygote's process id namespace: {0}")]
pub struct PidNamespaceError(nix::Error);

/// How the zygote comes by the right to make namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// It has the right.
    Privileged,
    /// It is now in a user namespace that gives it the right, and the next fork makes the first process of a process id
    /// namespace of its own. The zygote must go on in that process: it could not return to a namespace it does not own.
    ForkNext,
    /// It will not have the right, for this reason.
    Unprivileged(String),
}

/// Called once by the zygote, before it has a second thread.
pub fn prepare_zygote() -> Prepared {
    if unshare(CloneFlags::CLONE_NEWUTS).is_ok() {
        return Prepared::Privileged;
    }
    match enter_user_namespace() {
        Ok(()) => Prepared::ForkNext,
        Err(why) => Prepared::Unprivileged(why),
    }
}

/// The next fork makes a child in a new process id namespace. False where that is not allowed; then there is nothing
/// to leave.
pub fn enter_pid_namespace() -> bool {
    let own = OWN_NAMESPACE.get_or_init(|| File::open("/proc/self/ns/pid").ok());
    own.is_some() && unshare(CloneFlags::CLONE_NEWPID).is_ok()
}

/// Forks make children in the zygote's own namespace again.
pub fn leave_pid_namespace() -> Result<(), PidNamespaceError> {
    match OWN_NAMESPACE.get() {
        Some(Some(own)) => setns(own, CloneFlags::CLONE_NEWPID).map_err(PidNamespaceError),
        _ => Ok(()),
    }
}

/// Tried in a child first: a namespace that cannot be mapped would leave the zygote with no identity at all.
#[expect(unsafe_code, reason = "fork")]
fn enter_user_namespace() -> Result<(), String> {
    // SAFETY: the process has one thread, so the child may do anything; it never returns into the caller's code.
    match unsafe { nix::unistd::fork() }.map_err(|error| format!("fork: {error}"))? {
        ForkResult::Child => {
            let status = i32::from(move_to_user_namespace().is_err());
            // SAFETY: ends this process without running anything of the parent's.
            unsafe { libc::_exit(status) }
        }
        ForkResult::Parent { child } => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, 0)) => move_to_user_namespace(),
            _ => Err("this user may not make user namespaces".into()),
        },
    }
}

fn move_to_user_namespace() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    let process = identity::own_process_folder().map_err(|error| error.to_string())?;
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("unshare: {error}"))?;
    identity::map_to_itself(&process, user, group)?;
    unshare(CloneFlags::CLONE_NEWPID).map_err(|error| format!("unshare: {error}"))
}
