//! The `tilewright` binary: parses arguments, calls one command, renders what came back.

mod args;
mod commands;
mod output;
mod render;

use std::process::ExitCode;

use clap::Parser;

// Screening is many small allocations: this allocator makes it 1.3 times faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    args::Cli::parse().run()
}
