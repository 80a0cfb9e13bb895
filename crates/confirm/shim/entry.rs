//! How the library is set up and marked, and how programs ask the driver for its functions.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::Ordering;

use crate::channel;
use crate::hooks::TABLE;
use crate::system::driver_function;
use crate::wire::{MARK, Record};

/// CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
const PER_THREAD: u64 = 2;
/// From this version of CUDA on, `cuGetProcAddress` has a fifth argument.
const FIVE_ARGUMENTS: i32 = 12000;

/// Opens the channel on a socket. 0 if that worked and the real driver is there.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn tilewright_open(fd: i32) -> i32 {
    if driver_function(c"cuInit").is_null() {
        return 1;
    }
    if channel::open(fd) { 0 } else { 2 }
}

/// Puts a mark between the records.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn tilewright_mark(code: u32) {
    channel::send(Record::new(MARK).u32(code));
}

type GetOld = unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64) -> i32;
type Get = unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64, *mut i32) -> i32;

/// # Safety
/// As the driver's function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    found: *mut *mut c_void,
    version: i32,
    flags: u64,
) -> i32 {
    let driver = driver_function(c"cuGetProcAddress");
    if driver.is_null() {
        return crate::table::NOT_FOUND;
    }
    // SAFETY: the driver's function of this name; the caller's arguments, as they are.
    unsafe {
        let driver: GetOld = std::mem::transmute(driver);
        let result = driver(symbol, found, version, flags);
        replace(result, symbol, found, version, flags);
        result
    }
}

/// # Safety
/// As the driver's function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    found: *mut *mut c_void,
    version: i32,
    flags: u64,
    status: *mut i32,
) -> i32 {
    let driver = driver_function(c"cuGetProcAddress_v2");
    if driver.is_null() {
        return crate::table::NOT_FOUND;
    }
    // SAFETY: the driver's function of this name; the caller's arguments, as they are.
    unsafe {
        let driver: Get = std::mem::transmute(driver);
        let result = driver(symbol, found, version, flags, status);
        replace(result, symbol, found, version, flags);
        result
    }
}

/// Puts our own function in the place of the one that the driver gave.
unsafe fn replace(result: i32, symbol: *const c_char, found: *mut *mut c_void, version: i32, flags: u64) {
    // SAFETY: the driver has read the name and written the address.
    let (name, given) = unsafe {
        if result != 0 || found.is_null() || (*found).is_null() {
            return;
        }
        (CStr::from_ptr(symbol), *found)
    };
    if let Some(ours) = stand_in(name, given, version, flags) {
        // SAFETY: as above.
        unsafe { *found = ours };
    }
}

fn stand_in(name: &CStr, given: *mut c_void, version: i32, flags: u64) -> Option<*mut c_void> {
    if name == c"cuGetProcAddress" {
        return Some(match version {
            FIVE_ARGUMENTS.. => cuGetProcAddress_v2 as *mut c_void,
            _ => cuGetProcAddress as *mut c_void,
        });
    }
    let per_thread: &[&str] = if flags & PER_THREAD != 0 { &["_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds"] } else { &[] };
    let entry = per_thread.iter().chain(&["_v2", ""]).find_map(|ending| {
        let symbol = CString::new([name.to_bytes(), ending.as_bytes()].concat()).ok()?;
        TABLE.iter().find(|entry| entry.symbol == symbol.as_c_str())
    })?;
    // The driver knows best which of its functions this program wants.
    let _ = entry.driver.compare_exchange(std::ptr::null_mut(), given, Ordering::AcqRel, Ordering::Acquire);
    Some((entry.ours)())
}
