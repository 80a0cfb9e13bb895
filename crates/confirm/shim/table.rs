//! Exported functions that pass a call on and record it, and the table by which `cuGetProcAddress` finds them.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::system::driver_function;

/// CUDA_ERROR_NOT_FOUND
pub(crate) const NOT_FOUND: i32 = 500;

/// A recorded function.
pub(crate) struct Entry {
    /// The driver's symbol, such as `cuMemcpyHtoD_v2`.
    pub(crate) symbol: &'static CStr,
    pub(crate) ours: fn() -> *mut c_void,
    /// The driver's function, once it is known.
    pub(crate) driver: &'static AtomicPtr<c_void>,
}

/// The driver's function behind an entry.
pub(crate) fn resolve(slot: &AtomicPtr<c_void>, symbol: &CStr) -> *mut c_void {
    let known = slot.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let found = driver_function(symbol);
    slot.store(found, Ordering::Release);
    found
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Is there while a recorded function runs: what the driver calls on its own account is no call of the program's.
pub(crate) struct Inside(());

impl Inside {
    pub(crate) fn enter() -> Option<Self> {
        INSIDE.with(|inside| !inside.replace(true)).then_some(Self(()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(false));
    }
}

/// Defines recorded functions: a handler, which gets the symbol, the driver's function and the arguments, and the
/// symbols that it serves.
macro_rules! hooks {
    ($($handler:ident $arguments:tt: $($symbol:ident)+;)*) => {
        $($($crate::table::hook! { $handler $arguments $symbol })+)*

        /// All recorded functions.
        pub(crate) static TABLE: &[$crate::table::Entry] = &[
            $($($crate::table::Entry {
                symbol: $symbol::SYMBOL,
                ours: || $symbol as *mut std::ffi::c_void,
                driver: &$symbol::DRIVER,
            },)+)*
        ];
    };
}

macro_rules! hook {
    ($handler:ident ($($arg:ident: $ty:ty),* $(,)?) $symbol:ident) => {
        #[expect(non_snake_case, reason = "the driver's name")]
        mod $symbol {
            pub(super) static DRIVER: std::sync::atomic::AtomicPtr<std::ffi::c_void> =
                std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
            pub(super) const SYMBOL: &std::ffi::CStr =
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                    Ok(symbol) => symbol,
                    Err(_) => c"",
                };
        }

        /// # Safety
        /// As the driver's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol($($arg: $ty),*) -> i32 {
            let driver = $crate::table::resolve(&$symbol::DRIVER, $symbol::SYMBOL);
            if driver.is_null() {
                return $crate::table::NOT_FOUND;
            }
            // SAFETY: the driver's function of this name has this signature.
            let driver: unsafe extern "C" fn($($ty),*) -> i32 = unsafe { std::mem::transmute(driver) };
            let Some(_inside) = $crate::table::Inside::enter() else {
                // SAFETY: the caller's arguments, as they are.
                return unsafe { driver($($arg),*) };
            };
            // SAFETY: the same.
            unsafe { $handler($symbol::SYMBOL, driver, $($arg),*) }
        }
    };
}

pub(crate) use {hook, hooks};
