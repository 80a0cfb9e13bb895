use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use camino::Utf8Path;
use tilewright_author::{Client, Config, Judge};
use tilewright_contract::{StageTime, Verdict};
use tilewright_verify::{Group, Log, LogError, Mode, Options, Verifier, batch, digest};

use super::{session, stream, usage};
use crate::args::{ModeArg, VerifyArgs};
use crate::{output, render};

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let mode = match args.mode {
        ModeArg::Replay => Mode::Replay,
        ModeArg::Direct => Mode::Direct,
    };
    let keep = args.keep.as_ref().map(|folder| folder.as_std_path().to_owned());
    let (gpus, run) = session::gpus(&args.devices, &args.run)?;
    let mut options = session::options(&run, &args.profiles, mode, keep)?;
    options.timing = (!args.untimed).then(|| args.baselines.iter().map(|&baseline| baseline.kind()).collect());
    args.problem.as_ref().map_or(Ok(()), |problem| session::check_file(problem, "problem"))?;
    session::confirm(if args.confirm { 1.0 } else { 0.0 }, &mut options)?;
    if args.batch.is_none() && (args.resume.is_some() || args.jobs.is_some()) {
        return Err(usage("--resume and --jobs are for --batch DIR"));
    }
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder).map_err(|error| usage(format!("--keep {folder}: {error}")))?;
    }
    let work = Work::of(args)?;
    let judge = args.opinion.as_deref().map(|name| judge(name, args)).transpose()?;
    let mut verifier = session::start(options, &args.common)?.verifier.with_gpus(&gpus);
    let start = StageTime { stage: "start".into(), seconds: begun.elapsed().as_secs_f64(), cached: false };
    if let Some(judge) = judge {
        verifier = verifier.with_reviewer(move |problem, candidate| judge.ask(problem, candidate));
    }
    if let Some(path) = &args.confirm_as {
        let text = String::from_utf8(session::read_file(path, "candidate")?);
        verifier = verifier.with_confirmed_file(text.map_err(|_| usage(format!("{path} is not UTF-8")))?);
    }
    match work {
        Work::One { problem, candidate, source } => {
            let problem = verifier.load(problem.as_std_path());
            let mut verdict = verifier.verify(&problem, candidate.as_std_path(), &source);
            verdict.stages.insert(0, start);
            one(&verdict, args.common.json)
        }
        Work::Folder { problem, files } => many(&verifier, problem, files, args),
        Work::Requests => stream::run(&verifier, args),
    }
}

/// What there is to verify.
enum Work<'a> {
    One { problem: &'a Utf8Path, candidate: &'a Utf8Path, source: Vec<u8> },
    Folder { problem: &'a Utf8Path, files: Vec<PathBuf> },
    Requests,
}

impl<'a> Work<'a> {
    fn of(args: &'a VerifyArgs) -> anyhow::Result<Self> {
        let problem = args.problem.as_deref();
        let missing = || usage("give the problem file too: tilewright verify PROBLEM --batch DIR");
        match (args.batch.as_deref(), args.candidate.as_deref()) {
            (Some(batch), _) if batch == "-" => match args.resume {
                Some(_) => Err(usage("--resume is for --batch DIR: every request gets an answer")),
                None => Ok(Self::Requests),
            },
            (Some(folder), _) => Ok(Self::Folder { problem: problem.ok_or_else(missing)?, files: candidates(folder)? }),
            (None, candidate) => {
                let (problem, candidate) = problem.zip(candidate).ok_or_else(missing)?;
                Ok(Self::One { problem, candidate, source: session::read_file(candidate, "candidate")? })
            }
        }
    }
}

fn judge(name: &str, args: &VerifyArgs) -> anyhow::Result<Judge> {
    let client = Config::find(args.config.as_deref().map(Utf8Path::as_std_path))
        .and_then(|config| Client::new(&config, name))
        .map_err(|error| usage(format!("--opinion {name}: {error}")))?;
    Ok(Judge::new(client))
}

