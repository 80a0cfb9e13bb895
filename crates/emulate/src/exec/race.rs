//! Races between the programs of a launch: two accesses of the same memory of which at least one writes, not both
//! atomic, and neither before the other.
//!
//! Only memory that the launch may write is watched: nothing can race on the rest. Each granule (the smallest
//! element that the kernel accesses) keeps its last write and its readers.

use std::ops::Range;
use std::slice::from_ref;

use super::epoch::{Epoch, PROGRAM};
use super::granules::{Line, Past, SPAN, Splits, enter_read, lines, own};
use super::order::{Order, Progress};
use super::readers::Readers;
use super::space::PAGE;
use crate::block::Block;
use crate::code::{Program, Written};
use crate::memory::{Memory, split};

/// What a granule met before.
#[derive(Debug, Clone, Copy)]
pub(super) enum Conflict {
    Read(Epoch),
    Write(Epoch),
    /// Another lane of the same store.
    Lane,
}

/// Lines that are made together.
const BLOCK: usize = 512;

/// The shadow of one allocation.
#[derive(Debug, Default)]
struct Watched {
    /// In blocks of [`BLOCK`], each made at the first access.
    lines: Vec<Vec<Line>>,
    granules: usize,
    bytes: usize,
    /// The last release through each granule plus one, made at the first atomic access.
    releases: Vec<u32>,
}

/// The races of one launch.
#[derive(Debug, Default)]
pub(super) struct Races {
    /// By allocation.
    watched: Vec<Option<Box<Watched>>>,
    splits: Splits,
    /// Bytes of a granule as a power of two.
    shift: u32,
    /// Lines in the order of their first access, where somebody asks for them.
    touched: Option<Vec<(u32, u32)>>,
    order: Order,
    /// Programs may put their accesses in order.
    ordered: bool,
    readers: Readers,
    /// Conflicting writes of the value that was there already.
    pub(super) benign: u64,
    /// Plain accesses that met another.
    conflicts: u64,
}

/// What a part of the programs accessed.
#[derive(Debug)]
pub(super) struct Trace {
    lines: Vec<(u32, u32, Line)>,
    splits: Splits,
    benign: u64,
    pub(super) conflicts: u64,
}

impl Races {
    pub(super) fn new(program: &Program, grid: [u32; 3], params: &[Block], memory: &Memory) -> Self {
        let mut races = Self { ordered: program.written.orders, ..Self::default() };
        let programs = grid.iter().map(|&extent| u64::from(extent)).product::<u64>();
        if programs >= PROGRAM {
            return races;
        }
        races.watched.resize_with(memory.len(), || None);
        let Written { params: written, granule, finest, .. } = &program.written;
        let base = |param: usize| params.get(param).and_then(allocation);
        let written_params = |param: &usize| written.as_ref().is_none_or(|written| written.contains(param));
        let (written, read): (Vec<usize>, Vec<usize>) = (0..params.len()).partition(written_params);
        let written: Vec<usize> = match &program.written.params {
            Some(_) => written.into_iter().filter_map(base).collect(),
            None => (0..memory.len()).collect(),
        };
        let aliased = read.into_iter().filter_map(base).any(|index| written.contains(&index));
        races.shift = if aliased { finest } else { granule }.trailing_zeros();
        for index in written {
            if let (Some(slot), Some(allocation)) = (races.watched.get_mut(index), memory.allocation(index)) {
                *slot = Some(Box::new(Watched::new(allocation.bytes.len(), races.shift)));
            }
        }
        races
    }

    /// The same for programs that run beside others and whose accesses are compared later.
    pub(super) fn beside(&self) -> Self {
        let fresh = |watched: &Watched| Box::new(Watched::new(watched.bytes, self.shift));
        Self {
            watched: self.watched.iter().map(|watched| watched.as_deref().map(fresh)).collect(),
            shift: self.shift,
            touched: Some(Vec::new()),
            ..Self::default()
        }
    }

    pub(super) fn watches(&self, index: usize) -> bool {
        matches!(self.watched.get(index), Some(Some(_)))
    }

    /// Allocations that are watched, and their bytes.
    pub(super) fn watched(&self) -> impl Iterator<Item = (usize, usize)> {
        self.watched.iter().enumerate().filter_map(|(index, watched)| Some((index, watched.as_ref()?.bytes)))
    }

    fn granules(&self, bytes: &Range<usize>) -> Range<usize> {
        bytes.start >> self.shift..bytes.end.div_ceil(1 << self.shift)
    }

