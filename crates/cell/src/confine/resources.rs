//! Resource limits of a single process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::Limits;

/// Threads that a job may have on top of its processes.
pub(super) const THREADS: u32 = 32;

/// Exit status of a job that went over its processor time.
pub(crate) const OUT_OF_TIME_STATUS: i32 = 87;

/// Bytes of the first thread's stack, which `RLIMIT_DATA` does not count.
const STACK: u64 = 64 << 20;

/// Open descriptors at a time.
const DESCRIPTORS: u64 = 256;

/// Sets the limits of the calling process and of all that it starts. `private_memory` is what it shares with the zygote.
pub(super) fn limit(limits: &Limits, private_memory: Result<u64, String>) -> Result<(), String> {
    let seconds = limits.cpu.as_millis().div_ceil(1000) as u64;
    // Bytes of private writable memory, counted from what the child shares with the zygote. Address space would be
    // the wrong measure: torch and CUDA reserve far more than they use.
    let data = private_memory?.saturating_add(limits.memory_bytes);
    for (resource, value) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_DATA, data),
        (Resource::RLIMIT_FSIZE, limits.disk_bytes),
        (Resource::RLIMIT_NOFILE, DESCRIPTORS),
    ] {
        setrlimit(resource, value, value).map_err(|error| format!("{resource:?}: {error}"))?;
    }
    let stack = getrlimit(Resource::RLIMIT_STACK).map_err(|error| format!("RLIMIT_STACK: {error}"))?;
    setrlimit(Resource::RLIMIT_STACK, stack.0.min(STACK), stack.1.min(STACK))
        .map_err(|error| format!("RLIMIT_STACK: {error}"))?;
    setrlimit(Resource::RLIMIT_CPU, seconds.max(1), seconds.max(1) + 1)
        .map_err(|error| format!("RLIMIT_CPU: {error}"))?;
    end_at_processor_limit()
}

/// The first process of a namespace gets no signal that it has no handler for: SIGXCPU would be lost, and the SIGKILL a
/// second later could be anybody's.
#[expect(unsafe_code, reason = "signal handlers")]
fn end_at_processor_limit() -> Result<(), String> {
    extern "C" fn end(_signal: libc::c_int) {
        // SAFETY: _exit may be called from a signal handler.
        unsafe { libc::_exit(OUT_OF_TIME_STATUS) }
    }
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler calls nothing but _exit.
    unsafe { sigaction(Signal::SIGXCPU, &action) }.map(drop).map_err(|error| format!("SIGXCPU: {error}"))
}

/// Bounds the tasks of an identity that only this job has: the kernel counts them by user, and since Linux 5.14 by user
/// namespace. Elsewhere the user's other processes would count, so there this is left to the control group, and
/// to seccomp where the job may have one process only.
pub(super) fn limit_processes(limits: &Limits) {
    let shared = !nix::unistd::geteuid().is_root() && kernel_release() < (5, 14);
    let tasks = u64::from(limits.processes.saturating_add(THREADS));
    if !shared {
        let _ = setrlimit(Resource::RLIMIT_NPROC, tasks, tasks);
    }
}

fn kernel_release() -> (u32, u32) {
    let name = nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default();
    let mut parts = name.split(['.', '-']).map_while(|part| part.parse().ok());
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Bytes that `RLIMIT_DATA` counts for the calling process now.
pub(super) fn private_memory() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| format!("/proc/self/status: {error}"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .ok_or("/proc/self/status has no VmData")?;
    Ok(kilobytes << 10)
}
