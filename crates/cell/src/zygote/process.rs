//! The zygote's process: started, supervised and ended by a thread of its own.

use std::collections::HashMap;
use std::io::{IoSliceMut, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType, recvmsg, sendmsg,
    shutdown, socketpair,
};
use serde::Deserialize;
use serde_json::Value;

use super::{CellError, ZygoteOptions};

/// Largest control message in bytes; `channel.py` knows the same number.
const MAX_PACKET: usize = 128 * 1024;
/// Bytes of the zygote's own stderr that are kept for error messages.
const STDERR_TAIL: usize = 16 * 1024;
/// Variables that the zygote gets from the user. All others could hold secrets, and every child inherits the memory.
const KEPT_VARIABLES: [&str; 5] = ["PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "OPENBLAS_CORETYPE"];

/// What the Python side says of itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Versions {
    /// Python's version.
    pub python: String,
    /// torch's version.
    pub torch: String,
    /// Triton's version.
    pub triton: String,
    /// Job kinds that have a handler.
    pub kinds: Vec<String>,
    /// Seconds that imports and warm-up took.
    pub seconds: f64,
    /// How the zygote came by the right to make namespaces.
    pub user_namespace: String,
    /// Files and folders of Python, its packages and the system, that every job can read.
    pub read_paths: Vec<PathBuf>,
    /// Programs that a job can start where its limits allow another process.
    pub execute_paths: Vec<PathBuf>,
}

/// What the zygote reports about one job.
#[derive(Debug)]
pub(super) enum Notice {
    Started { pidfd: OwnedFd },
    Refused { why: String },
    Exited { status: i32, max_rss_kb: u64, cpu_seconds: f64 },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
enum Message {
    Ready { ready: Versions },
    Started { started: u32 },
    Refused { refused: u32, why: String },
    Exited { exited: u32, status: i32, max_rss_kb: u64, cpu_seconds: f64 },
}

/// Who waits for notices about which job; none any more once the zygote is dead.
type Waiting = Mutex<Option<HashMap<u32, Sender<Notice>>>>;

#[derive(Debug)]
pub(super) struct Process {
    control: Arc<OwnedFd>,
    waiting: Arc<Waiting>,
    stderr: Arc<Mutex<Vec<u8>>>,
    versions: Versions,
    pid: u32,
    supervisor: Option<JoinHandle<()>>,
}

impl Process {
    pub(super) fn start(options: &ZygoteOptions) -> Result<Self, CellError> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .map_err(CellError::system("make the control socket"))?;
        let control = Arc::new(ours);
        let waiting: Arc<Waiting> = Arc::new(Mutex::new(Some(HashMap::new())));
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (report, first) = mpsc::channel();
        let supervisor =
            Supervisor { control: control.clone(), waiting: waiting.clone(), stderr: stderr.clone(), report };
        let command = command(options, theirs.as_raw_fd());
        // The kernel ends the zygote with the thread that started it, so this thread lives exactly as long.
        let supervisor = thread::Builder::new()
            .name("zygote".into())
            .spawn(move || supervisor.supervise(command, theirs))
            .map_err(|error| CellError::System { what: "start a thread", error })?;
        let began = first.recv_timeout(options.start_timeout);
        let mut process =
            Self { control, waiting, stderr, versions: Versions::none(), pid: 0, supervisor: Some(supervisor) };
        let why = match began {
            Ok(Ok((pid, versions))) => {
                process.pid = pid;
                process.versions = versions;
                return Ok(process);
            }
            Ok(Err(why)) => why,
            Err(_) => format!("not ready after {} s", options.start_timeout.as_secs()),
        };
        process.end();
        Err(CellError::Start { python: options.python.clone(), why: process.with_stderr(why) })
    }

