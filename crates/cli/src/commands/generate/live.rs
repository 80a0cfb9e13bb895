//! A run as it happens, on standard error: a line for whatever is decided, and below it what is under way.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use tilewright_author::Piece;
use tilewright_contract::VerdictKind;
use tilewright_search::{Event, Node, Tree};

use crate::render;

/// Characters of a reason.
const MAX_WHY: usize = 160;
const TICK: Duration = Duration::from_millis(200);

pub(crate) struct Live {
    bar: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    planned: usize,
    done: usize,
    accepted: usize,
    tokens: u64,
    /// Each candidate under way, with what is done.
    under_way: BTreeMap<u64, Doing>,
}

enum Doing {
    /// The question, of so many tokens.
    Reading(u64),
    /// So many pieces came.
    Writing(u64),
    Thinking(u64),
    /// Written, and not verified yet.
    Waiting,
    /// In this stage.
    Verifying(String),
}

impl Live {
    pub(crate) fn new(tree: &Tree) -> anyhow::Result<Self> {
        let style = ProgressStyle::with_template("{spinner} [{elapsed}] {msg}")
            .context("failed to set the progress line up")?;
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.enable_steady_tick(TICK);
        let done = tree.nodes.keys().filter(|&&sample| tree.is_done(sample)).count();
        if done > 0 {
            eprintln!("going on: {done} candidates are there already");
        }
        let accepted = tree.nodes.values().filter(|node| node.accepted()).count();
        let state = State { planned: done, done, accepted, tokens: tree.usage().tokens(), ..State::default() };
        Ok(Self { bar, state: Mutex::new(state) })
    }

    pub(crate) fn hear(&self, event: Event<'_>) {
        let mut state = self.state();
        let line = state.take_in(event);
        self.bar.set_message(state.line());
        drop(state);
        if let Some(line) = line {
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes what happened; gives the line that stays, if there is one.
    fn take_in(&mut self, event: Event<'_>) -> Option<String> {
        match event {
            Event::Round { planned } => self.planned += planned,
            Event::Asking { sample, .. } => {
                self.under_way.insert(sample, Doing::Writing(0));
            }
            Event::Piece { sample, piece } => return self.piece(sample, piece),
            Event::Answered { sample, answer } => {
                self.tokens += answer.usage.tokens();
                match &answer.source {
                    Ok(_) => {
                        self.under_way.insert(sample, Doing::Waiting);
                    }
                    Err(why) => {
                        self.ended(sample);
                        return Some(format!("{sample:>4}  no code         {}: {why}", answer.variant));
                    }
                }
            }
            Event::Stage { sample, stage } => {
                self.under_way.insert(sample, Doing::Verifying(stage.into()));
            }
            Event::Failed { sample, why } => {
                self.ended(sample);
                return Some(format!("{sample:>4}  no answer       {}", short(why)));
            }
            Event::Checked { node, best } => {
                self.ended(node.sample);
                self.accepted += usize::from(node.accepted());
                return Some(verdict(node, best));
            }
        }
        None
    }

    fn piece(&mut self, sample: u64, piece: Piece<'_>) -> Option<String> {
        let count = match self.under_way.get(&sample) {
            Some(Doing::Writing(count) | Doing::Thinking(count)) => count + 1,
            _ => 1,
        };
        let (doing, line) = match piece {
            Piece::Reading(tokens) => (Doing::Reading(tokens), None),
            Piece::Text(_) => (Doing::Writing(count), None),
            Piece::Thought(_) => (Doing::Thinking(count), None),
            Piece::Again(why) => (Doing::Writing(0), Some(format!("{sample:>4}  asking again    {}", short(why)))),
        };
        self.under_way.insert(sample, doing);
        line
    }

    fn ended(&mut self, sample: u64) {
        self.under_way.remove(&sample);
        self.done += 1;
    }

    fn line(&self) -> String {
        let doing = self.under_way.iter().map(|(sample, doing)| match doing {
            Doing::Reading(tokens) => format!("{sample} reading {tokens} tokens"),
            Doing::Writing(0) => format!("{sample} asked"),
            Doing::Writing(count) => format!("{sample} writing ({count})"),
            Doing::Thinking(count) => format!("{sample} thinking ({count})"),
            Doing::Waiting => format!("{sample} written"),
            Doing::Verifying(stage) => format!("{sample} {stage}"),
        });
        let doing = doing.collect::<Vec<_>>().join(", ");
        let tokens = if self.tokens > 0 { format!(", {} tokens", self.tokens) } else { String::new() };
        format!("{} of {} done, {} accepted{tokens}  {doing}", self.done, self.planned, self.accepted)
    }
}

/// Number, verdict, where it comes from, and why or how fast.
fn verdict(node: &Node, best: bool) -> String {
    let kind = node.kind().unwrap_or(VerdictKind::Infrastructure);
    let parent = node.parent.map(|parent| format!(" after {parent}")).unwrap_or_default();
    let mut line = format!("{:>4}  {}  {}{parent}", node.sample, render::kind(kind), node.answer.variant);
    if let Some(other) = node.checked.as_ref().and_then(|checked| checked.same_as) {
        line += &format!(": the same as {other}");
    } else if let Some(reason) = node.verdict().and_then(|verdict| verdict.reasons.first()) {
        line += &format!(": {}", short(&reason.message));
    }
    if let Some(speedup) = node.speedup() {
        line += &format!(", {speedup:.2} x");
    }
    if best {
        line += ", the best so far";
    }
    line
}

/// Foreign text in a line.
fn short(text: &str) -> String {
    let plain = render::plain(text).lines().map(str::trim).collect::<Vec<_>>().join(" ");
    match plain.char_indices().nth(MAX_WHY) {
        Some((end, _)) => format!("{} …", &plain[..end]),
        None => plain,
    }
}
