//! A run: rounds of candidates, each asked for, verified and written down, several at a time.

mod forms;
mod worker;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tilewright_author::{Answer, Author, Piece};

use crate::{Checker, Folder, FolderError, Limits, Node, Plan, Planned, Report, Settings, Stop, Tree};
use forms::Forms;

/// A run that is set up, and may have been under way before.
pub struct Run<'a> {
    pub problem: &'a Path,
    /// The problem's file.
    pub text: &'a str,
    pub author: &'a dyn Author,
    pub checker: &'a dyn Checker,
    pub settings: &'a Settings,
    pub plan: Plan,
    pub limits: Limits,
    /// Candidates worked on at the same time.
    pub jobs: usize,
    /// Hears what happens, from several threads.
    pub watch: &'a (dyn Fn(Event<'_>) + Sync),
    /// Set once answers in the making are to be broken off.
    pub interrupted: &'a AtomicBool,
}

/// What happens in a run. Numbers are those of candidates.
#[derive(Debug, Clone, Copy)]
pub enum Event<'e> {
    /// So many more are planned.
    Round {
        planned: usize,
    },
    Asking {
        sample: u64,
        parent: Option<u64>,
    },
    Piece {
        sample: u64,
        piece: Piece<'e>,
    },
    Answered {
        sample: u64,
        answer: &'e Answer,
    },
    /// This stage of verifying it begins.
    Stage {
        sample: u64,
        stage: &'e str,
    },
    /// The author gave nothing.
    Failed {
        sample: u64,
        why: &'e str,
    },
    /// Verified, or known to be the same as another one. `best`: better than all before.
    Checked {
        node: &'e Node,
        best: bool,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// What the threads of a run share.
struct Shared<'r> {
    run: &'r Run<'r>,
    start: Instant,
    forms: Forms,
    state: Mutex<State<'r>>,
}

struct State<'r> {
    tree: Tree,
    folder: &'r mut Folder,
    /// Why no more is to be begun.
    stop: Option<Stop>,
    /// What could not be written down.
    error: Option<FolderError>,
    /// Failures of the author since it last answered, and of the verifier since it last decided.
    author_failures: u32,
    checker_failures: u32,
    best: Option<u64>,
    /// Candidates that there was no answer or no verdict for, with the reason; another command may ask for them again.
    given_up: BTreeMap<u64, String>,
    /// Verdicts that were paid for or are being made: no moment lies between the two.
    paid: u64,
}

impl<'r> Run<'r> {
    /// Goes on from `tree` until a rule stops it or the plan is done.
    pub fn go(&'r self, folder: &'r mut Folder, tree: Tree) -> Result<(Tree, Report), RunError> {
        let forms = Forms::of(&tree, |source| self.checker.form(source));
        let best = tree.best().map(|node| node.sample);
        let paid = tree.verdicts() as u64;
        let state = State {
            tree,
            folder,
            stop: None,
            error: None,
            author_failures: 0,
            checker_failures: 0,
            best: None,
            given_up: BTreeMap::new(),
            paid,
        };
        let shared = Shared { run: self, start: Instant::now(), forms, state: Mutex::new(state) };
        shared.write_best(best)?;
        let mut stop = shared.rounds()?;
        if !stop.is_failure() || matches!(stop, Stop::Author(_)) {
            shared.confirm_best();
        }
        let mut state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error.take() {
            return Err(error.into());
        }
        if let (Stop::Done, Some((_, why))) = (&stop, state.given_up.last_key_value()) {
            stop = Stop::Missing(missing(state.given_up.len(), why));
        }
        if matches!(stop, Stop::Done | Stop::Missing(_) | Stop::Exhausted | Stop::Author(_)) {
            // What ended it may have come while the last candidate was under way.
            stop = self.limits.reached(&state.tree, shared.start.elapsed()).unwrap_or(stop);
        }
        let report = Report::new(self.settings, &state.tree, stop);
        state.folder.report(&report)?;
        Ok((state.tree, report))
    }
}

fn missing(count: usize, why: &str) -> String {
    if count == 1 { format!("1 candidate is missing: {why}") } else { format!("{count} candidates are missing: {why}") }
}

impl<'r> Shared<'r> {
    fn rounds(&self) -> Result<Stop, RunError> {
        if let Some((kind, why)) = self.run.checker.trouble() {
            return Ok(worker::trouble(kind, why));
        }
        loop {
            let planned = match self.next_round()? {
                Ok(planned) => planned,
                Err(stop) => return Ok(stop),
            };
            (self.run.watch)(Event::Round { planned: planned.len() });
            let queue = Mutex::new(planned.into_iter());
            std::thread::scope(|threads| {
                for _ in 0..self.run.jobs.max(1) {
                    threads.spawn(|| {
                        while let Some(planned) = self.take(&queue) {
                            self.work(planned);
                        }
                    });
                }
            });
            if let Some(error) = self.state().error.take() {
                return Err(error.into());
            }
        }
    }

    /// What is still to be done of the rounds that were planned, or the next one; or why there is none.
    fn next_round(&self) -> Result<Result<Vec<Planned>, Stop>, RunError> {
        let mut state = self.state();
        if let Some(stop) = self.stop(&mut state) {
            return Ok(Err(stop));
        }
        // Whoever asks for one more gets one more.
        let missing = if matches!(self.run.plan, Plan::One { .. }) { Vec::new() } else { state.missing() };
        if !missing.is_empty() {
            return Ok(Ok(missing));
        }
        let planned = self.run.plan.next(&state.tree, self.run.author.learns());
        if planned.is_empty() {
            return Ok(Err(Stop::Done));
        }
        state.folder.round(&planned)?;
        state.tree.rounds.push(planned.clone());
        Ok(Ok(planned))
    }

    /// The next candidate of a round, unless the run is to end.
    fn take(&self, queue: &Mutex<std::vec::IntoIter<Planned>>) -> Option<Planned> {
        let mut state = self.state();
        if state.error.is_some() || self.stop(&mut state).is_some() {
            return None;
        }
        queue.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// Why the run is to end, if it is.
    fn stop(&self, state: &mut State<'_>) -> Option<Stop> {
        if state.stop.is_none() {
            state.stop = self.run.limits.reached(&state.tree, self.start.elapsed());
        }
        state.stop.clone()
    }

    fn write_best(&self, best: Option<u64>) -> Result<bool, FolderError> {
        let state = &mut *self.state();
        let Some(node) = best.and_then(|sample| state.tree.nodes.get(&sample)) else {
            if state.best.take().is_some() {
                state.folder.no_best()?;
            }
            return Ok(false);
        };
        // A closer look changes the verdict of what was the best before.
        if state.best == best && !node.is_confirmed() {
            return Ok(false);
        }
        state.folder.best(node)?;
        state.best = best;
        Ok(true)
    }

    fn state(&self) -> MutexGuard<'_, State<'r>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State<'_> {
    /// What was planned and is still to be done.
    fn missing(&self) -> Vec<Planned> {
        let mut missing = self.tree.missing();
        missing.retain(|planned| !self.given_up.contains_key(&planned.sample));
        missing
    }
}
