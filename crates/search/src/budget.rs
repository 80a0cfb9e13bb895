//! When a run ends.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Tree;

/// What ends a run before its plan does.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    pub until: Until,
    /// Of questions and answers together.
    pub tokens: Option<u64>,
    pub verdicts: Option<u64>,
    /// Of this command, not of those before it.
    pub time: Option<Duration>,
    /// In the currency of the endpoint's prices.
    pub money: Option<f64>,
}

/// What is good enough.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Until {
    /// The first accepted candidate.
    #[default]
    Accepted,
    /// An accepted candidate that is this many times faster than the first baseline, with all of its interval.
    Speedup(f64),
    /// Nothing: the whole plan.
    All,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "why", content = "cause")]
pub enum Stop {
    /// All that was planned is done.
    Done,
    /// All but some candidates, which nobody wrote or which could not be verified.
    Missing(String),
    Accepted,
    Speedup,
    Tokens,
    Verdicts,
    Time,
    Money,
    /// The author has no further candidate.
    Exhausted,
    /// The user broke an answer off.
    Interrupted,
    /// The author does not answer, or cannot.
    Author(String),
    /// The problem is at fault.
    Problem(String),
    /// Verifying does not work here.
    Infrastructure(String),
}

impl Limits {
    /// Whether a run that has come this far is to end.
    pub(crate) fn reached(&self, tree: &Tree, elapsed: Duration) -> Option<Stop> {
        let usage = tree.usage();
        let good = match self.until {
            Until::Accepted => tree.best().map(|_| Stop::Accepted),
            Until::Speedup(wanted) => tree.nodes.values().any(|node| fast(node, wanted)).then_some(Stop::Speedup),
            Until::All => None,
        };
        good.or_else(|| self.tokens.filter(|&most| usage.tokens() >= most).map(|_| Stop::Tokens))
            .or_else(|| self.verdicts.filter(|&most| tree.verdicts() as u64 >= most).map(|_| Stop::Verdicts))
            .or_else(|| self.time.filter(|&most| elapsed >= most).map(|_| Stop::Time))
            .or_else(|| self.money.filter(|&most| usage.cost >= most).map(|_| Stop::Money))
    }
}

fn fast(node: &crate::Node, wanted: f64) -> bool {
    let timing = node.verdict().filter(|_| node.accepted()).and_then(|verdict| verdict.timing.as_ref());
    timing.and_then(|timing| timing.baselines.first()).is_some_and(|baseline| baseline.speedup.low >= wanted)
}

impl Stop {
    /// In a sentence.
    pub fn text(&self) -> String {
        match self {
            Self::Done => "all that was planned is done".into(),
            Self::Missing(why) => format!("all that could be had is done: {why}"),
            Self::Accepted => "a candidate is accepted".into(),
            Self::Speedup => "a candidate is as fast as asked".into(),
            Self::Tokens => "the budget of tokens is spent".into(),
            Self::Verdicts => "the budget of verdicts is spent".into(),
            Self::Time => "the time is over".into(),
            Self::Money => "the money is spent".into(),
            Self::Exhausted => "the author has no further candidate".into(),
            Self::Interrupted => "it was broken off".into(),
            Self::Author(why) => format!("the author gives nothing: {why}"),
            Self::Problem(why) => format!("the problem is at fault: {why}"),
            Self::Infrastructure(why) => format!("verifying does not work here: {why}"),
        }
    }

    /// How the run goes on, where it does.
    pub fn next(&self) -> Option<&'static str> {
        match self {
            Self::Accepted | Self::Speedup => Some("with --until all"),
            Self::Tokens | Self::Verdicts | Self::Money => Some("with a larger budget"),
            Self::Time | Self::Missing(_) | Self::Interrupted | Self::Author(_) | Self::Infrastructure(_) => {
                Some("by the same command")
            }
            Self::Done => Some("with a larger --n, --rounds or --max-rounds"),
            Self::Exhausted | Self::Problem(_) => None,
        }
    }

    /// Whether something is in the way that is no fault of a candidate.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Author(_) | Self::Problem(_) | Self::Infrastructure(_))
    }
}