    /// Enters a read of bytes.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        index: usize,
        bytes: &Range<usize>,
        progress: &mut Progress,
        line: u32,
    ) -> Result<(), Conflict> {
        match self.watched.get(index) {
            Some(Some(_)) => {
                let entered = self.watched_read(index, bytes, progress, line);
                self.conflicts += u64::from(entered.is_err());
                entered
            }
            _ => Ok(()),
        }
    }

    fn watched_read(
        &mut self,
        index: usize,
        bytes: &Range<usize>,
        progress: &mut Progress,
        line: u32,
    ) -> Result<(), Conflict> {
        let granules = self.granules(bytes);
        let Some(Some(watched)) = self.watched.get_mut(index) else { return Ok(()) };
        progress.dirty = true;
        let epoch = Epoch::new(progress, false, 0, line);
        for (at, part) in lines(&granules) {
            let line = watched.line(at);
            let writes = self.splits.writes(line, part);
            check(&mut self.order, progress, writes, epoch).map_err(Conflict::Write)?;
        }
        for (at, part) in lines(&granules) {
            let whole = watched.is_whole(at, &part);
            let line = watched.line_mut(at);
            touch(&mut self.touched, index, at, line);
            if let Some((read, earlier)) = line.read_mut()
                && (whole || *read == epoch)
            {
                let lost = enter_read(read, earlier, epoch);
                if self.ordered {
                    self.readers.keep((index, at), part, lost, progress, &mut self.order);
                }
                continue;
            }
            let [reads, earlier] = self.splits.split_reads(line);
            if own(&reads[part.clone()], epoch) {
                reads[part].fill(epoch);
                continue;
            }
            for granule in part {
                let lost = enter_read(&mut reads[granule], &mut earlier[granule], epoch);
                if self.ordered {
                    self.readers.keep((index, at), granule..granule + 1, lost, progress, &mut self.order);
                }
            }
        }
        Ok(())
    }

    /// Enters a plain write of bytes. A conflict leaves the shadow as it was: see [`Races::overwrite`].
    #[inline(always)]
    pub(super) fn write(
        &mut self,
        index: usize,
        bytes: &Range<usize>,
        progress: &mut Progress,
        line: u32,
    ) -> Result<(), Conflict> {
        match self.watched.get(index) {
            Some(Some(_)) => {
                let entered = self.watched_write(index, bytes, progress, line);
                self.conflicts += u64::from(entered.is_err());
                entered
            }
            _ => Ok(()),
        }
    }

    fn watched_write(
        &mut self,
        index: usize,
        bytes: &Range<usize>,
        progress: &mut Progress,
        line: u32,
    ) -> Result<(), Conflict> {
        let granules = self.granules(bytes);
        let Some(Some(watched)) = self.watched.get_mut(index) else { return Ok(()) };
        progress.dirty = true;
        let epoch = Epoch::new(progress, false, progress.stores, line);
        for (at, part) in lines(&granules) {
            let line = watched.line(at);
            let writes = self.splits.writes(line, part);
            for &write in writes {
                if write.same_store(epoch) {
                    return Err(Conflict::Lane);
                }
            }
            check(&mut self.order, progress, writes, epoch).map_err(Conflict::Write)?;
        }
        self.no_reader(index, &granules, progress, epoch)?;
        self.fill_writes(index, granules, epoch);
        Ok(())
    }

    /// Enters a write that does not change anything, whoever was there before.
    pub(super) fn overwrite(&mut self, index: usize, bytes: &Range<usize>, progress: &mut Progress, line: u32) {
        let epoch = Epoch::new(progress, false, progress.stores, line);
        self.fill_writes(index, self.granules(bytes), epoch);
    }

    fn fill_writes(&mut self, index: usize, granules: Range<usize>, epoch: Epoch) {
        let Some(Some(watched)) = self.watched.get_mut(index) else { return };
        for (at, part) in lines(&granules) {
            let whole = watched.is_whole(at, &part);
            let line = watched.line_mut(at);
            touch(&mut self.touched, index, at, line);
            match line.write_mut() {
                Some(write) if whole || *write == epoch => *write = epoch,
                _ => self.splits.split_writes(line)[part].fill(epoch),
            }
        }
    }

    /// Enters an atomic access, which may see what others released there.
    pub(super) fn atomic(
        &mut self,
        index: usize,
        bytes: &Range<usize>,
        progress: &mut Progress,
        acquire: bool,
    ) -> Result<(), Conflict> {
        let granules = self.granules(bytes);
        let Some(Some(watched)) = self.watched.get_mut(index) else { return Ok(()) };
        if acquire
            && let Some(&release) = watched.releases.get(granules.start)
            && release > 0
        {
            progress.acquire(release - 1);
        }
        let epoch = Epoch::new(progress, true, 0, 0);
        for (at, part) in lines(&granules) {
            let line = watched.line(at);
            let writes = self.splits.writes(line, part);
            for write in writes {
                if !write.is_atomic() {
                    check(&mut self.order, progress, &[*write], epoch).map_err(Conflict::Write)?;
                }
            }
        }
        Ok(())
    }

    /// Enters what an atomic access changed.
    pub(super) fn atomic_write(
        &mut self,
        index: usize,
        bytes: &Range<usize>,
        progress: &mut Progress,
        line: u32,
    ) -> Result<(), Conflict> {
        let granules = self.granules(bytes);
        let Some(Some(watched)) = self.watched.get_mut(index) else { return Ok(()) };
        progress.dirty = true;
        let epoch = Epoch::new(progress, true, 0, line);
        for (at, part) in lines(&granules) {
            let line = watched.line_mut(at);
            touch(&mut self.touched, index, at, line);
            for write in &mut self.splits.split_writes(line)[part] {
                // A plain write of its own stays: it is what others may collide with.
                if write.is_atomic() || write.is_none() || write.is_foreign(epoch) {
                    *write = epoch;
                }
            }
        }
        self.no_reader(index, &granules, progress, epoch)
    }

    /// Checks a write against the readers before it.
    fn no_reader(
        &mut self,
        index: usize,
        granules: &Range<usize>,
        progress: &Progress,
        epoch: Epoch,
    ) -> Result<(), Conflict> {
        let Some(Some(watched)) = self.watched.get(index) else { return Ok(()) };
        for (at, part) in lines(granules) {
            let line = watched.line(at);
            let [reads, earlier] = self.splits.reads(line, part.clone());
            check(&mut self.order, progress, reads, epoch).map_err(Conflict::Read)?;
            check(&mut self.order, progress, earlier, epoch).map_err(Conflict::Read)?;
            for reader in self.readers.of((index, at), &part) {
                check(&mut self.order, progress, from_ref(reader), epoch).map_err(Conflict::Read)?;
            }
        }
        Ok(())
    }

    /// Releases through the given locations, each an allocation and a byte.
    pub(super) fn release(&mut self, places: &[(usize, usize)], progress: &mut Progress, acquired: bool) {
        let mut also = Vec::new();
        if !acquired {
            let carried = |&(index, byte): &(usize, usize)| {
                let watched = self.watched.get(index)?.as_ref()?;
                watched.releases.get(byte >> self.shift).copied()?.checked_sub(1)
            };
            also.extend(places.iter().filter_map(carried));
        }
        let release = self.order.release(progress, &also);
        for &(index, byte) in places {
            if let Some(Some(watched)) = self.watched.get_mut(index) {
                if watched.releases.is_empty() {
                    watched.releases = vec![0; watched.granules];
                }
                watched.releases[byte >> self.shift] = release + 1;
            }
        }
    }

    /// Takes what was accessed since the last time, which is then forgotten.
    pub(super) fn take(&mut self) -> Trace {
        let touched = self.touched.as_mut().map(std::mem::take).unwrap_or_default();
        let mut lines = Vec::with_capacity(touched.len());
        for (index, at) in touched {
            if let Some(Some(watched)) = self.watched.get_mut(index as usize) {
                lines.push((index, at, std::mem::take(watched.line_mut(at as usize))));
            }
        }
        Trace {
            lines,
            splits: std::mem::take(&mut self.splits),
            benign: std::mem::take(&mut self.benign),
            conflicts: std::mem::take(&mut self.conflicts),
        }
    }

    /// Whether programs that ran beside those known here would have met any of them: one that read what another
    /// wrote, or wrote where another was.
    pub(super) fn meets(&self, trace: &Trace) -> bool {
        trace.lines.iter().any(|(index, at, line)| {
            let Some(Some(watched)) = self.watched.get(*index as usize) else { return true };
            let known = watched.line(*at as usize);
            if known.is_untouched() {
                return false;
            }
            if known.is_whole() && line.is_whole() {
                return collide(known.past, line.past);
            }
            (0..SPAN).any(|at| collide(self.splits.past(known, at), trace.splits.past(line, at)))
        })
    }

    /// Takes over what programs accessed that meet nobody.
    pub(super) fn join(&mut self, trace: Trace) {
        self.benign += trace.benign;
        for (index, at, line) in trace.lines {
            let Some(Some(watched)) = self.watched.get_mut(index as usize) else { continue };
            let known = watched.line_mut(at as usize);
            if known.is_untouched() {
                *known = self.splits.adopt(line, &trace.splits);
                continue;
            }
            if known.is_whole() && line.is_whole() {
                known.past = joined(known.past, line.past);
                continue;
            }
            for granule in 0..SPAN {
                let past = joined(self.splits.past(known, granule), trace.splits.past(&line, granule));
                self.splits.split_writes(known)[granule] = past.write;
                let [reads, earlier] = self.splits.split_reads(known);
                (reads[granule], earlier[granule]) = (past.read, past.earlier);
            }
        }
    }

    /// Forgets all accesses.
    pub(super) fn clear(&mut self) {
        for watched in self.watched.iter_mut().flatten() {
            watched.lines.iter_mut().for_each(Vec::clear);
        }
        self.splits = Splits::default();
    }
}

