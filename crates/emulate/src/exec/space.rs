//! Memory as a running program sees it: the launch's own, or, while programs run beside each other, what it was when
//! they started with the pages over it that one thread has written.

use std::ops::Range;

use crate::defects::Defects;
use crate::fault::Fault;
use crate::memory::Memory;

/// Bytes that a thread copies before it writes into them.
pub(super) const PAGE: usize = 4096;

/// Bytes of an allocation, known to lie within it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) bytes: Range<usize>,
}

/// Marks of bytes that lie side by side.
pub(super) enum Marked<'a> {
    All(u8),
    Each(&'a [u8]),
}

pub(super) enum Space<'a> {
    Whole(&'a mut Memory),
    Part(Overlay<'a>),
}

/// The pages that a thread has written, over memory that stays as it is.
pub(super) struct Overlay<'a> {
    base: &'a Memory,
    pub(super) pages: Pages,
    pub(super) defects: Defects,
}

/// Pages by place.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// By allocation, for each page its number in `written` plus one. Empty where writing is not provided for.
    tables: Vec<Vec<u32>>,
    written: Vec<Page>,
    /// Storage to be used again.
    free: Vec<Page>,
    /// Something was written that nobody watches.
    pub(super) stray: bool,
}

#[derive(Debug)]
pub(super) struct Page {
    index: usize,
    number: usize,
    bytes: Vec<u8>,
    /// Of no meaning while all marks are equal.
    shadow: Vec<u8>,
    uniform: Option<u8>,
}

impl Page {
    fn empty() -> Self {
        Self { index: 0, number: 0, bytes: Vec::new(), shadow: Vec::new(), uniform: None }
    }

    fn marked(&self, range: Range<usize>) -> Marked<'_> {
        self.uniform.map_or_else(|| Marked::Each(&self.shadow[range]), Marked::All)
    }

    fn mark(&mut self, range: Range<usize>, mark: u8) {
        if self.uniform == Some(mark) {
            return;
        }
        if range.len() == self.bytes.len() {
            self.uniform = Some(mark);
            return;
        }
        if let Some(old) = self.uniform.take() {
            self.shadow.clear();
            self.shadow.resize(self.bytes.len(), old);
        }
        self.shadow[range].fill(mark);
    }
}

impl Pages {
    /// For writes to the given allocations, of so many bytes each.
    pub(super) fn new(watched: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut tables = Vec::new();
        for (index, bytes) in watched {
            if tables.len() <= index {
                tables.resize_with(index + 1, Vec::new);
            }
            tables[index] = vec![0; bytes.div_ceil(PAGE)];
        }
        Self { tables, ..Self::default() }
    }

    fn get(&self, index: usize, number: usize) -> Option<&Page> {
        let slot = self.tables.get(index)?.get(number)?.checked_sub(1)?;
        self.written.get(slot as usize)
    }

    /// The page to write to; of its bytes and of its marks, what is about to be overwritten need not be copied.
    fn get_mut(&mut self, base: &Memory, index: usize, number: usize, lost: [bool; 2]) -> Option<&mut Page> {
        let [whole, marks] = lost;
        let slot = self.tables.get_mut(index)?.get_mut(number)?;
        if *slot == 0 {
            let allocation = base.allocation(index)?;
            let range = number * PAGE..((number + 1) * PAGE).min(allocation.bytes.len());
            let mut page = self.free.pop().unwrap_or_else(Page::empty);
            (page.index, page.number, page.uniform) = (index, number, allocation.uniform);
            if whole {
                page.bytes.resize(range.len(), 0);
            } else {
                page.bytes.clear();
                page.bytes.extend_from_slice(&allocation.bytes[range.clone()]);
            }
            if whole && marks {
                // Whatever it is, the mark of the whole page comes next.
                page.uniform = Some(0);
            } else if page.uniform.is_none() {
                page.shadow.clear();
                page.shadow.extend_from_slice(&allocation.shadow[range]);
            }
            self.written.push(page);
            *slot = self.written.len() as u32;
        }
        self.written.get_mut(*slot as usize - 1)
    }

    /// Takes what was written, so that the next programs start from the memory below again.
    pub(super) fn take(&mut self) -> Vec<Page> {
        for page in &self.written {
            self.tables[page.index][page.number] = 0;
        }
        self.stray = false;
        std::mem::take(&mut self.written)
    }

    /// Gives storage back.
    pub(super) fn reuse(&mut self, pages: Vec<Page>) {
        self.free.extend(pages);
    }
}

/// Writes the given bytes of a page's allocation back to memory.
pub(super) fn write_back(memory: &mut Memory, page: &Page, bytes: Range<usize>) {
    let Some(allocation) = memory.allocation_mut(page.index) else { return };
    let range = bytes.start - page.number * PAGE..bytes.end - page.number * PAGE;
    allocation.bytes[bytes.clone()].copy_from_slice(&page.bytes[range.clone()]);
    match page.marked(range) {
        Marked::All(mark) => allocation.mark(bytes, mark),
        Marked::Each(marks) => allocation.mark_each(bytes.start, marks),
    }
}

/// Written pages by their place.
pub(super) struct Index<'p> {
    pages: &'p [Page],
    order: Vec<u32>,
}

