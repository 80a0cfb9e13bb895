use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand, ValueEnum};
use tilewright_contract::BaselineKind;

use crate::commands;
use crate::output::OutputError;

pub(crate) mod bench;
mod generate;

pub(crate) use generate::{
    AskArgs, AuthorArgs, BudgetArgs, FeedbackArg, GenerateArgs, HardwareArg, ModelArgs, ReplArgs, SearchArgs,
    SelectArg, TreeArgs, UntilArg, WindowArg,
};

/// From a PyTorch module to a Triton kernel you can trust.
#[derive(Debug, Parser)]
#[command(name = "tilewright", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify a candidate against a problem, end to end
    ///
    /// Exit status: 0 accepted, 1 not accepted, 2 usage, 3 not decided through no fault of the candidate.
    Verify(Box<VerifyArgs>),
    /// Write a Triton kernel for a PyTorch module: ask an author, verify, tell it what came out, keep the best
    ///
    /// Prints the best accepted file. Everything is kept in a folder; the same command with the same --out goes on after a
    /// kill. Exit status: 0 a candidate is accepted, 1 none is, 2 usage, 3 not decided through no fault of a candidate.
    Generate(Box<GenerateArgs>),
    /// Search for a fast kernel: a tree of candidates, each told what became of those before it
    ///
    /// In each of --max-rounds rounds, --node-num candidates are written, each after one that is worth it. Prints the best
    /// accepted file. Everything is kept in a folder; the same command with the same --out goes on after a kill. Exit status:
    /// 0 a candidate is accepted, 1 none is, 2 usage, 3 not decided through no fault of a candidate.
    Search(Box<SearchArgs>),
    /// Talk with an author: paste or load a module, watch it write and what becomes of it, ask for another, compare, save
    ///
    /// Reads standard input where that is no terminal. Exit status, of the last module: 0 a candidate is accepted, 1 none is,
    /// 2 usage, 3 not decided through no fault of a candidate.
    Repl(Box<ReplArgs>),
    /// Ask a language model a question as it stands on standard input, and print what it says as it says it
    ///
    /// Exit status: 0 an answer, 2 usage, 3 none.
    Ask(AskArgs),
    /// Draw what a run of generate or search has tried
    Tree(TreeArgs),
    /// List everything that a candidate's launches do wrong with memory, and what each launch costs
    ///
    /// Runs in the emulator, over the problem's cases and value regimes. Unlike `verify` it goes on after a mistake, and it
    /// does not judge values. Exit status: 0 clean, 1 hazards found, 2 usage, 3 not checked through no fault of the candidate.
    Sanitize(Box<SanitizeArgs>),
    /// Launch one Triton kernel of a file in the emulator, on arguments given here
    ///
    /// Needs no problem, no GPU and no torch code: the kernel is cut out of the file and compiled in a sandbox.
    /// Exit status: 0 clean, 1 hazards found or the kernel does not compile, 2 usage, 3 not run through no fault of its own.
    Run(Box<LaunchArgs>),
    /// Measure how often the evaluator is wrong, over labelled candidates
    ///
    /// Exit status: 0 every verdict is on the right side, 1 a wrong candidate is accepted or an honest one refused,
    /// 2 usage, 3 a candidate got no verdict.
    Audit(Box<AuditArgs>),
    /// Read candidates without running them, and say what refuses them or looks odd
    ///
    /// Needs neither Python nor a GPU. Evidence and advice do not fail a file; what a file really does is decided by
    /// `verify`. Exit status: 0 nothing refuses a file, 1 something does, 2 usage, 3 a file could not be read.
    Screen(ScreenArgs),
    /// Print the manual of a rule, or the list of all rules
    Rule(RuleArgs),
    /// Benchmarks: pass@k, fast_p and speedups over suites of problems, with intervals
    Bench(bench::BenchArgs),
    /// Check that a problem tells right from wrong: what knows no answer must fail
    ///
    /// Exit status, under the first profile: 0 ok, 1 degenerate or precision-blind, 2 usage, 3 the problem is defective.
    Controls(Box<ControlsArgs>),
    /// Say what this machine can do: sandbox layers, torch, Triton, GPUs
    Doctor(DoctorArgs),
    /// Print the JSON schema of a document
    Schema(SchemaArgs),
    /// Run programs on a GPU (started by `verify`, speaks a private protocol)
    #[command(hide = true)]
    Executor(ExecutorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Problem file in KernelBench format: Model, get_inputs, get_init_inputs
    #[arg(required_unless_present = "batch")]
    pub(crate) problem: Option<Utf8PathBuf>,
    /// Candidate file that defines ModelNew
    #[arg(required_unless_present = "batch", conflicts_with = "batch")]
    pub(crate) candidate: Option<Utf8PathBuf>,
    /// Verify every .py file under this folder, one JSON line each on stdout; with -, requests as they come on stdin
    ///
    /// A request is a line of JSON: {"candidate": FILE} or {"source": TEXT}, with "problem": FILE where it is not PROBLEM, and
    /// "id": anything. Each is answered by one line, {"id", "seconds", "verdict"} or {"id", "error"}, in the order in which
    /// they are decided. It ends when stdin does.
    #[arg(long, value_name = "DIR|-")]
    pub(crate) batch: Option<Utf8PathBuf>,
    /// Append the batch's JSON lines to this file too, and skip candidates that have a line in it
    #[arg(long, value_name = "FILE", requires = "batch")]
    pub(crate) resume: Option<Utf8PathBuf>,
    /// Candidates that are on their way at the same time in a batch [default: number of cores, and 3 for each GPU]
    #[arg(long, value_name = "N", requires = "batch")]
    pub(crate) jobs: Option<NonZeroU32>,
    /// GPUs of one kind that share a batch, as 0,1 or cuda:0,cuda:1
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "batch", conflicts_with = "target")]
    pub(crate) devices: Vec<String>,
    /// Problems that stay loaded with --batch -: each has its data in memory, and on a GPU a process of its own
    #[arg(long, value_name = "N", default_value = "16", requires = "batch")]
    pub(crate) problems: NonZeroU32,
    /// Precision profile, by name or as a TOML file; repeat for several, the first one decides
    #[arg(long = "profile", value_name = "NAME", default_value = "tilewright-1")]
    pub(crate) profiles: Vec<String>,
    /// replay: the candidate's Python never sees data; direct: it runs on real data in its own process
    #[arg(long, value_enum, default_value_t = ModeArg::Replay)]
    pub(crate) mode: ModeArg,
    /// Time accepted candidates against the reference run so; repeat for several. On a GPU only
    #[arg(long = "baseline", value_enum, value_name = "KIND", default_value = "eager")]
    pub(crate) baselines: Vec<BaselineArg>,
    /// Time nothing
    #[arg(long, conflicts_with = "baselines")]
    pub(crate) untimed: bool,
    /// Run an accepted candidate once more, unmodified, and hold what reaches the driver against its plan. On a GPU only
    #[arg(long)]
    pub(crate) confirm: bool,
    /// Run this file unmodified in the candidate's place
    #[arg(long, value_name = "FILE", requires = "confirm", hide = true)]
    pub(crate) confirm_as: Option<Utf8PathBuf>,
    /// Keep plan, TTIR, assembly, binary and oracle data in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "batch")]
    pub(crate) keep: Option<Utf8PathBuf>,
    /// Ask this endpoint of tilewright.toml about each accepted candidate: advice, unless the first profile says `decides`
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) opinion: Option<String>,
    /// File with the endpoints [default: $TILEWRIGHT_CONFIG, ./tilewright.toml, the one in the user's configuration folder]
    #[arg(long, value_name = "FILE", requires = "opinion")]
    pub(crate) config: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BaselineArg {
    /// The module as it is
    Eager,
    /// torch.compile with its defaults
    Compile,
    /// torch.compile that tries configurations of its kernels: minutes for a problem
    MaxAutotune,
}

