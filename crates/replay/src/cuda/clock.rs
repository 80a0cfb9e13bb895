//! The device's clock: a program recorded as a graph, and timed on inputs that are put back before each call.
//!
//! How long a kernel takes depends a little on where its memory lies. So each block of calls has its buffers elsewhere:
//! blocks differ by that as well, and an interval over blocks holds it.

use rand::rngs::StdRng;

use super::arena::{Arena, Places};
use super::driver::{Context, Event, Gate, Graph, Memory};
use super::kernels::{Kernel, Modules};
use crate::program::{DIGEST_BLOCK, Loadable, Op, Program};
use crate::wire::{Call, Content, Failure, Loan, Prepare};

type Result<T> = std::result::Result<T, Failure>;

/// The second-level cache is flushed by writing this many times its size.
const FLUSH_FACTOR: u64 = 2;

/// Series of calls of the kernel that does nothing, and calls in each.
const NOTHING_SERIES: u32 = 9;
const NOTHING_CALLS: u32 = 21;

/// Operations that a stream takes while nothing of it runs; the driver has room for about 1,000.
const GATED: usize = 400;

/// Bytes in which a program's buffers are moved from block to block.
const ROOM: u64 = 16 << 20;

/// A program that is ready to be timed.
pub(super) struct Clock {
    arena: Arena,
    /// Contents of the buffers for each set of inputs; what has none is poison.
    sets: Vec<Vec<Option<Memory>>>,
    poison: u8,
    /// Results stay here, for another process to look at.
    lend: bool,
    /// What the host writes in the course of the program, where an operation is an upload.
    literals: Vec<Option<Memory>>,
    program: Program,
    kernels: Vec<Kernel>,
    results: Vec<usize>,
    digest: Kernel,
    key: u64,
    /// A digest for each call of a block.
    slots: Memory,
    flush: Memory,
    gate: Gate,
    /// A kernel that does nothing.
    nothing: Graph,
    /// The whole program, where the buffers lie now.
    graph: Graph,
    /// Events of that graph: before the first launch and after each, or none.
    marks: Vec<Event>,
    /// Calls so far: they take the sets in turn.
    calls: usize,
    rng: StdRng,
}

/// What a block of calls took.
pub(super) struct Timed {
    pub(super) calls: Vec<Call>,
    /// A buffer beside which a guard zone was written.
    pub(super) guard: Option<usize>,
}

/// What the untimed calls did.
#[derive(Default)]
pub(super) struct FirstCalls {
    /// The buffers that hold results, set by set.
    pub(super) results: Vec<Vec<u8>>,
    /// One for each set.
    pub(super) digests: Vec<u64>,
    /// A buffer beside which a guard zone was written.
    pub(super) guard: Option<usize>,
}

impl Clock {
    /// Loads the program and its inputs.
    pub(super) fn new(context: &Context, modules: &mut Modules, prepare: Prepare, blobs: &[Vec<u8>]) -> Result<Self> {
        let Prepare { program, sets, handles, poison, lend, results, digest, key, nothing } = prepare;
        let kernels = Kernel::load_all(context, modules, &program, blobs)?;
        let arena = Arena::new(context, &program.buffers, poison, ROOM)?;
        let literals = program.ops.iter().map(|op| literal(context, op, blobs)).collect::<Result<Vec<_>>>()?;
        let sets = load_sets(context, &program, &sets, (&handles, blobs))?;
        let digest = own_kernel(context, modules, digest, blobs)?;
        let nothing = own_kernel(context, modules, nothing, blobs)?;
        let flush = context.alloc(context.cache_bytes()?.max(1 << 20) * FLUSH_FACTOR)?;
        let graph = Graph::record(context, || play(context, &program, &kernels, &literals, &arena, &mut || Ok(())))?;
        let address = flush.address.to_le_bytes().to_vec();
        let nothing = Graph::record(context, || nothing.launch_values(context, [1, 1, 1], vec![address]))?;
        Ok(Self {
            arena,
            sets,
            poison,
            lend,
            literals,
            program,
            kernels,
            results,
            digest,
            key,
            slots: context.alloc(8)?,
            flush,
            gate: Gate::new()?,
            nothing,
            graph,
            marks: Vec::new(),
            calls: 0,
            rng: rand::make_rng(),
        })
    }

    /// Runs the program once on a set, untimed. The digest of its results, and a buffer beside which a guard zone was written.
    pub(super) fn play(&mut self, context: &Context, set: usize) -> Result<(u64, Option<usize>)> {
        self.restore(context, set)?;
        self.graph.launch(context)?;
        context.synchronize()?;
        self.clear_slots(context, 1)?;
        self.put_digest(context, 0)?;
        let digest = read_words(context, &self.slots, 1)?.first().copied().unwrap_or_default();
        Ok((digest, self.arena.broken_guard(context)?))
    }

    /// Runs the program once on each set, untimed, and takes the results.
    pub(super) fn play_all(&mut self, context: &Context) -> Result<FirstCalls> {
        let mut first = FirstCalls::default();
        for set in 0..self.sets.len() {
            let (digest, guard) = self.play(context, set)?;
            first.digests.push(digest);
            first.guard = first.guard.or(guard);
            first.results.extend(self.results()?);
        }
        Ok(first)
    }

