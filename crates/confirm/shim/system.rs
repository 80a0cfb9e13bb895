//! The few functions of the C library that are needed.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

mod c {
    use super::{c_char, c_int, c_void};

    unsafe extern "C" {
        pub(super) fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
        pub(super) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        pub(super) fn read(fd: c_int, into: *mut c_void, count: usize) -> isize;
        pub(super) fn send(fd: c_int, from: *const c_void, count: usize, flags: c_int) -> isize;
        pub(super) fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
        pub(super) fn close(fd: c_int) -> c_int;
        pub(super) fn _exit(status: c_int) -> !;
        pub(super) fn __errno_location() -> *mut c_int;
    }
}

const RTLD_NOW: c_int = 2;
const EINTR: c_int = 4;
const F_DUPFD_CLOEXEC: c_int = 1030;
const MSG_NOSIGNAL: c_int = 0x4000;
/// Above what a program opens by itself.
const LOWEST_DESCRIPTOR: c_int = 200;
/// Exit status of a process whose records can no longer be delivered; the parent knows the same number.
const SILENCED: c_int = 88;

static DRIVER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The address of a function of the real driver, null if it has none of this name.
pub(crate) fn driver_function(name: &CStr) -> *mut c_void {
    let mut driver = DRIVER.load(Ordering::Acquire);
    if driver.is_null() {
        // Already loaded as a dependency of this library: found by its name.
        // SAFETY: a C string; loading the driver runs no more than its own initialisers.
        driver = unsafe { c::dlopen(c"libtilewright-driver.so.1".as_ptr(), RTLD_NOW) };
        DRIVER.store(driver, Ordering::Release);
    }
    if driver.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: a handle that is never closed, and a C string.
    unsafe { c::dlsym(driver, name.as_ptr()) }
}

/// A descriptor of our own for the same channel; the given one is closed.
pub(crate) fn take_descriptor(fd: i32) -> Option<i32> {
    // SAFETY: plain calls on a number.
    unsafe {
        let own = c::fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR);
        c::close(fd);
        (own >= 0).then_some(own)
    }
}

/// Fills `buffer` from a descriptor.
pub(crate) fn read_exactly(fd: i32, mut buffer: &mut [u8]) -> bool {
    while !buffer.is_empty() {
        // SAFETY: the buffer is as long as the call is told.
        let count = unsafe { c::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
        if count > 0 {
            buffer = &mut buffer[count as usize..];
        } else if count == 0 || errno() != EINTR {
            return false;
        }
    }
    true
}

/// Sends everything, or ends the process: nothing may happen that the parent does not hear of.
pub(crate) fn send_or_die(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the buffer is as long as the call is told.
        let count = unsafe { c::send(fd, bytes.as_ptr().cast(), bytes.len(), MSG_NOSIGNAL) };
        if count > 0 {
            bytes = &bytes[count as usize..];
        } else if count == 0 || errno() != EINTR {
            // SAFETY: does not return.
            unsafe { c::_exit(SILENCED) }
        }
    }
}

fn errno() -> c_int {
    // SAFETY: the address of this thread's own variable.
    unsafe { *c::__errno_location() }
}
