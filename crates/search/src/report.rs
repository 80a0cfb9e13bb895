use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tilewright_author::Usage;
use tilewright_contract::VerdictKind;

use crate::{Node, Settings, Stop, Tree};

/// What came out of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// `tilewright.report/1`
    pub schema: String,
    pub run: Settings,
    /// Why it ended.
    pub stop: Stop,
    /// Number of the best accepted candidate.
    pub best: Option<u64>,
    /// Of all questions and answers.
    pub usage: Usage,
    /// Verdicts that were paid for: equal candidates share one.
    pub verdicts: usize,
    pub candidates: Vec<Row>,
}

/// A candidate in the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Its number within the run, from 0.
    pub sample: u64,
    /// The candidate that it was to be better than.
    pub parent: Option<u64>,
    /// From 0.
    pub round: u32,
    /// Which of several ways this is, for people.
    pub variant: String,
    /// None where there was no code, or no time to verify it.
    pub verdict: Option<VerdictKind>,
    /// The candidate that was verified in its place: it does the same.
    pub same_as: Option<u64>,
    /// At least 1 for accepted candidates; see the guide.
    pub reward: f64,
    /// Against the first baseline, where that was measured.
    pub speedup: Option<f64>,
    /// The deciding reason, or why there is no code.
    pub why: Option<String>,
}

impl Report {
    pub const SCHEMA: &'static str = "tilewright.report/1";

    pub fn new(run: &Settings, tree: &Tree, stop: Stop) -> Self {
        Self {
            schema: Self::SCHEMA.into(),
            run: run.clone(),
            stop,
            best: tree.best().map(|node| node.sample),
            usage: tree.usage(),
            verdicts: tree.verdicts(),
            candidates: tree.nodes.values().map(Row::new).collect(),
        }
    }

    /// 0 accepted, 1 not accepted, 3 not decided through no fault of a candidate.
    pub fn exit_code(&self) -> u8 {
        // One that has code and no verdict was not decided.
        let fault = |row: &Row| row.verdict.map_or(row.why.is_some(), |kind| kind.exit_code() == 1);
        match self.best {
            Some(_) => 0,
            None if self.stop.is_failure() => 3,
            None if self.candidates.iter().any(fault) => 1,
            None => 3,
        }
    }
}

impl Row {
    fn new(node: &Node) -> Self {
        let reason = node.verdict().and_then(|verdict| verdict.reasons.first()).map(|reason| reason.message.clone());
        Self {
            sample: node.sample,
            parent: node.parent,
            round: node.round,
            variant: node.answer.variant.clone(),
            verdict: node.kind(),
            same_as: node.checked.as_ref().and_then(|checked| checked.same_as),
            reward: node.reward(),
            speedup: node.speedup(),
            why: node.answer.source.as_ref().err().map(ToString::to_string).or(reason),
        }
    }
}
