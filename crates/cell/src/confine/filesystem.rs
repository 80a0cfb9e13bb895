//! The job's view of the file system: a private root with a size-limited scratch, and Landlock on top.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, pivot_root};

use super::identity::Identity;
use super::{ConfineError, Confinement};
use crate::{Layer, Layers};

/// Files and folders that a job can make in its scratch.
const SCRATCH_FILES: u32 = 16_384;

/// Replaces the root by one that holds only what the confinement names. Gives the scratch folder, which is then a
/// file system in memory that no path outside leads to. Where that is not allowed, nothing changes.
pub(super) fn private_root(
    confinement: &Confinement,
    identity: &Identity,
    layers: &mut Layers,
) -> Result<Option<OwnedFd>, ConfineError> {
    if let Err(error) = unshare(CloneFlags::CLONE_NEWNS) {
        layers.note(Layer::MountNamespace, Err(format!("unshare: {error}")));
        return Ok(None);
    }
    // The scratch folder is certain to exist and to be empty: in this namespace the new root is mounted on it.
    let root = fs::canonicalize(&confinement.scratch)
        .map_err(|error| ConfineError::Step(describe("find", &confinement.scratch, error)))?;
    if let Err(why) = build_root(&root, confinement, identity, layers.has(Layer::PidNamespace)) {
        // Fails if the root was not even mounted.
        let _ = umount2(&root, MntFlags::MNT_DETACH);
        layers.note(Layer::MountNamespace, Err(why));
        return Ok(None);
    }
    let scratch = enter_root(&root).map_err(ConfineError::Step)?;
    layers.note(Layer::MountNamespace, Ok(()));
    Ok(Some(scratch))
}

/// Mounts the new root on the folder `root`, whose own path is the scratch in it.
fn build_root(root: &Path, confinement: &Confinement, identity: &Identity, own_pids: bool) -> Result<(), String> {
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(|error| describe("make private", Path::new("/"), error))?;
    mount_tmpfs(root, "size=1m,mode=755")?;
    for path in bound_paths(confinement) {
        bind(&path, &below(root, &path), confinement.devices.contains(&path))?;
    }
    if own_pids {
        mount_proc(&below(root, Path::new("/proc")), !confinement.devices.is_empty());
    }
    let inner = below(root, root);
    fs::create_dir_all(&inner).map_err(|error| describe("make", &inner, error))?;
    link_as_named(root, confinement)?;
    let owner = match identity {
        Identity::User(user) => format!(",uid={user},gid={user}"),
        Identity::Namespace => String::new(),
    };
    let size = confinement.limits.disk_bytes;
    mount_tmpfs(&inner, &format!("size={size},nr_inodes={SCRATCH_FILES},mode=700{owner}"))?;
    set_attributes(root, libc::MOUNT_ATTR_RDONLY, false)
}

/// The request names the scratch by the path that its caller knows, which may lead through links.
fn link_as_named(root: &Path, confinement: &Confinement) -> Result<(), String> {
    let named = below(root, &confinement.scratch);
    if confinement.scratch == root || named.exists() {
        return Ok(());
    }
    let parent = named.parent().unwrap_or(root);
    fs::create_dir_all(parent)
        .and_then(|()| std::os::unix::fs::symlink(root, &named))
        .map_err(|error| describe("link", &named, error))
}

/// Leaves the old root for good.
fn enter_root(root: &Path) -> Result<OwnedFd, String> {
    chdir(root).map_err(|error| describe("enter", root, error))?;
    pivot_root(".", ".").map_err(|error| describe("make root of", root, error))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(|error| describe("leave the old root of", root, error))?;
    chdir("/").map_err(|error| describe("enter", Path::new("/"), error))?;
    open(root, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|error| describe("open", root, error))
}

/// What is bound into the new root: each path as named and as resolved, none that lies in another.
fn bound_paths(confinement: &Confinement) -> Vec<PathBuf> {
    let named = confinement.read_paths.iter().chain(&confinement.execute_paths).chain(&confinement.devices);
    let mut paths: Vec<PathBuf> = named
        .flat_map(|path| [Some(path.clone()), fs::canonicalize(path).ok()])
        .flatten()
        .filter(|path| path.is_absolute() && path.exists())
        .collect();
    paths.sort();
    paths.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !kept.iter().any(|outer| path.starts_with(outer)) {
            kept.push(path);
        }
    }
    kept
}

