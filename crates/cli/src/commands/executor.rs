use std::process::ExitCode;

use anyhow::Context;

use crate::args::ExecutorArgs;

pub(crate) fn run(args: &ExecutorArgs) -> anyhow::Result<ExitCode> {
    tilewright_replay::cuda::serve(args.device, std::io::stdin().lock(), std::io::stdout().lock())
        .context("failed to serve")?;
    Ok(ExitCode::SUCCESS)
}
