//! Races between the programs of a launch: two accesses of the same memory of which at least one writes, not both
//! atomic, and neither before the other.
//!
//! Only memory that the launch may write is watched: nothing can race on the rest. Each granule (the smallest
//! element that the kernel accesses) keeps its last write and the reads of the last two programs.

use std::ops::Range;

use super::order::{Order, Progress};
use crate::block::{Block, vectorised};
use crate::code::{Program, Written};
use crate::memory::{Memory, split};

/// An access in 64 bits: program plus one, whether it was atomic, releases of the program before it, number of the
/// store among the program's stores, line. 0 is none. Numbers that do not fit saturate, which can hide a race but
/// never makes one up: a number of a store is checked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch(u64);

const PROGRAM: u64 = (1 << 26) - 1;
const ATOMIC: u64 = 1 << 26;
const CLOCK: (u32, u64) = (27, (1 << 13) - 1);
const STORE: (u32, u64) = (40, (1 << 12) - 1);
const LINE: (u32, u64) = (52, (1 << 12) - 1);

impl Epoch {
    fn new(progress: &Progress, atomic: bool, store: u64, line: u32) -> Self {
        let field = |(shift, max): (u32, u64), value: u64| value.min(max) << shift;
        Self(
            u64::from(progress.program) & PROGRAM
                | if atomic { ATOMIC } else { 0 }
                | field(CLOCK, u64::from(progress.clock))
                | (store & STORE.1) << STORE.0
                | field(LINE, u64::from(line)),
        )
    }

    fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(super) fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    fn clock(self) -> u32 {
        (self.0 >> CLOCK.0 & CLOCK.1) as u32
    }

    fn program(self) -> u32 {
        (self.0 & PROGRAM) as u32
    }

    /// Counted from 0.
    pub(super) fn number(self) -> u64 {
        (self.0 & PROGRAM).saturating_sub(1)
    }

    /// 0 if it is unknown.
    pub(super) fn line(self) -> u32 {
        let line = self.0 >> LINE.0 & LINE.1;
        if line == LINE.1 { 0 } else { line as u32 }
    }
}

/// What a granule met before.
#[derive(Debug, Clone, Copy)]
pub(super) enum Conflict {
    Read(Epoch),
    Write(Epoch),
    /// Another lane of the same store.
    Lane,
}

/// The shadow of one allocation.
#[derive(Debug, Default)]
struct Watched {
    writes: Vec<u64>,
    /// Made at the first read.
    reads: Vec<u64>,
    /// What was in `reads` before another program read.
    earlier_reads: Vec<u64>,
    /// The last release through each granule plus one, made at the first atomic access.
    releases: Vec<u32>,
}

/// The races of one launch.
#[derive(Debug, Default)]
pub(super) struct Races {
    /// By allocation.
    watched: Vec<Option<Box<Watched>>>,
    /// Bytes of a granule as a power of two.
    shift: u32,
    order: Order,
    /// Stores executed, by all programs.
    stores: u64,
    /// Conflicting writes of the value that was there already.
    pub(super) benign: u64,
}