fn bind(source: &Path, target: &Path, device: bool) -> Result<(), String> {
    if source.is_dir() {
        fs::create_dir_all(target).map_err(|error| describe("make", target, error))?;
    } else {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|error| describe("make", parent, error))?;
        }
        fs::write(target, "").map_err(|error| describe("make", target, error))?;
    }
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .map_err(|error| describe("bind", source, error))?;
    let character = source.starts_with("/dev");
    let mut attributes = libc::MOUNT_ATTR_NOSUID;
    if !character {
        attributes |= libc::MOUNT_ATTR_NODEV;
    }
    if !device && !character {
        attributes |= libc::MOUNT_ATTR_RDONLY;
    }
    set_attributes(target, attributes, true)
}

/// A process list of the job's own. Containers that mask parts of theirs may refuse it; the job does without.
/// CUDA does not start where it cannot name its threads there, which is a write.
fn mount_proc(target: &Path, writable: bool) {
    let mut flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    flags.set(MsFlags::MS_RDONLY, !writable);
    if fs::create_dir_all(target).is_ok() {
        let _ = mount(Some("proc"), target, Some("proc"), flags, None::<&str>);
    }
}

/// Shows a trusted job the processes of its own namespace under `/proc`: CUDA looks itself up there by its number, and
/// does not start where it finds somebody else. Best effort, as in [`mount_proc`].
pub(super) fn show_own_processes() {
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    if unshare(CloneFlags::CLONE_NEWNS).is_ok() && mount(None::<&str>, "/", None::<&str>, private, None::<&str>).is_ok()
    {
        mount_proc(Path::new("/proc"), true);
    }
}

fn mount_tmpfs(target: &Path, options: &str) -> Result<(), String> {
    mount(Some("tmpfs"), target, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some(options))
        .map_err(|error| describe("mount memory on", target, error))
}

#[expect(unsafe_code, reason = "mount_setattr has no safe wrapper")]
fn set_attributes(target: &Path, attributes: u64, recursive: bool) -> Result<(), String> {
    use std::os::unix::ffi::OsStrExt;

    let path =
        std::ffi::CString::new(target.as_os_str().as_bytes()).map_err(|error| describe("name", target, error))?;
    let change = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: `path` is a C string and `change` a live structure of the size given; the kernel keeps neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    nix::Error::result(result).map(drop).map_err(|error| describe("restrict", target, error))
}

/// Restricts the calling thread to reading what the confinement names and writing its scratch.
pub(super) fn landlock(confinement: &Confinement, private_root: bool) -> Result<(), String> {
    let abi = ABI::V6;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::from_all(abi)
        & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::IoctlDev);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    // In the private root /proc is the job's own; elsewhere only the job's own entry of it.
    let process = PathBuf::from(if private_root { "/proc" } else { "/proc/self" });
    let null = PathBuf::from("/dev/null");

    let mut grants: Vec<(&PathBuf, landlock::BitFlags<AccessFs>)> = Vec::new();
    grants.extend(confinement.read_paths.iter().chain([&process]).map(|path| (path, read)));
    grants.extend(confinement.execute_paths.iter().map(|path| (path, read | AccessFs::Execute)));
    grants.extend(confinement.devices.iter().map(|path| (path, device)));
    if !confinement.devices.is_empty() {
        // See `mount_proc`.
        grants.push((&process, AccessFs::WriteFile | AccessFs::Truncate));
    }
    grants.push((&null, AccessFs::ReadFile | AccessFs::WriteFile));
    grants.push((&confinement.scratch, write));

    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(abi)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .map_err(|error| error.to_string())?;
    for (path, access) in grants {
        // A path that does not exist needs no grant.
        let Ok(descriptor) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(abi) };
        ruleset = ruleset.add_rule(PathBeneath::new(descriptor, access)).map_err(|error| error.to_string())?;
    }
    match ruleset.restrict_self().map_err(|error| error.to_string())?.ruleset {
        RulesetStatus::NotEnforced => Err("this kernel has no Landlock, or it is switched off".into()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

/// `path` seen from a root elsewhere.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn describe(what: &str, path: &Path, error: impl std::fmt::Display) -> String {
    format!("{what} {}: {error}", path.display())
}
