//! From arguments to a run that is ready to go.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use tilewright_author::{Author, Conversation, Goal, Hardware, Model, OFFLINE, Offline, Style};
use tilewright_contract::CandidateId;
use tilewright_search::{
    Event, Folder, FolderError, Limits, Plan, Report, Run, RunError, Settings, Tree, Until, Verifying,
};
use tilewright_stage::Stage;
use tilewright_verify::{Device, LogError, Mode, Options, Problem, Verifier, digest};

use super::Live;
use crate::args::{AuthorArgs, BudgetArgs, Common, FeedbackArg, HardwareArg, RunArgs, UntilArg};
use crate::commands::{session, usage};

/// A run that Ctrl-C ends with the program.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// What commands that write candidates are asked for.
pub(crate) struct Setup<'a> {
    pub(crate) problem: &'a Utf8Path,
    pub(crate) author: &'a AuthorArgs,
    pub(crate) budget: &'a BudgetArgs,
    pub(crate) run: &'a RunArgs,
    pub(crate) common: &'a Common,
    /// Turns that a model is shown whole.
    pub(crate) window: u32,
    /// Candidates that an author who lists them is asked for.
    pub(crate) wanted: u32,
    /// Whether to go on after the first accepted candidate where nothing is timed, unless told otherwise.
    pub(crate) thorough: bool,
}

/// The processes that verify and teach, for any number of runs.
pub(crate) struct Shop {
    verifier: Verifier,
    stage: Stage,
    options: Options,
}

/// All that a run needs. The folder is locked, and the processes are up.
pub(crate) struct Prepared<'s> {
    pub(crate) out: Utf8PathBuf,
    pub(crate) problem_path: Utf8PathBuf,
    text: String,
    author: Box<dyn Author>,
    shop: &'s Shop,
    problem: Problem,
    settings: Settings,
    folder: Folder,
    pub(crate) tree: Tree,
    limits: Limits,
    jobs: usize,
}

impl Shop {
    /// Starts the processes; seconds.
    pub(crate) fn open(options: Options, common: &Common) -> anyhow::Result<Self> {
        let session::Session { verifier, stage, .. } = session::start(options.clone(), common)?;
        Ok(Self { verifier, stage, options })
    }
}

/// Ctrl-C, or a request to end: `pressed` tells whether the program is to end at once, which loses nothing, and what to say.
pub(crate) fn on_interrupt(pressed: impl Fn() -> (bool, String) + Send + 'static) -> anyhow::Result<()> {
    ctrlc::set_handler(move || {
        let (end, told) = pressed();
        eprintln!("\ntilewright: {told}");
        if end {
            // As a shell tells of a program that a signal has ended.
            std::process::exit(130);
        }
    })
    .context("failed to listen for Ctrl-C")
}

/// What is known of a run before any process is started: mistakes of the user show at once.
struct Opened {
    text: String,
    model: Option<Box<dyn Author>>,
    out: Utf8PathBuf,
    settings: Settings,
    folder: Folder,
    tree: Tree,
}