    /// What the last call left behind, for another process to look at.
    pub(super) fn loan(&self) -> Result<Loan> {
        self.arena.loan()
    }

    /// Whether results stay here.
    pub(super) fn lends(&self) -> bool {
        self.lend
    }

    /// What the last call left in the buffers that hold results.
    pub(super) fn results(&self) -> Result<Vec<Vec<u8>>> {
        self.results.iter().map(|&buffer| self.arena.download(buffer)).collect()
    }

    /// Times some calls, with the buffers at new places. The device begins when all are put into the stream: what events
    /// measure is longer, and varies more, while the host still works on it.
    pub(super) fn time(&mut self, context: &Context, calls: u32, cold: bool, launches: bool) -> Result<Timed> {
        self.clear_slots(context, calls)?;
        self.move_buffers(context, launches)?;
        let mut timed = Vec::new();
        let each = self.sets[0].len() + self.program.ops.len() + self.results.len() + 8;
        // Events inside the graph are read call by call, for which the device has to run.
        let gated = !launches && each * calls as usize <= GATED;
        let closed = Some(&self.gate).filter(|_| gated).and_then(|gate| gate.close(context).ok());
        // Else it is kept busy for as long as the host is likely to need.
        (0..calls).filter(|_| closed.is_none()).try_for_each(|at| self.flush(context, at))?;
        for at in 0..calls {
            let set = self.calls % self.sets.len();
            self.calls += 1;
            self.restore(context, set)?;
            let (start, end) = self.around(context, cold.then_some(at), &self.graph)?;
            self.put_digest(context, u64::from(at))?;
            // The events inside are the graph's: they are read before it runs again.
            let launches_us = self.marks.windows(2).map(|pair| pair[1].since(&pair[0])).collect::<Result<Vec<_>>>()?;
            timed.push((set, start, end, launches_us));
        }
        drop(closed);
        let digests = read_words(context, &self.slots, u64::from(calls))?;
        let calls = timed.into_iter().zip(digests).map(|((set, start, end, launches_us), digest)| {
            Ok(Call { set, us: end.since(&start)?, launches_us, digest })
        });
        let calls = calls.collect::<Result<Vec<_>>>()?;
        Ok(Timed { calls, guard: self.arena.broken_guard(context)? })
    }

    /// What events measure around a kernel that does nothing: the median of the medians of some series of cold calls.
    pub(super) fn time_nothing(&self, context: &Context) -> Result<f64> {
        let series = || {
            let closed = self.gate.close(context).ok();
            let pairs = (0..NOTHING_CALLS).map(|at| self.around(context, Some(at), &self.nothing));
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            drop(closed);
            context.synchronize()?;
            Ok(middle(pairs.iter().map(|(start, end)| end.since(start)).collect::<Result<Vec<_>>>()?))
        };
        Ok(middle((0..NOTHING_SERIES).map(|_| series()).collect::<Result<Vec<_>>>()?))
    }

    /// Puts a graph between two events, after a flush if there is a pattern for one.
    fn around(&self, context: &Context, flush: Option<u32>, graph: &Graph) -> Result<(Event, Event)> {
        flush.map_or(Ok(()), |pattern| self.flush(context, pattern))?;
        let (start, end) = (Event::new()?, Event::new()?);
        start.record(context)?;
        graph.launch(context)?;
        end.record(context)?;
        Ok((start, end))
    }

    /// Leaves nothing of the inputs in the second-level cache.
    fn flush(&self, context: &Context, pattern: u32) -> Result<()> {
        self.flush.set(context, 0, pattern, 4, self.flush.size() / 4)
    }

    /// Every buffer as it was before the first call.
    fn restore(&self, context: &Context, set: usize) -> Result<()> {
        for (buffer, contents) in self.sets[set].iter().enumerate() {
            match contents {
                Some(bytes) => self.arena.copy(context, buffer, 0, (bytes, 0, bytes.size()))?,
                None => self.arena.poison(context, buffer, self.poison)?,
            }
        }
        Ok(())
    }

    /// Gives the buffers new places, and records the program for them; with `marked`, its events too.
    fn move_buffers(&mut self, context: &Context, marked: bool) -> Result<()> {
        self.arena.scatter(context, self.poison, &mut self.rng)?;
        let launches = self.program.ops.iter().filter(|op| matches!(op, Op::Launch { .. })).count();
        let marks = (0..=launches).filter(|_| marked).map(|_| Event::new()).collect::<Result<Vec<_>>>()?;
        let mut next = marks.iter();
        let mut mark = || next.next().map_or(Ok(()), |event| event.record_inside(context));
        self.graph = Graph::record(context, || {
            mark()?;
            play(context, &self.program, &self.kernels, &self.literals, &self.arena, &mut mark)
        })?;
        self.marks = marks;
        self.graph.upload(context)
    }

