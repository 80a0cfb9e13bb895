//! Options of the commands that write candidates.

use std::num::NonZeroU32;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, ValueEnum};
use tilewright_author::{Chat, Overrides};

use super::{BaselineArg, Common, RunArgs, parse_seconds};
use crate::commands::usage;

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Problem file in KernelBench format: Model, get_inputs, get_init_inputs
    pub(crate) problem: Utf8PathBuf,
    /// Conversations, none of which knows of the others: best of N
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) n: u32,
    /// Turns of each conversation: the first answer, then repairs and improvements by what the verifier says
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Print what happens on stdout, one JSON line an event; the last one is the report, with the best file
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Problem file in KernelBench format: Model, get_inputs, get_init_inputs
    pub(crate) problem: Utf8PathBuf,
    /// Candidates of each round
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) node_num: u32,
    /// Rounds, and with them the depth of the tree
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_rounds: u32,
    /// Which candidates get children
    #[arg(long, value_enum, value_name = "RULE", default_value_t = SelectArg::Ucb)]
    pub(crate) select: SelectArg,
    /// How much ucb favours candidates that have few children
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.5, allow_negative_numbers = true, value_parser = parse_weight)]
    pub(crate) explore: f64,
    /// Which --window turns of those that led to a candidate its child is told
    #[arg(long, value_enum, value_name = "RULE", default_value_t = WindowArg::Best)]
    pub(crate) context: WindowArg,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ReplArgs {
    /// Problem file to begin with
    pub(crate) problem: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Python that has torch and triton
    #[arg(long, env = "TILEWRIGHT_PYTHON", value_name = "FILE")]
    pub(crate) python: Option<Utf8PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SelectArg {
    /// The best ones
    Reward,
    /// Good ones and seldom tried ones: an upper confidence bound
    Ucb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WindowArg {
    /// The consecutive turns with the largest sum of rewards
    Best,
    /// The last turns
    Last,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub(crate) run: Utf8PathBuf,
    /// Write a picture: a circle for each candidate, its colour the verdict, its size the speedup
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<Utf8PathBuf>,
    /// Write one page that needs no other file: the picture, and for each candidate its source, what it changed, its verdict
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<Utf8PathBuf>,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// A name in tilewright.toml, or replay:PATH
    #[arg(long, value_name = "NAME")]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Seed, for models that take one
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Where a model is described, and what is set in place of that.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// File with the endpoints [default: $TILEWRIGHT_CONFIG, ./tilewright.toml, the one in the user's configuration folder]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,
    /// How freely a model chooses, in place of the configuration's
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_temperature)]
    temperature: Option<f64>,
    /// Share of the likeliest tokens that a model chooses from, in place of the configuration's
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = parse_share)]
    top_p: Option<f64>,
    /// Tokens of one answer, in place of the configuration's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    answer_tokens: Option<u32>,
}

impl ModelArgs {
    /// The model that `name` means.
    pub(crate) fn chat(&self, name: &str) -> anyhow::Result<Box<dyn Chat>> {
        let overrides = Overrides { temperature: self.temperature, top_p: self.top_p, max_tokens: self.answer_tokens };
        tilewright_author::chat(name, self.config.as_deref().map(Utf8Path::as_std_path), overrides)
            .map_err(|error| usage(format!("--author {name}: {error}")))
    }
}