fn one(verdict: &Verdict, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        output::json(verdict)?;
    } else {
        output::line(render::verdict(verdict))?;
    }
    Ok(ExitCode::from(verdict.verdict.exit_code()))
}

/// Every candidate gets one line; exit status 0 once each has one.
fn many(verifier: &Verifier, problem: &Utf8Path, files: Vec<PathBuf>, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let (mut log, files) = match args.resume.as_deref() {
        Some(path) => {
            let (log, files) = resume(path, verifier, problem, files)?;
            (Some(log), files)
        }
        None => (None, files),
    };
    let bar = session::progress(files.len())?;
    let groups = [Group { problem: problem.as_std_path().to_owned(), candidates: files }];
    let jobs = session::candidates_at_once(verifier, args.jobs);
    batch(verifier, &groups, jobs, |_, _, verdict: Verdict| -> anyhow::Result<()> {
        let line = serde_json::to_string(&verdict)?;
        bar.suspend(|| output::line(&line))?;
        if let Some(log) = &mut log {
            log.append(&line).context("failed to write the resume file")?;
        }
        bar.set_message(format!("{} {}", verdict.verdict.name(), verdict.candidate.path));
        bar.inc(1);
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(ExitCode::SUCCESS)
}

/// Opens the batch's log; gives it with the candidates that have no line in it from the same device and profiles.
fn resume(
    path: &Utf8Path,
    verifier: &Verifier,
    problem: &Utf8Path,
    files: Vec<PathBuf>,
) -> anyhow::Result<(Log, Vec<PathBuf>)> {
    let (log, lines) = Log::open(path.as_std_path()).map_err(|error| match error {
        LogError::Io(..) => usage(format!("--resume {path}: {error}")),
        _ => usage(error.to_string()),
    })?;
    let source = std::fs::read(problem).with_context(|| format!("failed to read {problem}"))?;
    let problem = digest(&source);
    let foreign = lines.iter().find(|line| line["schema"] != Verdict::SCHEMA);
    if let Some(line) = foreign {
        let what = line["schema"].as_str().unwrap_or("something else");
        return Err(usage(format!("{path} holds {what}, not the verdicts of a batch: give another file")));
    }
    let verdicts: Vec<Verdict> =
        lines.into_iter().map(serde_json::from_value).collect::<Result<_, _>>().map_err(|error| {
            usage(format!("{path} holds something else than verdicts ({error}): give another file"))
        })?;
    let known: HashSet<String> = verdicts
        .into_iter()
        .filter(|verdict| verdict.problem.digest == problem && is_of(verifier.options(), verdict))
        .map(|verdict| verdict.candidate.digest)
        .collect();
    let is_new = |file: &PathBuf| std::fs::read(file).map_or(true, |source| !known.contains(&digest(&source)));
    Ok((log, files.into_iter().filter(is_new).collect()))
}

/// Whether a verdict was found on the device and under the profiles that are asked for, as far as it says: one that was
/// not about values holds under every profile.
fn is_of(options: &Options, verdict: &Verdict) -> bool {
    let asked: BTreeSet<_> = options.profiles.iter().map(|profile| profile.name.as_str()).collect();
    let judged: BTreeSet<_> = verdict.profiles.keys().map(String::as_str).collect();
    verdict.target == options.device.to_string() && (judged.is_empty() || judged == asked)
}

/// Every Python file under a folder, in the order of their names.
pub(super) fn candidates(folder: &Utf8Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut skipped = 0;
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.map_err(|error| usage(format!("failed to read {folder}: {error}")))?;
        if entry.path().extension().is_none_or(|extension| extension != "py") || entry.file_type().is_dir() {
            continue;
        }
        if entry.file_type().is_file() {
            files.push(entry.into_path());
        } else {
            skipped += 1;
        }
    }
    if skipped > 0 {
        eprintln!("tilewright: {skipped} .py entries under {folder} are links or special files and are skipped");
    }
    if files.is_empty() {
        return Err(usage(format!("no .py files under {folder}")));
    }
    Ok(files)
}
