//! A zygote with the `probe` kind, and what the tests ask of it.
#![expect(dead_code, reason = "each test program uses a part")]
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tilewright_cell::{Death, Job, Outcome, Zygote, ZygoteOptions};

/// The repository's root.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The interpreter of the repository's virtual environment.
pub(crate) fn python() -> PathBuf {
    let python = repository().join(".venv/bin/python");
    assert!(python.is_file(), "these tests need {}: run `make venv` first", python.display());
    python
}

/// Options for a zygote that serves the `probe` kind.
pub(crate) fn options(python: impl Into<PathBuf>) -> ZygoteOptions {
    let mut options = ZygoteOptions::new(python);
    options.test_kinds.push(("probe".into(), repository().join("crates/cell/tests/probe.py")));
    options
}

/// A program made of shell commands, to stand in for the interpreter.
pub(crate) struct Script {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

/// Makes a program of shell commands.
pub(crate) fn script(commands: &str) -> Script {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("python");
    std::fs::write(&path, format!("#!/bin/sh\n{commands}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Script { path, _folder: folder }
}

/// A zygote of this test alone.
pub(crate) fn start() -> Zygote {
    Zygote::start(options(python())).unwrap_or_else(|error| panic!("{error}"))
}

/// The zygote that the tests of this program share.
pub(crate) fn zygote() -> &'static Zygote {
    static ZYGOTE: OnceLock<Zygote> = OnceLock::new();
    ZYGOTE.get_or_init(start)
}

/// A probe job with its scratch folder.
pub(crate) struct Probe {
    pub(crate) job: Job,
    pub(crate) scratch: TempDir,
}

/// Makes a probe job that must be done in a minute: a loaded machine may take its time.
pub(crate) fn probe(request: Value) -> Probe {
    let scratch = tempfile::tempdir().unwrap();
    let mut job = Job::new("probe", request, scratch.path());
    job.limits.wall = Duration::from_secs(60);
    Probe { job, scratch }
}

impl Probe {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Job)) -> Self {
        change(&mut self.job);
        self
    }

    pub(crate) fn run(&self) -> Outcome {
        zygote().run(&self.job).unwrap_or_else(|error| panic!("{error}"))
    }

    /// What the probe reports; it must have answered.
    pub(crate) fn answer(&self) -> Value {
        answer(&self.run())
    }

    /// How the probe died; it must not have answered.
    pub(crate) fn death(&self) -> Death {
        let outcome = self.run();
        outcome.response.expect_err("the job answered")
    }
}

/// Every entry of an answer must be a refusal.
pub(crate) fn assert_refused(answer: &Value) {
    for (what, outcome) in answer.as_object().unwrap() {
        assert!(!outcome.as_str().unwrap().starts_with("done"), "{what}: {outcome}");
    }
}

/// What a probe reported.
pub(crate) fn answer(outcome: &Outcome) -> Value {
    let response = outcome.response.as_ref().unwrap_or_else(|death| panic!("{death}; it printed: {}", outcome.output));
    response.get("ok").unwrap_or_else(|| panic!("{response:#}")).clone()
}

/// Process ids of all living processes whose parent is `pid`, or whose command line names the zygote's module.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    processes().into_iter().filter(|(_, parent, state)| *parent == pid && *state != 'Z').map(|(pid, ..)| pid).collect()
}

/// Whether a process is there and no zombie.
pub(crate) fn alive(pid: u32) -> bool {
    processes().iter().any(|(other, _, state)| *other == pid && *state != 'Z')
}

/// (pid, parent, state) of every process.
fn processes() -> Vec<(u32, u32, char)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((head, tail)) = stat.rsplit_once(") ") else { continue };
        let mut fields = tail.split_whitespace();
        let (Some(state), Some(parent)) = (fields.next(), fields.next()) else { continue };
        let pid = head.split(' ').next().and_then(|pid| pid.parse().ok());
        let (Some(pid), Ok(parent), Some(state)) = (pid, parent.parse(), state.chars().next()) else { continue };
        found.push((pid, parent, state));
    }
    found
}

/// Waits until something holds, at most `limit`.
pub(crate) fn eventually(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Folders in this machine's control groups that are there for jobs of process `maker`.
pub(crate) fn leftover_groups(maker: u32) -> Vec<PathBuf> {
    let name = format!("tilewright-{maker}-");
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&name) {
                found.push(entry.path());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && folders.len() < 1000 {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// Living processes that run the zygote's command line, other than the zygote itself.
pub(crate) fn descendants_of_group(zygote: u32) -> Vec<u32> {
    let control = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let own = control(zygote);
    let others = processes().into_iter().filter(|(_, _, state)| *state != 'Z').map(|(pid, ..)| pid);
    others.filter(|pid| *pid != zygote && control(*pid) == own).collect()
}
