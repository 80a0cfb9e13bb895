#[cfg(test)]
mod tests;

use std::io::{BufReader, BufWriter};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tilewright_contract::{DeviceState, Plan};

use super::driver::REFUSED;
use super::state::{device_identity, device_state};
use crate::program::{Executable, Lowering};
use crate::run::{Fault, FaultKind, Run, RunResult, SharedRun};
use crate::wire::{Call, Content, Failure, Loan, Prepare, Request, Response, Start, receive, send};

/// Times that an executor which is lost, or cannot be started, is replaced for one request.
const RESTARTS: u32 = 3;
/// How long a fresh executor may take to start and to show that its GPU computes.
const PROBE: Duration = Duration::from_secs(60);

/// A GPU, driven through an executor process that is killed at a deadline and replaced after a fault.
pub struct CudaDevice {
    ordinal: usize,
    process: Option<Executor>,
    /// Its address on the bus, once it was asked for.
    bus: Option<String>,
    /// Starts an executor of a device.
    command: fn(usize) -> std::io::Result<Command>,
}

struct Executor {
    child: Child,
    input: BufWriter<UnixStream>,
    responses: Receiver<std::io::Result<(Response, Vec<Vec<u8>>)>>,
}

/// What a program did when it was made ready to be timed: once on each set of inputs, untimed.
pub struct Prepared {
    /// Kernel and line of each launch, our own copies among them, in the order in which they are timed.
    pub launches: Vec<(String, u32)>,
    /// For each set, the final bytes of each buffer that was asked for.
    pub results: Vec<Vec<Vec<u8>>>,
    /// For each set, the digest of these buffers.
    pub digests: Vec<u64>,
}

/// What several runs left behind, in memory for another process to map. It stays as it is until the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loans {
    /// The driver's name of the allocation.
    pub handle: Vec<u8>,
    /// Its size in bytes.
    pub nbytes: u64,
    /// For each run, start and length of each buffer.
    pub runs: Vec<Vec<(u64, u64)>>,
    /// And the bytes of the buffers that were asked for.
    pub read: Vec<Vec<Vec<u8>>>,
}

/// What the last call of a block left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Results {
    /// The buffers that were asked for; none where none were.
    Bytes(Vec<Vec<u8>>),
    /// Where they are until the next request.
    Lent(Loan),
}

/// Sets of inputs on their way to the executor.
struct Sets {
    sets: Vec<Vec<Option<Content>>>,
    handles: Vec<Vec<u8>>,
    lend: bool,
    poison: u8,
}

/// Calls to be timed one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    pub calls: u32,
    /// The second-level cache is flushed before each call.
    pub cold: bool,
    /// Each launch is timed by itself, too.
    pub launches: bool,
    pub read_back: bool,
}

impl CudaDevice {
    pub fn new(ordinal: usize) -> Self {
        Self { ordinal, process: None, bus: None, command: itself }
    }

    /// Starts the executor, if it does not run. What goes wrong is told to whoever needs it.
    pub fn wake(&mut self) {
        let _ = self.executor();
    }

    /// Whether the GPU computes: where no executor runs, as a fresh one finds it.
    pub fn works(&mut self) -> bool {
        self.executor().is_ok()
    }

