//! A conversation at the terminal: a module in, candidates out, each as it is written and verified.

mod command;
mod stop;
mod table;
mod watch;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use similar::TextDiff;
use tilewright_author::OFFLINE;
use tilewright_search::{Node, Plan, Stop};

use super::generate::{Prepared, Setup, Shop, on_interrupt};
use super::usage;
use crate::args::{AuthorArgs, BudgetArgs, Common, ReplArgs};
use crate::{output, render};
use command::{Command, HELP};
use stop::Stopper;

/// Candidates that an author who lists them is asked for.
const WANTED: u32 = 32;

pub(crate) fn run(args: &ReplArgs) -> anyhow::Result<ExitCode> {
    let common = Common { json: false, python: args.python.clone() };
    let mut author = args.author.clone();
    let budget = BudgetArgs::default();
    let options = setup(args, &author, &common, &budget, Utf8Path::new("")).options()?;
    known(&author)?;
    if let Some(problem) = &args.problem {
        super::session::check_file(problem, "problem")?;
    }
    eprintln!("starting …");
    let shop = Shop::open(options, &common)?;
    let stop: &'static Stopper = Box::leak(Box::default());
    on_interrupt(move || stop.pressed())?;
    let mut repl =
        Repl { args, common: &common, budget: &budget, shop: &shop, stop, work: None, last: ExitCode::SUCCESS };
    let mut editor = DefaultEditor::new().context("failed to set the line editor up")?;
    let mut next = args.problem.clone().map(Command::Load);
    if std::io::stdin().is_terminal() {
        eprintln!(
            "Paste a module with Model, get_inputs and get_init_inputs and end it with a line that holds a dot, or /load FILE. /help tells more."
        );
    }
    loop {
        let command = match next.take() {
            Some(command) => command,
            None => match read(&mut editor)? {
                Some(command) => command,
                None => return Ok(repl.last),
            },
        };
        if matches!(command, Command::Quit) {
            return Ok(repl.last);
        }
        // A mistake ends a command, not the conversation.
        if let Err(error) = repl.follow(command, &mut author) {
            eprintln!("{error:#}");
            repl.last = ExitCode::from(super::exit_code(&error));
        }
    }
}

fn setup<'a>(
    args: &'a ReplArgs,
    author: &'a AuthorArgs,
    common: &'a Common,
    budget: &'a BudgetArgs,
    problem: &'a Utf8Path,
) -> Setup<'a> {
    Setup { problem, author, budget, run: &args.run, common, window: author.window, wanted: WANTED, thorough: true }
}

/// The next command; none at the end of the input. Text that is no command begins a module.
fn read(editor: &mut DefaultEditor) -> anyhow::Result<Option<Command>> {
    let mut module = String::new();
    loop {
        let prompt = if module.is_empty() { "tilewright> " } else { "... " };
        match editor.readline(prompt) {
            Ok(line) if module.is_empty() && line.trim().is_empty() => {}
            Ok(line) if module.is_empty() && line.starts_with('/') => {
                let _ = editor.add_history_entry(&line);
                match Command::parse(&line) {
                    Ok(command) => return Ok(Some(command)),
                    Err(why) => eprintln!("{why}"),
                }
            }
            Ok(line) if module.is_empty() && matches!(line.trim(), "exit" | "quit") => return Ok(Some(Command::Quit)),
            Ok(line) if module.is_empty() && matches!(line.trim(), "help" | "?") => return Ok(Some(Command::Help)),
            Ok(line) => {
                module += &line;
                module.push('\n');
                if let Some(whole) = ended(&module) {
                    return Ok(Some(Command::Module(whole)));
                }
            }
            Err(ReadlineError::Interrupted) => module.clear(),
            Err(ReadlineError::Eof) if module.is_empty() => return Ok(None),
            Err(ReadlineError::Eof) => return Ok(Some(Command::Module(module))),
            Err(error) => return Err(error).context("failed to read a line"),
        }
    }
}

