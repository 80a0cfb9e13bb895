use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use camino::Utf8Path;
use indicatif::{ProgressBar, ProgressStyle};
use tilewright_cell::{Zygote, ZygoteOptions, find_python};
use tilewright_contract::{Profile, Target, Verdict};
use tilewright_replay::cuda;
use tilewright_stage::{Cache, Stage, StageLimits, StageOptions};
use tilewright_verify::{Device, Mode, Options, Problem, Verifier, batch, parse_arch};

use super::usage;
use crate::args::{ModeArg, VerifyArgs};
use crate::render;

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let options = options(args)?;
    check_file(&args.problem, "problem")?;
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder).map_err(|error| usage(format!("--keep {folder}: {error}")))?;
    }
    let files = args.batch.as_deref().map(candidates).transpose()?.unwrap_or_default();
    let candidate = args.candidate.as_deref().map(read_candidate).transpose()?;
    let python = find_python(args.common.python.as_ref().map(|path| path.as_std_path()))?;
    let zygote = Zygote::start(ZygoteOptions::new(python))?;
    let cache = Cache::open(Cache::default_root()).context("failed to open the cache of compiled kernels")?;
    let limits = StageLimits::default().within(options.timeout);
    let stage = Stage::new(Arc::new(zygote), cache, StageOptions { strict: options.strict, limits });
    let verifier = Verifier::new(stage, options);
    let problem = verifier.load(args.problem.as_std_path());
    match &candidate {
        Some((path, source)) => one(&verifier, &problem, path, source, args.common.json),
        None => many(&verifier, &problem, files, args),
    }
}

fn read_candidate(path: &Utf8Path) -> anyhow::Result<(&Utf8Path, Vec<u8>)> {
    let source = std::fs::read(path).map_err(|error| usage(format!("failed to read {path}: {error}")))?;
    Ok((path, source))
}

fn one(
    verifier: &Verifier,
    problem: &Problem,
    candidate: &Utf8Path,
    source: &[u8],
    json: bool,
) -> anyhow::Result<ExitCode> {
    let verdict = verifier.verify(problem, candidate.as_std_path(), source);
    if json {
        println!("{}", serde_json::to_string_pretty(&verdict)?);
    } else {
        println!("{}", render::verdict(&verdict));
    }
    Ok(ExitCode::from(verdict.verdict.exit_code()))
}

