//! The process that holds the GPU: it runs the programs that come in and knows nothing of problems or answers.

use std::io::{BufReader, BufWriter, Read, Write};

use super::arena::Arena;
use super::batch::{Batch, Spent};
use super::clock::{Clock, FirstCalls, Timed, copy_rate};
use super::driver::Context;
use super::kernels::{Kernel, Modules};
use crate::program::{Op, Program};
use crate::wire::{Content, Failure, Request, Response, Start, receive, send};

type Result<T> = std::result::Result<T, Failure>;

/// Serves requests until the input ends. After a fault the context is unusable, so the process answers and stops.
pub fn serve(ordinal: usize, input: impl Read, output: impl Write) -> std::io::Result<()> {
    let mut input = BufReader::new(input);
    let mut output = BufWriter::new(output);
    let mut executor = Executor::new(ordinal);
    loop {
        let (request, blobs) = match receive::<Request>(&mut input) {
            Ok(message) => message,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let answer = match &mut executor {
            Ok(executor) => executor.answer(request, &blobs),
            Err(failure) => Err(failure.clone()),
        };
        match answer {
            Ok((response, buffers)) => send(&mut output, &response, &buffers)?,
            Err(failure) => return send(&mut output, &Response::Failed(failure), &[]),
        }
    }
}

fn idle() -> Failure {
    Failure { code: "NO_CLOCK".into(), what: "nothing was prepared".into(), line: None }
}

struct Executor {
    context: Context,
    modules: Modules,
    clock: Option<Clock>,
    /// What the last runs left behind, for somebody to look at.
    kept: Option<Batch>,
}

impl Executor {
    fn new(ordinal: usize) -> Result<Self> {
        Ok(Self { context: Context::new(ordinal)?, modules: Modules::default(), clock: None, kept: None })
    }

    fn answer(&mut self, request: Request, blobs: &[Vec<u8>]) -> Result<(Response, Vec<Vec<u8>>)> {
        match request {
            Request::Run { program, contents, poison, read_back } => {
                (self.clock, self.kept) = (None, None);
                let arena = self.filled(&program, &contents, blobs, poison)?;
                self.run(&program, &arena, &read_back, blobs)
            }
            Request::RunAll { program, starts, handles, read_back, confirm: _ } => {
                self.clock = None;
                self.run_all(&program, &starts, (&handles, blobs), &read_back)
            }
            Request::Forget => {
                (self.clock, self.kept) = (None, None);
                Ok((Response::Forgotten, Vec::new()))
            }
            Request::Prepare(prepare) => {
                (self.clock, self.kept) = (None, None);
                let mut clock = Clock::new(&self.context, &mut self.modules, *prepare, blobs)?;
                let first = if clock.lends() { FirstCalls::default() } else { clock.play_all(&self.context)? };
                self.clock = Some(clock);
                let FirstCalls { results, digests, guard } = first;
                Ok((Response::Prepared { guard, digests }, results))
            }
            Request::Play { set } => {
                let clock = self.clock.as_mut().ok_or_else(idle)?;
                let (digest, guard) = clock.play(&self.context, set)?;
                Ok((Response::Played { guard, digest, loan: clock.loan()? }, Vec::new()))
            }
            Request::Time { calls, cold, launches, read_back } => {
                let clock = self.clock.as_mut().ok_or_else(idle)?;
                let Timed { calls, guard } = clock.time(&self.context, calls, cold, launches)?;
                let loan = (read_back && clock.lends()).then(|| clock.loan()).transpose()?;
                let results = if read_back && loan.is_none() { clock.results()? } else { Vec::new() };
                Ok((Response::Timed { guard, calls, loan }, results))
            }
            Request::TimeNothing => {
                let clock = self.clock.as_ref().ok_or_else(idle)?;
                Ok((Response::Nothing(clock.time_nothing(&self.context)?), Vec::new()))
            }
            Request::Probe => probe(&self.context).map(|()| (Response::Healthy, Vec::new())),
            Request::CopyRate => {
                let rate = copy_rate(&self.context)?;
                Ok((Response::Rate(rate, self.context.cache_bytes()?), Vec::new()))
            }
        }
    }

    /// Memory for a program with its first contents.
    fn filled(&self, program: &Program, contents: &[Option<Content>], blobs: &[Vec<u8>], poison: u8) -> Result<Arena> {
        let arena = Arena::new(&self.context, &program.buffers, poison, 0)?;
        for (buffer, content) in contents.iter().enumerate() {
            match content.filter(|_| arena.size(buffer) > 0) {
                None => {}
                Some(Content::Blob(blob)) => arena.upload(buffer, 0, &blobs[blob])?,
                Some(Content::Mapped { .. } | Content::Kept) => {
                    let what = "a run by itself starts from blobs".into();
                    return Err(Failure { code: "NO_BLOB".into(), what, line: None });
                }
            }
        }
        self.context.synchronize()?;
        Ok(arena)
    }

    fn run(
        &mut self,
        program: &Program,
        arena: &Arena,
        read_back: &[usize],
        blobs: &[Vec<u8>],
    ) -> Result<(Response, Vec<Vec<u8>>)> {
        let kernels = Kernel::load_all(&self.context, &mut self.modules, program, blobs)?;
        self.context.synchronize()?;
        for op in &program.ops {
            self.execute(op, arena, &kernels, blobs)?;
        }
        self.context.synchronize()?;
        let guard = arena.broken_guard(&self.context)?;
        let buffers = read_back.iter().map(|&buffer| arena.download(buffer)).collect::<Result<_>>()?;
        Ok((Response::Ran { guard }, buffers))
    }

    /// What was mapped and what was kept is gone before the first launch, so that none reaches it.
    fn run_all(
        &mut self,
        program: &Program,
        starts: &[Start],
        (handles, blobs): (&[Vec<u8>], &[Vec<u8>]),
        read_back: &[usize],
    ) -> Result<(Response, Vec<Vec<u8>>)> {
        let mut spent = Spent::new();
        let batch = Batch::filled(&self.context, program, starts, (handles, blobs), self.kept.take())?;
        spent.on("fill");
        let kernels = Kernel::load_all(&self.context, &mut self.modules, program, blobs)?;
        self.context.synchronize()?;
        spent.on("load");
        batch.play(&self.context, program, starts, (&kernels, blobs))?;
        spent.on("play");
        let guard = batch.broken_guard(&self.context)?;
        spent.on("guard");
        let places = (0..starts.len()).flat_map(|run| read_back.iter().map(move |&buffer| (run, buffer)));
        let buffers = places.map(|(run, buffer)| batch.download(run, buffer)).collect::<Result<_>>()?;
        spent.on("read");
        let response = Response::RanAll { guard, loan: batch.loan()?, pitch: batch.pitch, spent: spent.parts };
        self.kept = Some(batch);
        Ok((response, buffers))
    }

    /// Runs one operation; a launch is waited for, so that a fault names its line.
    fn execute(&self, op: &Op, arena: &Arena, kernels: &[Kernel], blobs: &[Vec<u8>]) -> Result<()> {
        match op {
            Op::Upload { buffer, offset, blob } => arena.upload(*buffer, *offset, &blobs[*blob]),
            Op::Set { buffer, offset, pattern, width, count } => {
                arena.set(&self.context, (*buffer, *offset), (*pattern, *width, *count))
            }
            Op::Launch { kernel, grid, params, line } => kernels[*kernel]
                .launch(&self.context, *grid, params, arena)
                .and_then(|()| self.context.synchronize())
                .map_err(|failure| Failure { line: Some(*line), ..failure }),
        }
    }
}

/// Whether memory can be had and holds what is written.
fn probe(context: &Context) -> Result<()> {
    const BYTES: u64 = 1 << 20;
    let (from, to) = (context.alloc(BYTES)?, context.alloc(BYTES)?);
    from.set(context, 0, 0x9E37_79B9, 4, BYTES / 4)?;
    to.copy(context, 0, &from, 0, BYTES)?;
    context.synchronize()?;
    if to.download(0, BYTES)?.as_chunks::<4>().0.iter().all(|word| u32::from_le_bytes(*word) == 0x9E37_79B9) {
        return Ok(());
    }
    Err(Failure { code: "UNHEALTHY".into(), what: "memory does not hold what was written".into(), line: None })
}
