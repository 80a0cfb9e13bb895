//! Several runs of one program, each in memory of its own, all of it one allocation: had, given out and wiped once.

use std::collections::HashMap;
use std::time::Instant;

use super::arena::{GRAIN, GUARD, Places, guard_byte};
use super::driver::{Context, Memory};
use super::kernels::Kernel;
use crate::program::{Op, Program};
use crate::wire::{Content, Failure, Loan, Start};

type Result<T> = std::result::Result<T, Failure>;

/// The memory of several runs.
pub(super) struct Batch {
    memory: Memory,
    /// Start and length of each buffer of the first run.
    spans: Vec<(u64, u64)>,
    /// Bytes from a buffer of one run to that of the next.
    pub(super) pitch: u64,
    runs: u64,
}

/// The memory of one of them.
struct One<'a> {
    batch: &'a Batch,
    run: u64,
}

impl Batch {
    /// Memory for these runs with their first contents, but for what a run takes over from the one before it in the batch.
    /// What is mapped for it is unmapped when it is copied; `before` is what was kept of the batch before.
    pub(super) fn filled(
        context: &Context,
        program: &Program,
        starts: &[Start],
        (handles, blobs): (&[Vec<u8>], &[Vec<u8>]),
        before: Option<Self>,
    ) -> Result<Self> {
        // Without a use for it, its memory is free for this batch.
        let before = before.filter(|_| starts.first().is_some_and(Start::continues));
        let batch = Self::new(context, &program.buffers, starts.len() as u64)?;
        let mapped = handles.iter().map(|handle| Memory::map(handle)).collect::<Result<Vec<_>>>()?;
        // A blob comes from the host once.
        let mut here: HashMap<usize, u64> = HashMap::new();
        for (run, start) in starts.iter().enumerate() {
            let one = batch.run(run);
            let contents = start.contents.iter().copied().chain(std::iter::repeat(None));
            for ((buffer, &(_, size)), content) in batch.spans.iter().enumerate().zip(contents) {
                let at = one.offset(buffer);
                match content.filter(|_| size > 0) {
                    None => batch.memory.set(context, at, u32::from(start.poison), 1, size)?,
                    Some(Content::Mapped { handle, offset }) => {
                        batch.memory.copy(context, at, &mapped[handle], offset, size)?;
                    }
                    Some(Content::Blob(blob)) => {
                        let bytes = blobs[blob].len() as u64;
                        one.inside(buffer, 0, bytes)?;
                        match here.get(&blob) {
                            Some(&from) => batch.memory.copy(context, at, &batch.memory, from, bytes)?,
                            None => {
                                batch.memory.upload(at, &blobs[blob])?;
                                here.insert(blob, at);
                            }
                        }
                    }
                    Some(Content::Kept) if run > 0 => {}
                    Some(Content::Kept) => {
                        let lost = || Failure { code: "NOT_KEPT".into(), what: "nothing was kept".into(), line: None };
                        let before = before.as_ref().ok_or_else(lost)?;
                        let last = before.last().offset(buffer);
                        batch.memory.copy(context, at, &before.memory, last, size)?;
                    }
                }
            }
        }
        context.synchronize()?;
        Ok(batch)
    }

    fn new(context: &Context, sizes: &[u64], runs: u64) -> Result<Self> {
        let (mut spans, mut at) = (Vec::new(), GUARD);
        for &size in sizes {
            spans.push((at, size));
            at += size.next_multiple_of(256) + GUARD;
        }
        let pitch = at.next_multiple_of(512);
        let end = pitch.saturating_mul(runs);
        let memory = context.alloc(end.next_multiple_of(GRAIN))?;
        // Memory may come with what another process had in it.
        memory.set(context, end, u32::from(guard_byte(0)), 1, memory.size() - end)?;
        let batch = Self { memory, spans, pitch, runs };
        for (number, from, len) in batch.zones() {
            batch.memory.set(context, from, u32::from(guard_byte(number)), 1, len)?;
        }
        Ok(batch)
    }

    /// The guard zones: which of its run, start, and length.
    fn zones(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let ends = self.spans.iter().map(|&(start, size)| start + size);
        let starts = self.spans.iter().map(|&(start, _)| start).chain([self.pitch]);
        let zones: Vec<(u64, u64)> = std::iter::once(0).chain(ends).zip(starts).collect();
        (0..self.runs).flat_map(move |run| {
            let zones = zones.clone().into_iter().enumerate();
            zones.map(move |(number, (from, to))| (number, run * self.pitch + from, to - from))
        })
    }