/// Every candidate gets one line; exit status 0 once each has one.
fn many(verifier: &Verifier, problem: &Problem, files: Vec<PathBuf>, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let mut log = args.resume.as_deref().map(Log::open).transpose()?;
    let files: Vec<PathBuf> = match &log {
        Some(log) => files.into_iter().filter(|file| !log.knows(problem, file)).collect(),
        None => files,
    };
    let jobs = args.jobs.map_or_else(cores, |n| n.get() as usize);
    let bar = ProgressBar::new(files.len() as u64).with_style(
        ProgressStyle::with_template("{pos}/{len} [{elapsed} + {eta}] {per_sec} {msg}")
            .context("failed to set the progress line up")?,
    );
    batch(verifier, problem, &files, jobs, |verdict: Verdict| -> anyhow::Result<()> {
        let line = serde_json::to_string(&verdict)?;
        bar.suspend(|| writeln!(std::io::stdout(), "{line}")).context("failed to write to stdout")?;
        if let Some(log) = &mut log {
            log.append(&line)?;
        }
        bar.set_message(format!("{} {}", verdict.verdict.name(), verdict.candidate.path));
        bar.inc(1);
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(ExitCode::SUCCESS)
}

fn options(args: &VerifyArgs) -> anyhow::Result<Options> {
    let device: Device = args.target.parse().map_err(|error| usage(format!("{error}")))?;
    let target = target(device, args.arch.as_deref())?;
    let mode = match args.mode {
        ModeArg::Replay => Mode::Replay,
        ModeArg::Direct => Mode::Direct,
    };
    if mode == Mode::Direct && device == Device::Cpu {
        return Err(usage(
            "--mode direct runs the candidate's own launches, which takes a GPU: give --target cuda:N on a machine that has one",
        ));
    }
    Ok(Options {
        device,
        target,
        profiles: args.profiles.iter().map(|name| profile(name)).collect::<anyhow::Result<_>>()?,
        trials: args.trials,
        seed: args.seed.unwrap_or_else(rand::random),
        mode,
        timeout: Duration::from_secs_f64(args.timeout),
        strict: args.strict,
        keep: args.keep.as_ref().map(|folder| folder.as_std_path().to_owned()),
    })
}

/// The asked architecture, or the device's own.
fn target(device: Device, arch: Option<&str>) -> anyhow::Result<Target> {
    let own = match device {
        Device::Cpu => None,
        Device::Cuda(ordinal) => {
            let devices = cuda::devices().map_err(|why| usage(format!("--target {device}: {why}")))?;
            let Some(info) = devices.get(ordinal) else {
                return Err(usage(format!("--target {device}: this machine has {} CUDA devices", devices.len())));
            };
            Some(format!("sm_{}", info.arch))
        }
    };
    let arch = arch.map(str::to_owned).or(own).unwrap_or_else(|| "sm_90".into());
    let target = parse_arch(&arch).map_err(|error| usage(error.to_string()))?;
    if target.backend == "hip" && device != Device::Cpu {
        return Err(usage(format!("{arch} is compile-only: give --target cpu with it")));
    }
    Ok(target)
}

/// A profile by its name, or from a TOML file.
fn profile(name: &str) -> anyhow::Result<Profile> {
    if let Some(profile) = tilewright_judge::profile(name) {
        return Ok(profile?);
    }
    if !Path::new(name).exists() {
        let known = tilewright_judge::profile_names().collect::<Vec<_>>().join(", ");
        return Err(usage(format!("unknown profile {name:?}: give one of {known}, or a TOML file")));
    }
    let text = std::fs::read_to_string(name).map_err(|error| usage(format!("failed to read {name}: {error}")))?;
    Profile::parse(&text).map_err(|error| usage(format!("{name}: {error}")))
}

fn check_file(path: &Utf8Path, what: &str) -> anyhow::Result<()> {
    if path.is_file() { Ok(()) } else { Err(usage(format!("no {what} file {path}"))) }
}

/// Every Python file under a folder, in the order of their names.
fn candidates(folder: &Utf8Path) -> anyhow::Result<Vec<PathBuf>> {
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

/// Verdicts of an earlier run of the same batch.
struct Log {
    file: File,
    /// Problem digest and candidate digest of each line.
    known: HashSet<(String, String)>,
}

impl Log {
    fn open(path: &Utf8Path) -> anyhow::Result<Self> {
        let failed = || format!("failed to open {path}");
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).with_context(failed)?;
        file.try_lock().map_err(|_| usage(format!("{path} is in use by another batch")))?;
        let mut known = HashSet::new();
        let mut torn = false;
        for line in BufReader::new(&file).lines() {
            // A line torn by a kill is verified again.
            match serde_json::from_str::<Verdict>(&line.with_context(failed)?) {
                Ok(verdict) => drop(known.insert((verdict.problem.digest, verdict.candidate.digest))),
                Err(_) => torn = true,
            }
        }
        let mut log = Self { file, known };
        if torn {
            // The next line must not continue the torn one.
            log.file.write_all(b"\n")?;
        }
        Ok(log)
    }

    fn knows(&self, problem: &Problem, file: &Path) -> bool {
        let Ok(source) = std::fs::read(file) else { return false };
        self.known.contains(&(problem.digest().into(), tilewright_verify::digest(&source)))
    }

    fn append(&mut self, line: &str) -> anyhow::Result<()> {
        writeln!(self.file, "{line}").and_then(|()| self.file.flush()).context("failed to write the resume file")
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
