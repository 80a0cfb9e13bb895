//! Memory as one step of one program sees it: every element checked against its allocation, its marks followed, and
//! its race shadow kept.

use std::borrow::Cow;
use std::ops::Range;

use super::order::Progress;
use super::race::{Conflict, Races};
use super::space::{Marked, Place, Space};
use super::task::coordinates;
use super::traffic::{GROUP, Scattered, Traffic};
use crate::block::vectorised;
use crate::codec::Codec;
use crate::fault::{Access, Defect, DefectKind, Fault, Report, Site};
use crate::marks::Marks;
use crate::memory::shadow::{self, COPIED};
use crate::memory::split;

/// Memory as one step of one program sees it.
pub(super) struct Port<'a, 'm> {
    pub(super) space: &'a mut Space<'m>,
    pub(super) report: &'a mut Report,
    pub(super) races: &'a mut Races,
    pub(super) traffic: &'a mut Traffic,
    pub(super) progress: &'a mut Progress,
    /// No marks and no traffic: see [`Limits::bare`](crate::Limits::bare).
    pub(super) bare: bool,
    /// See [`Limits::go_on`](crate::Limits::go_on).
    pub(super) go_on: bool,
    pub(super) poison: u8,
    pub(super) grid: [u32; 3],
    pub(super) site: Site,
    /// What a load has read.
    pub(super) seen: Seen,
    pub(super) polls: &'a mut u64,
    pub(super) changes: &'a mut u64,
}

/// The marks that a load met.
#[derive(Debug, Default)]
pub(super) struct Seen {
    computed: bool,
    moved: bool,
    /// Lanes with defects.
    pub(super) defects: Vec<(usize, u8)>,
}

/// The pointers of an access. A mask of `None` means every lane.
pub(super) struct Lanes<'a> {
    pub(super) pointers: &'a [i64],
    pub(super) mask: Option<&'a [i8]>,
    /// The last dimension's extent.
    pub(super) row: usize,
}

impl Lanes<'_> {
    /// The next lanes from `from` on that are on and lie side by side, as many as there are.
    #[inline(always)]
    fn run(&self, from: usize, size: usize) -> Option<Range<usize>> {
        let start = match self.mask {
            Some(mask) => from + mask.get(from..)?.iter().position(|&lane| lane != 0)?,
            None => from,
        };
        let first = *self.pointers.get(start)?;
        let fits = |lane: usize| {
            self.mask.is_none_or(|mask| mask[lane] != 0)
                && self.pointers[lane] == first.wrapping_add(((lane - start) * size) as i64)
        };
        let (mut end, all) = (start + 1, self.pointers.len());
        while end < all && fits(end) {
            end += 1;
            // A long one is looked at by many lanes at once.
            if end - start == FEW {
                let mut many = MANY;
                while many >= MANY && end < all {
                    let next = (end + many).min(all);
                    if self.fit(end..next, start, size) {
                        end = next;
                        many *= 2;
                    } else {
                        many /= 2;
                    }
                }
            }
        }
        Some(start..end)
    }

    fn fit(&self, lanes: Range<usize>, start: usize, size: usize) -> bool {
        let expected = self.pointers[start].wrapping_add(((lanes.start - start) * size) as i64);
        let on = self.mask.is_none_or(|mask| !mask[lanes.clone()].contains(&0));
        on && contiguous(&self.pointers[lanes], expected, size)
    }

    /// Whether lanes lie side by side along another dimension than the last.
    fn across(&self, size: usize) -> bool {
        let next = self.pointers.get(self.row);
        next.is_some_and(|&next| self.pointers[0].wrapping_add(size as i64) == next)
    }
}

/// Lanes side by side from which on they are looked at by [`MANY`] at once, or more.
const FEW: usize = 8;
const MANY: usize = 64;