impl Trace {
    /// Calls `stretch` with each range of bytes that was written: allocation, bytes. Ranges end with pages.
    pub(super) fn written(&self, races: &Races, mut stretch: impl FnMut(usize, Range<usize>)) {
        let mut last = (0, 0..0);
        let mut add = |index: usize, bytes: Range<usize>| {
            if last.0 == index && last.1.end == bytes.start && !bytes.start.is_multiple_of(PAGE) {
                last.1.end = bytes.end;
            } else {
                let (index, bytes) = std::mem::replace(&mut last, (index, bytes));
                if !bytes.is_empty() {
                    stretch(index, bytes);
                }
            }
        };
        for (index, at, line) in &self.lines {
            let (index, first) = (*index as usize, *at as usize * SPAN);
            let Some(Some(watched)) = races.watched.get(index) else { continue };
            let bytes = |granules: Range<usize>| {
                (first + granules.start) << races.shift..((first + granules.end) << races.shift).min(watched.bytes)
            };
            let writes = self.splits.writes(line, 0..SPAN);
            if let [write] = writes {
                if !write.is_none() {
                    add(index, bytes(0..SPAN));
                }
                continue;
            }
            let mut start = 0;
            for run in writes.chunk_by(|a, b| a.is_none() == b.is_none()) {
                if !run[0].is_none() {
                    add(index, bytes(start..start + run.len()));
                }
                start += run.len();
            }
        }
        add(usize::MAX, 0..0);
    }
}

