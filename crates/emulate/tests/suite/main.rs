//! Whole kernels on the public interface.
#![expect(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod common;
mod cost;
mod faults;
mod findings;
mod hostile;
mod kernels;
mod ops;
mod planted;
mod promises;
mod threads;
