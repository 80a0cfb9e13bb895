//! Addresses of tensors as numbers: `data_ptr()` in an argument or in a tensor of 64-bit integers.
//!
//! The emulator's memory has addresses of its own. Numbers that point into a buffer are changed on the way in, and back
//! on the way out.

use std::ops::Range;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// Stretches of addresses that stand for others.
#[derive(Default)]
pub(crate) struct Translation {
    /// First address, length, and the address that it stands for.
    ranges: Vec<(u64, u64, u64)>,
}

impl Translation {
    /// Numbers from `from` on, `length` of them, stand for those from `to` on.
    pub(crate) fn add(&mut self, from: u64, length: u64, to: u64) {
        self.ranges.push((from, length, to));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn back(&self) -> Self {
        Self { ranges: self.ranges.iter().map(|&(from, length, to)| (to, length, from)).collect() }
    }

    /// What a number stands for, if it is one of those.
    pub(crate) fn number(&self, number: u64) -> Option<u64> {
        let hit = self.ranges.iter().find(|(from, length, _)| number.wrapping_sub(*from) < *length);
        hit.map(|(from, _, to)| number - from + to)
    }

    /// Changes the numbers in memory.
    pub(crate) fn numbers(&self, bytes: &mut [u8]) {
        for word in bytes.chunks_exact_mut(8) {
            if let Some(number) = self.number(read(word)) {
                word.copy_from_slice(&number.to_le_bytes());
            }
        }
    }
}

fn read(word: &[u8]) -> u64 {
    word.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Which of the ranges of addresses, each `(first, length)`, the 64-bit numbers in a buffer point into.
#[pyfunction]
pub(crate) fn pointed(py: Python<'_>, buffer: PyBuffer<u8>, ranges: Vec<(u64, u64)>) -> PyResult<Vec<usize>> {
    let mut sorted: Vec<(Range<u64>, usize)> = ranges
        .iter()
        .enumerate()
        .map(|(index, &(first, length))| (first..first.saturating_add(length), index))
        .collect();
    sorted.sort_by_key(|(range, _)| range.start);
    let mut hit = vec![false; ranges.len()];
    for word in buffer.to_vec(py)?.chunks_exact(8) {
        let number = read(word);
        let after = sorted.partition_point(|(range, _)| range.start <= number);
        if let Some((range, index)) = after.checked_sub(1).and_then(|at| sorted.get(at)) {
            hit[*index] |= range.contains(&number);
        }
    }
    Ok(hit.iter().enumerate().filter_map(|(index, &hit)| hit.then_some(index)).collect())
}