impl Watched {
    fn new(bytes: usize, shift: u32) -> Self {
        let granules = bytes.div_ceil(1 << shift);
        let lines = vec![Vec::new(); granules.div_ceil(SPAN * BLOCK)];
        Self { lines, granules, bytes, releases: Vec::new() }
    }

    #[inline(always)]
    fn line(&self, at: usize) -> &Line {
        const UNTOUCHED: &Line = &Line::UNTOUCHED;
        self.lines[at / BLOCK].get(at % BLOCK).unwrap_or(UNTOUCHED)
    }

    #[inline(always)]
    fn line_mut(&mut self, at: usize) -> &mut Line {
        let block = &mut self.lines[at / BLOCK];
        if block.is_empty() {
            block.resize(BLOCK, Line::UNTOUCHED);
        }
        &mut block[at % BLOCK]
    }

    /// Whether a part of a line is all of it.
    fn is_whole(&self, at: usize, part: &Range<usize>) -> bool {
        part.len() == SPAN || part.len() == self.granules - at * SPAN
    }
}

#[inline(always)]
fn touch(touched: &mut Option<Vec<(u32, u32)>>, index: usize, at: usize, line: &Line) {
    if let Some(touched) = touched
        && line.is_untouched()
    {
        touched.push((index as u32, at as u32));
    }
}

/// Two accesses of different programs in no order, one of them a write.
fn collide(first: Past, second: Past) -> bool {
    let (wrote, writes) = (!first.write.is_none(), !second.write.is_none());
    wrote && (writes || !second.read.is_none()) || writes && !first.read.is_none()
}

/// One past after another, of different programs.
fn joined(first: Past, second: Past) -> Past {
    let or = |epoch: Epoch, other: Epoch| if epoch.is_none() { other } else { epoch };
    let earlier = if second.read.is_none() { first.earlier } else { or(or(second.earlier, first.read), first.earlier) };
    Past { write: or(second.write, first.write), read: or(second.read, first.read), earlier }
}

/// The first access that is neither this program's nor before the present.
fn check(order: &mut Order, progress: &Progress, accesses: &[Epoch], epoch: Epoch) -> Result<(), Epoch> {
    if own(accesses, epoch) {
        return Ok(());
    }
    let racing =
        |access: &&Epoch| access.is_foreign(epoch) && !order.before(progress, access.program(), access.clock());
    accesses.iter().find(racing).map_or(Ok(()), |&access| Err(access))
}

/// The allocation that an argument points into.
fn allocation(param: &Block) -> Option<usize> {
    let address = match param {
        Block::View(view) => view.base,
        param => param.scalar()?,
    };
    Some(split(address as u64).0)
}