/// A module up to the line that holds a dot, if that is the last one. Terminals give what is pasted as one line with line breaks in it.
fn ended(module: &str) -> Option<String> {
    let text = module.trim_end();
    let rest = text.strip_suffix('.')?;
    (rest.is_empty() || rest.ends_with(['\n', '\r'])).then(|| rest.replace("\r\n", "\n").replace('\r', "\n"))
}

struct Repl<'a> {
    args: &'a ReplArgs,
    common: &'a Common,
    budget: &'a BudgetArgs,
    shop: &'a Shop,
    stop: &'static Stopper,
    /// The module at hand.
    work: Option<Prepared<'a>>,
    last: ExitCode,
}

impl Repl<'_> {
    fn follow(&mut self, command: Command, author: &mut AuthorArgs) -> anyhow::Result<()> {
        match command {
            Command::Module(text) => {
                let path = pasted(&text)?;
                self.begin(&path, author)
            }
            Command::Load(path) => self.begin(&path, author),
            Command::Another => self.ask(None),
            Command::Improve(sample) => {
                let work = self.work()?;
                let parent = match sample {
                    Some(sample) => node(work, sample)?.sample,
                    None => best_or_last(work)?.sample,
                };
                self.ask(Some(parent))
            }
            Command::List => Ok(output::text(table::list(&self.work()?.tree))?),
            Command::Show(sample) => Ok(output::text(source(chosen(self.work()?, sample)?)?)?),
            Command::Verdict(sample) => {
                let verdict = chosen(self.work()?, sample)?.verdict().ok_or_else(|| usage("it has no verdict"))?;
                Ok(output::line(render::verdict(verdict))?)
            }
            Command::Compare(one, other) => {
                let work = self.work()?;
                let (one, other) = (node(work, one)?, node(work, other)?);
                let diff = TextDiff::from_lines(source(one)?, source(other)?);
                output::text(diff.unified_diff().context_radius(3))?;
                Ok(output::text(table::compare(one, other))?)
            }
            Command::Save(path, sample) => {
                let node = chosen(self.work()?, sample)?;
                std::fs::write(&path, source(node)?)
                    .map_err(|error| usage(format!("failed to write {path}: {error}")))?;
                eprintln!("{} (number {}) is in {path}", node.answer.variant, node.sample);
                Ok(())
            }
            Command::Author(name) => {
                let asked = AuthorArgs { author: name, ..author.clone() };
                match self.work.as_ref().map(|work| work.problem_path.clone()) {
                    // The module at hand stays if there is no such author.
                    Some(problem) => self.begin(&problem, &asked)?,
                    None => {
                        known(&asked)?;
                        eprintln!("{} will be asked", asked.author);
                    }
                }
                *author = asked;
                Ok(())
            }
            Command::Help => Ok(output::text(HELP)?),
            Command::Quit => Ok(()),
        }
    }

    /// Takes up a module, and asks for a first candidate.
    fn begin(&mut self, problem: &Utf8Path, author: &AuthorArgs) -> anyhow::Result<()> {
        if let (Some(work), Some(_)) = (&self.work, &author.out) {
            let message = "leave --out away, so that each module and author gets a folder of its own";
            return Err(usage(format!("--out {} is in use by what is under way: {message}", work.out)));
        }
        let setup = setup(self.args, author, self.common, self.budget, problem);
        let work = setup.prepare(self.shop)?;
        eprintln!("{problem} and {}; everything is kept in {}", author.author, work.out);
        self.work = Some(work);
        self.ask(None)
    }

    /// One candidate more: a new one, or one that is to be better than `parent`.
    fn ask(&mut self, parent: Option<u64>) -> anyhow::Result<()> {
        let work = self.work.as_mut().ok_or_else(no_module)?;
        if parent.is_some() && !work.learns() {
            eprintln!("this author hears no verdicts: here is another one");
        }
        let known = work.tree.nodes.len();
        let plan = Plan::One { round: work.tree.rounds.len() as u32, parent };
        let watch = watch::Watch::default();
        let report = self.stop.while_busy(|interrupted| work.go(plan, &|event| watch.hear(event), interrupted));
        watch.end();
        let report = report?;
        self.last = ExitCode::from(report.exit_code());
        if work.tree.rounds.is_empty() {
            eprintln!("{}", report.stop.text());
            return self.work.take().map_or(Ok(()), Prepared::discard);
        }
        match work.tree.nodes.values().next_back().filter(|_| work.tree.nodes.len() > known) {
            Some(node) => newest(node, report.best == Some(node.sample)),
            None if matches!(report.stop, Stop::Done | Stop::Missing(_)) => {
                eprintln!("there is no answer");
                Ok(())
            }
            None => {
                eprintln!("{}", report.stop.text());
                Ok(())
            }
        }
    }

    fn work(&self) -> anyhow::Result<&Prepared<'_>> {
        self.work.as_ref().ok_or_else(no_module)
    }
}