impl Races {
    pub(super) fn new(program: &Program, grid: [u32; 3], params: &[Block], memory: &Memory) -> Self {
        let mut races = Self::default();
        let programs = grid.iter().map(|&extent| u64::from(extent)).product::<u64>();
        if programs >= PROGRAM {
            return races;
        }
        races.watched.resize_with(memory.len(), || None);
        let Written { params: written, granule, finest } = &program.written;
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
                let granules = allocation.bytes.len().div_ceil(1 << races.shift);
                *slot = Some(Box::new(Watched { writes: vec![0; granules], ..Watched::default() }));
            }
        }
        races
    }

    pub(super) fn watches(&self, index: usize) -> bool {
        matches!(self.watched.get(index), Some(Some(_)))
    }

    /// A new store: its lanes are apart from those of all others.
    pub(super) fn begin_store(&mut self) {
        self.stores += 1;
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
            Some(Some(_)) => self.watched_read(index, bytes, progress, line),
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
        if !own(&watched.writes[granules.clone()], epoch) {
            for &write in &watched.writes[granules.clone()] {
                check(&mut self.order, progress, Epoch(write)).map_err(Conflict::Write)?;
            }
        }
        if watched.reads.is_empty() {
            watched.reads = vec![0; watched.writes.len()];
            watched.earlier_reads = vec![0; watched.writes.len()];
        }
        let reads = &mut watched.reads[granules.clone()];
        if !own(reads, epoch) {
            for (last, earlier) in reads.iter().zip(&mut watched.earlier_reads[granules]) {
                if *last != 0 && Epoch(*last).program() != epoch.program() {
                    *earlier = *last;
                }
            }
        }
        reads.fill(epoch.0);
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
            Some(Some(_)) => self.watched_write(index, bytes, progress, line),
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
        let epoch = Epoch::new(progress, false, self.stores, line);
        let writes = &watched.writes[granules.clone()];
        if !fresh(writes) {
            for &write in writes {
                let write = Epoch(write);
                if write.program() == epoch.program() {
                    if !write.is_atomic() && (write.0 ^ epoch.0) >> STORE.0 & STORE.1 == 0 {
                        return Err(Conflict::Lane);
                    }
                    continue;
                }
                check(&mut self.order, progress, write).map_err(Conflict::Write)?;
            }
        }
        watched.no_reader(&mut self.order, progress, granules.clone(), epoch)?;
        watched.writes[granules].fill(epoch.0);
        Ok(())
    }

    /// Enters a write that does not change anything, whoever was there before.
    pub(super) fn overwrite(&mut self, index: usize, bytes: &Range<usize>, progress: &mut Progress, line: u32) {
        let granules = self.granules(bytes);
        let epoch = Epoch::new(progress, false, self.stores, line);
        if let Some(Some(watched)) = self.watched.get_mut(index) {
            watched.writes[granules].fill(epoch.0);
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
        for &write in &watched.writes[granules] {
            if !Epoch(write).is_atomic() {
                check(&mut self.order, progress, Epoch(write)).map_err(Conflict::Write)?;
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
        for write in &mut watched.writes[granules.clone()] {
            // A plain write of its own stays: it is what others may collide with.
            if Epoch(*write).is_atomic() || Epoch(*write).program() != epoch.program() {
                *write = epoch.0;
            }
        }
        watched.no_reader(&mut self.order, progress, granules, epoch)
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
                    watched.releases = vec![0; watched.writes.len()];
                }
                watched.releases[byte >> self.shift] = release + 1;
            }
        }
    }
}

impl Watched {
    /// Checks a write against the readers before it.
    fn no_reader(
        &self,
        order: &mut Order,
        progress: &Progress,
        granules: Range<usize>,
        epoch: Epoch,
    ) -> Result<(), Conflict> {
        for reads in [&self.reads, &self.earlier_reads] {
            let Some(reads) = reads.get(granules.clone()) else { return Ok(()) };
            if !own(reads, epoch) {
                for &read in reads {
                    check(order, progress, Epoch(read)).map_err(Conflict::Read)?;
                }
            }
        }
        Ok(())
    }
}

/// The access itself if it is neither this program's nor before the present.
fn check(order: &mut Order, progress: &Progress, access: Epoch) -> Result<(), Epoch> {
    let harmless = access.is_none()
        || access.program() == progress.program
        || order.before(progress, access.program(), access.clock());
    if harmless { Ok(()) } else { Err(access) }
}

/// Whether all accesses are none or of this epoch's program.
fn own(accesses: &[u64], epoch: Epoch) -> bool {
    let mine = epoch.0 & PROGRAM;
    vectorised(|| accesses.iter().fold(0, |other, &access| other | u64::from(access != 0 && access & PROGRAM != mine)))
        == 0
}

/// Whether nobody wrote there before in this launch.
fn fresh(accesses: &[u64]) -> bool {
    vectorised(|| accesses.iter().fold(0, |any, &access| any | access)) == 0
}

/// The allocation that an argument points into.
fn allocation(param: &Block) -> Option<usize> {
    let address = match param {
        Block::View(view) => view.base,
        param => param.scalar()?,
    };
    Some(split(address as u64).0)
}
