//! The `tilewright` binary: parses arguments, calls one command, renders what came back.

mod args;
mod commands;
mod output;
mod render;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// Names what is logged on stderr: `tilewright_replay=debug`. Nothing without it.
const LOG: &str = "TILEWRIGHT_LOG";

// Screening is many small allocations: this allocator makes it 1.3 times faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Ok(names) = std::env::var(LOG) {
        let targets = match names.parse::<Targets>() {
            Ok(targets) => targets,
            Err(error) => {
                eprintln!("tilewright: {LOG}={names}: {error}: give names and levels, as tilewright_replay=debug");
                return ExitCode::from(2);
            }
        };
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
        tracing_subscriber::registry().with(lines.with_filter(targets)).init();
    }
    args::Cli::parse().run()
}
