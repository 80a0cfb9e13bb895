//! seccomp: system calls that neither a tracer nor a compiler needs are refused.

use std::collections::BTreeMap;

use libc::{ENOSYS, EPERM};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use crate::Limits;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Always refused, whatever the arguments. Grouped by what they would be used for.
#[rustfmt::skip]
const REFUSED: &[i64] = &[
    // other processes
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_kcmp,
    libc::SYS_pidfd_getfd, libc::SYS_process_madvise, libc::SYS_setsid, libc::SYS_setpgid,
    // network and other channels
    libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4,
    libc::SYS_shmget, libc::SYS_shmat, libc::SYS_msgget, libc::SYS_semget, libc::SYS_mq_open,
    libc::SYS_memfd_create, libc::SYS_memfd_secret,
    // what others do with the files that all jobs share
    libc::SYS_inotify_init1, libc::SYS_inotify_add_watch, libc::SYS_fanotify_init, libc::SYS_flock,
    // the file system's shape and what Landlock does not cover
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount,
    libc::SYS_open_tree, libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick,
    libc::SYS_mount_setattr, libc::SYS_open_by_handle_at, libc::SYS_name_to_handle_at, libc::SYS_quotactl,
    libc::SYS_quotactl_fd, libc::SYS_mknodat, libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown,
    libc::SYS_fchownat, libc::SYS_utimensat, libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, libc::SYS_removexattr,
    libc::SYS_lremovexattr, libc::SYS_fremovexattr, libc::SYS_swapon, libc::SYS_swapoff,
    // privileges and namespaces
    libc::SYS_unshare, libc::SYS_setns, libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid,
    libc::SYS_setregid, libc::SYS_setresuid, libc::SYS_setresgid, libc::SYS_setfsuid, libc::SYS_setfsgid,
    libc::SYS_setgroups, libc::SYS_capset, libc::SYS_personality,
    libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key,
    // the kernel
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_kexec_load,
    libc::SYS_kexec_file_load, libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module,
    libc::SYS_reboot, libc::SYS_acct, libc::SYS_syslog, libc::SYS_vhangup,
    libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_clock_adjtime, libc::SYS_adjtimex,
    libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_io_setup,
];

/// The same, for calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_mknod, libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes,
    libc::SYS_futimesat, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_ustat,
    libc::SYS_inotify_init,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// The first call, by its number on every architecture, that was not there when this list was made (Linux 5.17). Among
/// those that came since are `fchmodat2`, `setxattrat` and `open_tree_attr`, which a list of older names would let pass.
const UNKNOWN: u32 = 451;

/// Numbers that the libc crate does not name.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

/// Locks, leases and notices on files that all jobs can read would let two jobs talk; the owner of a descriptor's
/// signals need not be this process.
#[rustfmt::skip]
const FCNTL_REFUSED: &[i32] = &[
    libc::F_SETLEASE, libc::F_NOTIFY, libc::F_SETLK, libc::F_SETLKW, libc::F_OFD_SETLK, libc::F_OFD_SETLKW,
    libc::F_SETOWN, F_SETSIG, F_SETOWN_EX,
];

/// Calls that change how another process is scheduled; their first argument is a process, 0 for the caller.
#[rustfmt::skip]
const SCHEDULING: &[i64] = &[
    libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr,
    libc::SYS_migrate_pages, libc::SYS_move_pages,
];

/// Calls that libraries try first and do without: they are told that this kernel has none.
const ABSENT: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// What a GPU's driver needs of the refused calls. The network namespace is empty all the same, and memory is bounded
/// by the control group alone.
#[rustfmt::skip]
const FOR_DEVICES: &[i64] = &[
    libc::SYS_memfd_create, libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept,
    libc::SYS_accept4, libc::SYS_flock, libc::SYS_fcntl,
];

