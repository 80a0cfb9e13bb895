//! The `tilewright` binary: parses arguments, calls one command, renders what came back.

mod args;
mod commands;
mod render;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    args::Cli::parse().run()
}
