//! One job from the fork to its end. The child is hostile from the moment that it has the request.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recvmsg, send, socketpair};
use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, pipe2, read};
use serde::Deserialize;
use serde_json::{Value, json};

use super::frame::{FrameError, FrameReader, encode};
use super::process::{Notice, Process, take_descriptors};
use super::{CellError, Death, Job, Outcome, collect};
use crate::Layers;
use crate::confine::{Confinement, ControlGroup, OUT_OF_TIME_STATUS};

/// Bytes of a job's output that are kept.
const OUTPUT_HEAD: usize = 64 * 1024;
/// How long the zygote may take to fork a child or to report an exit.
const ZYGOTE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a child may take to end after it has answered.
const GRACE: Duration = Duration::from_millis(500);
/// How often the scratch is measured where the kernel does not bound it.
const MEASURE: Duration = Duration::from_millis(100);
/// Python ran into the memory limit; `child.py` knows the same number.
const OUT_OF_MEMORY_STATUS: i32 = 86;
/// Bytes of the message that opens a conversation; it comes from our own code.
const HELLO_LIMIT: u64 = 64 * 1024;

/// Runs `job` as number `number` in a child of `process`.
pub(super) fn run(process: &Process, job: &Job, number: u32) -> Result<Outcome, CellError> {
    let groups = ControlGroup::create(number, &job.limits);
    let (socket, child_socket) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
        .map_err(CellError::system("make a job socket"))?;
    let (output, child_output) = pipe2(OFlag::O_CLOEXEC).map_err(CellError::system("make an output pipe"))?;
    for descriptor in [&socket, &output] {
        nix::fcntl::fcntl(descriptor, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
            .map_err(CellError::system("set a descriptor up"))?;
    }
    let message = json!({
        "job": number,
        "kind": job.kind,
        "confinement": confinement(process, job, number, &groups),
    });
    let mut descriptors = vec![child_socket.as_raw_fd(), child_output.as_raw_fd()];
    descriptors.extend(job.descriptor.iter().map(|descriptor| descriptor.as_raw_fd()));
    let notices = process.submit(number, &message, &descriptors)?;
    drop((child_socket, child_output));

    let start = Instant::now();
    let outcome = started(process, &notices).and_then(|pidfd| {
        let mut conversation = Conversation::new(job, socket, output, pidfd);
        let spoken = conversation.speak(process, start + job.limits.wall);
        conversation.child.kill();
        // Reaped by the zygote: only then is everything that the job started gone.
        let exit = exited(process, &notices);
        spoken?;
        conversation.outcome(job, exit?, &groups, start.elapsed())
    });
    process.forget(number);
    outcome.map_err(|error| match error {
        CellError::Refused { why, .. } => CellError::Refused { kind: job.kind.clone(), why },
        other => other,
    })
}

fn confinement(process: &Process, job: &Job, number: u32, groups: &ControlGroup) -> Confinement {
    let versions = process.versions();
    let mut read_paths = versions.read_paths.clone();
    read_paths.extend(job.read_paths.iter().cloned());
    let programs = versions.execute_paths.iter().chain(&job.execute_paths);
    Confinement {
        scratch: job.scratch.clone(),
        limits: job.limits.clone(),
        trusted: job.trusted,
        strict: job.strict,
        read_paths,
        execute_paths: programs.filter(|_| job.limits.processes > 1).cloned().collect(),
        devices: job.devices.clone(),
        control_groups: groups.paths(),
        number,
    }
}

fn started(process: &Process, notices: &Receiver<Notice>) -> Result<OwnedFd, CellError> {
    match notice(process, notices)? {
        Notice::Started { pidfd } => Ok(pidfd),
        Notice::Refused { why } => Err(CellError::Refused { kind: String::new(), why }),
        Notice::Exited { .. } => Err(CellError::ZygoteDied("it reported an exit before a start".into())),
    }
}

struct Exit {
    status: i32,
    max_rss_kb: u64,
    cpu_seconds: f64,
}

fn exited(process: &Process, notices: &Receiver<Notice>) -> Result<Exit, CellError> {
    match notice(process, notices)? {
        Notice::Exited { status, max_rss_kb, cpu_seconds } => Ok(Exit { status, max_rss_kb, cpu_seconds }),
        _ => Err(CellError::ZygoteDied("it reported two starts of one job".into())),
    }
}

fn notice(process: &Process, notices: &Receiver<Notice>) -> Result<Notice, CellError> {
    notices.recv_timeout(ZYGOTE_TIMEOUT).map_err(|error| match error {
        RecvTimeoutError::Disconnected => process.died(),
        RecvTimeoutError::Timeout => {
            process.kill();
            CellError::ZygoteDied(format!("it said nothing for {} s", ZYGOTE_TIMEOUT.as_secs()))
        }
    })
}

/// The child, which is killed when this goes out of scope. A pidfd cannot come to mean another process.
struct RunningChild {
    pidfd: OwnedFd,
}

impl RunningChild {
    #[expect(unsafe_code, reason = "pidfd_send_signal has no safe wrapper")]
    fn kill(&self) {
        // SAFETY: the descriptor is open, and no signal information is passed. Fails only if the child has ended.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.pidfd.as_raw_fd(),
                libc::SIGKILL,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        self.kill();
    }
}

/// First message of a child, from our own code before anything hostile runs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Hello {
    Confined { layers: Layers },
    Refused(String),
}

