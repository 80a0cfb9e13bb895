//! One candidate: asked for, written down, verified, written down.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use tilewright_author::{Answer, AuthorError, ChatError, Request};
use tilewright_contract::{Verdict, VerdictKind};
use tilewright_verify::digest;

use super::{Event, Shared, State};
use crate::{Checked, FolderError, Node, Planned, Stop};

/// Failures in a row after which there is no hope.
const MAX_FAILURES: u32 = 3;

impl Shared<'_> {
    pub(super) fn work(&self, planned: Planned) {
        let known = self.state().tree.nodes.get(&planned.sample).map(|node| node.answer.source.clone());
        let source = match known {
            Some(source) => source,
            None => match self.ask(planned) {
                Some(answer) => answer.source,
                None => return,
            },
        };
        if let Ok(source) = source {
            self.check(planned.sample, &source);
        }
    }

    /// An answer, written down. None where there is none.
    fn ask(&self, planned: Planned) -> Option<Answer> {
        let Planned { sample, parent } = planned;
        (self.run.watch)(Event::Asking { sample, parent });
        let turns = {
            let state = self.state();
            let path = parent.map(|parent| state.tree.path(parent)).unwrap_or_default();
            self.run.plan.turns(&path).into_iter().map(Node::turn).collect::<Vec<_>>()
        };
        let request = Request {
            problem: self.run.problem,
            text: self.run.text,
            goal: &self.run.settings.goal,
            sample,
            seed: author_seed(self.run.settings.seed, sample),
            turns: &turns,
        };
        let answer = self.run.author.write(&request, &mut |piece| {
            (self.run.watch)(Event::Piece { sample, piece });
            if self.run.interrupted.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let mut state = self.state();
        match answer {
            Ok(answer) => {
                state.author_failures = 0;
                if let Err(error) = state.folder.answer(sample, &answer) {
                    state.error = Some(error);
                    return None;
                }
                let round = state.tree.place(sample).map_or(0, |(round, _)| round);
                state.tree.nodes.insert(sample, Node { sample, parent, round, answer: answer.clone(), checked: None });
                drop(state);
                (self.run.watch)(Event::Answered { sample, answer: &answer });
                Some(answer)
            }
            Err(error) => {
                state.given_up.insert(sample, error.to_string());
                state.author_failed(&error);
                drop(state);
                if !matches!(error, AuthorError::Exhausted | AuthorError::Chat(ChatError::Stopped)) {
                    (self.run.watch)(Event::Failed { sample, why: &error.to_string() });
                }
                None
            }
        }
    }

    /// A verdict, of its own or of a candidate that does the same, written down.
    fn check(&self, sample: u64, source: &str) {
        // First by the text, then, which takes longer, by what it does.
        self.once(&self.run.checker.form(source), sample, || {
            let file = self.state().folder.candidate(sample);
            match self.run.checker.twin(&file, source) {
                Some(twin) => self.once(&twin, sample, || self.own(sample, source, Some(twin.clone()))),
                None => self.own(sample, source, None),
            }
        });
    }

    /// Gives a candidate the verdict of the one that is known under `key`; if there is none, that of `make`. Tells whose verdict
    /// it is in the end.
    fn once(&self, key: &str, sample: u64, make: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let claim = match self.forms.claim(key) {
            Ok(claim) => claim,
            Err(other) => {
                let verdict = self.state().tree.nodes.get(&other).and_then(Node::verdict).cloned()?;
                return self
                    .keep(sample, Checked { verdict, same_as: Some(other), twin: None, confirmed: false })
                    .then_some(other);
            }
        };
        // Whoever waits for it looks for the verdict in the tree.
        let owner = make()?;
        claim.verified(owner);
        Some(owner)
    }

    /// A verdict of its own.
    fn own(&self, sample: u64, source: &str, twin: Option<String>) -> Option<u64> {
        let verdict = self.verify(sample, source)?;
        self.keep(sample, Checked { verdict, same_as: None, twin, confirmed: false }).then_some(sample)
    }

    /// Takes a closer look at the best candidate, then at the next best where it does not stand, until one does.
    pub(super) fn confirm_best(&self) {
        loop {
            let (sample, source, file) = {
                let state = self.state();
                let Some(best) = state.tree.best().filter(|best| !best.is_confirmed()) else { return };
                let Ok(source) = best.answer.source.clone() else { return };
                (best.sample, source, state.folder.candidate(best.sample))
            };
            let Some(verdict) = self.run.checker.confirm(&file, &source) else { return };
            if matches!(verdict.verdict, VerdictKind::Infrastructure | VerdictKind::ProblemDefect) {
                (self.run.watch)(Event::Failed { sample, why: &format!("not confirmed: {}", cause(&verdict)) });
                return;
            }
            if !self.keep(sample, Checked { verdict, same_as: None, twin: None, confirmed: true }) {
                return;
            }
        }
    }

    /// None where it says nothing about the candidate, or the budget does not allow it.
    fn verify(&self, sample: u64, source: &str) -> Option<Verdict> {
        let file = {
            let mut state = self.state();
            if self.run.limits.verdicts.is_some_and(|most| state.paid >= most) {
                state.stop.get_or_insert(Stop::Verdicts);
                return None;
            }
            state.paid += 1;
            state.folder.candidate(sample)
        };
        let watch = |stage: &str| (self.run.watch)(Event::Stage { sample, stage });
        let verdict = self.run.checker.check(&file, source, &watch);
        let mut state = self.state();
        match verdict.verdict {
            VerdictKind::ProblemDefect => {
                state.paid -= 1;
                state.stop = Some(Stop::Problem(cause(&verdict)));
                None
            }
            VerdictKind::Infrastructure => {
                state.paid -= 1;
                state.given_up.insert(sample, cause(&verdict));
                state.checker_failures += 1;
                if state.checker_failures >= MAX_FAILURES {
                    state.stop = Some(Stop::Infrastructure(cause(&verdict)));
                }
                drop(state);
                (self.run.watch)(Event::Failed { sample, why: &cause(&verdict) });
                None
            }
            _ => {
                state.checker_failures = 0;
                Some(verdict)
            }
        }
    }

    /// Writes a verdict down; false where that failed.
    fn keep(&self, sample: u64, checked: Checked) -> bool {
        match self.written(sample, checked) {
            Ok(best) => {
                let node = self.state().tree.nodes.get(&sample).cloned();
                if let Some(node) = &node {
                    (self.run.watch)(Event::Checked { node, best });
                }
                true
            }
            Err(error) => {
                self.state().error = Some(error);
                false
            }
        }
    }

    /// Whether it is the best so far.
    fn written(&self, sample: u64, checked: Checked) -> Result<bool, FolderError> {
        let best = {
            let mut state = self.state();
            state.folder.checked(sample, &checked)?;
            if checked.confirmed {
                state.tree.confirm(sample, &checked.verdict);
            } else if let Some(node) = state.tree.nodes.get_mut(&sample) {
                node.checked = Some(checked);
            }
            state.tree.best().map(|node| node.sample)
        };
        self.write_best(best)
    }
}

impl State<'_> {
    fn author_failed(&mut self, error: &AuthorError) {
        self.author_failures += 1;
        let stop = match error {
            AuthorError::Exhausted => Stop::Exhausted,
            AuthorError::Chat(ChatError::Stopped) => Stop::Interrupted,
            AuthorError::Problem(why) => Stop::Problem(why.clone()),
            error if !error.may_pass() || self.author_failures >= MAX_FAILURES => Stop::Author(error.to_string()),
            _ => return,
        };
        self.stop.get_or_insert(stop);
    }
}

/// What keeps a run from beginning.
pub(super) fn trouble(kind: VerdictKind, why: String) -> Stop {
    if kind == VerdictKind::ProblemDefect { Stop::Problem(why) } else { Stop::Infrastructure(why) }
}

fn cause(verdict: &Verdict) -> String {
    verdict.reasons.first().map_or_else(|| verdict.verdict.name().into(), |reason| reason.message.clone())
}

/// A seed that tells nothing about the secret one.
fn author_seed(seed: u64, sample: u64) -> u64 {
    let digest = digest(format!("author {seed} {sample}").as_bytes());
    let hex = digest.rsplit(':').next().and_then(|hex| hex.get(..16)).unwrap_or_default();
    u64::from_str_radix(hex, 16).unwrap_or(sample)
}
