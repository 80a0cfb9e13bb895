//! The process that holds the GPU: it runs the programs that come in and knows nothing of problems or answers.

use std::io::{BufReader, BufWriter, Read, Write};

use super::driver::{Context, Function, Memory, Shape, tensor_map};
use crate::program::{Loadable, Op, Slot};
use crate::wire::{Failure, Request, Response, receive, send};

type Result<T> = std::result::Result<T, Failure>;

/// Bytes of guard zone on each side of every buffer.
const GUARD: u64 = 4096;

/// The byte that fills the zone before buffer `zone`, which is the one behind the buffer before it. Each zone has its
/// own: a kernel that changes nothing would else carry one zone into another unseen.
fn guard_byte(zone: usize) -> u8 {
    0xA5u8.wrapping_add((zone as u8).wrapping_mul(0x3D))
}
/// More than any second-level cache.
const FLUSH_BYTES: u64 = 256 << 20;

/// Serves requests until the input ends. After a fault the context is unusable, so the process answers and stops.
pub fn serve(ordinal: usize, input: impl Read, output: impl Write) -> std::io::Result<()> {
    let mut input = BufReader::new(input);
    let mut output = BufWriter::new(output);
    let context = Context::new(ordinal);
    loop {
        let (request, blobs) = match receive::<Request>(&mut input) {
            Ok(message) => message,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let outcome = match &context {
            Ok(context) => execute(context, &request, &blobs),
            Err(failure) => Err(Failure { code: failure.code.clone(), what: failure.what.clone(), line: failure.line }),
        };
        match outcome {
            Ok((response, buffers)) => send(&mut output, &response, &buffers)?,
            Err(failure) => {
                let response = Response { guard: None, times_us: Vec::new(), failure: Some(failure) };
                return send(&mut output, &response, &[]);
            }
        }
    }
}

fn execute(context: &Context, request: &Request, blobs: &[Vec<u8>]) -> Result<(Response, Vec<Vec<u8>>)> {
    let arena = Arena::new(context, &request.program.buffers, request.poison)?;
    for (buffer, blob) in request.contents.iter().enumerate() {
        if let Some(blob) = blob {
            arena.upload(buffer, 0, &blobs[*blob])?;
        }
    }
    let kernels: Vec<Kernel<'_>> = request
        .program
        .kernels
        .iter()
        .map(|kernel| Kernel::load(context, kernel, &blobs[kernel.blob], &request.program.ops, request))
        .collect::<Result<_>>()?;
    context.synchronize()?;
    play(context, request, &arena, &kernels, blobs)?;
    let guard = arena.broken_guard()?;
    let buffers = request.read_back.iter().map(|&buffer| arena.download(buffer)).collect::<Result<_>>()?;
    let times_us = time(context, request, &arena, &kernels, blobs)?;
    Ok((Response { guard, times_us, failure: None }, buffers))
}

/// Runs the operations one after the other; each launch is waited for, so that a fault names its line.
fn play(context: &Context, request: &Request, arena: &Arena, kernels: &[Kernel<'_>], blobs: &[Vec<u8>]) -> Result<()> {
    for op in &request.program.ops {
        run_op(op, arena, kernels, blobs)?;
        if let Op::Launch { line, .. } = op {
            context.synchronize().map_err(|failure| Failure { line: Some(*line), ..failure })?;
        }
    }
    Ok(())
}

fn run_op(op: &Op, arena: &Arena, kernels: &[Kernel<'_>], blobs: &[Vec<u8>]) -> Result<()> {
    match op {
        Op::Upload { buffer, offset, blob } => arena.upload(*buffer, *offset, &blobs[*blob]),
        Op::Set { buffer, offset, pattern, width, count } => arena.set(*buffer, *offset, *pattern, *width, *count),
        Op::Launch { kernel, grid, params, line } => {
            kernels[*kernel].launch(*grid, params, arena).map_err(|failure| Failure { line: Some(*line), ..failure })
        }
    }
}

/// Times further executions of the whole program, with a flush of the second-level cache before each.
fn time(
    context: &Context,
    request: &Request,
    arena: &Arena,
    kernels: &[Kernel<'_>],
    blobs: &[Vec<u8>],
) -> Result<Vec<f64>> {
    if request.timed_calls == 0 {
        return Ok(Vec::new());
    }
    let flush = context.alloc(FLUSH_BYTES)?;
    let (start, end) = (context.event()?, context.event()?);
    let mut times = Vec::new();
    for call in 0..request.timed_calls {
        flush.set(0, call, 4, FLUSH_BYTES / 4)?;
        start.record()?;
        for op in &request.program.ops {
            run_op(op, arena, kernels, blobs)?;
        }
        end.record()?;
        times.push(end.since(&start)?);
    }
    Ok(times)
}

/// All buffers in one allocation, with guard zones between them.
struct Arena {
    memory: Memory,
    /// Start and length of each buffer.
    spans: Vec<(u64, u64)>,
}

impl Arena {
    fn new(context: &Context, sizes: &[u64], poison: u8) -> Result<Self> {
        let mut spans = Vec::new();
        let mut at = GUARD;
        for &size in sizes {
            spans.push((at, size));
            at += size.next_multiple_of(256) + GUARD;
        }
        let memory = context.alloc(at)?;
        memory.set(0, u32::from(guard_byte(0)), 1, GUARD)?;
        for (buffer, &(start, size)) in spans.iter().enumerate() {
            memory.set(start, u32::from(poison), 1, size)?;
            let behind = size.next_multiple_of(256) - size + GUARD;
            memory.set(start + size, u32::from(guard_byte(buffer + 1)), 1, behind)?;
        }
        Ok(Self { memory, spans })
    }

    fn upload(&self, buffer: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        self.memory.upload(self.inside(buffer, offset, bytes.len() as u64)?, bytes)
    }

    fn set(&self, buffer: usize, offset: u64, pattern: u32, width: u32, count: u64) -> Result<()> {
        let start = self.inside(buffer, offset, count.saturating_mul(u64::from(width)))?;
        self.memory.set(start, pattern, width, count)
    }

    fn download(&self, buffer: usize) -> Result<Vec<u8>> {
        let (start, size) = self.spans[buffer];
        self.memory.download(start, size)
    }

    fn address(&self, buffer: usize, offset: u64) -> u64 {
        self.memory.address + self.spans[buffer].0 + offset
    }

    fn inside(&self, buffer: usize, offset: u64, bytes: u64) -> Result<u64> {
        let (start, size) = self.spans[buffer];
        if offset.checked_add(bytes).is_some_and(|end| end <= size) {
            return Ok(start + offset);
        }
        let what = format!("{bytes} bytes at {offset} of buffer {buffer}, which has {size}");
        Err(Failure { code: "OUT_OF_RANGE".into(), what, line: None })
    }

    /// The first buffer with a changed byte in the zone before or after it.
    fn broken_guard(&self) -> Result<Option<usize>> {
        for (buffer, &(start, size)) in self.spans.iter().enumerate() {
            let before = self.memory.download(start - GUARD, GUARD)?;
            let after = self.memory.download(start + size, size.next_multiple_of(256) - size + GUARD)?;
            let intact = |zone: &[u8], byte: u8| zone.iter().all(|&found| found == byte);
            if !intact(&before, guard_byte(buffer)) || !intact(&after, guard_byte(buffer + 1)) {
                return Ok(Some(buffer));
            }
        }
        Ok(None)
    }
}

/// A loaded kernel with its scratch memory.
struct Kernel<'a> {
    spec: &'a Loadable,
    function: Function,
    global: Option<Memory>,
    profile: Option<Memory>,
}

impl<'a> Kernel<'a> {
    fn load(context: &Context, spec: &'a Loadable, image: &[u8], ops: &[Op], request: &Request) -> Result<Self> {
        let function = Function::load(image, &spec.entry, spec.shared)?;
        let programs = ops.iter().filter_map(|op| match op {
            Op::Launch { kernel, grid, .. } if std::ptr::eq(&request.program.kernels[*kernel], spec) => {
                Some(grid.iter().map(|&extent| u64::from(extent)).product::<u64>())
            }
            _ => None,
        });
        let programs = programs.max().unwrap_or(0) * u64::from(spec.options.num_ctas.max(1));
        let scratch = |size: u64| match size.saturating_mul(programs) {
            0 => Ok(None),
            bytes => context.alloc(bytes).map(Some),
        };
        let (global, profile) = (scratch(spec.global_scratch.0)?, scratch(spec.profile_scratch.0)?);
        Ok(Self { spec, function, global, profile })
    }

    fn launch(&self, grid: [u32; 3], params: &[Slot], arena: &Arena) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        let address = |memory: &Option<Memory>| memory.as_ref().map_or(0, |memory| memory.address);
        let mut values: Vec<Vec<u8>> = params
            .iter()
            .map(|slot| match slot {
                Slot::Pointer { buffer, offset } => Ok(arena.address(*buffer, *offset).to_le_bytes().to_vec()),
                Slot::Value(bytes) => Ok(bytes.clone()),
                Slot::TensorMap(map) => tensor_map(arena.address(map.buffer, map.view.offset), map),
            })
            .collect::<Result<_>>()?;
        // Triton's kernels end with two scratch pointers.
        values.push(address(&self.global).to_le_bytes().to_vec());
        values.push(address(&self.profile).to_le_bytes().to_vec());
        let ctas = self.spec.options.num_ctas.max(1);
        let shape = Shape {
            grid: [grid[0].saturating_mul(ctas), grid[1], grid[2]],
            threads: self.spec.threads,
            shared: self.spec.shared,
            ctas,
            cooperative: self.spec.options.launch_cooperative_grid,
        };
        self.function.launch(&shape, &values)
    }
}
