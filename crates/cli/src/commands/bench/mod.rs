//! `tilewright bench`: arguments in, documents out.

mod live;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use indicatif::ProgressBar;
use tilewright_bench::{
    Asked, BenchError, Comparison, Event, Filter, Import, Report, Run, RunFolder, Samples, Setting, Suite,
    eval_results, import, leaderboard, plan,
};
use tilewright_contract::VerdictKind;
use tilewright_replay::cuda;
use tilewright_verify::{Device, Mode, Options, arch_name};

use super::session::{self, Session};
use super::usage;
use crate::args::bench::{
    BenchArgs, BenchCommand, BenchCompareArgs, BenchExportArgs, BenchImportArgs, BenchReportArgs, BenchRunArgs,
};
use crate::{output, render};

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        BenchCommand::Run(args) => verify(args),
        BenchCommand::Report(args) => report(args),
        BenchCommand::Compare(args) => compare(args),
        BenchCommand::Import(args) => take(args),
        BenchCommand::Export(args) => export(args),
    }
}

fn verify(args: &BenchRunArgs) -> anyhow::Result<ExitCode> {
    let (gpus, asked) = session::gpus(&args.devices, &args.run)?;
    let mut options = session::options(&asked, &args.profiles, Mode::Replay, None)?;
    let is_timed = !args.untimed && options.device != Device::Cpu;
    options.timing = is_timed.then(|| args.baselines.iter().map(|&baseline| baseline.kind()).collect());
    let suite = Suite::read(args.suite.as_std_path()).map_err(bench)?;
    let suite = suite.filtered(&filter(args)).map_err(bench)?;
    let given =
        args.samples.as_ref().map(|path| Samples::read(path.as_std_path(), &suite)).transpose().map_err(bench)?;
    if let Some(strangers) = given.as_ref().map(|samples| samples.strangers).filter(|&count| count > 0) {
        eprintln!("tilewright: {strangers} samples are of no problem that is asked for");
    }
    let out = args.out.as_std_path();
    let mut folder = RunFolder::open(out).map_err(bench)?;
    if let (None, Some(seed)) = (args.run.seed, folder.seed()) {
        options.seed = seed;
    }
    let Session { verifier, stage, torch, triton } = session::start(options.clone(), &args.common)?;
    let verifier = verifier.with_gpus(&gpus);
    let setting = setting(&options, torch, triton)?;
    for other in &args.joins {
        let joined = folder.join(other.as_std_path(), &setting).map_err(bench)?;
        eprintln!("tilewright: {joined} verdicts taken over from {other}");
    }
    let (samples, from) = match (given, &args.samples, &args.author) {
        (Some(samples), Some(path), _) => (samples, path.to_string()),
        (_, _, Some(author)) => {
            folder.begin(&setting, &suite, author, args.each).map_err(bench)?;
            (live::samples(args, author, &suite, &options, stage)?, author.clone())
        }
        _ => return Err(usage("give a folder or a table of samples, or --author")),
    };
    let (manifest, work) = plan(out, setting, &suite, &samples, &from).map_err(bench)?;
    let jobs = session::candidates_at_once(&verifier, args.jobs);
    let mut told = Told::new()?;
    folder.run(&verifier, manifest, &work, jobs, !args.no_controls, |event| told.hear(event)).map_err(bench)?;
    told.bar.finish_and_clear();
    let run = Run::read(&[out.to_owned()]).map_err(bench)?;
    let report = Report::new(&run, &Asked::default()).map_err(bench)?;
    if args.common.json {
        output::json(&report)?;
    } else {
        output::line(render::bench_report(&report))?;
    }
    // The same command tries these again.
    let faults = report.taxonomy.iter().filter(|kind| kind.verdict == VerdictKind::Infrastructure.name());
    let open = report.counts.missing + faults.map(|kind| u64::from(kind.count)).sum::<u64>();
    Ok(if open > 0 { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

fn filter(args: &BenchRunArgs) -> Filter {
    Filter {
        texts: args.filters.clone(),
        levels: args.levels.clone(),
        numbers: args.numbers.clone(),
        shard: args.shard,
    }
}

/// How a run comes along: a line that stays in its place on a terminal, and a new one now and then elsewhere.
struct Told {
    bar: ProgressBar,
    start: Instant,
    last: Instant,
}

impl Told {
    const EVERY: Duration = Duration::from_secs(30);

    fn new() -> anyhow::Result<Self> {
        Ok(Self { bar: session::progress(0)?, start: Instant::now(), last: Instant::now() })
    }

    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Start { controls, verdicts, known } => {
                self.bar.set_length((controls + verdicts) as u64);
                if known > 0 {
                    let text = format!("tilewright: {known} texts have a verdict, {verdicts} are to be verified");
                    self.bar.suspend(|| eprintln!("{text}"));
                }
            }
            Event::Controls(certificate) => self.step(format!("controls {}", certificate.problem.path)),
            Event::Verdict(verdict) => self.step(format!("{} {}", verdict.verdict.name(), verdict.candidate.path)),
        }
    }

    fn step(&mut self, message: String) {
        self.bar.set_message(message);
        self.bar.inc(1);
        if !self.bar.is_hidden() || self.last.elapsed() < Self::EVERY {
            return;
        }
        self.last = Instant::now();
        let (done, of) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let rate = done as f64 / self.start.elapsed().as_secs_f64();
        let left = of.saturating_sub(done) as f64 / rate;
        eprintln!("tilewright: {done} of {of}, {rate:.2} a second, about {:.0} min left", (left / 60.0).ceil());
    }
}

fn setting(options: &Options, torch: String, triton: String) -> anyhow::Result<Setting> {
    let device = match options.device {
        Device::Cpu => "emulator".to_owned(),
        Device::Cuda(ordinal) => {
            let devices = cuda::devices().map_err(|why| anyhow::anyhow!("{why}"))?;
            devices.get(ordinal).map(|info| info.name.clone()).unwrap_or_default()
        }
    };
    let baselines = options.timing.iter().flatten();
    Ok(Setting {
        tilewright: env!("CARGO_PKG_VERSION").into(),
        torch,
        triton,
        target: options.device.to_string(),
        device,
        arch: arch_name(&options.target),
        trust: "replay".into(),
        profiles: session::profile_names(options),
        baselines: baselines.map(|baseline| baseline.name().to_owned()).collect(),
        trials: options.trials,
        timeout: options.timeout.as_secs_f64(),
        seed: options.seed,
    })
}

fn paths(runs: &[Utf8PathBuf]) -> Vec<PathBuf> {
    runs.iter().map(|run| run.as_std_path().to_owned()).collect()
}

fn report(args: &BenchReportArgs) -> anyhow::Result<ExitCode> {
    let run = Run::read(&paths(&args.runs)).map_err(bench)?;
    let report = Report::new(&run, &Asked { ks: args.k.clone(), ps: args.p.clone() }).map_err(bench)?;
    if let Some(path) = &args.html {
        std::fs::write(path, report.html()?).map_err(|error| usage(format!("--html {path}: {error}")))?;
    }
    if args.json {
        output::json(&report)?;
    } else {
        output::line(render::bench_report(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(args: &BenchCompareArgs) -> anyhow::Result<ExitCode> {
    let read = |path: &Utf8PathBuf| Run::read(&[path.as_std_path().to_owned()]).map_err(bench);
    let comparison = Comparison::new(&read(&args.a)?, &read(&args.b)?, &args.p, args.anyway).map_err(bench)?;
    if args.json {
        output::json(&comparison)?;
    } else {
        output::line(render::bench_comparison(&comparison))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn take(args: &BenchImportArgs) -> anyhow::Result<ExitCode> {
    let suite = args.suite.as_ref().map(|path| Suite::read(path.as_std_path())).transpose().map_err(bench)?;
    let stem = args.baseline.as_ref().and_then(|path| path.file_stem()).unwrap_or_default();
    let from = Import {
        results: args.results.as_std_path(),
        level: args.level,
        baseline: args.baseline.as_ref().map(|path| Path::new(path.as_str())),
        baseline_name: stem,
        suite: suite.as_ref(),
    };
    let count = import(&from, args.out.as_std_path()).map_err(bench)?;
    eprintln!("tilewright: {count} results written to {}", args.out);
    Ok(ExitCode::SUCCESS)
}

fn export(args: &BenchExportArgs) -> anyhow::Result<ExitCode> {
    if let Some(level) = args.eval_results {
        let run = Run::read(&paths(&args.runs)).map_err(bench)?;
        let (results, left_out) = eval_results(&run, level).map_err(bench)?;
        if left_out > 0 {
            eprintln!(
                "tilewright: {left_out} samples without a verdict of their own are left out: the format has no place for them"
            );
        }
        output::json(&results)?;
    } else {
        let read = |path: &PathBuf| Report::new(&Run::read(std::slice::from_ref(path))?, &Asked::default());
        let reports = paths(&args.runs).iter().map(read).collect::<Result<Vec<_>, _>>().map_err(bench)?;
        output::text(leaderboard(&reports).map_err(bench)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn bench(error: BenchError) -> anyhow::Error {
    match error {
        BenchError::Usage(message) => usage(message),
        other => other.into(),
    }
}
