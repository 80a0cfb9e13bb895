//! Control groups: the memory and the processes of a whole job, where this user may make groups.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Limits;

/// The groups of one job, made by the parent and removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct ControlGroup {
    memory: Option<Group>,
    others: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    path: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// Groups are called this, then the id of the process that made them, then the job's number.
const PREFIX: &str = "tilewright-";

impl ControlGroup {
    /// Removes the groups of processes that were killed before they could do so.
    pub(crate) fn sweep() {
        for parent in [v2_parent(), v1_parent("memory"), v1_parent("pids")].into_iter().flatten() {
            for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
                if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                    // Fails for a group that still has processes: not ours to judge.
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
    }

    /// Makes the groups of job `number` of this process. Where that is not allowed, the result has none.
    pub(crate) fn create(number: u32, limits: &Limits) -> Self {
        let name = &format!("{PREFIX}{}-{number}", std::process::id());
        // Threads count as processes here.
        let tasks = limits.processes.saturating_add(super::resources::THREADS).to_string();
        let memory = limits.memory_bytes.to_string();
        let mut made = Self::default();
        if let Some(parent) = v2_parent()
            && let Ok(group) =
                Group::create(&parent, name, Version::V2, &[("memory.max", &memory), ("pids.max", &tasks)])
        {
            // Without swap, or the limit only bounds what is resident.
            let _ = fs::write(group.path.join("memory.swap.max"), "0");
            made.memory = Some(group);
            return made;
        }
        if let Some(parent) = v1_parent("memory") {
            made.memory = Group::create(&parent, name, Version::V1, &[("memory.limit_in_bytes", &memory)]).ok();
        }
        if let Some(parent) = v1_parent("pids") {
            made.others.extend(Group::create(&parent, name, Version::V1, &[("pids.max", &tasks)]).ok());
        }
        made
    }

    /// The folders that the child joins.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.memory.iter().chain(&self.others).map(|group| group.path.clone()).collect()
    }

    /// Whether the kernel killed a process of the group for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let Some(group) = &self.memory else { return false };
        let file = match group.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        let text = fs::read_to_string(group.path.join(file)).unwrap_or_default();
        text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }
}

impl Group {
    fn create(parent: &Path, name: &str, version: Version, settings: &[(&str, &String)]) -> io::Result<Self> {
        let path = parent.join(name);
        fs::create_dir(&path)?;
        let group = Self { path, version };
        for (file, value) in settings {
            fs::write(group.path.join(file), value.as_bytes())?;
        }
        Ok(group)
    }
}

impl Drop for Group {
    /// A group can be removed once its last process has been reaped, which may lag a little behind its death.
    fn drop(&mut self) {
        let start = Instant::now();
        while let Err(error) = fs::remove_dir(&self.path) {
            if error.raw_os_error() != Some(libc::EBUSY) || start.elapsed() > Duration::from_secs(1) {
                tracing::warn!(path = %self.path.display(), %error, "failed to remove a control group");
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Moves the calling process into `groups`.
pub(super) fn join(groups: &[PathBuf]) -> Result<(), String> {
    if groups.is_empty() {
        return Err("this user cannot make control groups here".into());
    }
    for group in groups {
        fs::write(group.join("cgroup.procs"), "0").map_err(|error| format!("{}: {error}", group.display()))?;
    }
    Ok(())
}

/// The unified hierarchy's root, if it hands out the memory controller. Only there may a group have both processes
/// and children.
fn v2_parent() -> Option<PathBuf> {
    let root = PathBuf::from("/sys/fs/cgroup");
    let handed_out = fs::read_to_string(root.join("cgroup.subtree_control")).ok()?;
    handed_out.split_whitespace().any(|controller| controller == "memory").then_some(root)
}

/// This process's own group in a version 1 hierarchy.
fn v1_parent(controller: &str) -> Option<PathBuf> {
    let root = Path::new("/sys/fs/cgroup").join(controller);
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let listed = fields.next()?.split(',').any(|name| name == controller);
        listed.then(|| fields.next()).flatten()
    })?;
    let group = root.join(path.trim_start_matches('/'));
    group.is_dir().then_some(group)
}