    pub(super) fn versions(&self) -> &Versions {
        &self.versions
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks for a child for job `number`. Notices about it arrive at the receiver, which closes if the zygote dies.
    pub(super) fn submit(
        &self,
        number: u32,
        message: &Value,
        descriptors: &[RawFd],
    ) -> Result<Receiver<Notice>, CellError> {
        let (sender, receiver) = mpsc::channel();
        match lock(&self.waiting).as_mut() {
            Some(waiting) => waiting.insert(number, sender),
            None => return Err(self.died()),
        };
        let text = message.to_string();
        let attached = [ControlMessage::ScmRights(descriptors)];
        let sent = sendmsg::<()>(
            self.control.as_raw_fd(),
            &[std::io::IoSlice::new(text.as_bytes())],
            &attached,
            MsgFlags::MSG_NOSIGNAL,
            None,
        );
        sent.map_err(|_| self.died())?;
        Ok(receiver)
    }

    /// Nobody waits for notices about job `number` any more.
    pub(super) fn forget(&self, number: u32) {
        if let Some(waiting) = lock(&self.waiting).as_mut() {
            waiting.remove(&number);
        }
    }

    /// Whether the zygote is dead.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.waiting).is_none()
    }

    /// The error for a zygote that has died.
    pub(super) fn died(&self) -> CellError {
        CellError::ZygoteDied(self.with_stderr("it closed its control socket".into()))
    }

    /// Has the supervisor kill the zygote; its jobs die with it.
    pub(super) fn kill(&self) {
        let _ = shutdown(self.control.as_raw_fd(), Shutdown::Both);
    }

    fn end(&mut self) {
        self.kill();
        if let Some(supervisor) = self.supervisor.take() {
            let _ = supervisor.join();
        }
    }

    fn with_stderr(&self, mut why: String) -> String {
        let stderr = lock(&self.stderr);
        let text = String::from_utf8_lossy(&stderr);
        if !text.trim().is_empty() {
            why.push('\n');
            why.push_str(text.trim());
        }
        why
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Versions {
    fn none() -> Self {
        Self {
            python: String::new(),
            torch: String::new(),
            triton: String::new(),
            kinds: Vec::new(),
            seconds: 0.0,
            user_namespace: String::new(),
            read_paths: Vec::new(),
            execute_paths: Vec::new(),
        }
    }
}

struct Supervisor {
    control: Arc<OwnedFd>,
    waiting: Arc<Waiting>,
    stderr: Arc<Mutex<Vec<u8>>>,
    report: Sender<Result<(u32, Versions), String>>,
}

impl Supervisor {
    /// Starts the zygote, passes its messages on, and kills it when the control socket closes from either side.
    fn supervise(self, mut command: Command, theirs: OwnedFd) {
        let spawned = command.spawn();
        drop(theirs);
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                let _ = self.report.send(Err(error.to_string()));
                return;
            }
        };
        let drain = child.stderr.take().and_then(|pipe| {
            let tail = self.stderr.clone();
            thread::Builder::new().name("zygote-stderr".into()).spawn(move || keep_tail(pipe, &tail)).ok()
        });
        while let Some((text, descriptors)) = receive(&self.control) {
            match serde_json::from_slice(&text) {
                Ok(message) => self.deliver(child.id(), message, descriptors),
                Err(error) => {
                    tracing::error!(%error, "the zygote sent a message that is none");
                    break;
                }
            }
        }
        let status = end(&mut child);
        // Only after stderr is complete may anyone learn of the end.
        if let Some(drain) = drain {
            let _ = drain.join();
        }
        *lock(&self.waiting) = None;
        let _ = self.report.send(Err(format!("it ended ({status}) before it was ready")));
    }

