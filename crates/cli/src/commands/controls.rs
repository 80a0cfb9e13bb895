use std::path::Path;
use std::process::ExitCode;

use tilewright_contract::{Certificate, Mark};
use tilewright_verify::Mode;

use super::session;
use crate::args::ControlsArgs;
use crate::{output, render};

/// Exit status under the first profile: 0 every problem is ok, 1 one is degenerate or precision-blind, 3 one is
/// defective.
pub(crate) fn run(args: &ControlsArgs) -> anyhow::Result<ExitCode> {
    let all: Vec<String> = tilewright_judge::profile_names().map(str::to_owned).collect();
    let profiles = if args.profiles.is_empty() { &all } else { &args.profiles };
    let options = session::options(&args.run, profiles, Mode::Replay, None)?;
    for problem in &args.problems {
        session::check_file(problem, "problem")?;
    }
    let verifier = session::start(options, &args.common)?.verifier;
    let bar = session::progress(args.problems.len())?;
    let mut certificates = Vec::new();
    for problem in &args.problems {
        bar.set_message(problem.to_string());
        let certificate = verifier.controls(Path::new(problem)).map_err(|why| anyhow::anyhow!("{problem}: {why}"))?;
        if !args.common.json && !args.markdown {
            bar.suspend(|| output::line(render::certificate(&certificate)))?;
        }
        certificates.push(certificate);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if args.common.json {
        match &certificates[..] {
            [one] => output::json(one)?,
            all => output::json(all)?,
        }
    } else if args.markdown {
        output::text(render::certificates_as_markdown(&certificates))?;
    }
    Ok(ExitCode::from(exit_code(&certificates)))
}

fn exit_code(certificates: &[Certificate]) -> u8 {
    let marks = certificates.iter().filter_map(|certificate| certificate.profiles.first());
    match marks.map(|profile| profile.mark).max() {
        None | Some(Mark::Ok) => 0,
        Some(Mark::PrecisionBlind | Mark::Degenerate) => 1,
        Some(Mark::Defect) => 3,
    }
}
