use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use anyhow::Context;

use crate::args::ExecutorArgs;

/// Standard input is a socket, and answers go back through it: kernels print to standard output.
pub(crate) fn run(args: &ExecutorArgs) -> anyhow::Result<ExitCode> {
    let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().context("failed to take the socket")?);
    tilewright_replay::cuda::serve(args.device, &socket, &socket).context("failed to serve")?;
    Ok(ExitCode::SUCCESS)
}
