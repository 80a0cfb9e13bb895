//! `tilewright sanitize`: everything that a candidate's launches do wrong with memory.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;

use tilewright_verify::{Device, Mode};

use super::{session, usage};
use crate::args::SanitizeArgs;
use crate::{output, render};

pub(crate) fn run(args: &SanitizeArgs) -> anyhow::Result<ExitCode> {
    let profiles = [tilewright_judge::DEFAULT_PROFILE.to_owned()];
    let options = session::options(&args.run, &profiles, Mode::Replay, None)?;
    if options.device != Device::Cpu {
        let target = &args.run.target;
        return Err(usage(format!("--target {target}: the sanitiser runs in the emulator alone, give --target cpu")));
    }
    session::check_file(&args.problem, "problem")?;
    let candidate = &args.candidate;
    let source = session::read_file(candidate, "candidate")?;
    let verifier = session::start(options, &args.common)?.verifier;
    let problem = verifier.load(args.problem.as_std_path());
    let report = verifier.sanitize(&problem, candidate.as_std_path(), &source, args.nan);
    if args.common.json {
        output::json(&report)?;
    } else {
        output::line(render::sanitize(&report, &source, stdout().is_terminal()))?;
    }
    Ok(ExitCode::from(report.exit_code()))
}
