//! A run's folder: everything that was asked, answered and decided, written as it happens.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tilewright_author::{Answer, REPLIES};
use tilewright_contract::Verdict;
use tilewright_verify::{Log, LogError};

use crate::{Checked, Node, Planned, Report, Settings, Tree};

/// An open run. Locked against others while it is open.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    log: Log,
}

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("failed to {what} {}: {error}", path.display())]
    Io { what: &'static str, path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{}: line {line} of its log is none of a run: {why}", path.display())]
    Line { path: PathBuf, line: usize, why: String },
    #[error("{} holds another run: {what} differs. Give another folder by --out", path.display())]
    Other { path: PathBuf, what: &'static str },
    #[error("there is no run in {}", .0.display())]
    NoRun(PathBuf),
    #[error("{} is no folder: give another one by --out", .0.display())]
    NoFolder(PathBuf),
}

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    Run(Box<Settings>),
    Round {
        nodes: Vec<Planned>,
    },
    Answer {
        sample: u64,
        #[serde(flatten)]
        answer: Box<Answer>,
    },
    Verdict {
        sample: u64,
        verdict: Box<Verdict>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        twin: Option<String>,
    },
    /// The verdict of a closer look, in place of the one before.
    Confirmed {
        sample: u64,
        verdict: Box<Verdict>,
    },
    Same {
        sample: u64,
        as_sample: u64,
    },
}

/// Where the parts of a run lie within its folder.
const PROBLEM: &str = "problem.py";
const CANDIDATES: &str = "candidates";
const BEST: &str = "best.py";
const BEST_VERDICT: &str = "best.verdict.json";
const REPORT: &str = "report.json";

impl Folder {
    /// Opens a run's folder, or makes it; gives what was done in it. The settings' seed becomes that of the earlier run.
    pub fn open(path: &Path, settings: &mut Settings, problem: &[u8]) -> Result<(Self, Tree), FolderError> {
        if path.exists() && !path.is_dir() {
            return Err(FolderError::NoFolder(path.to_owned()));
        }
        let candidates = path.join(CANDIDATES);
        std::fs::create_dir_all(&candidates).map_err(io("make", &candidates))?;
        let (log, lines) = Log::open(&path.join(REPLIES))?;
        let (earlier, tree) = read(path, lines)?;
        let mut folder = Self { path: path.to_owned(), log };
        match earlier {
            Some(earlier) => {
                settings.seed = earlier.seed;
                if let Some(what) = difference(&earlier, settings) {
                    return Err(FolderError::Other { path: path.to_owned(), what });
                }
            }
            None => {
                folder.put(PROBLEM, problem)?;
                folder.append(&Line::Run(Box::new(settings.clone())))?;
            }
        }
        Ok((folder, tree))
    }

