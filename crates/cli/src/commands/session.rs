//! What the commands that verify have in common: options, and the processes that serve them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use camino::Utf8Path;
use indicatif::{ProgressBar, ProgressStyle};
use tilewright_cell::{PythonError, Zygote, ZygoteOptions, find_python};
use tilewright_contract::{Profile, Target};
use tilewright_replay::cuda;
use tilewright_stage::{Cache, Stage, StageLimits, StageOptions};
use tilewright_verify::{Device, Mode, Options, Verifier, parse_arch};

use super::usage;
use crate::args::{Common, RunArgs};

/// A verifier, and the versions of what is behind it.
pub(crate) struct Session {
    pub(crate) verifier: Verifier,
    pub(crate) stage: Stage,
    pub(crate) torch: String,
    pub(crate) triton: String,
}

/// Of what a zygote runs on.
pub(crate) struct Versions {
    torch: String,
    triton: String,
}

/// Starts the zygote; seconds.
pub(crate) fn start(options: Options, common: &Common) -> anyhow::Result<Session> {
    let (stage, Versions { torch, triton }) = stage(options.strict, options.timeout, common)?;
    Ok(Session { verifier: Verifier::new(stage.clone(), options), stage, torch, triton })
}

/// The stages behind a zygote, with no job of a candidate longer than `timeout`.
pub(crate) fn stage(strict: bool, timeout: Duration, common: &Common) -> anyhow::Result<(Stage, Versions)> {
    let asked = common.python.as_ref().map(|path| path.as_std_path());
    let python = find_python(asked).map_err(|error| match error {
        PythonError::NotThere { .. } => usage(error.to_string()),
        error => error.into(),
    })?;
    let zygote = Zygote::start(ZygoteOptions::new(python))?;
    let versions = zygote.versions();
    let versions = Versions { torch: versions.torch, triton: versions.triton };
    let root = Cache::default_root();
    let cache = Cache::open(&root).with_context(|| {
        format!("failed to open the cache of compiled kernels, {} (TILEWRIGHT_CACHE names another)", root.display())
    })?;
    let limits = StageLimits::default().within(timeout);
    Ok((Stage::new(Arc::new(zygote), cache, StageOptions { strict, limits }), versions))
}

/// Checked options. `keep`: a folder for intermediate documents.
pub(crate) fn options(
    run: &RunArgs,
    profiles: &[String],
    mode: Mode,
    keep: Option<PathBuf>,
) -> anyhow::Result<Options> {
    let device: Device = run.target.parse().map_err(|error| usage(format!("{error}")))?;
    let target = target(device, run.arch.as_deref())?;
    if mode == Mode::Direct && device == Device::Cpu {
        return Err(usage(
            "--mode direct runs the candidate's own launches, which takes a GPU: give --target cuda:N on a machine that has one",
        ));
    }
    Ok(Options {
        device,
        target,
        profiles: profiles.iter().map(|name| profile(name)).collect::<anyhow::Result<_>>()?,
        trials: run.trials,
        seed: run.seed.unwrap_or_else(rand::random),
        mode,
        timing: None,
        timeout: Duration::from_secs_f64(run.timeout),
        strict: run.strict,
        confirm: 0.0,
        keep,
    })
}

/// The GPUs that `--devices` lists, none without it, and the options with the first of them for a target.
pub(crate) fn gpus(devices: &[String], run: &RunArgs) -> anyhow::Result<(Vec<usize>, RunArgs)> {
    let (ordinals, mut run) = (ordinals(devices)?, run.clone());
    if let Some(first) = ordinals.first() {
        run.target = format!("cuda:{first}");
    }
    Ok((ordinals, run))
}

/// The ordinals in a list such as `0,1` or `cuda:0,cuda:1`. All must be of one kind: a kernel is compiled once.
fn ordinals(devices: &[String]) -> anyhow::Result<Vec<usize>> {
    let ordinal = |name: &String| {
        let device = name.parse::<usize>().map(Device::Cuda).or_else(|_| name.parse());
        match device {
            Ok(Device::Cuda(ordinal)) => Ok(ordinal),
            _ => Err(usage(format!("--devices {name}: give GPUs, as 0,1 or cuda:0,cuda:1"))),
        }
    };
    let mut ordinals = devices.iter().map(ordinal).collect::<anyhow::Result<Vec<_>>>()?;
    ordinals.sort_unstable();
    ordinals.dedup();
    if ordinals.is_empty() {
        return Ok(ordinals);
    }
    let found = cuda::devices().map_err(|why| usage(format!("--devices: {why}")))?;
    let kind = |&ordinal: &usize| {
        let none = || usage(format!("--devices: this machine has {} CUDA devices, no cuda:{ordinal}", found.len()));
        found.get(ordinal).map(|info| (&info.name, &info.arch)).ok_or_else(none)
    };
    let kinds = ordinals.iter().map(kind).collect::<anyhow::Result<Vec<_>>>()?;
    if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(usage("--devices: these GPUs are not of one kind; verify on each kind by itself"));
    }
    Ok(ordinals)
}

/// The share of candidates to confirm, where that can be.
pub(crate) fn confirm(share: f64, options: &mut Options) -> anyhow::Result<()> {
    if share > 0.0 && options.device == Device::Cpu {
        return Err(usage(
            "--confirm runs the candidate's own launches, which takes a GPU: give --target cuda:N on a machine that has one",
        ));
    }
    if share > 0.0 && options.mode == Mode::Direct {
        return Err(usage("--confirm compares a run with a plan, and --mode direct makes no plan"));
    }
    options.confirm = share;
    Ok(())
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

/// The profiles with their versions, as documents name them.
pub(crate) fn profile_names(options: &Options) -> Vec<String> {
    options.profiles.iter().map(|profile| format!("{}/{}", profile.name, profile.version)).collect()
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

pub(crate) fn check_file(path: &Utf8Path, what: &str) -> anyhow::Result<()> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => usage(format!("no {what} file {path}")),
        _ => usage(format!("failed to read {path}: {error}")),
    })?;
    if metadata.is_file() {
        return Ok(());
    }
    let inside = path.join(format!("{what}.py"));
    Err(usage(match metadata.is_dir() {
        true if inside.is_file() => format!("{path} is a folder: give {inside}"),
        true => format!("{path} is a folder: give a {what} file"),
        false => format!("{path} is no regular file: give a {what} file"),
    }))
}

/// The bytes of a regular file: reading anything else might never end.
pub(crate) fn read_file(path: &Utf8Path, what: &str) -> anyhow::Result<Vec<u8>> {
    check_file(path, what)?;
    std::fs::read(path).map_err(|error| usage(format!("failed to read {path}: {error}")))
}

/// Progress with rate and remaining time, on stderr.
pub(crate) fn progress(length: usize) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{pos}/{len} [{elapsed} + {eta}] {per_sec} {msg}")
        .context("failed to set the progress line up")?;
    Ok(ProgressBar::new(length as u64).with_style(style))
}

/// What `--jobs` says of candidates in a batch, or enough for all cores and GPUs.
pub(crate) fn candidates_at_once(verifier: &Verifier, asked: Option<std::num::NonZeroU32>) -> usize {
    asked.map_or_else(|| verifier.default_jobs(), |n| n.get() as usize)
}

/// What `--jobs` says, or the number of cores.
pub(crate) fn jobs(asked: Option<std::num::NonZeroU32>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |n| n.get() as usize)
}
