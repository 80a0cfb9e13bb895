use std::io::{BufReader, BufWriter};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tilewright_contract::Plan;

use crate::program::{Executable, Lowering};
use crate::run::{Fault, FaultKind, Run, RunResult};
use crate::wire::{Failure, Request, Response, receive, send};

/// A GPU, driven through an executor process that is killed at a deadline and replaced after a fault.
pub struct CudaDevice {
    ordinal: usize,
    process: Option<Executor>,
    /// Executions timed after a correct one; 0 for none.
    timed_calls: u32,
}

struct Executor {
    child: Child,
    input: BufWriter<UnixStream>,
    responses: Receiver<std::io::Result<(Response, Vec<Vec<u8>>)>>,
}

impl CudaDevice {
    pub fn new(ordinal: usize, timed_calls: u32) -> Self {
        Self { ordinal, process: None, timed_calls }
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
        let mut contents = Vec::new();
        for bytes in &run.contents {
            contents.push(bytes.as_ref().map(|bytes| {
                lowering.blobs.push(bytes.clone());
                lowering.blobs.len() - 1
            }));
        }
        let request = Request {
            program: lowering.program,
            contents,
            poison: run.poison,
            read_back: (0..plan.buffers.len()).collect(),
            timed_calls: self.timed_calls,
        };
        let (response, buffers) = self.exchange(&request, &lowering.blobs, run.deadline)?;
        if let Some(buffer) = response.guard {
            let message = format!("the guard zone beside buffer {buffer} was written: a store out of bounds");
            return Err(Fault::new(FaultKind::Guard, message));
        }
        Ok(RunResult { buffers, device_us: median(response.times_us), ..RunResult::default() })
    }

    fn exchange(
        &mut self,
        request: &Request,
        blobs: &[Vec<u8>],
        deadline: Option<Instant>,
    ) -> Result<(Response, Vec<Vec<u8>>), Fault> {
        let infrastructure = |what: String| Fault::new(FaultKind::Infrastructure, what);
        if self.process.is_none() {
            self.process = Some(Executor::spawn(self.ordinal).map_err(|error| {
                infrastructure(format!("failed to start the executor of cuda:{}: {error}", self.ordinal))
            })?);
        }
        let Some(executor) = self.process.as_mut() else { return Err(infrastructure("no executor".into())) };
        let answer = executor.ask(request, blobs, deadline);
        match answer {
            Ok((Response { failure: None, guard, times_us }, buffers)) => {
                Ok((Response { failure: None, guard, times_us }, buffers))
            }
            Ok((Response { failure: Some(failure), .. }, _)) => {
                // The process has answered its last: its context is gone.
                self.process = None;
                Err(fault(failure))
            }
            Err(fault) => {
                self.process = None;
                Err(fault)
            }
        }
    }
}

impl Executor {
    /// Requests and responses go over one socket, which is the child's standard input: what a kernel prints goes to the
    /// standard output of its process, and must not come between.
    fn spawn(ordinal: usize) -> std::io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(std::env::current_exe()?)
            .args(["executor", "--device", &ordinal.to_string()])
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()?;
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
            Fault::new(FaultKind::Infrastructure, format!("the executor process was lost: {error}"))
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
        "CUDA_ERROR_INVALID_VALUE" | "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" => FaultKind::Launch,
        "CUDA_ERROR_ASSERT" | "CUDA_ERROR_ILLEGAL_INSTRUCTION" | "CUDA_ERROR_LAUNCH_FAILED" => FaultKind::Trap,
        _ => FaultKind::Infrastructure,
    };
    Fault { kind, message: format!("{}: {}", failure.what, failure.code), line: failure.line }
}

fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}