impl Port<'_, '_> {
    #[cold]
    pub(super) fn fault(&self, access: Access, address: i64, bytes: usize) -> Fault {
        let (index, offset) = split(address as u64);
        let (Some(size), Some(label)) = (self.space.len(index), self.space.label(index)) else {
            return Fault::BadAddress { access, address: address as u64, site: self.site };
        };
        let allocation = label.to_owned();
        if offset >= 0 && offset as usize + bytes <= size {
            Fault::Misaligned { access, allocation, offset, bytes, site: self.site }
        } else {
            Fault::OutOfBounds { access, allocation, offset, bytes, size, site: self.site }
        }
    }

    #[cold]
    pub(super) fn race(&self, access: Access, place: &Place, conflict: Conflict) -> Fault {
        let allocation = self.space.label(place.index).unwrap_or_default().to_owned();
        let offset = place.bytes.start as i64;
        let (earlier, epoch) = match conflict {
            Conflict::Lane => return Fault::Lanes { allocation, offset, site: self.site },
            Conflict::Read(epoch) => (Access::Load, epoch),
            Conflict::Write(epoch) if epoch.is_atomic() => (Access::Atomic, epoch),
            Conflict::Write(epoch) => (Access::Store, epoch),
        };
        let first = Site { program: coordinates(self.grid, epoch.number()), line: epoch.line() };
        Fault::Race { allocation, offset, first: (earlier, first), second: (access, self.site) }
    }

    pub(super) fn pass(&mut self, fault: Fault) -> Result<(), Fault> {
        self.space.pass(self.go_on, fault)
    }

    /// Where an access by elements of `size` bytes goes, or None if it is out of bounds or misaligned.
    #[inline(always)]
    pub(super) fn place(&self, address: i64, bytes: usize, size: usize) -> Option<Place> {
        let (index, offset) = split(address as u64);
        let len = self.space.len(index)?;
        let start = usize::try_from(offset).ok().filter(|start| start.is_multiple_of(size))?;
        let end = start.checked_add(bytes).filter(|&end| end <= len)?;
        Some(Place { index, bytes: start..end })
    }

    /// Notes where the values of a read come from; its elements of `size` bytes go to lanes from `lane` on.
    #[inline(always)]
    pub(super) fn see(&mut self, place: &Place, lane: usize, size: usize) {
        self.report.bytes_loaded += place.bytes.len() as u64;
        if self.bare {
            return;
        }
        self.traffic.touch(place.index, &place.bytes);
        let Seen { computed, moved, .. } = &mut self.seen;
        let mut bad = false;
        self.space.marks(place, |marks| match marks {
            Marked::All(shadow::LAUNCH) => *computed = true,
            Marked::All(mark) => {
                *moved = true;
                bad |= suspect(mark);
            }
            Marked::Each(marks) => {
                let mut any_computed = false;
                vectorised(|| {
                    for &mark in marks {
                        bad |= suspect(mark);
                        any_computed |= mark == shadow::LAUNCH;
                    }
                });
                *computed |= any_computed;
                *moved |= !any_computed;
            }
        });
        if bad {
            self.look_closely(place, lane, size);
        }
    }

    #[cold]
    fn look_closely(&mut self, place: &Place, lane: usize, size: usize) {
        for (lane, start) in (lane..).zip(place.bytes.clone().step_by(size)) {
            let bytes = start..(start + size).min(place.bytes.end);
            let (mut worst, mut first) = (0, None);
            self.space.marks(&Place { index: place.index, bytes }, |marks| match marks {
                Marked::All(mark) => {
                    worst = mark;
                    first = suspect(mark).then_some((0, mark));
                }
                Marked::Each(marks) => {
                    worst = marks.iter().copied().max().unwrap_or(0);
                    first = marks.iter().copied().enumerate().find(|&(_, mark)| suspect(mark));
                }
            });
            if worst >= shadow::DEFECT {
                self.seen.defects.push((lane, worst));
            } else if let Some((at, mark)) = first {
                let unwritten = mark == shadow::UNWRITTEN;
                let defect = Defect {
                    kind: if unwritten { DefectKind::Uninitialised } else { DefectKind::LeftOver },
                    site: self.site,
                    allocation: self.space.label(place.index).unwrap_or_default().to_owned(),
                    offset: start + at,
                    used: None,
                    stored: None,
                };
                let mark = self.space.defects().note(defect);
                self.seen.defects.push((lane, mark));
            }
        }
    }