struct Conversation<'a> {
    job: &'a Job,
    socket: OwnedFd,
    output: OwnedFd,
    child: RunningChild,
    reader: FrameReader,
    to_send: Vec<u8>,
    layers: Option<Layers>,
    scratch: Option<OwnedFd>,
    end: Option<Result<Value, Death>>,
    printed: Vec<u8>,
    printed_bytes: u64,
}

impl<'a> Conversation<'a> {
    fn new(job: &'a Job, socket: OwnedFd, output: OwnedFd, pidfd: OwnedFd) -> Self {
        Self {
            job,
            socket,
            output,
            child: RunningChild { pidfd },
            reader: FrameReader::default(),
            to_send: Vec::new(),
            layers: None,
            scratch: None,
            end: None,
            printed: Vec::new(),
            printed_bytes: 0,
        }
    }

    /// Talks with the child until it is dead, has answered and outlived its grace, or must be killed.
    ///
    /// A child dies with its zygote, but for one whose zygote ends before the child has asked the kernel for that.
    fn speak(&mut self, process: &Process, deadline: Instant) -> Result<(), CellError> {
        let mut deadline = deadline;
        let mut socket_open = true;
        let mut output_open = true;
        let mut measured = Instant::now();
        loop {
            if process.has_ended() {
                return Err(process.died());
            }
            let now = Instant::now();
            if now >= deadline {
                self.end.get_or_insert(Err(Death::Timeout));
                return Ok(());
            }
            if self.scratch.is_none() && !self.job.trusted && measured.elapsed() >= MEASURE {
                measured = now;
                if collect::size(&self.job.scratch) > self.job.limits.disk_bytes {
                    self.end.get_or_insert(Err(Death::DiskFull));
                    return Ok(());
                }
            }
            let wait = (deadline - now).min(MEASURE);
            let ready = self.wait(wait, socket_open, output_open)?;
            if ready.output {
                output_open = self.read_output()?;
            }
            if ready.socket_write {
                self.send()?;
            }
            if ready.socket_read {
                socket_open = self.read_socket()?;
                if self.end.is_some() {
                    deadline = deadline.min(Instant::now() + GRACE);
                }
                if matches!(self.end, Some(Err(_))) {
                    return Ok(());
                }
            }
            if ready.child_ended {
                while output_open && self.read_output()? {}
                while socket_open && self.end.is_none() && self.read_socket()? {}
                return Ok(());
            }
        }
    }

