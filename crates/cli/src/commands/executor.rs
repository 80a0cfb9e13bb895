use std::io::BufRead;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use anyhow::Context;

use tilewright_contract::View;

use crate::args::ExecutorArgs;

/// Standard input is a socket, and answers go back through it: kernels print to standard output.
pub(crate) fn run(args: &ExecutorArgs) -> anyhow::Result<ExitCode> {
    if args.copies {
        return copies();
    }
    let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().context("failed to take the socket")?);
    tilewright_replay::cuda::serve(args.device, &socket, &socket).context("failed to serve")?;
    Ok(ExitCode::SUCCESS)
}

/// For each pair of views (source, destination), the launches that copy one to the other: what `scripts/gpu/copies.py`
/// times.
fn copies() -> anyhow::Result<ExitCode> {
    for line in std::io::stdin().lock().lines() {
        let (src, dst): (View, View) = serde_json::from_str(&line?).context("failed to read a pair of views")?;
        let launches = tilewright_replay::copy_launches(&src, &dst).map_err(anyhow::Error::msg)?;
        crate::output::line(&serde_json::to_string(&launches)?)?;
    }
    Ok(ExitCode::SUCCESS)
}