    /// Enters a plain read.
    #[inline(always)]
    fn enter_read(&mut self, place: &Place) -> Result<(), Conflict> {
        *self.polls += u64::from(self.races.watches(place.index));
        self.races.read(place.index, &place.bytes, self.progress, self.site.line)
    }

    /// Enters a plain write of one element, whose new bytes are given.
    fn enter_write(&mut self, place: &Place, new: &[u8], earlier: &[i64], address: i64) -> Result<(), Fault> {
        let Err(conflict) = self.races.write(place.index, &place.bytes, self.progress, self.site.line) else {
            return Ok(());
        };
        // A number of a store comes back after some thousands.
        let real = !matches!(conflict, Conflict::Lane) || earlier.contains(&address);
        if real && self.space.element(place) != new {
            self.pass(self.race(Access::Store, place, conflict))?;
        } else if real && !matches!(conflict, Conflict::Lane) {
            self.races.benign += 1;
        }
        self.races.overwrite(place.index, &place.bytes, self.progress, self.site.line);
        Ok(())
    }

    /// Writes to what [`Port::place`] found, and marks it. `write` gets the bytes piece by piece.
    #[inline(always)]
    pub(super) fn put(&mut self, place: &Place, mark: u8, write: impl FnMut(&mut [u8])) {
        self.report.bytes_stored += place.bytes.len() as u64;
        *self.changes += 1;
        if !self.bare {
            self.traffic.touch(place.index, &place.bytes);
        }
        self.space.write(place, (!self.bare).then_some(mark), write);
    }

