//! What verdicts over a labelled corpus say about the evaluator.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tilewright_contract::{Fault, Reason, Verdict, VerdictKind};

use crate::interval::{CONFIDENCE, Rate};
use crate::labels::{Label, Labelled};
use crate::run::{Selection, Setting};

/// Stages in the order of the pipeline.
const STAGES: [&str; 9] = ["oracle", "screen", "trace", "weights", "compile", "emulate", "direct", "replay", "judge"];

/// How often the evaluator was wrong over labelled corpora.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// `tilewright.audit/1`
    pub schema: String,
    pub setting: Setting,
    /// When it ended, UTC, RFC 3339.
    pub date: String,
    /// Wall time of this run; less than all the work where it was resumed.
    pub seconds: f64,
    /// The folders of the corpora.
    pub folders: Vec<String>,
    /// Candidates with a row.
    pub files: u64,
    /// Candidates whose labels do not name the target: not run.
    pub other_targets: u64,
    /// Candidates that a filter leaves out: not run.
    pub filtered: u64,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Wrong and cheating candidates that were accepted, of those with a verdict.
    pub false_accept: Rate,
    /// Honest candidates that were not accepted, of those with a verdict.
    pub false_reject: Rate,
    pub by_label: Vec<Counts>,
    /// By number of the catalogue of mechanisms; a candidate counts under each of its numbers.
    pub by_mechanism: Vec<Counts>,
    /// Candidates of each label by the kind of verdict that they got.
    pub by_verdict: Vec<LabelCounts>,
    /// Candidates that were not accepted, by the stage that decided.
    pub by_stage: Vec<LabelCounts>,
    pub rows: Vec<Row>,
}

/// How the candidates of a group fared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub name: String,
    pub files: u64,
    /// The verdict is one that the label allows.
    pub expected: u64,
    /// Not accepted, and rightly so, but with another verdict than the label expects.
    pub otherwise: u64,
    pub harmless: u64,
    /// No verdict on the candidate.
    pub undecided: u64,
    /// On the wrong side, of those with a verdict on the candidate.
    pub mistaken: Rate,
}

/// Candidates by label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelCounts {
    pub name: String,
    pub honest: u64,
    pub wrong: u64,
    pub hack: u64,
}

/// What a verdict means beside its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A verdict that the label allows.
    Expected,
    /// Not accepted, and rightly so, but with another verdict than the label expects.
    CaughtOtherwise,
    /// Wrong or cheating, and accepted.
    FalseAccept,
    /// Honest, and not accepted.
    FalseReject,
    /// Cheating or wrong and accepted, as its label allows: harmless for the reason that its note gives.
    Harmless,
    /// No verdict on the candidate: a feature that is missing, a fault of this machine, or a defect of the problem.
    Undecided,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    pub id: String,
    pub label: Label,
    pub candidate: String,
    pub problem: String,
    pub mechanisms: Vec<String>,
    pub kind: String,
    /// The verdicts that its label allows.
    pub expected: Vec<VerdictKind>,
    pub verdict: VerdictKind,
    pub outcome: Outcome,
    /// The stage that decided.
    pub stage: String,
    /// The deciding reason.
    pub reason: Option<Reason>,
    /// All stages but the oracle, which the candidates of a problem share.
    pub seconds: f64,
    pub note: String,
}

impl Audit {
    pub const SCHEMA: &'static str = "tilewright.audit/1";

    /// `verdicts` in the order of the selection's entries.
    pub fn new(
        setting: Setting,
        folders: Vec<String>,
        selection: &Selection,
        verdicts: &[Verdict],
        seconds: f64,
    ) -> Self {
        let rows: Vec<Row> =
            selection.entries.iter().zip(verdicts).map(|(entry, verdict)| Row::new(entry, verdict)).collect();
        let of = |labels: &[Label]| Counts::of("", rows.iter().filter(|row| labels.contains(&row.label))).mistaken;
        Self {
            schema: Self::SCHEMA.into(),
            setting,
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            seconds,
            folders,
            files: rows.len() as u64,
            other_targets: selection.other_targets,
            filtered: selection.filtered,
            confidence: CONFIDENCE,
            false_accept: of(&[Label::Wrong, Label::Hack]),
            false_reject: of(&[Label::Honest]),
            by_label: by_label(&rows),
            by_mechanism: by_mechanism(&rows),
            by_verdict: by_verdict(&rows),
            by_stage: by_stage(&rows),
            rows,
        }
    }

    pub fn with(&self, outcome: Outcome) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.outcome == outcome)
    }

    /// Candidates on the wrong side.
    pub fn mismatches(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches!(row.outcome, Outcome::FalseAccept | Outcome::FalseReject))
    }

    /// Process exit code: 1 if a candidate is on the wrong side, 3 if one has no verdict, else 0. A feature that is
    /// missing is forgiven where the label says so.
    pub fn exit_code(&self) -> u8 {
        let unexplained =
            |row: &Row| row.verdict == VerdictKind::Infrastructure || !row.expected.contains(&row.verdict);
        if self.mismatches().next().is_some() {
            1
        } else if self.with(Outcome::Undecided).any(unexplained) {
            3
        } else {
            0
        }
    }
}

