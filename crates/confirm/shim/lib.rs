//! Stands in front of the CUDA driver under its name, passes every call on, and tells a parent process what was asked.
//!
//! Functions that are not here are found in the real driver, which this library depends on. A record leaves the process
//! the moment it is made, and carries a tag under a key that lies in this library's memory alone: whoever has the
//! descriptor can break the channel, not write to it.
//!
//! Compiled by `build.rs` in one call of the compiler, so there are no dependencies.
#![expect(unsafe_code, reason = "the CUDA driver API is a C interface")]

mod channel;
mod entry;
mod hooks;
mod image;
mod system;
mod table;
mod wire;