    fn wait(&self, timeout: Duration, socket_open: bool, output_open: bool) -> Result<Ready, CellError> {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::POLLIN, socket_open);
        interest.set(PollFlags::POLLOUT, socket_open && !self.to_send.is_empty());
        let mut descriptors = vec![PollFd::new(self.child.pidfd.as_fd(), PollFlags::POLLIN)];
        let socket = socket_open.then(|| {
            descriptors.push(PollFd::new(self.socket.as_fd(), interest));
            descriptors.len() - 1
        });
        let output = output_open.then(|| {
            descriptors.push(PollFd::new(self.output.as_fd(), PollFlags::POLLIN));
            descriptors.len() - 1
        });
        let timeout = PollTimeout::try_from(timeout + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        match poll(&mut descriptors, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(CellError::system("wait for a job")(error)),
        }
        let events =
            |index: Option<usize>| index.and_then(|index| descriptors[index].revents()).unwrap_or(PollFlags::empty());
        let readable = PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR;
        Ok(Ready {
            child_ended: events(Some(0)).intersects(readable),
            socket_read: events(socket).intersects(readable),
            socket_write: events(socket).contains(PollFlags::POLLOUT),
            output: events(output).intersects(readable),
        })
    }

    /// Reads once. False when nothing more is to come now or ever.
    fn read_output(&mut self) -> Result<bool, CellError> {
        let mut buffer = [0; 64 * 1024];
        match read(&self.output, &mut buffer) {
            Ok(0) => Ok(false),
            Ok(length) => {
                let room = OUTPUT_HEAD - self.printed.len();
                self.printed.extend_from_slice(&buffer[..length.min(room)]);
                self.printed_bytes += length as u64;
                Ok(true)
            }
            Err(Errno::EINTR) => Ok(true),
            Err(Errno::EAGAIN) => Ok(false),
            Err(error) => Err(CellError::system("read a job's output")(error)),
        }
    }

    /// Reads once. False when nothing more is to come now or ever.
    fn read_socket(&mut self) -> Result<bool, CellError> {
        let mut buffer = [0; 64 * 1024];
        // Only the first message may bring a descriptor; a plain read drops whatever a hostile child attaches.
        let received = match self.layers {
            None => receive_hello(self.socket.as_raw_fd(), &mut buffer, &mut self.scratch),
            Some(_) => read(&self.socket, &mut buffer),
        };
        match received {
            Ok(0) => Ok(false),
            Ok(length) => {
                self.reader.extend(&buffer[..length]);
                self.understand()?;
                Ok(true)
            }
            Err(Errno::EINTR) => Ok(true),
            Err(Errno::EAGAIN | Errno::ECONNRESET) => Ok(false),
            Err(error) => Err(CellError::system("read from a job")(error)),
        }
    }

    fn understand(&mut self) -> Result<(), CellError> {
        if self.layers.is_none() {
            let Some(hello) = self.reader.next(HELLO_LIMIT).map_err(|error| refused(format!("{error:?}")))? else {
                return Ok(());
            };
            match serde_json::from_value(hello).map_err(|error| refused(error.to_string()))? {
                Hello::Confined { layers } => self.layers = Some(layers),
                Hello::Refused(why) => return Err(refused(why)),
            }
            self.to_send = encode(&self.envelope());
        }
        if self.end.is_none() {
            self.end = match self.reader.next(self.job.limits.response_bytes) {
                Ok(response) => response.map(Ok),
                Err(FrameError::TooLarge) => Some(Err(Death::TooLarge)),
                Err(FrameError::Garbled(why)) => Some(Err(Death::Garbled(why))),
            };
        }
        Ok(())
    }