    /// Overwrites the unmasked lanes of `out`, which has one element a pointer.
    pub(super) fn load<C: Codec>(&mut self, codec: C, lanes: &Lanes, out: &mut [C::Item]) -> Result<(), Fault> {
        let mut scattered = Scattered::default();
        let mut from = 0;
        while let Some(run) = lanes.run(from, C::SIZE) {
            from = run.end;
            let bytes = run.len() * C::SIZE;
            let Some(place) = self.place(lanes.pointers[run.start], bytes, C::SIZE) else {
                self.load_apart(codec, lanes, run, out, &mut scattered)?;
                continue;
            };
            if self.enter_read(&place).is_err() {
                self.load_apart(codec, lanes, run, out, &mut scattered)?;
                continue;
            }
            self.see(&place, run.start, C::SIZE);
            self.count(&place, run.len(), C::SIZE, &mut scattered);
            if run.len() == 1 {
                out[run.start] = codec.decode(self.space.element(&place));
                continue;
            }
            let mut done = run.start;
            self.space.read(&place, |bytes| {
                let out = &mut out[done..][..bytes.len() / C::SIZE];
                done += out.len();
                vectorised(|| {
                    for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(C::SIZE)) {
                        *out = codec.decode(bytes);
                    }
                });
            });
        }
        self.traffic.scattered(&scattered, lanes.across(C::SIZE));
        Ok(())
    }

    /// Loads lanes one by one, so that the first one that fails is found.
    #[cold]
    fn load_apart<C: Codec>(
        &mut self,
        codec: C,
        lanes: &Lanes,
        run: Range<usize>,
        out: &mut [C::Item],
        scattered: &mut Scattered,
    ) -> Result<(), Fault> {
        for lane in run {
            let Some(place) = self.place(lanes.pointers[lane], C::SIZE, C::SIZE) else {
                self.pass(self.fault(Access::Load, lanes.pointers[lane], C::SIZE))?;
                out[lane] = codec.decode(&[self.poison; 8]);
                self.seen.computed = true;
                continue;
            };
            if let Err(conflict) = self.enter_read(&place) {
                self.pass(self.race(Access::Load, &place, conflict))?;
            }
            self.see(&place, lane, C::SIZE);
            scattered.add(place.index, &place.bytes);
            out[lane] = codec.decode(self.space.element(&place));
        }
        Ok(())
    }

    /// Counts lanes side by side.
    #[inline(always)]
    fn count(&mut self, place: &Place, lanes: usize, size: usize, scattered: &mut Scattered) {
        if lanes >= GROUP {
            self.traffic.row(&place.bytes, size);
        } else {
            scattered.add(place.index, &place.bytes);
        }
    }

    /// Stores the unmasked lanes; `values` holds one element a pointer, or one for all.
    pub(super) fn store<C: Codec>(
        &mut self,
        codec: C,
        lanes: &Lanes,
        values: &[C::Item],
        marks: &Marks,
    ) -> Result<(), Fault> {
        self.progress.stores += 1;
        let values = stretched(values, lanes.pointers.len());
        let one_mark = !matches!(marks, Marks::Lanes(_));
        let mut scattered = Scattered::default();
        let mut from = 0;
        while let Some(run) = lanes.run(from, C::SIZE) {
            from = run.end;
            let place = self.place(lanes.pointers[run.start], run.len() * C::SIZE, C::SIZE);
            if one_mark
                && let Some(place) = place
                && self.races.write(place.index, &place.bytes, self.progress, self.site.line).is_ok()
            {
                self.count(&place, run.len(), C::SIZE, &mut scattered);
                let mut done = run.start;
                self.put(&place, marks.at(0), |bytes| {
                    let values = &values[done..][..bytes.len() / C::SIZE];
                    done += values.len();
                    vectorised(|| {
                        for (&value, bytes) in values.iter().zip(bytes.chunks_exact_mut(C::SIZE)) {
                            codec.encode(value, bytes);
                        }
                    });
                });
                continue;
            }
            for lane in run {
                let address = lanes.pointers[lane];
                let Some(place) = self.place(address, C::SIZE, C::SIZE) else {
                    self.pass(self.fault(Access::Store, address, C::SIZE))?;
                    continue;
                };
                let mut new = [0; 8];
                codec.encode(values[lane], &mut new[..C::SIZE]);
                self.enter_write(&place, &new[..C::SIZE], &lanes.pointers[..lane], address)?;
                self.put(&place, marks.at(lane), |bytes| bytes.copy_from_slice(&new[..C::SIZE]));
                scattered.add(place.index, &place.bytes);
            }
        }
        self.traffic.scattered(&scattered, lanes.across(C::SIZE));
        Ok(())
    }
}

/// Whether a read of bytes marked so makes a defect, or is one.
#[inline(always)]
fn suspect(mark: u8) -> bool {
    mark == shadow::UNWRITTEN || mark >= shadow::LEFT_OVER
}

/// Whether pointers go on from the first by elements of `size` bytes.
fn contiguous(pointers: &[i64], first: i64, size: usize) -> bool {
    let mut different = 0;
    vectorised(|| {
        let mut expected = first;
        for &pointer in pointers {
            different |= pointer ^ expected;
            expected = expected.wrapping_add(size as i64);
        }
    });
    different == 0
}

/// A block with one element a lane.
pub(super) fn stretched<T: Copy>(block: &[T], n: usize) -> Cow<'_, [T]> {
    match block {
        &[one] if n > 1 => Cow::Owned(vec![one; n]),
        _ => Cow::Borrowed(block),
    }
}

impl Seen {
    pub(super) fn marks(&self, n: usize) -> Marks {
        let all = match (self.computed, self.moved) {
            (true, _) => shadow::LAUNCH,
            (false, true) => COPIED,
            // Every lane was masked off.
            (false, false) => return Marks::Pure,
        };
        if self.defects.is_empty() {
            return Marks::All(all);
        }
        let mut marks = vec![all; n];
        self.defects.iter().for_each(|&(lane, mark)| marks[lane] = mark);
        Marks::lanes(marks)
    }
}