/// Who writes, how it is told what came out, and how that is verified.
#[derive(Debug, Clone, Args)]
pub(crate) struct AuthorArgs {
    /// offline: kernels by rule, without a model; a name in tilewright.toml; or replay:PATH, a recording or an earlier run
    #[arg(long, value_name = "NAME", default_value = tilewright_author::OFFLINE)]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Hardware that the kernels are for in the end: a model is told its constraints
    #[arg(long = "for", value_enum, value_name = "HARDWARE", default_value_t = HardwareArg::Cuda)]
    pub(crate) hardware: HardwareArg,
    /// How a model is told a verdict
    #[arg(long, value_enum, value_name = "STYLE", default_value_t = FeedbackArg::Coach)]
    pub(crate) feedback: FeedbackArg,
    /// Turns that a model is shown whole; older ones in a line each
    #[arg(long, alias = "window-size", value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) window: u32,
    /// Folder with prompts of your own, in place of those of the same name: see docs/guides/generate.md
    #[arg(long, value_name = "DIR")]
    pub(crate) prompts: Option<Utf8PathBuf>,
    /// Precision profile, by name or as a TOML file; repeat for several, the first one decides
    #[arg(long = "profile", value_name = "NAME", default_value = "tilewright-1")]
    pub(crate) profiles: Vec<String>,
    /// Time accepted candidates against the reference run so; repeat for several, the first one counts. On a GPU only
    #[arg(long = "baseline", value_enum, value_name = "KIND", default_value = "eager")]
    pub(crate) baselines: Vec<BaselineArg>,
    /// Time nothing
    #[arg(long, conflicts_with = "baselines")]
    pub(crate) untimed: bool,
    /// Candidates written and verified at the same time [default: number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroU32>,
    /// Folder of the run; one that exists goes on [default: generated/PROBLEM, with a number if there is one]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<Utf8PathBuf>,
}

/// What ends a run before its plan does.
#[derive(Debug, Default, Args)]
pub(crate) struct BudgetArgs {
    /// accepted: the first accepted candidate; 1.5x: one that is as many times faster than the baseline; all: nothing
    /// [default: all; of generate on a CPU: accepted]
    #[arg(long, value_name = "RULE")]
    pub(crate) until: Option<UntilArg>,
    /// Tokens of questions and answers together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Candidates verified
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_verdicts: Option<u64>,
    /// Seconds of this command; what is under way is finished
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = parse_seconds)]
    pub(crate) max_time: Option<f64>,
    /// Money, in the currency of the endpoint's prices
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true, value_parser = parse_amount)]
    pub(crate) max_cost: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HardwareArg {
    /// NVIDIA GPUs
    Cuda,
    /// Ascend NPUs, through Triton-Ascend; verified on a CPU or a GPU, and screened for what Triton-Ascend refuses
    Ascend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeedbackArg {
    /// The whole verdict
    Json,
    /// Verdict, reasons, figures
    Compact,
    /// RESULT, WHY, PERFORMANCE, PER-KERNEL TIME, NEXT STEP
    Coach,
    /// One line
    Line,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum UntilArg {
    Accepted,
    Speedup(f64),
    All,
}

/// A number that `fits`, or what is wanted.
fn parse_number(text: &str, fits: impl Fn(f64) -> bool, wanted: &str) -> Result<f64, String> {
    text.parse().ok().filter(|&number| fits(number)).ok_or_else(|| wanted.into())
}

fn parse_temperature(text: &str) -> Result<f64, String> {
    parse_number(text, |number| (0.0..=100.0).contains(&number), "give 0, for the likeliest token each time, or more")
}

fn parse_share(text: &str) -> Result<f64, String> {
    parse_number(text, |number| number > 0.0 && number <= 1.0, "give a share above 0 and at most 1")
}

fn parse_amount(text: &str) -> Result<f64, String> {
    parse_number(text, |number| number > 0.0 && number.is_finite(), "give an amount above 0")
}

fn parse_weight(text: &str) -> Result<f64, String> {
    parse_number(text, |number| (0.0..=1e6).contains(&number), "give 0 or more")
}

impl FromStr for UntilArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "accepted" => return Ok(Self::Accepted),
            "all" => return Ok(Self::All),
            _ => {}
        }
        let factor = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
        match factor.filter(|factor| factor.is_finite() && *factor > 0.0) {
            Some(factor) => Ok(Self::Speedup(factor)),
            None => Err("give accepted, all, or a speedup such as 1.5x".into()),
        }
    }
}