    fn deliver(&self, pid: u32, message: Message, mut descriptors: Vec<OwnedFd>) {
        let (number, notice, last) = match message {
            Message::Ready { ready } => {
                let _ = self.report.send(Ok((pid, ready)));
                return;
            }
            Message::Started { started } => match descriptors.pop() {
                Some(pidfd) => (started, Notice::Started { pidfd }, false),
                None => (started, Notice::Refused { why: "no pidfd came with it".into() }, true),
            },
            Message::Refused { refused, why } => (refused, Notice::Refused { why }, true),
            Message::Exited { exited, status, max_rss_kb, cpu_seconds } => {
                (exited, Notice::Exited { status, max_rss_kb, cpu_seconds }, true)
            }
        };
        let mut waiting = lock(&self.waiting);
        let Some(waiting) = waiting.as_mut() else { return };
        if let Some(sender) = waiting.get(&number) {
            let _ = sender.send(notice);
        }
        if last {
            waiting.remove(&number);
        }
    }
}

/// Kills the zygote if it has not ended by itself, and reaps it.
fn end(child: &mut Child) -> String {
    // A zygote that died by itself has a status worth knowing: give it a moment.
    for _ in 0..10 {
        if let Ok(Some(status)) = child.try_wait() {
            return status.to_string();
        }
        thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
}

fn receive(control: &OwnedFd) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
    let mut buffer = vec![0; MAX_PACKET];
    let mut space = nix::cmsg_space!([RawFd; 4]);
    loop {
        let mut slices = [IoSliceMut::new(&mut buffer)];
        let received = recvmsg::<()>(control.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC);
        let (length, descriptors) = match received {
            Ok(message) => (message.bytes, take_descriptors(message.cmsgs().ok()?)),
            Err(nix::Error::EINTR) => continue,
            Err(_) => return None,
        };
        if length == 0 {
            return None;
        }
        buffer.truncate(length);
        return Some((buffer, descriptors));
    }
}

/// Takes ownership of the descriptors that came with a message.
#[expect(unsafe_code, reason = "descriptors arrive as numbers")]
pub(super) fn take_descriptors(messages: impl Iterator<Item = ControlMessageOwned>) -> Vec<OwnedFd> {
    let mut descriptors = Vec::new();
    for message in messages {
        if let ControlMessageOwned::ScmRights(numbers) = message {
            // SAFETY: the kernel has just opened them for this process and nobody else knows them.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    descriptors
}

/// Reads a pipe to its end and keeps the last bytes.
fn keep_tail(mut pipe: ChildStderr, tail: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = pipe.read(&mut buffer) {
        tracing::debug!(target: "zygote", "{}", String::from_utf8_lossy(&buffer[..length]).trim_end());
        let mut tail = lock(tail);
        tail.extend_from_slice(&buffer[..length]);
        let excess = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..excess);
    }
}

/// `python -m tilewright.cell`, isolated from the user's Python settings and from the current folder.
#[expect(unsafe_code, reason = "pre_exec runs between fork and exec")]
fn command(options: &ZygoteOptions, control: RawFd) -> Command {
    let mut command = Command::new(&options.python);
    // Not -I, which would also ignore the hash seed: the environment below has nothing of the user's to ignore.
    command.args(["-P", "-s", "-X", "utf8", "-m", "tilewright.cell", "--control-fd"]).arg(control.to_string());
    for (kind, file) in &options.test_kinds {
        command.arg("--test-kind").arg(format!("{kind}={}", file.display()));
    }
    if let Some(library) = &options.preload {
        command.arg("--preload").arg(library);
    }
    command.env_clear().current_dir(Path::new("/"));
    command.envs(KEPT_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    // One thread: a process with several can neither be forked safely nor enter namespaces.
    command.envs(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, "1")));
    // Threads that a job makes later must not spin while they wait: jobs share the cores.
    command.env("OMP_WAIT_POLICY", "passive");
    // The order of sets must not vary from run to run.
    command.env("LANG", "C.UTF-8").env("PYTHONHASHSEED", "0");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A terminal's interrupt is for us: we end the zygote.
    command.process_group(0);
    // SAFETY: only calls that are safe after a fork: prctl and fcntl.
    unsafe {
        command.pre_exec(move || {
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
            let control = std::os::fd::BorrowedFd::borrow_raw(control);
            nix::fcntl::fcntl(control, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))?;
            Ok(())
        });
    }
    command
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