/// Installs the filters in the calling thread. `own_pids`: there is nobody else to send a signal to; `devices`: the job
/// drives a GPU.
pub(super) fn filter(limits: &Limits, own_pids: bool, devices: bool) -> Result<(), String> {
    let mut refused: Rules = REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, vec![])).collect();
    refused.insert(libc::SYS_fcntl, one_of(1, FCNTL_REFUSED)?);
    if devices {
        FOR_DEVICES.iter().for_each(|call| drop(refused.remove(call)));
    }
    refused.insert(libc::SYS_clone, clone_rules(limits)?);
    // Shared memory without a file and stacks would escape RLIMIT_DATA.
    let uncounted = [libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::MAP_GROWSDOWN].map(|flags| flags as u64);
    let uncounted = uncounted.into_iter().map(|flags| rule(3, SeccompCmpOp::MaskedEq(flags), flags));
    if !devices {
        refused.insert(libc::SYS_mmap, uncounted.collect::<Result<_, _>>()?);
    }
    // The death signal, dumps and tracers were settled by the confinement.
    let settled = [libc::PR_SET_PDEATHSIG, libc::PR_SET_DUMPABLE, libc::PR_SET_PTRACER, libc::PR_SET_MM];
    refused.insert(libc::SYS_prctl, one_of(0, &settled)?);
    if !own_pids {
        for call in [
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_pidfd_send_signal,
            libc::SYS_setpriority,
            libc::SYS_ioprio_set,
        ] {
            refused.insert(call, vec![]);
        }
        for call in SCHEDULING {
            refused.insert(*call, vec![rule(0, SeccompCmpOp::Ne, 0)?]);
        }
        // A process may still signal itself: that is how it aborts.
        let own = u64::from(std::process::id());
        refused.insert(libc::SYS_tgkill, vec![rule(0, SeccompCmpOp::Ne, own)?]);
        refused.insert(libc::SYS_rt_tgsigqueueinfo, vec![rule(0, SeccompCmpOp::Ne, own)?]);
        refused.insert(libc::SYS_prlimit64, vec![rule(0, SeccompCmpOp::Ne, 0)?]);
    }
    // Injecting characters into a terminal.
    refused.insert(libc::SYS_ioctl, vec![rule(1, SeccompCmpOp::Eq, libc::TIOCSTI)?]);
    if limits.processes <= 1 {
        for call in [libc::SYS_execve, libc::SYS_execveat] {
            refused.insert(call, vec![]);
        }
        #[cfg(target_arch = "x86_64")]
        for call in [libc::SYS_fork, libc::SYS_vfork] {
            refused.insert(call, vec![]);
        }
    }
    install(ABSENT.iter().map(|call| (*call, vec![])).collect(), ENOSYS)?;
    install(refused, EPERM)?;
    refuse_unknown()
}

/// `clone` may make threads, and processes where the limits say so, but never namespaces nor children of the zygote.
fn clone_rules(limits: &Limits) -> Result<Vec<SeccompRule>, String> {
    let flags = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        // A sibling instead of a child.
        libc::CLONE_PARENT,
    ];
    let mut rules = Vec::new();
    for flag in flags {
        rules.push(rule(0, SeccompCmpOp::MaskedEq(flag as u64), flag as u64)?);
    }
    if limits.processes <= 1 {
        rules.push(rule(0, SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64), 0)?);
    }
    Ok(rules)
}

fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(|error| error.to_string())
}

/// Refuses the call where its argument has one of the values.
fn one_of(argument: u8, values: &[i32]) -> Result<Vec<SeccompRule>, String> {
    values.iter().map(|value| rule(argument, SeccompCmpOp::Eq, *value as u64)).collect()
}

fn install(rules: Rules, errno: i32) -> Result<(), String> {
    let architecture = std::env::consts::ARCH.try_into().map_err(|error| format!("seccomp: {error}"))?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), architecture)
        .map_err(|error| format!("seccomp: {error}"))?;
    let program: BpfProgram = filter.try_into().map_err(|error| format!("seccomp: {error}"))?;
    apply_filter(&program).map_err(|error| format!("seccomp: {error}"))
}

/// Calls that the list above cannot know, by their number alone. x32 calls are among them: they share x86-64's
/// architecture and have bit 30 of the number set. Libraries are told that this kernel has none of them.
fn refuse_unknown() -> Result<(), String> {
    use libc::{BPF_ABS, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO};
    use seccompiler::sock_filter;

    let step = |code: u32, jt: u8, k: u32| sock_filter { code: code as u16, jt, jf: 0, k };
    let program = [
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0),
        step(BPF_JMP | BPF_JGE | BPF_K, 1, UNKNOWN),
        step(BPF_RET | BPF_K, 0, SECCOMP_RET_ALLOW),
        step(BPF_RET | BPF_K, 0, SECCOMP_RET_ERRNO | ENOSYS as u32),
    ];
    apply_filter(&program).map_err(|error| format!("seccomp: {error}"))
}