impl Row {
    fn new(entry: &Labelled, verdict: &Verdict) -> Self {
        Self {
            id: entry.id.clone(),
            label: entry.label,
            candidate: entry.candidate.display().to_string(),
            problem: entry.problem.display().to_string(),
            mechanisms: entry.mechanisms.clone(),
            kind: entry.kind.clone(),
            expected: entry.verdicts.clone(),
            verdict: verdict.verdict,
            outcome: outcome(entry, verdict.verdict),
            stage: verdict.stages.last().map_or_else(|| "none".into(), |last| last.stage.clone()),
            reason: verdict.reasons.first().cloned(),
            seconds: verdict.stages.iter().filter(|stage| stage.stage != "oracle").map(|stage| stage.seconds).sum(),
            note: entry.note.clone(),
        }
    }

    /// Whether there is a verdict on the candidate itself, and one that counts in a rate.
    fn decided(&self) -> bool {
        matches!(self.verdict.fault(), Fault::None | Fault::Candidate) && self.outcome != Outcome::Harmless
    }
}

fn outcome(entry: &Labelled, kind: VerdictKind) -> Outcome {
    let allowed = entry.verdicts.contains(&kind);
    match (entry.label, kind) {
        (_, VerdictKind::Unsupported | VerdictKind::Infrastructure) => Outcome::Undecided,
        (_, VerdictKind::ProblemDefect) if !allowed => Outcome::Undecided,
        (Label::Honest, _) if allowed => Outcome::Expected,
        (Label::Honest, _) => Outcome::FalseReject,
        (_, VerdictKind::Accepted) if allowed => Outcome::Harmless,
        (_, VerdictKind::Accepted) => Outcome::FalseAccept,
        _ if allowed => Outcome::Expected,
        _ => Outcome::CaughtOtherwise,
    }
}

impl Counts {
    fn of<'a>(name: &str, rows: impl Iterator<Item = &'a Row>) -> Self {
        let rows: Vec<&Row> = rows.collect();
        let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count() as u64;
        let decided = rows.iter().filter(|row| row.decided()).count() as u64;
        Self {
            name: name.into(),
            files: rows.len() as u64,
            expected: count(Outcome::Expected),
            otherwise: count(Outcome::CaughtOtherwise),
            harmless: count(Outcome::Harmless),
            undecided: count(Outcome::Undecided),
            mistaken: Rate::new(count(Outcome::FalseAccept) + count(Outcome::FalseReject), decided),
        }
    }
}

fn by_label(rows: &[Row]) -> Vec<Counts> {
    let of = |label: Label| Counts::of(label.name(), rows.iter().filter(move |row| row.label == label));
    Label::ALL.into_iter().map(of).filter(|counts| counts.files > 0).collect()
}

fn by_mechanism(rows: &[Row]) -> Vec<Counts> {
    let mut groups: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        for mechanism in &row.mechanisms {
            groups.entry((natural(mechanism), mechanism)).or_default().push(row);
        }
    }
    groups.into_iter().map(|((_, name), of)| Counts::of(name, of.into_iter())).collect()
}

/// `B23` after `B9`: letters, then numbers by size.
fn natural(name: &str) -> (String, Vec<u64>) {
    let digits = |part: &str| part.parse().ok();
    let letters: String = name.chars().take_while(|c| !c.is_ascii_digit()).collect();
    let numbers = name[letters.len()..].split(|c: char| !c.is_ascii_digit()).filter_map(digits).collect();
    (letters, numbers)
}

fn by_verdict(rows: &[Row]) -> Vec<LabelCounts> {
    let of = |kind: VerdictKind| LabelCounts::of(kind.name(), rows.iter().filter(move |row| row.verdict == kind));
    VerdictKind::ALL.into_iter().map(of).filter(|counts| counts.total() > 0).collect()
}

fn by_stage(rows: &[Row]) -> Vec<LabelCounts> {
    let refused = || rows.iter().filter(|row| row.verdict != VerdictKind::Accepted);
    let place = |name: &str| STAGES.iter().position(|stage| *stage == name).unwrap_or(STAGES.len());
    let mut names: Vec<&str> = refused().map(|row| row.stage.as_str()).collect();
    names.sort_by_key(|name| (place(name), *name));
    names.dedup();
    names.into_iter().map(|name| LabelCounts::of(name, refused().filter(|row| row.stage == name))).collect()
}

impl LabelCounts {
    fn of<'a>(name: &str, rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut counts = Self { name: name.into(), honest: 0, wrong: 0, hack: 0 };
        for row in rows {
            match row.label {
                Label::Honest => counts.honest += 1,
                Label::Wrong => counts.wrong += 1,
                Label::Hack => counts.hack += 1,
            }
        }
        counts
    }

    pub fn total(&self) -> u64 {
        self.honest + self.wrong + self.hack
    }
}