    /// The request, and for trusted code the user's environment, which the zygote does not have.
    fn envelope(&self) -> Value {
        if !self.job.trusted {
            return json!({"request": self.job.request});
        }
        let environment: serde_json::Map<String, Value> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, Value::String(value.into_string().ok()?))))
            .collect();
        let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
        json!({"request": self.job.request, "environment": environment, "folder": folder})
    }

    fn send(&mut self) -> Result<(), CellError> {
        match send(self.socket.as_raw_fd(), &self.to_send, MsgFlags::MSG_NOSIGNAL) {
            Ok(length) => {
                self.to_send.drain(..length);
                Ok(())
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            // The child closed its end; how it ends is seen elsewhere.
            Err(Errno::EPIPE | Errno::ECONNRESET) => {
                self.to_send.clear();
                Ok(())
            }
            Err(error) => Err(CellError::system("send a request")(error)),
        }
    }

    fn outcome(
        mut self,
        job: &Job,
        exit: Exit,
        groups: &ControlGroup,
        elapsed: Duration,
    ) -> Result<Outcome, CellError> {
        let mut response = match self.end.take() {
            Some(response) => response,
            None => Err(self.cause_of_death(&exit, groups)),
        };
        // Where the kernel does not bound the scratch, a quick job is done before it was measured.
        let unbounded = self.scratch.is_none() && !job.trusted;
        if response.is_ok() && unbounded && collect::size(&job.scratch) > job.limits.disk_bytes {
            response = Err(Death::DiskFull);
        }
        let Some(layers) = self.layers else {
            let printed = String::from_utf8_lossy(&self.printed).into_owned();
            return Err(refused(format!("the child ended before it was confined: {}", printed.trim())));
        };
        if response.is_ok()
            && let Some(scratch) = self.scratch
        {
            collect::copy(scratch, &job.scratch, job.limits.disk_bytes)
                .map_err(|error| CellError::System { what: "take a job's files over", error })?;
        }
        Ok(Outcome {
            response,
            output: String::from_utf8_lossy(&self.printed).into_owned(),
            output_bytes: self.printed_bytes,
            seconds: elapsed.as_secs_f64(),
            max_rss_kb: exit.max_rss_kb,
            cpu_seconds: exit.cpu_seconds,
            layers,
        })
    }

    fn cause_of_death(&self, exit: &Exit, groups: &ControlGroup) -> Death {
        if groups.ran_out_of_memory() {
            return Death::OutOfMemory;
        }
        match WaitStatus::from_raw(Pid::from_raw(1), exit.status) {
            Ok(WaitStatus::Exited(_, OUT_OF_MEMORY_STATUS)) => Death::OutOfMemory,
            Ok(WaitStatus::Exited(_, OUT_OF_TIME_STATUS)) => Death::Timeout,
            Ok(WaitStatus::Exited(_, 0)) if self.reader.is_partial() => Death::Garbled("it ends half-way".into()),
            Ok(WaitStatus::Exited(_, code)) => Death::Exit(code),
            // A job that replaced the handler of SIGXCPU is killed a second later.
            Ok(WaitStatus::Signaled(_, Signal::SIGKILL, _)) if exit.cpu_seconds > self.job.limits.cpu.as_secs_f64() => {
                Death::Timeout
            }
            Ok(WaitStatus::Signaled(_, signal, _)) => Death::Signal(signal as i32),
            _ => Death::Exit(exit.status),
        }
    }
}

struct Ready {
    child_ended: bool,
    socket_read: bool,
    socket_write: bool,
    output: bool,
}

fn refused(why: String) -> CellError {
    CellError::Refused { kind: String::new(), why }
}

fn receive_hello(socket: RawFd, buffer: &mut [u8], scratch: &mut Option<OwnedFd>) -> Result<usize, Errno> {
    let mut space = nix::cmsg_space!([RawFd; 4]);
    let mut slices = [io::IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(socket, &mut slices, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    let length = message.bytes;
    if let Some(descriptor) = take_descriptors(message.cmsgs()?).pop() {
        *scratch = Some(descriptor);
    }
    Ok(length)
}