    /// Executes a plan; `kernels` in the plan's order, `steps` as [`crate::step_kernels`] asked for.
    pub fn run(
        &mut self,
        plan: &Plan,
        kernels: &[Executable<'_>],
        steps: &[Executable<'_>],
        run: &Run,
    ) -> Result<RunResult, Fault> {
        let mut lowering = Lowering::new(plan, kernels, steps, run.seed)?;
        let contents = lowering.contents(&run.contents);
        let request = Request::Run {
            program: lowering.program,
            contents,
            poison: run.poison,
            read_back: (0..plan.buffers.len()).collect(),
        };
        match self.exchange(&request, &lowering.blobs, run.deadline)? {
            (Response::Ran { guard }, buffers) => {
                self.intact(guard)?;
                Ok(RunResult { buffers, ..RunResult::default() })
            }
            _ => Err(confused()),
        }
    }

    /// The same several times over, where data stay on the GPU. What the runs left behind stays until the next request;
    /// beside it come the bytes of the buffers in `read_back`. The seed is that of the first run. Without `confirm`, a fault
    /// may come from what others left in the process: the caller asks by [`CudaDevice::run`].
    pub fn run_all(
        &mut self,
        plan: &Plan,
        (kernels, steps): (&[Executable<'_>], &[Executable<'_>]),
        runs: &[SharedRun],
        read_back: &[usize],
        confirm: bool,
    ) -> Result<Loans, Fault> {
        let first = runs.first().ok_or_else(|| infrastructure("nothing to run"))?;
        let mut lowering = Lowering::new(plan, kernels, steps, first.seed)?;
        let mut handles = Vec::new();
        let mut start = |run: &SharedRun| {
            let run = run.clone().after(&mut handles);
            Start { contents: lowering.sources(&run.contents), poison: run.poison }
        };
        let starts = runs.iter().map(&mut start).collect();
        let (program, read_back) = (lowering.program, read_back.to_vec());
        let count = read_back.len();
        let request = Request::RunAll { program, starts, handles, read_back, confirm };
        match self.exchange(&request, &lowering.blobs, first.deadline)? {
            (Response::RanAll { guard, loan, pitch, spent }, mut buffers) => {
                tracing::debug!(?spent, "the executor ran {} times", runs.len());
                self.intact(guard)?;
                let rest = |at: u64| loan.spans.iter().map(|&(start, size)| (start + at * pitch, size)).collect();
                let runs = (0..runs.len() as u64).map(rest).collect::<Vec<_>>();
                if buffers.len() != count * runs.len() {
                    return Err(confused());
                }
                let read = runs.iter().map(|_| buffers.drain(..count).collect()).collect();
                Ok(Loans { handle: loan.handle, nbytes: loan.nbytes, runs, read })
            }
            _ => Err(confused()),
        }
    }

    /// Frees what the last run left behind.
    pub fn forget(&mut self) -> Result<(), Fault> {
        if self.process.is_none() {
            return Ok(());
        }
        match self.exchange(&Request::Forget, &[], None)? {
            (Response::Forgotten, _) => Ok(()),
            _ => Err(confused()),
        }
    }

    /// Makes a plan ready to be timed, in place of the one before, and runs it once on each set of inputs.
    ///
    /// The sets are the contents of `runs`; seed, poison and deadline are those of the first one. `results` are the
    /// buffers that hold results. `own` are the kernels of [`crate::clock_kernels`].
    pub fn prepare(
        &mut self,
        plan: &Plan,
        (kernels, steps, own): (&[Executable<'_>], &[Executable<'_>], &[Executable<'_>; 2]),
        runs: &[Run],
        results: &[usize],
    ) -> Result<Prepared, Fault> {
        let first = runs.first().ok_or_else(|| infrastructure("nothing to time"))?;
        let mut lowering = Lowering::new(plan, kernels, steps, first.seed)?;
        let sets = runs.iter().map(|run| lowering.contents(&run.contents)).collect();
        let sets = Sets { sets, handles: Vec::new(), lend: false, poison: first.poison };
        self.prepare_sets(lowering, own, sets, results, first.deadline)
    }

    /// The same where data stay on the GPU: the sets are to be played one by one, and neither results nor digests come.
    /// The first one's handles are those of all sets.
    pub fn prepare_shared(
        &mut self,
        plan: &Plan,
        (kernels, steps, own): (&[Executable<'_>], &[Executable<'_>], &[Executable<'_>; 2]),
        runs: &[SharedRun],
        results: &[usize],
    ) -> Result<Prepared, Fault> {
        let first = runs.first().ok_or_else(|| infrastructure("nothing to time"))?;
        let mut lowering = Lowering::new(plan, kernels, steps, first.seed)?;
        let sets = runs.iter().map(|run| lowering.sources(&run.contents)).collect();
        let sets = Sets { sets, handles: first.handles.clone(), lend: true, poison: first.poison };
        self.prepare_sets(lowering, own, sets, results, first.deadline)
    }

    fn prepare_sets(
        &mut self,
        mut lowering: Lowering<'_>,
        own: &[Executable<'_>; 2],
        Sets { sets, handles, lend, poison }: Sets,
        results: &[usize],
        deadline: Option<Instant>,
    ) -> Result<Prepared, Fault> {
        let launches = lowering.program.launches();
        let request = Request::Prepare(Box::new(Prepare {
            sets,
            handles,
            lend,
            digest: lowering.loadable(&own[0]),
            nothing: lowering.loadable(&own[1]),
            program: lowering.program,
            poison,
            results: results.to_vec(),
            key: rand::random(),
        }));
        match self.exchange(&request, &lowering.blobs, deadline)? {
            (Response::Prepared { guard, digests }, buffers) => {
                self.intact(guard)?;
                let sets = buffers.chunks(results.len().max(1)).map(<[Vec<u8>]>::to_vec);
                Ok(Prepared { launches, results: sets.collect(), digests })
            }
            _ => Err(confused()),
        }
    }

    /// Runs the plan of [`CudaDevice::prepare_shared`] once on a set, untimed. Digest of its results, and where they are
    /// until the next request.
    pub fn play(&mut self, set: usize, deadline: Option<Instant>) -> Result<(u64, Loan), Fault> {
        match self.exchange(&Request::Play { set }, &[], deadline)? {
            (Response::Played { guard, digest, loan }, _) => self.intact(guard).map(|()| (digest, loan)),
            _ => Err(confused()),
        }
    }

    /// Times some calls of the prepared plan. With `read_back`, gives the results of the last one, or where they are.
    pub fn time(&mut self, block: Block, deadline: Option<Instant>) -> Result<(Vec<Call>, Results), Fault> {
        let Block { calls, cold, launches, read_back } = block;
        match self.exchange(&Request::Time { calls, cold, launches, read_back }, &[], deadline)? {
            (Response::Timed { guard, calls, loan }, results) => {
                self.intact(guard)?;
                Ok((calls, loan.map_or(Results::Bytes(results), Results::Lent)))
            }
            _ => Err(confused()),
        }
    }

    /// What events measure around a kernel that does nothing, in microseconds; a plan has to be prepared.
    pub fn nothing(&mut self) -> Result<f64, Fault> {
        match self.exchange(&Request::TimeNothing, &[], None)? {
            (Response::Nothing(us), _) => Ok(us),
            _ => Err(confused()),
        }
    }

    /// Clocks, temperature and power; none where the driver does not tell.
    pub fn state(&mut self) -> Option<DeviceState> {
        device_state(self.bus()?)
    }

    /// What names the GPU whatever machine it is in, and its driver; none where the driver does not tell.
    pub fn identity(&mut self) -> Option<(String, String)> {
        device_identity(self.bus()?)
    }

    fn bus(&mut self) -> Option<&str> {
        if self.bus.is_none() {
            self.bus = super::driver::bus(self.ordinal).ok();
        }
        self.bus.as_deref()
    }

    /// Bytes a second that a copy within the GPU's memory moves, read and written together; bytes of its second-level cache.
    pub fn copy_rate(&mut self) -> Result<(f64, u64), Fault> {
        match self.exchange(&Request::CopyRate, &[], None)? {
            (Response::Rate(rate, cache), _) => Ok((rate, cache)),
            _ => Err(confused()),
        }
    }

    /// Who strayed into a guard zone may have strayed further: the process is not used again.
    fn intact(&mut self, guard: Option<usize>) -> Result<(), Fault> {
        let Some(buffer) = guard else { return Ok(()) };
        self.restart();
        let message = format!("the guard zone beside buffer {buffer} was written: a store out of bounds");
        Err(Fault::new(FaultKind::Guard, message))
    }

    /// Ends the executor process; the next request goes to a fresh one.
    pub fn restart(&mut self) {
        self.process = None;
    }

    /// Asks the executor. A fault counts when it comes in a process that did nothing before: who strays into memory that
    /// others left must not make their kernels fail. A process that is gone without an answer is nobody's fault.
    fn exchange(
        &mut self,
        request: &Request,
        blobs: &[Vec<u8>],
        deadline: Option<Instant>,
    ) -> Result<(Response, Vec<Vec<u8>>), Fault> {
        let mut losses = 0;
        loop {
            let fresh = self.process.is_none();
            let start = Instant::now();
            let answer = self.executor().and_then(|executor| executor.ask(request, blobs, deadline));
            tracing::debug!(micros = start.elapsed().as_micros(), what = request.name(), "asked the executor");
            let fault = match answer {
                Ok((Response::Failed(failure), _)) => fault(failure),
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            // The process has answered its last, or hangs: its context is gone.
            self.process = None;
            let again = match fault.kind {
                // The deadline has passed; the driver would refuse again.
                FaultKind::Timeout | FaultKind::Refused => false,
                FaultKind::Lost | FaultKind::Infrastructure => {
                    losses += 1;
                    losses <= RESTARTS
                }
                _ => !fresh && request.confirms_faults(),
            };
            // What was prepared or kept went with the process: the caller has to begin anew.
            if !again || request.needs_more() {
                return Err(fault);
            }
            tracing::warn!(%fault, "the executor is replaced, and asked again");
        }
    }

    /// The process, started and found healthy if there is none.
    fn executor(&mut self) -> Result<&mut Executor, Fault> {
        let executor = match self.process.take() {
            Some(executor) => executor,
            None => Executor::start(self.ordinal, self.command)?,
        };
        Ok(self.process.insert(executor))
    }
}

/// This program, as the executor of a device.
fn itself(ordinal: usize) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["executor", "--device", &ordinal.to_string()]);
    Ok(command)
}

fn infrastructure(what: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Infrastructure, what)
}

fn confused() -> Fault {
    infrastructure("the executor process answered another question")
}

impl Executor {
    /// A process that has shown that its GPU computes.
    fn start(ordinal: usize, command: fn(usize) -> std::io::Result<Command>) -> Result<Self, Fault> {
        let mut executor = Self::spawn(ordinal, command)
            .map_err(|error| infrastructure(format!("failed to start the executor of cuda:{ordinal}: {error}")))?;
        match executor.ask(&Request::Probe, &[], Some(Instant::now() + PROBE)) {
            Ok((Response::Healthy, _)) => Ok(executor),
            Ok((Response::Failed(failure), _)) => {
                Err(infrastructure(format!("cuda:{ordinal} is not usable: {}: {}", failure.what, failure.code)))
            }
            Ok(_) => Err(confused()),
            Err(fault) => Err(infrastructure(format!("cuda:{ordinal} does not answer: {fault}"))),
        }
    }

    /// Requests and responses go over one socket, which is the child's standard input: what a kernel prints goes to the
    /// standard output of its process, and must not come between.
    fn spawn(ordinal: usize, command: fn(usize) -> std::io::Result<Command>) -> std::io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = command(ordinal)?.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
        let output = ours.try_clone()?;
        Ok(Self { child, input: BufWriter::new(ours), responses: reader(output) })
    }

    fn ask(
        &mut self,
        request: &Request,
        blobs: &[Vec<u8>],
        deadline: Option<Instant>,
    ) -> Result<(Response, Vec<Vec<u8>>), Fault> {
        let lost = |error: std::io::Error| {
            Fault::new(FaultKind::Lost, format!("the executor process ended without an answer: {error}"))
        };
        send(&mut self.input, request, blobs).map_err(lost)?;
        let left = deadline.map_or(Duration::from_secs(600), |at| at.saturating_duration_since(Instant::now()));
        match self.responses.recv_timeout(left) {
            Ok(answer) => answer.map_err(lost),
            Err(RecvTimeoutError::Timeout) => Err(Fault::new(
                FaultKind::Timeout,
                format!("the launches did not end within {:.1} s", left.as_secs_f64()),
            )),
            Err(RecvTimeoutError::Disconnected) => Err(lost(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads answers on a thread, so that a deadline can be kept while a kernel hangs.
fn reader(output: UnixStream) -> Receiver<std::io::Result<(Response, Vec<Vec<u8>>)>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let answer = receive(&mut output);
            let last = answer.is_err();
            if sender.send(answer).is_err() || last {
                return;
            }
        }
    });
    receiver
}

fn fault(failure: Failure) -> Fault {
    let kind = match failure.code.as_str() {
        "CUDA_ERROR_ILLEGAL_ADDRESS" => FaultKind::OutOfBounds,
        "CUDA_ERROR_MISALIGNED_ADDRESS" => FaultKind::Misaligned,
        "CUDA_ERROR_OUT_OF_MEMORY" => FaultKind::OutOfMemory,
        "CUDA_ERROR_LAUNCH_TIMEOUT" => FaultKind::Timeout,
        REFUSED => FaultKind::Refused,
        "CUDA_ERROR_INVALID_VALUE"
        | "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
        | "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
        | "CUDA_ERROR_INVALID_CLUSTER_SIZE" => FaultKind::Launch,
        "CUDA_ERROR_ASSERT"
        | "CUDA_ERROR_ILLEGAL_INSTRUCTION"
        | "CUDA_ERROR_INVALID_PC"
        | "CUDA_ERROR_INVALID_ADDRESS_SPACE"
        | "CUDA_ERROR_HARDWARE_STACK_ERROR"
        | "CUDA_ERROR_LAUNCH_FAILED" => FaultKind::Trap,
        _ => FaultKind::Infrastructure,
    };
    Fault { kind, message: format!("{}: {}", failure.what, failure.code), line: failure.line }
}