impl<'p> Index<'p> {
    pub(super) fn new(pages: &'p [Page]) -> Self {
        let mut order: Vec<u32> = (0..pages.len() as u32).collect();
        order.sort_unstable_by_key(|&at| (pages[at as usize].index, pages[at as usize].number));
        Self { pages, order }
    }

    pub(super) fn find(&self, index: usize, byte: usize) -> Option<&'p Page> {
        let wanted = (index, byte / PAGE);
        let key = |&at: &u32| (self.pages[at as usize].index, self.pages[at as usize].number);
        let found = self.order.binary_search_by_key(&wanted, key).ok()?;
        self.pages.get(self.order[found] as usize)
    }
}

/// A range of bytes cut at the borders of pages: number of the page, and bytes within it.
fn pieces(bytes: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
    let Range { start, end } = *bytes;
    (start / PAGE..end.div_ceil(PAGE).max(start / PAGE)).map(move |number| {
        let first = number * PAGE;
        (number, start.max(first) - first..end.min(first + PAGE) - first)
    })
}

impl<'a> Space<'a> {
    pub(super) fn part(base: &'a Memory, pages: Pages) -> Self {
        Self::Part(Overlay { base, pages, defects: base.defects.clone() })
    }

    #[inline(always)]
    pub(super) fn memory(&self) -> &Memory {
        match self {
            Self::Whole(memory) => memory,
            Self::Part(overlay) => overlay.base,
        }
    }

    /// The bytes of an allocation; None if there is none.
    #[inline(always)]
    pub(super) fn len(&self, index: usize) -> Option<usize> {
        self.memory().allocation(index).map(|allocation| allocation.bytes.len())
    }

    pub(super) fn label(&self, index: usize) -> Option<&str> {
        self.memory().allocation(index).map(|allocation| allocation.label.as_str())
    }

    /// The bytes of one element.
    #[inline(always)]
    pub(super) fn element(&self, place: &Place) -> &[u8] {
        if let Self::Part(Overlay { pages, .. }) = self
            && let Some(page) = pages.get(place.index, place.bytes.start / PAGE)
        {
            let start = place.bytes.start % PAGE;
            return &page.bytes[start..start + place.bytes.len()];
        }
        self.memory().allocation(place.index).map_or(&[], |allocation| &allocation.bytes[place.bytes.clone()])
    }

    /// Calls `read` with the bytes of a place, piece by piece.
    #[inline(always)]
    pub(super) fn read(&self, place: &Place, mut read: impl FnMut(&[u8])) {
        let Some(below) = self.memory().allocation(place.index) else { return };
        match self {
            Self::Part(Overlay { pages, .. }) if pages.tables.get(place.index).is_some_and(|it| !it.is_empty()) => {
                for (number, piece) in pieces(&place.bytes) {
                    match pages.get(place.index, number) {
                        Some(page) => read(&page.bytes[piece]),
                        None => read(&below.bytes[number * PAGE + piece.start..number * PAGE + piece.end]),
                    }
                }
            }
            _ => read(&below.bytes[place.bytes.clone()]),
        }
    }

    /// Calls `look` with the marks of a place, piece by piece.
    #[inline(always)]
    pub(super) fn marks(&self, place: &Place, mut look: impl FnMut(Marked)) {
        let Some(below) = self.memory().allocation(place.index) else { return };
        let plain = |range: Range<usize>| below.uniform.map_or_else(|| Marked::Each(&below.shadow[range]), Marked::All);
        match self {
            Self::Part(Overlay { pages, .. }) if pages.tables.get(place.index).is_some_and(|it| !it.is_empty()) => {
                for (number, piece) in pieces(&place.bytes) {
                    match pages.get(place.index, number) {
                        Some(page) => look(page.marked(piece)),
                        None => look(plain(number * PAGE + piece.start..number * PAGE + piece.end)),
                    }
                }
            }
            _ => look(plain(place.bytes.clone())),
        }
    }

    /// Calls `write` with the bytes of a place, piece by piece, and marks them.
    #[inline(always)]
    pub(super) fn write(&mut self, place: &Place, mark: Option<u8>, mut write: impl FnMut(&mut [u8])) {
        match self {
            Self::Whole(memory) => {
                let Some(allocation) = memory.allocation_mut(place.index) else { return };
                if let Some(mark) = mark {
                    allocation.mark(place.bytes.clone(), mark);
                }
                write(&mut allocation.bytes[place.bytes.clone()]);
            }
            Self::Part(Overlay { base, pages, .. }) => {
                for (number, piece) in pieces(&place.bytes) {
                    let lost = [piece == (0..PAGE), mark.is_some()];
                    let Some(page) = pages.get_mut(base, place.index, number, lost) else {
                        pages.stray = true;
                        return;
                    };
                    if let Some(mark) = mark {
                        page.mark(piece.clone(), mark);
                    }
                    write(&mut page.bytes[piece]);
                }
            }
        }
    }

    /// Notes a fault and goes on, or ends the launch with it.
    pub(super) fn pass(&mut self, go_on: bool, fault: Fault) -> Result<(), Fault> {
        match self {
            Self::Whole(memory) if go_on => {
                memory.findings.note(fault);
                Ok(())
            }
            _ => Err(fault),
        }
    }

    pub(super) fn defects(&mut self) -> &mut Defects {
        match self {
            Self::Whole(memory) => &mut memory.defects,
            Self::Part(overlay) => &mut overlay.defects,
        }
    }
}
