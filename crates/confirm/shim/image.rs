//! What was loaded, and which function is of which image.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::channel;
use crate::system::driver_function;
use crate::wire::{IMAGE, Record};

/// Longer images are no kernel of a candidate.
const LONGEST: usize = 64 << 20;
const ELF: &[u8; 4] = b"\x7fELF";
/// Fields of a 64-bit ELF header.
const HEADER: usize = 64;

/// No image: one that was loaded behind our back.
pub(crate) const UNKNOWN: u32 = u32::MAX;

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

#[derive(Default)]
struct Loaded {
    /// Images so far.
    count: u32,
    /// Modules and libraries by their handles: image, and whether it is a cubin.
    images: HashMap<usize, (u32, bool)>,
    functions: HashMap<usize, Function>,
}

/// A loaded kernel.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) image: u32,
    pub(crate) cubin: bool,
    pub(crate) name: Vec<u8>,
}

/// Notes an image under the handle that the driver gave it.
pub(crate) fn loaded(handle: usize, image: *const c_void) {
    // SAFETY: the driver has just read the same image.
    let bytes = unsafe { elf(image.cast()) };
    let number = {
        let mut all = lock();
        let all = all.get_or_insert_with(Loaded::default);
        let number = all.count;
        all.count += 1;
        all.images.insert(handle, (number, bytes.is_some()));
        number
    };
    channel::send(Record::new(IMAGE).u32(number).bytes(bytes.unwrap_or_default()));
}

/// `other` is another handle for what `handle` stands for.
pub(crate) fn same_image(handle: usize, other: usize) {
    if let Some(all) = lock().as_mut()
        && let Some(&image) = all.images.get(&handle)
    {
        all.images.insert(other, image);
    }
}

/// Notes a function of a module or library.
pub(crate) fn named(function: usize, handle: usize, name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: the driver has just looked the same name up.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes().to_vec();
    let mut all = lock();
    let all = all.get_or_insert_with(Loaded::default);
    let (image, cubin) = all.images.get(&handle).copied().unwrap_or((UNKNOWN, false));
    all.functions.insert(function, Function { image, cubin, name });
}

/// `other` is another handle for `function`.
pub(crate) fn same_function(function: usize, other: usize) {
    if let Some(all) = lock().as_mut()
        && let Some(found) = all.functions.get(&function).cloned()
    {
        all.functions.insert(other, found);
    }
}

/// What is known of a function; the driver is asked for the name of one that was not seen before.
pub(crate) fn function(handle: usize) -> Function {
    let found = lock().as_ref().and_then(|all| all.functions.get(&handle).cloned());
    found.unwrap_or_else(|| Function { image: UNKNOWN, cubin: false, name: ask_name(handle) })
}

fn ask_name(handle: usize) -> Vec<u8> {
    for asker in [c"cuFuncGetName", c"cuKernelGetName"] {
        let address = driver_function(asker);
        if address.is_null() {
            continue;
        }
        // SAFETY: CUresult cuFuncGetName(const char **name, CUfunction function), and the same for a CUkernel.
        let ask: unsafe extern "C" fn(*mut *const c_char, usize) -> i32 = unsafe { std::mem::transmute(address) };
        let mut name = std::ptr::null();
        // SAFETY: the handle is one that the driver is about to launch.
        if unsafe { ask(&mut name, handle) } == 0 && !name.is_null() {
            // SAFETY: the driver gives a C string that lives as long as the function.
            return unsafe { CStr::from_ptr(name) }.to_bytes().to_vec();
        }
    }
    Vec::new()
}

/// The bytes of a 64-bit ELF image, whose header tells how far it reaches.
///
/// # Safety
/// `image` points to an image that the driver accepted.
unsafe fn elf<'a>(image: *const u8) -> Option<&'a [u8]> {
    if image.is_null() {
        return None;
    }
    // SAFETY: every image has four bytes.
    if unsafe { std::slice::from_raw_parts(image, ELF.len()) } != ELF {
        return None;
    }
    // SAFETY: an ELF image has a header.
    let header = unsafe { std::slice::from_raw_parts(image, HEADER) };
    let word = |at: usize, size: usize| {
        header[at..at + size].iter().rev().fold(0usize, |word, byte| word << 8 | usize::from(*byte))
    };
    let programs = word(0x20, 8).saturating_add(word(0x36, 2).saturating_mul(word(0x38, 2)));
    let (table, size, count) = (word(0x28, 8), word(0x3a, 2), word(0x3c, 2));
    let mut end = table.saturating_add(size.saturating_mul(count)).max(programs).max(HEADER);
    if end > LONGEST || size < 0x40 {
        return None;
    }
    // SAFETY: the section table is part of the image.
    let sections = unsafe { std::slice::from_raw_parts(image.add(table), size * count) };
    for section in sections.chunks_exact(size) {
        let word = |at: usize, size: usize| {
            section[at..at + size].iter().rev().fold(0usize, |word, byte| word << 8 | usize::from(*byte))
        };
        // A section of type NOBITS takes no bytes of the file.
        if word(4, 4) != 8 {
            end = end.max(word(0x18, 8).saturating_add(word(0x20, 8)));
        }
    }
    // SAFETY: header, tables and sections make up the image.
    (end <= LONGEST).then(|| unsafe { std::slice::from_raw_parts(image, end) })
}

fn lock() -> MutexGuard<'static, Option<Loaded>> {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
}
