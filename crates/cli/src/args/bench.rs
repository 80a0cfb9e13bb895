//! `tilewright bench`.

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

use super::{BaselineArg, Common, ModelArgs, RunArgs};

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Verify every sample of a suite, and keep the verdicts
    ///
    /// Goes on where it was stopped or killed; a text that has a verdict is not verified again. Exit status: 0 every sample
    /// has a verdict, 2 usage, 3 a fault of this machine or an author without an answer kept it from that: run it again.
    Run(Box<BenchRunArgs>),
    /// Say what a run means: pass@k, fast_p and speedups with intervals
    ///
    /// Several logs of one run, as of its parts on several machines, make one report. Also of a run that is not finished.
    /// Exit status: 0 reported, 2 usage.
    Report(BenchReportArgs),
    /// Say what changed between two runs over the same problems
    ///
    /// Refuses runs that differ in device, software or precision profile, and says in what. Exit status: 0 compared, 2 usage
    /// or not comparable.
    Compare(BenchCompareArgs),
    /// Make a run of KernelBench's eval_results.json
    Import(BenchImportArgs),
    /// Write KernelBench's eval_results.json, or a table for a leaderboard
    Export(BenchExportArgs),
}

#[derive(Debug, Args)]
#[command(after_long_help = RUN_HELP)]
pub(crate) struct BenchRunArgs {
    /// Problems: see below
    pub(crate) suite: Utf8PathBuf,
    /// Samples: see below
    #[arg(required_unless_present = "author")]
    pub(crate) samples: Option<Utf8PathBuf>,
    /// Have samples written instead: offline (kernels by rule, without a model), a name in tilewright.toml, or replay:PATH
    #[arg(long, value_name = "NAME", conflicts_with = "samples")]
    pub(crate) author: Option<String>,
    /// Samples of each problem that an author writes, none of which knows of the others
    #[arg(long, visible_alias = "n", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000), requires = "author")]
    pub(crate) each: u32,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Folder with prompts of your own, in place of those of the same name: see docs/guides/generate.md
    #[arg(long, value_name = "DIR", requires = "author")]
    pub(crate) prompts: Option<Utf8PathBuf>,
    /// Folder of the run: run.jsonl, and texts that came from tables
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Utf8PathBuf,
    /// Only problems with this in their name; repeat for more
    #[arg(long = "filter", value_name = "TEXT")]
    pub(crate) filters: Vec<String>,
    /// Only problems of these levels, as 1,2
    #[arg(long = "level", value_name = "N", value_delimiter = ',')]
    pub(crate) levels: Vec<u32>,
    /// Only problems with these numbers, as 1-20,33
    #[arg(long = "numbers", value_name = "LIST", value_delimiter = ',', value_parser = parse_range)]
    pub(crate) numbers: Vec<(u32, u32)>,
    /// Only the I-th of N parts of the problems; report the parts together
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    pub(crate) shard: Option<(u32, u32)>,
    /// Take over what another run under the same circumstances has found out; repeat for more
    #[arg(long = "join", value_name = "RUN")]
    pub(crate) joins: Vec<Utf8PathBuf>,
    /// Do not ask of each problem whether it tells right from wrong
    #[arg(long)]
    pub(crate) no_controls: bool,
    /// Candidates that are on their way at the same time [default: number of cores, and 3 for each GPU]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroU32>,
    /// GPUs of one kind that share the work, as 0,1 or cuda:0,cuda:1
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "target")]
    pub(crate) devices: Vec<String>,
    /// Precision profile, by name or as a TOML file; repeat for several, the first one decides
    #[arg(long = "profile", value_name = "NAME", default_value = "tilewright-1")]
    pub(crate) profiles: Vec<String>,
    /// Time accepted candidates against the reference run so; repeat for several. On a GPU only
    #[arg(long = "baseline", value_enum, value_name = "KIND", default_value = "eager")]
    pub(crate) baselines: Vec<BaselineArg>,
    /// Time nothing
    #[arg(long, conflicts_with = "baselines")]
    pub(crate) untimed: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

const RUN_HELP: &str = "\
A suite is
  a KernelBench checkout      level1/19_ReLU.py …, as it is
  a folder                    NAME/problem.py, or else every .py file in it
  a folder with labels.csv    the problems that it names
  a .jsonl or .parquet file   columns of KernelBench's data set (code, level, problem_id, name), of KernelBook (python_code,
                              entry_point, uuid) or of RL data (reward_model.ground_truth, extra_info)
Samples are
  a KernelBench run folder    level_1_problem_19_sample_0_kernel.py …
  a folder                    NAME/*.py but problem.py, or NAME.py and NAME__*.py
  a folder with labels.csv    its candidates
  a .jsonl or .parquet file   problem, or level and problem_id; sample_id; kernel, code or response (of which the last block
                              with ModelNew is taken)

Example:
  tilewright bench run problems problems --out runs/own && tilewright bench report runs/own --html own.html";

#[derive(Debug, Args)]
pub(crate) struct BenchReportArgs {
    /// Folders or logs of one run
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<Utf8PathBuf>,
    /// Write the report as one HTML page too
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<Utf8PathBuf>,
    /// k of pass@k, as 1,5,10 [default: 1, 2, 4, 8 … up to the number of samples]
    #[arg(short, long = "pass-at", value_name = "LIST", value_delimiter = ',')]
    pub(crate) k: Vec<u32>,
    /// p of fast_p
    #[arg(
        short,
        long = "faster-than",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "0,0.5,0.8,1,1.2,1.5,2"
    )]
    pub(crate) p: Vec<f64>,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchCompareArgs {
    /// Folder or log of the first run
    pub(crate) a: Utf8PathBuf,
    /// Folder or log of the second run
    pub(crate) b: Utf8PathBuf,
    /// Compare runs whose circumstances differ
    #[arg(long)]
    pub(crate) anyway: bool,
    /// p of fast_p
    #[arg(short, long = "faster-than", value_name = "LIST", value_delimiter = ',', default_value = "1,1.2")]
    pub(crate) p: Vec<f64>,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchImportArgs {
    /// KernelBench's runs/NAME/eval_results.json
    pub(crate) results: Utf8PathBuf,
    /// The level that it is about: the file does not say
    #[arg(long, value_name = "N")]
    pub(crate) level: u32,
    /// Folder of the new run
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Utf8PathBuf,
    /// KernelBench's results/timing/HARDWARE/baseline_….json, for speedups
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<Utf8PathBuf>,
    /// KernelBench checkout, so that problems without a result count too
    #[arg(long, value_name = "DIR")]
    pub(crate) suite: Option<Utf8PathBuf>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("format").required(true))]
pub(crate) struct BenchExportArgs {
    /// Folders or logs; of several, each is a run of its own in the table
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<Utf8PathBuf>,
    /// Print this level's results as KernelBench's eval_results.json
    #[arg(long, value_name = "LEVEL", group = "format")]
    pub(crate) eval_results: Option<u32>,
    /// Print a table: one line for each run, precision profile, group of problems and baseline
    #[arg(long, group = "format")]
    pub(crate) csv: bool,
}

fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let wrong = |_| format!("{text:?} is no range: give 7 or 1-20");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok((first.trim().parse().map_err(wrong)?, last.trim().parse().map_err(wrong)?))
}

fn parse_shard(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    parts.filter(|&(part, of)| part >= 1 && part <= of).ok_or_else(|| format!("{text:?} is no part: give 1/4 to 4/4"))
}