impl BaselineArg {
    pub(crate) fn kind(self) -> BaselineKind {
        match self {
            Self::Eager => BaselineKind::Eager,
            Self::Compile => BaselineKind::Compile,
            Self::MaxAutotune => BaselineKind::MaxAutotune,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SanitizeArgs {
    /// Problem file in KernelBench format: Model, get_inputs, get_init_inputs
    pub(crate) problem: Utf8PathBuf,
    /// Candidate file that defines ModelNew
    pub(crate) candidate: Utf8PathBuf,
    /// Say where NaN and infinities in the outputs are made: several times slower
    #[arg(long)]
    pub(crate) nan: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_long_help = LAUNCH_HELP)]
pub(crate) struct LaunchArgs {
    /// File and name of a function with @triton.jit
    #[arg(value_name = "FILE.py::KERNEL")]
    pub(crate) kernel: String,
    /// Programs: up to three sizes, each an integer, the name of an integer argument, or cdiv(a, b)
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub(crate) grid: String,
    /// Arguments by the kernel's parameter names; see below
    #[arg(long, value_name = "NAME=VALUE", num_args = 1.., action = clap::ArgAction::Append)]
    pub(crate) args: Vec<String>,
    /// Tensors that are results: what is wrong with a value counts where it reaches one [default: all tensors]
    #[arg(long, value_name = "NAME", num_args = 1.., action = clap::ArgAction::Append)]
    pub(crate) out: Vec<String>,
    /// Write a tensor to a file after the launch; repeat for more
    #[arg(long, value_name = "NAME=FILE.npy", num_args = 1.., action = clap::ArgAction::Append)]
    pub(crate) save: Vec<String>,
    /// Seed of random fills
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Warps of a program [default: of the first autotune configuration, or 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) num_warps: Option<u32>,
    /// Pipeline stages [default: of the first autotune configuration, or 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) num_stages: Option<u32>,
    /// Where the launch runs: cpu, the emulator, and nothing else
    #[arg(long, default_value = "cpu")]
    pub(crate) target: String,
    /// What the kernel is compiled for: sm_80, sm_90, sm_100, gfx942 …
    #[arg(long, default_value = "sm_90")]
    pub(crate) arch: String,
    /// Start the last program first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Say where NaN and infinities in the results are made: several times slower
    #[arg(long)]
    pub(crate) nan: bool,
    /// Elements of each tensor to show
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) head: usize,
    /// Seconds for the compiler and for the launch, each
    #[arg(long, default_value_t = 120.0, value_parser = parse_seconds)]
    pub(crate) timeout: f64,
    /// Fail when a layer of the sandbox is not available on this kernel
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

const LAUNCH_HELP: &str = "\
Values:
  f32[1024,64]:randn      a tensor: dtype, shape, fill. An extent may be the name of an integer argument
  bf16[n]                 nothing has written it, as torch.empty
  @x.npy, bf16@x.npy      from a file, as it is or converted
  1024, 1e-5, true, none  a number as Triton passes it; 7:i64 gives it a type
  relu, tl.float16        a text or a dtype for a tl.constexpr
Fills:  uninit, zeros, ones, a number, arange[(start,step)], randn[(mean,std)], rand[(low,high)], randint(low,high)
Dtypes: bool, u8 to u64, i8 to i64, fp8e4m3fn, fp8e5m2, f16, bf16, f32, f64
Parameters that are not given take the value of the first autotune configuration, or their default.

Example:
  tilewright run add.py::add_kernel --grid 'cdiv(n,BLOCK)' \\
      --args x=f32[n]:randn y=f32[n]:randn out=f32[n] n=1000 BLOCK=256 --out out --save out=sum.npy";

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Folders with a labels.csv
    #[arg(value_name = "DIR", default_value = "corpus")]
    pub(crate) folders: Vec<Utf8PathBuf>,
    /// Only candidates with this in LABEL/ID or in their problem's path, or of this mechanism (as B23); repeat for more
    #[arg(long = "filter", value_name = "TEXT")]
    pub(crate) filters: Vec<String>,
    /// Keep the verdicts in this file as they come, and take over those that are in it already
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<Utf8PathBuf>,
    /// Confirm this share of the accepted candidates, 0 to 1, as `verify --confirm` does. On a GPU only
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    pub(crate) confirm: f64,
    /// Write the report as one HTML page too
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<Utf8PathBuf>,
    /// Candidates verified at the same time [default: number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroU32>,
    /// Precision profile, by name or as a TOML file; repeat for several, the first one decides
    #[arg(long = "profile", value_name = "NAME", default_value = "tilewright-1")]
    pub(crate) profiles: Vec<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ControlsArgs {
    /// Problem files in KernelBench format
    #[arg(value_name = "PROBLEM", required = true)]
    pub(crate) problems: Vec<Utf8PathBuf>,
    /// Precision profile, by name or as a TOML file; the first one gives the exit status [default: all]
    #[arg(long = "profile", value_name = "NAME")]
    pub(crate) profiles: Vec<String>,
    /// Print one Markdown table of all problems
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of the commands that verify.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// Where the launches run: cpu, or cuda:N
    #[arg(long, default_value = "cpu")]
    pub(crate) target: String,
    /// What kernels are compiled for: sm_80, sm_90, sm_100, gfx942 … [default: the device's, or sm_90 on a CPU]
    #[arg(long)]
    pub(crate) arch: Option<String>,
    /// Trials on the problem's own inputs, each under its own seed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) trials: u32,
    /// Seed of the secret seeds [default: random]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Seconds for each candidate
    #[arg(long, default_value_t = 120.0, value_parser = parse_seconds)]
    pub(crate) timeout: f64,
    /// Fail when a layer of the sandbox is not available on this kernel
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScreenArgs {
    /// Candidate files, folders of them, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<Utf8PathBuf>,
    /// Print one JSON document on stdout
    #[arg(long, conflicts_with = "sarif")]
    pub(crate) json: bool,
    /// Print a SARIF 2.1.0 log on stdout, for code hosts
    #[arg(long)]
    pub(crate) sarif: bool,
    /// Evidence fails a file too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Add advice for this kind of hardware
    #[arg(long = "for", value_enum, value_name = "HARDWARE")]
    pub(crate) hardware: Option<Hardware>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hardware {
    /// Ascend NPUs: what Triton-Ascend compiles, and what its generation pipelines let pass
    Ascend,
}

#[derive(Debug, Args)]
pub(crate) struct RuleArgs {
    /// Id of the rule, as findings name it [default: list all]
    pub(crate) id: Option<String>,
    /// Write the page of every rule and an index, as Markdown, into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "id")]
    pub(crate) pages: Option<Utf8PathBuf>,
}

/// Options that every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Python that has torch and triton
    #[arg(long, env = "TILEWRIGHT_PYTHON", value_name = "FILE")]
    pub(crate) python: Option<Utf8PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    pub(crate) document: Document,
}

#[derive(Debug, Args)]
pub(crate) struct ExecutorArgs {
    #[arg(long, default_value_t = 0)]
    pub(crate) device: usize,
    /// Print how pairs of views, JSON lines on stdin, would be copied
    #[arg(long)]
    pub(crate) copies: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Replay,
    Direct,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Document {
    Plan,
    Verdict,
    Profile,
    Report,
    Audit,
    BenchRun,
    BenchReport,
    BenchCompare,
    Controls,
    Screen,
    Sanitize,
    Run,
}

impl Cli {
    pub(crate) fn run(self) -> ExitCode {
        let outcome = match self.command {
            Command::Verify(args) => commands::verify::run(&args),
            Command::Generate(args) => commands::generate::run(&args),
            Command::Search(args) => commands::search::run(&args),
            Command::Repl(args) => commands::repl::run(&args),
            Command::Ask(args) => commands::ask::run(&args),
            Command::Tree(args) => commands::tree::run(&args),
            Command::Sanitize(args) => commands::sanitize::run(&args),
            Command::Run(args) => commands::run::run(&args),
            Command::Audit(args) => commands::audit::run(&args),
            Command::Screen(args) => commands::screen::run(&args),
            Command::Rule(args) => commands::rule::run(&args),
            Command::Bench(args) => commands::bench::run(&args),
            Command::Controls(args) => commands::controls::run(&args),
            Command::Doctor(args) => commands::doctor::run(&args),
            Command::Schema(args) => commands::schema::run(&args),
            Command::Executor(args) => commands::executor::run(&args),
        };
        outcome.unwrap_or_else(|error| {
            // A reader that has gone wants to hear nothing.
            if !error.downcast_ref::<OutputError>().is_some_and(OutputError::is_closed) {
                eprintln!("tilewright: {error:#}");
            }
            ExitCode::from(commands::exit_code(&error))
        })
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("give a share from 0 to 1".into()) }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .map(|duration| duration.as_secs_f64())
        .ok_or_else(|| "give a number of seconds above 0".into())
}
