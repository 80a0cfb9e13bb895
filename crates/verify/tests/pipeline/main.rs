//! The spine with real stages: verdicts, controls, the sanitiser. One program, so that all tests share one zygote.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod bugs;
mod controls;
mod gradients;
mod sanitize;
mod verdicts;