    /// Reads a run without changing it.
    pub fn look(path: &Path) -> Result<(Settings, Tree), FolderError> {
        let log = path.join(REPLIES);
        if !log.is_file() {
            return Err(FolderError::NoRun(path.to_owned()));
        }
        let lines = Log::look(&log)?;
        let (settings, tree) = read(path, lines)?;
        Ok((settings.ok_or_else(|| FolderError::NoRun(path.to_owned()))?, tree))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a candidate.
    pub fn candidate(&self, sample: u64) -> PathBuf {
        self.path.join(CANDIDATES).join(format!("{sample:04}.py"))
    }

    pub(crate) fn round(&mut self, nodes: &[Planned]) -> Result<(), FolderError> {
        self.append(&Line::Round { nodes: nodes.to_vec() })
    }

    pub(crate) fn answer(&mut self, sample: u64, answer: &Answer) -> Result<(), FolderError> {
        if let Ok(source) = &answer.source {
            self.put_path(&self.candidate(sample), source.as_bytes())?;
        }
        self.append(&Line::Answer { sample, answer: Box::new(answer.clone()) })
    }

    pub(crate) fn checked(&mut self, sample: u64, checked: &Checked) -> Result<(), FolderError> {
        self.append(&match checked.same_as {
            Some(as_sample) => Line::Same { sample, as_sample },
            None if checked.confirmed => Line::Confirmed { sample, verdict: Box::new(checked.verdict.clone()) },
            None => Line::Verdict { sample, verdict: Box::new(checked.verdict.clone()), twin: checked.twin.clone() },
        })
    }

    /// The best candidate so far.
    pub(crate) fn best(&mut self, node: &Node) -> Result<(), FolderError> {
        let (Ok(source), Some(verdict)) = (&node.answer.source, node.verdict()) else { return Ok(()) };
        self.put(BEST, source.as_bytes())?;
        self.put_json(BEST_VERDICT, verdict)
    }

    /// What was the best did not stand a closer look.
    pub(crate) fn no_best(&mut self) -> Result<(), FolderError> {
        for path in [self.path.join(BEST), self.path.join(BEST_VERDICT)] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io("remove", &path)(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes a run in which nothing was asked, so that the same place is free for the next. What else lies in its folder stays.
    pub fn discard(self) -> Result<(), FolderError> {
        for name in [PROBLEM, REPORT, REPLIES] {
            let path = self.path.join(name);
            std::fs::remove_file(&path).map_err(io("remove", &path))?;
        }
        for path in [self.path.join(CANDIDATES), self.path] {
            match std::fs::remove_dir(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::DirectoryNotEmpty => {
                    return Err(io("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn report(&mut self, report: &Report) -> Result<(), FolderError> {
        self.put_json(REPORT, report)
    }

    fn append(&mut self, line: &Line) -> Result<(), FolderError> {
        let path = self.path.join(REPLIES);
        let text = serde_json::to_string(line).map_err(|error| io("write", &path)(error.into()))?;
        self.log.append(&text).map_err(io("write", &path))
    }

    fn put_json(&self, name: &str, document: &impl Serialize) -> Result<(), FolderError> {
        let path = self.path.join(name);
        let text = serde_json::to_string_pretty(document).map_err(|error| io("write", &path)(error.into()))?;
        self.put(name, format!("{text}\n").as_bytes())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        self.put_path(&self.path.join(name), bytes)
    }

    /// All of it or nothing, also when this is killed.
    fn put_path(&self, path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
        let partial = path.with_extension("partial");
        std::fs::write(&partial, bytes).map_err(io("write", &partial))?;
        std::fs::rename(&partial, path).map_err(io("write", path))
    }
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> FolderError {
    let path = path.to_owned();
    move |error| FolderError::Io { what, path, error }
}

/// What keeps a run from going on under other settings.
fn difference(earlier: &Settings, now: &Settings) -> Option<&'static str> {
    [
        ("the version of its format", earlier.schema != now.schema),
        ("the problem", earlier.problem.digest != now.problem.digest),
        ("the author", earlier.author != now.author),
        ("the target", earlier.goal != now.goal),
        ("the precision profile", earlier.profiles != now.profiles),
        ("the number of trials", earlier.trials != now.trials),
    ]
    .into_iter()
    .find_map(|(what, differs)| differs.then_some(what))
}

fn read(path: &Path, lines: Vec<serde_json::Value>) -> Result<(Option<Settings>, Tree), FolderError> {
    let mut settings = None;
    let mut tree = Tree::default();
    for (number, line) in lines.into_iter().enumerate() {
        let wrong = |why: String| FolderError::Line { path: path.to_owned(), line: number + 1, why };
        let line: Line = serde_json::from_value(line).map_err(|error| wrong(error.to_string()))?;
        if settings.is_none() && !matches!(line, Line::Run(_)) {
            return Err(wrong("it does not begin with the run's settings".into()));
        }
        match line {
            Line::Run(found) => settings = Some(*found),
            line => add(&mut tree, line).map_err(wrong)?,
        }
    }
    Ok((settings, tree))
}

fn add(tree: &mut Tree, line: Line) -> Result<(), String> {
    let unknown = |sample: u64| format!("candidate {sample} is not known before it");
    match line {
        Line::Run(_) => {}
        Line::Round { nodes } => tree.rounds.push(nodes),
        Line::Answer { sample, answer } => {
            let (round, parent) = tree.place(sample).ok_or_else(|| unknown(sample))?;
            tree.nodes.insert(sample, Node { sample, parent, round, answer: *answer, checked: None });
        }
        Line::Verdict { sample, verdict, twin } => {
            let node = tree.nodes.get_mut(&sample).ok_or_else(|| unknown(sample))?;
            node.checked = Some(Checked { verdict: *verdict, same_as: None, twin, confirmed: false });
        }
        Line::Confirmed { sample, verdict } => {
            tree.nodes.get(&sample).and_then(Node::verdict).ok_or_else(|| unknown(sample))?;
            tree.confirm(sample, &verdict);
        }
        Line::Same { sample, as_sample } => {
            let verdict = tree.nodes.get(&as_sample).and_then(Node::verdict).cloned();
            let verdict = verdict.ok_or_else(|| unknown(as_sample))?;
            let node = tree.nodes.get_mut(&sample).ok_or_else(|| unknown(sample))?;
            node.checked = Some(Checked { verdict, same_as: Some(as_sample), twin: None, confirmed: false });
        }
    }
    Ok(())
}
