//! An identity of the job's own, so that no signal, no file permission and no process count is shared with another.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use nix::fcntl::{OFlag, open, openat};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, chown, getegid, geteuid, setfsgid, setfsuid, setgroups, setresgid, setresuid};

use super::{ConfineError, Confinement};
use crate::{Layer, Layers};

/// User ids that no system hands out by default. The second range is for containers that map only 65,536 ids.
const RANGES: [(u32, u32); 2] = [(0x6f00_0000, 1 << 20), (61_184, 4_000)];

/// Who the job will be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity {
    /// A user id of its own: the zygote runs as root.
    User(Uid),
    /// The caller's user id in a user namespace of its own.
    Namespace,
}

/// Picks an identity from the job's number. Nothing is changed yet.
pub(super) fn choose(number: u32) -> Identity {
    if !geteuid().is_root() {
        return Identity::Namespace;
    }
    let mapped = |id: u32| {
        let text = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        text.lines().any(|line| {
            let mut fields = line.split_whitespace().filter_map(|field| field.parse::<u64>().ok());
            let (first, length) = (fields.next().unwrap_or(0), fields.nth(1).unwrap_or(0));
            (first..first + length).contains(&u64::from(id))
        })
    };
    let ids = RANGES.map(|(first, length)| first + number % length);
    ids.into_iter().find(|id| mapped(*id)).map_or(Identity::Namespace, |id| Identity::User(Uid::from_raw(id)))
}

/// Takes the identity on and gives up every capability.
pub(super) fn assume(
    identity: Identity,
    process: OwnedFd,
    confinement: &Confinement,
    layers: &mut Layers,
) -> Result<(), ConfineError> {
    let outcome = match identity {
        Identity::User(id) => become_user(id, confinement, layers.has(Layer::MountNamespace)),
        Identity::Namespace => {
            let (user, group) = (geteuid(), getegid());
            unshare(CloneFlags::CLONE_NEWUSER)
                .map_err(|error| format!("unshare: {error}"))
                .and_then(|()| map_to_itself(&process, user, group))
        }
    };
    layers.note(Layer::Identity, outcome);
    for set in [caps::CapSet::Effective, caps::CapSet::Permitted, caps::CapSet::Inheritable] {
        caps::clear(None, set).map_err(|error| ConfineError::Step(format!("drop capabilities: {error}")))?;
    }
    Ok(())
}

fn become_user(user: Uid, confinement: &Confinement, private_root: bool) -> Result<(), String> {
    let group = Gid::from_raw(user.as_raw());
    if !private_root {
        chown(&confinement.scratch, Some(user), Some(group)).map_err(|error| format!("chown: {error}"))?;
    }
    readable_by(user, confinement)?;
    setgroups(&[]).map_err(|error| format!("setgroups: {error}"))?;
    setresgid(group, group, group).map_err(|error| format!("setresgid: {error}"))?;
    setresuid(user, user, user).map_err(|error| format!("setresuid: {error}"))
}

/// Python must still find its own files after the change, and the job its scratch.
fn readable_by(user: Uid, confinement: &Confinement) -> Result<(), String> {
    let needed = confinement.read_paths.iter().chain([&confinement.scratch]);
    let needed: Vec<_> = needed.filter(|path| path.exists()).collect();
    let own = (geteuid(), getegid());
    setfsgid(Gid::from_raw(user.as_raw()));
    setfsuid(user);
    let unreadable = needed.into_iter().find(|path| File::open(path).is_err());
    setfsuid(own.0);
    setfsgid(own.1);
    match unreadable {
        Some(path) => Err(format!("{} is not readable by other users", path.display())),
        None => Ok(()),
    }
}

/// `/proc/self`, opened while the calling process can still see it.
pub(super) fn own_process_folder() -> Result<OwnedFd, ConfineError> {
    open("/proc/self", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|error| ConfineError::Step(format!("open /proc/self: {error}")))
}

/// Gives a fresh user namespace the same ids inside as outside.
pub(super) fn map_to_itself(process: &OwnedFd, user: Uid, group: Gid) -> Result<(), String> {
    for (name, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        openat(process, name, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())
            .map_err(std::io::Error::from)
            .and_then(|file| File::from(file).write_all(text.as_bytes()))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}