impl Setup<'_> {
    /// A run in processes of its own, which start now. `watch` hears what happens; without it, standard error does.
    pub(crate) fn run(
        &self,
        plan: Plan,
        watch: Option<&(dyn Fn(Event<'_>) + Sync)>,
    ) -> anyhow::Result<(Tree, Report, Utf8PathBuf)> {
        let mut options = self.options()?;
        let opened = self.open(&options)?;
        options.seed = opened.settings.seed;
        let told =
            format!("interrupted: everything so far is in {0}; --out {0} goes on by the same command", opened.out);
        on_interrupt(move || (true, told.clone()))?;
        let shop = Shop::open(options, self.common)?;
        let mut prepared = self.prepared(opened, &shop);
        let report = match watch {
            Some(watch) => prepared.go(plan, watch, &GOES_ON)?,
            None => {
                let live = Live::new(&prepared.tree)?;
                let report = prepared.go(plan, &|event| live.hear(event), &GOES_ON);
                live.end();
                report?
            }
        };
        let (tree, out) = (std::mem::take(&mut prepared.tree), prepared.out.clone());
        if tree.rounds.is_empty() {
            prepared.discard()?;
        }
        Ok((tree, report, out))
    }

    /// A new run in processes that are there.
    pub(crate) fn prepare<'s>(&self, shop: &'s Shop) -> anyhow::Result<Prepared<'s>> {
        Ok(self.prepared(self.open(&shop.options)?, shop))
    }

    pub(crate) fn options(&self) -> anyhow::Result<Options> {
        let mut options = session::options(self.run, &self.author.profiles, Mode::Replay, None)?;
        let baselines = self.author.baselines.iter().map(|&kind| kind.kind());
        options.timing = (!self.author.untimed).then(|| baselines.collect());
        if matches!(self.budget.until, Some(UntilArg::Speedup(_)))
            && (options.device == Device::Cpu || self.author.untimed)
        {
            return Err(usage(
                "--until with a speedup waits for a timing, which takes a GPU: give --target cuda:N and not --untimed",
            ));
        }
        Ok(options)
    }

    fn open(&self, options: &Options) -> anyhow::Result<Opened> {
        let bytes = session::read_file(self.problem, "problem")?;
        let text = String::from_utf8(bytes).map_err(|_| usage(format!("{} is not UTF-8", self.problem)))?;
        let model = self.model()?;
        let mut settings = self.settings(&text, options);
        let out = self.out()?;
        let (folder, tree) = Folder::open(out.as_std_path(), &mut settings, text.as_bytes()).map_err(folder_error)?;
        Ok(Opened { text, model, out, settings, folder, tree })
    }

    fn prepared<'s>(&self, opened: Opened, shop: &'s Shop) -> Prepared<'s> {
        let Opened { text, model, out, settings, folder, tree } = opened;
        Prepared {
            out,
            problem_path: self.problem.to_owned(),
            text,
            author: model.unwrap_or_else(|| Box::new(Offline::new(shop.stage.clone(), self.wanted))),
            shop,
            problem: shop.verifier.load(self.problem.as_std_path()),
            settings,
            folder,
            tree,
            limits: self.limits(shop.options.device),
            jobs: session::jobs(self.author.jobs),
        }
    }

    /// The language model that is asked; none for the offline author.
    fn model(&self) -> anyhow::Result<Option<Box<dyn Author>>> {
        let name = &self.author.author;
        if name == OFFLINE {
            return Ok(None);
        }
        if let Some(folder) = self.author.prompts.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(usage(format!("--prompts {folder}: there is no such folder")));
        }
        let chat = self.author.model.chat(name)?;
        let conversation = Conversation {
            style: match self.author.feedback {
                FeedbackArg::Json => Style::Json,
                FeedbackArg::Compact => Style::Compact,
                FeedbackArg::Coach => Style::Coach,
                FeedbackArg::Line => Style::Line,
            },
            window: self.window as usize,
            prompts: self.author.prompts.as_ref().map(|folder| folder.as_std_path().to_owned()),
        };
        Ok(Some(Box::new(Model::new(chat, conversation))))
    }

    fn settings(&self, text: &str, options: &Options) -> Settings {
        let hardware = match self.author.hardware {
            HardwareArg::Cuda => Hardware::Cuda,
            HardwareArg::Ascend => Hardware::Ascend,
        };
        Settings {
            schema: Settings::SCHEMA.into(),
            problem: CandidateId { path: self.problem.to_string(), digest: digest(text.as_bytes()) },
            author: self.author.author.clone(),
            goal: Goal { hardware, target: options.target.clone(), device: options.device.to_string() },
            profiles: session::profile_names(options),
            trials: options.trials,
            seed: options.seed,
        }
    }

    /// The asked folder, or the first that is free.
    fn out(&self) -> anyhow::Result<Utf8PathBuf> {
        if let Some(out) = &self.author.out {
            return Ok(out.clone());
        }
        let stem = self.problem.file_stem().unwrap_or("problem");
        let names = std::iter::once(stem.to_owned()).chain((2..).map(|number| format!("{stem}-{number}")));
        let mut free = names.map(|name| Utf8Path::new("generated").join(name)).filter(|path| !path.exists());
        free.next().context("failed to find a name for the run's folder")
    }

    fn limits(&self, device: Device) -> Limits {
        let until = match (self.budget.until, device) {
            (Some(UntilArg::Accepted), _) => Until::Accepted,
            (Some(UntilArg::Speedup(factor)), _) => Until::Speedup(factor),
            (Some(UntilArg::All), _) | (None, Device::Cuda(_)) => Until::All,
            (None, Device::Cpu) if self.thorough => Until::All,
            (None, Device::Cpu) => Until::Accepted,
        };
        Limits {
            until,
            tokens: self.budget.max_tokens,
            verdicts: self.budget.max_verdicts,
            time: self.budget.max_time.map(Duration::from_secs_f64),
            money: self.budget.max_cost,
        }
    }
}

impl Prepared<'_> {
    /// Whether the author hears what became of his candidates.
    pub(crate) fn learns(&self) -> bool {
        self.author.learns()
    }

    /// Removes the folder of a run in which nothing was asked.
    pub(crate) fn discard(self) -> anyhow::Result<()> {
        self.folder.discard().map_err(folder_error)
    }

    /// Goes on until the plan is done or a rule ends it.
    /// Setting `interrupted` breaks answers in the making off.
    pub(crate) fn go(
        &mut self,
        plan: Plan,
        watch: &(dyn Fn(Event<'_>) + Sync),
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Report> {
        let checker = Verifying {
            verifier: &self.shop.verifier,
            problem: &self.problem,
            hardware: self.settings.goal.hardware,
            on_gpu: self.shop.options.device != Device::Cpu,
        };
        let run = Run {
            problem: Path::new(self.problem_path.as_str()),
            text: &self.text,
            author: self.author.as_ref(),
            checker: &checker,
            settings: &self.settings,
            plan,
            limits: self.limits,
            jobs: self.jobs,
            watch,
            interrupted,
        };
        let (tree, report) = run
            .go(&mut self.folder, std::mem::take(&mut self.tree))
            .map_err(|RunError::Folder(error)| folder_error(error))?;
        self.tree = tree;
        Ok(report)
    }
}

/// Errors that another place does not have.
fn is_of_the_place(kind: ErrorKind) -> bool {
    use ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(kind, NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem)
}

fn folder_error(error: FolderError) -> anyhow::Error {
    match error {
        FolderError::Io { what: "make", error: ref cause, .. } | FolderError::Log(LogError::Io(_, ref cause))
            if is_of_the_place(cause.kind()) =>
        {
            usage(format!("{error}: give another folder by --out"))
        }
        FolderError::Io { .. } | FolderError::Log(LogError::Io(..)) => error.into(),
        other => usage(other.to_string()),
    }
}
