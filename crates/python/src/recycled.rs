//! Memory kept from one launch to the next: the system takes longer to give fresh pages than copying into them does.

use std::sync::{Mutex, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// Bytes that are kept at most.
const LIMIT: usize = 1 << 30;

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// The contents of a buffer, in memory of an earlier launch if there is some.
pub(crate) fn copy(py: Python<'_>, buffer: &PyBuffer<u8>) -> PyResult<Vec<u8>> {
    let mut bytes = take(buffer.len_bytes());
    bytes.resize(buffer.len_bytes(), 0);
    buffer.copy_to_slice(py, &mut bytes)?;
    Ok(bytes)
}

/// The smallest that is large enough, but not twice as large; empty if there is none.
fn take(length: usize) -> Vec<u8> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |bytes: &Vec<u8>| (length..=2 * length).contains(&bytes.len());
    let smallest = kept.iter().enumerate().filter(|(_, bytes)| fits(bytes)).min_by_key(|(_, bytes)| bytes.len());
    smallest.map(|(at, _)| at).map(|at| kept.swap_remove(at)).unwrap_or_default()
}

/// Keeps memory for later launches, in place of what was kept longest.
pub(crate) fn give(bytes: Vec<u8>) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(bytes);
    while kept.iter().map(Vec::capacity).sum::<usize>() > LIMIT || kept.len() > 64 {
        kept.remove(0);
    }
}
