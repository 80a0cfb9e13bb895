use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use indicatif::ProgressBar;
use tilewright_audit::{Audit, LabelError, Labelled, Resume, ResumeError, Selection, Setting, select};
use tilewright_contract::Verdict;
use tilewright_verify::{Mode, Options, arch_name};

use super::session::{self, Session};
use super::usage;
use crate::args::AuditArgs;
use crate::{output, render};

/// Exit status: 0 every verdict is on the right side, 1 one is not, 3 one is missing.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let mut options = session::options(&args.run, &args.profiles, Mode::Replay, None)?;
    session::confirm(args.confirm, &mut options)?;
    let folders: Vec<PathBuf> = args.folders.iter().map(|folder| folder.as_std_path().to_owned()).collect();
    let selection = select(&folders, &options.device.to_string(), &args.filters).map_err(labels)?;
    if selection.entries.is_empty() {
        let Selection { filtered, other_targets, .. } = selection;
        let message = format!(
            "no candidate is left: {filtered} do not match --filter, {other_targets} do not run on {}",
            options.device
        );
        return Err(usage(message));
    }
    let resume = args.resume.as_ref().map(|path| Resume::open(path.as_std_path()));
    let resume = resume.transpose().map_err(resume_error)?;
    if let (None, Some(seed)) = (args.run.seed, resume.as_ref().and_then(Resume::seed)) {
        options.seed = seed;
    }
    if let Some(path) = &args.html {
        // Hours of work should not end at a path that cannot be written.
        let probe = std::fs::OpenOptions::new().append(true).create(true).open(path);
        probe.map_err(|error| usage(format!("--html {path}: {error}")))?;
    }
    let start = Instant::now();
    let Session { verifier, torch, triton, .. } = session::start(options.clone(), &args.common)?;
    let setting = setting(&options, torch, triton);
    let bar = session::progress(selection.entries.len())?;
    let jobs = session::jobs(args.jobs);
    let verdicts =
        tilewright_audit::run(&verifier, &setting, &selection.entries, jobs, resume, |entry, verdict, earlier| {
            heard(&bar, entry, verdict, earlier);
        })
        .map_err(resume_error)?;
    bar.finish_and_clear();
    let folders = args.folders.iter().map(ToString::to_string).collect();
    let audit = Audit::new(setting, folders, &selection, &verdicts, start.elapsed().as_secs_f64());
    if args.common.json {
        output::json(&audit)?;
    } else {
        output::line(render::audit(&audit))?;
    }
    if let Some(path) = &args.html {
        std::fs::write(path, audit.html()?).with_context(|| format!("failed to write {path}"))?;
    }
    Ok(ExitCode::from(audit.exit_code()))
}

fn heard(bar: &ProgressBar, entry: &Labelled, verdict: &Verdict, earlier: bool) {
    if earlier {
        // Not this run's work: it must not count in the rate.
        bar.set_length(bar.length().unwrap_or(1).saturating_sub(1));
        return;
    }
    bar.set_message(format!("{} {}", verdict.verdict.name(), entry.name()));
    bar.inc(1);
}

fn setting(options: &Options, torch: String, triton: String) -> Setting {
    Setting {
        schema: Setting::SCHEMA.into(),
        tilewright: env!("CARGO_PKG_VERSION").into(),
        torch,
        triton,
        target: options.device.to_string(),
        arch: arch_name(&options.target),
        profiles: session::profile_names(options),
        trials: options.trials,
        seed: options.seed,
    }
}

fn labels(errors: Vec<LabelError>) -> anyhow::Error {
    usage(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn resume_error(error: ResumeError) -> anyhow::Error {
    match error {
        ResumeError::Write(_) => error.into(),
        _ => usage(error.to_string()),
    }
}
