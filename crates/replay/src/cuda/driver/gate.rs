//! Keeps a stream waiting until the host says so.

use std::cell::Cell;

use cudarc::driver::sys;

use super::{Context, Result, check};

/// A word of the host's memory that the device waits for.
pub(in crate::cuda) struct Gate {
    word: *mut u32,
    address: sys::CUdeviceptr,
    /// How often it was closed: what the device waits for.
    count: Cell<u32>,
}

/// A gate that is closed until this is dropped.
pub(in crate::cuda) struct Closed<'a>(&'a Gate);

impl Gate {
    pub(in crate::cuda) fn new() -> Result<Self> {
        let (mut word, mut address) = (std::ptr::null_mut(), 0);
        // SAFETY: writes one pointer, to memory that is the device's as well, and its address there.
        unsafe {
            let bytes = size_of::<u32>();
            check(sys::cuMemHostAlloc(&mut word, bytes, sys::CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc")?;
            let word: *mut u32 = word.cast();
            word.write_volatile(0);
            check(sys::cuMemHostGetDevicePointer_v2(&mut address, word.cast(), 0), "cuMemHostGetDevicePointer")?;
            Ok(Self { word, address, count: Cell::new(0) })
        }
    }

    /// What is put into the stream from now on does not run before the gate is open. The stream holds some 1,000 operations;
    /// who puts more into it would wait for the device, and the device for the gate.
    pub(in crate::cuda) fn close(&self, context: &Context) -> Result<Closed<'_>> {
        let count = self.count.get().wrapping_add(1);
        self.count.set(count);
        let reached = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // SAFETY: the word lives as long as self.
        let waits = unsafe { sys::cuStreamWaitValue32_v2(context.stream, self.address, count, reached) };
        check(waits, "cuStreamWaitValue32").map(|()| Closed(self))
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        // SAFETY: the gate's word, which the host alone writes.
        unsafe { self.0.word.write_volatile(self.0.count.get()) };
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: made by cuMemHostAlloc and given back once.
        let _ = unsafe { sys::cuMemFreeHost(self.word.cast()) };
    }
}