    fn run(&self, run: usize) -> One<'_> {
        One { batch: self, run: run as u64 }
    }

    fn last(&self) -> One<'_> {
        One { batch: self, run: self.runs.saturating_sub(1) }
    }

    /// All runs one after the other. They are waited for together: where one faults, it has to be asked for by itself to
    /// learn which launch it was.
    pub(super) fn play(
        &self,
        context: &Context,
        program: &Program,
        starts: &[Start],
        (kernels, blobs): (&[Kernel], &[Vec<u8>]),
    ) -> Result<()> {
        for (run, start) in starts.iter().enumerate() {
            let one = self.run(run);
            if run > 0 {
                one.take_over(context, start)?;
            }
            program.ops.iter().try_for_each(|op| one.execute(context, op, kernels, blobs))?;
        }
        context.synchronize()
    }

    /// What another process maps all of it by, with the buffers of the first run.
    pub(super) fn loan(&self) -> Result<Loan> {
        Ok(Loan { handle: self.memory.handle()?, nbytes: self.memory.size(), spans: self.spans.clone() })
    }

    /// What a run left in a buffer.
    pub(super) fn download(&self, run: usize, buffer: usize) -> Result<Vec<u8>> {
        self.memory.download(self.run(run).offset(buffer), self.spans[buffer].1)
    }

    /// A buffer with a changed byte in the zone before or after it, in whatever run.
    pub(super) fn broken_guard(&self, context: &Context) -> Result<Option<usize>> {
        let together = context.alloc(self.zones().map(|(_, _, len)| len).sum())?;
        let mut at = 0;
        for (_, from, len) in self.zones() {
            together.copy(context, at, &self.memory, from, len)?;
            at += len;
        }
        context.synchronize()?;
        let found = together.download(0, at)?;
        let mut rest = &found[..];
        for (number, _, len) in self.zones() {
            let (zone, behind) = rest.split_at(len as usize);
            if zone.iter().any(|&byte| byte != guard_byte(number)) {
                return Ok(Some(number.saturating_sub(1)));
            }
            rest = behind;
        }
        Ok(None)
    }
}

impl One<'_> {
    fn offset(&self, buffer: usize) -> u64 {
        self.run * self.batch.pitch + self.batch.spans[buffer].0
    }

    fn inside(&self, buffer: usize, offset: u64, bytes: u64) -> Result<u64> {
        let size = self.batch.spans[buffer].1;
        if offset.checked_add(bytes).is_some_and(|end| end <= size) {
            return Ok(self.offset(buffer) + offset);
        }
        let what = format!("{bytes} bytes at {offset} of buffer {buffer}, which has {size}");
        Err(Failure { code: "OUT_OF_RANGE".into(), what, line: None })
    }

    /// What the run before left in the buffers that go on with that.
    fn take_over(&self, context: &Context, start: &Start) -> Result<()> {
        let before = One { batch: self.batch, run: self.run - 1 };
        for (buffer, content) in start.contents.iter().enumerate() {
            if matches!(content, Some(Content::Kept)) {
                let (memory, size) = (&self.batch.memory, self.batch.spans[buffer].1);
                memory.copy(context, self.offset(buffer), memory, before.offset(buffer), size)?;
            }
        }
        Ok(())
    }

    fn execute(&self, context: &Context, op: &Op, kernels: &[Kernel], blobs: &[Vec<u8>]) -> Result<()> {
        let memory = &self.batch.memory;
        match op {
            Op::Upload { buffer, offset, blob } => {
                memory.upload(self.inside(*buffer, *offset, blobs[*blob].len() as u64)?, &blobs[*blob])
            }
            Op::Set { buffer, offset, pattern, width, count } => {
                let at = self.inside(*buffer, *offset, count.saturating_mul(u64::from(*width)))?;
                memory.set(context, at, *pattern, *width, *count)
            }
            Op::Launch { kernel, grid, params, line } => kernels[*kernel]
                .launch(context, *grid, params, self)
                .map_err(|failure| Failure { line: Some(*line), ..failure }),
        }
    }
}

impl Places for One<'_> {
    fn address(&self, buffer: usize, offset: u64) -> u64 {
        self.batch.memory.address + self.offset(buffer) + offset
    }
}

/// Where time goes.
pub(super) struct Spent {
    last: Instant,
    /// Microseconds by what was done.
    pub(super) parts: Vec<(String, u64)>,
}

impl Spent {
    pub(super) fn new() -> Self {
        Self { last: Instant::now(), parts: Vec::new() }
    }

    /// What was done since the last time.
    pub(super) fn on(&mut self, what: &str) {
        let micros = u64::try_from(self.last.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.parts.push((what.into(), micros));
        self.last = Instant::now();
    }
}