/// Whether there is such an author.
fn known(author: &AuthorArgs) -> anyhow::Result<()> {
    if author.author != OFFLINE {
        author.model.chat(&author.author)?;
    }
    Ok(())
}

/// Says what became of a candidate, and what to do with it.
fn newest(node: &Node, best: bool) -> anyhow::Result<()> {
    match (node.verdict(), &node.answer.source) {
        (Some(verdict), _) => output::line(render::verdict(verdict))?,
        (None, Err(why)) => eprintln!("number {}: {why}", node.sample),
        (None, Ok(_)) => eprintln!("number {}: not verified", node.sample),
    }
    if node.answer.source.is_ok() {
        let best = if best { ", the best so far" } else { "" };
        let same = node.checked.as_ref().and_then(|checked| checked.same_as);
        let same = same.map_or_else(String::new, |other| format!(", which does the same as number {other}"));
        eprintln!("number {}{same}{best}. /show, /improve, /another, /save FILE, or another module", node.sample);
    }
    Ok(())
}

fn no_module() -> anyhow::Error {
    usage("there is no module yet: paste one, or /load FILE")
}

fn node<'w>(work: &'w Prepared<'_>, sample: u64) -> anyhow::Result<&'w Node> {
    work.tree.nodes.get(&sample).ok_or_else(|| usage(format!("there is no candidate {sample}: /list shows them")))
}

/// The asked candidate, or the best, or the last.
fn chosen<'w>(work: &'w Prepared<'_>, sample: Option<u64>) -> anyhow::Result<&'w Node> {
    sample.map_or_else(|| best_or_last(work), |sample| node(work, sample))
}

fn best_or_last<'w>(work: &'w Prepared<'_>) -> anyhow::Result<&'w Node> {
    let last = || work.tree.nodes.values().next_back();
    work.tree.best().or_else(last).ok_or_else(|| usage("there is no candidate yet: /another asks for one"))
}

fn source(node: &Node) -> anyhow::Result<&str> {
    node.answer.source.as_deref().map_err(|why| usage(format!("number {}: {why}", node.sample)))
}

/// The file of a module that was pasted.
fn pasted(text: &str) -> anyhow::Result<Utf8PathBuf> {
    let folder = Utf8Path::new("generated");
    let mut names = (1..).map(|number| folder.join(format!("pasted-{number}.py"))).filter(|path| !path.exists());
    let path = names.next().context("failed to find a name for the module")?;
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make {folder}"))?;
    std::fs::write(&path, text).with_context(|| format!("failed to write {path}"))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_ends_with_a_line_that_holds_a_dot_however_it_comes() {
        for (typed, module) in [
            ("a = 1\nb = 2\n.\n", Some("a = 1\nb = 2\n")),
            ("a = 1\r\nb = 2\r\n.\r\n\n", Some("a = 1\nb = 2\n")),
            ("a = 1\rb = 2\r.\r", Some("a = 1\nb = 2\n")),
            (".\n", Some("")),
            ("a = 1.\n", None),
            ("a = [\n    1.\n", None),
            ("a = 1\n", None),
        ] {
            assert_eq!(ended(typed).as_deref(), module, "{typed:?}");
        }
    }
}