    fn clear_slots(&mut self, context: &Context, calls: u32) -> Result<()> {
        let bytes = u64::from(calls) * 8;
        if self.slots.size() < bytes {
            self.slots = context.alloc(bytes)?;
        }
        self.slots.set(context, 0, 0, 4, u64::from(calls) * 2)
    }

    /// Puts the digest of all results into the slot of a call. The bytes behind a buffer up to a whole word belong to a
    /// guard zone, and are known.
    fn put_digest(&self, context: &Context, call: u64) -> Result<()> {
        for (at, &buffer) in self.results.iter().enumerate() {
            let words = self.arena.size(buffer).div_ceil(4);
            let key = self.key.wrapping_add(0xD134_2543_DE82_EF95_u64.wrapping_mul(at as u64));
            let values = [self.arena.address(buffer, 0), words, key, self.slots.address + call * 8];
            let grid = [u32::try_from(words.div_ceil(DIGEST_BLOCK)).unwrap_or(u32::MAX), 1, 1];
            let values = values.iter().map(|value| value.to_le_bytes().to_vec()).collect();
            self.digest.launch_values(context, grid, values)?;
        }
        Ok(())
    }
}

/// The operations of a program in their order; `after_launch` comes after each launch.
fn play(
    context: &Context,
    program: &Program,
    kernels: &[Kernel],
    literals: &[Option<Memory>],
    arena: &Arena,
    after_launch: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    for (op, literal) in program.ops.iter().zip(literals) {
        match op {
            Op::Launch { kernel, grid, params, line } => {
                let launched = kernels[*kernel].launch(context, *grid, params, arena);
                launched.map_err(|failure| Failure { line: Some(*line), ..failure })?;
                after_launch()?;
            }
            Op::Set { buffer, offset, pattern, width, count } => {
                arena.set(context, (*buffer, *offset), (*pattern, *width, *count))?;
            }
            Op::Upload { buffer, offset, .. } => {
                if let Some(bytes) = literal {
                    arena.copy(context, *buffer, *offset, (bytes, 0, bytes.size()))?;
                }
            }
        }
    }
    Ok(())
}

/// The middle one of an odd number of times.
fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn literal(context: &Context, op: &Op, blobs: &[Vec<u8>]) -> Result<Option<Memory>> {
    let Op::Upload { blob, .. } = op else { return Ok(None) };
    upload(context, &blobs[*blob]).map(Some)
}

/// Contents of the buffers for each set of inputs. What was mapped for it is unmapped when all is copied.
fn load_sets(
    context: &Context,
    program: &Program,
    sets: &[Vec<Option<Content>>],
    (handles, blobs): (&[Vec<u8>], &[Vec<u8>]),
) -> Result<Vec<Vec<Option<Memory>>>> {
    let mapped = handles.iter().map(|handle| Memory::map(handle)).collect::<Result<Vec<_>>>()?;
    let load = |(buffer, content): (usize, &Option<Content>)| match content {
        None | Some(Content::Kept) => Ok(None),
        Some(Content::Blob(blob)) => upload(context, &blobs[*blob]).map(Some),
        Some(Content::Mapped { handle, offset }) => {
            let bytes = program.buffers[buffer];
            let memory = context.alloc(bytes)?;
            memory.copy(context, 0, &mapped[*handle], *offset, bytes)?;
            Ok(Some(memory))
        }
    };
    let sets = sets.iter().map(|set| set.iter().enumerate().map(load).collect()).collect::<Result<Vec<_>>>()?;
    context.synchronize()?;
    Ok(sets)
}

fn upload(context: &Context, bytes: &[u8]) -> Result<Memory> {
    let memory = context.alloc(bytes.len() as u64)?;
    memory.upload(0, bytes)?;
    Ok(memory)
}

fn own_kernel(context: &Context, modules: &mut Modules, spec: Loadable, blobs: &[Vec<u8>]) -> Result<Kernel> {
    let program = Program { buffers: Vec::new(), kernels: vec![spec], ops: Vec::new() };
    let lost = || Failure { code: "NO_KERNEL".into(), what: "a kernel of our own is missing".into(), line: None };
    Kernel::load_all(context, modules, &program, blobs)?.pop().ok_or_else(lost)
}

fn read_words(context: &Context, memory: &Memory, count: u64) -> Result<Vec<u64>> {
    context.synchronize()?;
    let bytes = memory.download(0, count * 8)?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Bytes a second that a copy within the device's memory moves, read and written together; the best of some copies of
/// many times the second-level cache.
pub(super) fn copy_rate(context: &Context) -> Result<f64> {
    let bytes = (context.cache_bytes()?.max(32 << 20) * 16).min(context.free_bytes()? / 4);
    let (from, to) = (context.alloc(bytes)?, context.alloc(bytes)?);
    // Not zeros: memory that is all one value may be faster.
    from.set(context, 0, 0x9E37_79B9, 4, bytes / 4)?;
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let (start, end) = (Event::new()?, Event::new()?);
        start.record(context)?;
        to.copy(context, 0, &from, 0, bytes)?;
        end.record(context)?;
        best = best.min(end.since(&start)?);
    }
    Ok(2.0 * bytes as f64 / (best * 1e-6))
}
