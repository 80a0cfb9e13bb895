//! What a run says: documents without behaviour, and how they come out of its outcomes.

mod group;
mod rows;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tilewright_contract::{Fault, Mark, VerdictKind};

use crate::error::BenchError;
use crate::outcome::Run;
use crate::setting::Setting;

/// What is asked of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// `k` of pass@k; empty for 1, 2, 4, 8 … up to the number of samples.
    pub ks: Vec<u32>,
    /// `p` of fast_p.
    pub ps: Vec<f64>,
}

impl Asked {
    /// KernelBench's thresholds, and 1.2, which the others use.
    pub const PS: [f64; 7] = [0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0];
}

impl Default for Asked {
    fn default() -> Self {
        Self { ks: Vec::new(), ps: Self::PS.to_vec() }
    }
}

/// The numbers of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// `tilewright.bench-report/1`
    pub schema: String,
    /// When it was made, UTC, RFC 3339.
    pub date: String,
    pub setting: Setting,
    /// Versions of the GPU's driver that verdicts name.
    pub drivers: Vec<String>,
    /// The logs it was made from.
    pub runs: Vec<String>,
    /// Where the problems come from.
    pub suite: String,
    /// Where the samples come from.
    pub samples_from: String,
    pub counts: Counts,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Resamples behind each interval.
    pub resamples: u32,
    /// By precision profile; the first one decided.
    pub standards: Vec<Standard>,
    /// Verdicts by kind, the most frequent first.
    pub taxonomy: Vec<Kind>,
    pub problems: Vec<ProblemRow>,
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Samples listed are samples counted: each is in exactly one of the last four.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub problems: u64,
    /// Problems without a single sample.
    pub unanswered: u64,
    /// Samples that the run lists.
    pub samples: u64,
    pub accepted: u64,
    /// Not accepted, by the candidate's own fault.
    pub failed: u64,
    /// A verdict on something else than the candidate: a fault of this machine, a missing feature, or a problem that does
    /// not work. They count neither for nor against.
    pub undecided: u64,
    /// No verdict at all yet.
    pub missing: u64,
}

/// A share between 0 and 1: the mean over all problems of a group of what each problem says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// A problem with fewer than k decided samples counts with what these give, one with none as 0: a lower bound.
    pub value: f64,
    /// 95 % limits, if problems and samples were drawn again.
    pub low: f64,
    pub high: f64,
    /// 95 % limits, if samples of the same problems were drawn again; none where those of each problem agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Limits>,
    /// Problems with too few decided samples.
    pub short: u32,
    /// The share over the other problems; none where there are no others.
    pub without_short: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    pub low: f64,
    pub high: f64,
}

/// The numbers under one precision profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standard {
    /// `NAME/VERSION`
    pub profile: String,
    /// Whether verdicts are by this one.
    pub decides: bool,
    pub marks: Marks,
    /// All problems, those that can tell right from wrong, and each level.
    pub groups: Vec<Group>,
}

/// What the controls say of the problems under a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Marks {
    pub ok: u32,
    /// A lower precision passes.
    pub precision_blind: u32,
    /// Something that does not know the answer passes.
    pub degenerate: u32,
    /// The reference, run once more, fails.
    pub defect: u32,
    /// Not looked at.
    pub unknown: u32,
    /// Whatever else they are: some right answer took less time than the reference's own operations take on this device
    /// at best, so that a speedup tells of algebra.
    #[serde(default)]
    pub collapsible: u32,
}

/// Problems whose numbers are taken together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// `all`, `level 1`, `all, sound`
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Without problems that are degenerate or defective under this profile.
    pub sound: bool,
    /// Without problems that are collapsible either.
    #[serde(default)]
    pub straight: bool,
    /// What every share is divided by.
    pub problems: u32,
    /// Decided samples.
    pub samples: u32,
    /// Parses, launches kernels of its own, leaves no computing to torch.
    pub valid: Option<Share>,
    /// Valid, and its kernels compile.
    pub compiled: Option<Share>,
    /// Compiled, and right under this profile.
    pub correct: Option<Share>,
    pub pass_at: Vec<PassAt>,
    /// By baseline; empty where nothing is timed.
    pub speed: Vec<Speed>,
}

/// pass@k: the probability that at least one of `k` samples is right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassAt {
    pub k: u32,
    #[serde(flatten)]
    pub share: Share,
}

/// How fast correct candidates are against one baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Speed {
    /// `eager`, `compile`, `max-autotune`
    pub baseline: String,
    /// Correct samples that were timed, and that were not.
    pub timed: u32,
    pub untimed: u32,
    pub fast: Vec<Fast>,
    /// Of correct and timed samples; none where there are none.
    pub mean: Option<MeanSpeedup>,
    /// fast_p at many thresholds, for the group of all problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<CurvePoint>,
}

/// fast_p: the share of problems solved more than `p` times faster than the baseline, strictly; what is wrong is not
/// fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fast {
    pub p: f64,
    /// For one sample.
    pub share: Share,
    /// The same, counting only speedups whose whole interval is above `p`, or any of it: what noise leaves open.
    pub surely: f64,
    pub possibly: f64,
    /// For the best of all samples of a problem.
    pub best: f64,
}

/// Geometric means over problems of the geometric mean of each problem's correct and timed samples. Problems without
/// one have no part in it: it says how fast what works is, not how much works.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanSpeedup {
    pub geometric: f64,
    /// None where no two of the problems differ, as of a single one.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The median over the same problems.
    pub median: f64,
    /// Problems that it is over.
    pub problems: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    pub p: f64,
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Samples with one kind of verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kind {
    /// Name of the verdict, or `missing`.
    pub verdict: String,
    /// None for `missing`.
    pub fault: Option<Fault>,
    pub count: u32,
    /// Codes of deciding reasons, the most frequent first.
    pub reasons: Vec<ReasonCount>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonCount {
    pub code: String,
    pub count: u32,
    /// One of their messages.
    pub example: String,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemRow {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// By profile, of problems that were looked at.
    pub marks: BTreeMap<String, Mark>,
    /// Under the first profile: a right answer needs fewer operations than the reference is written with.
    #[serde(default)]
    pub collapsible: bool,
    /// What the controls found under the first profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Listed, decided, and right under the first profile.
    pub samples: u32,
    pub decided: u32,
    pub correct: u32,
    /// Verdicts by name.
    pub verdicts: BTreeMap<String, u32>,
    /// The fastest correct sample against the first baseline.
    pub best: Option<SpeedupOf>,
    /// The commonest reason of its failures.
    pub reason: Option<ReasonCount>,
    pub outcomes: Vec<SampleRow>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedupOf {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Of what the device could do at best.
    pub fraction: Option<f64>,
}

/// One sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleRow {
    pub index: u32,
    /// None: missing.
    pub verdict: Option<VerdictKind>,
    /// Code of the deciding reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<SpeedupOf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_us: Option<f64>,
}

impl Report {
    pub const SCHEMA: &'static str = "tilewright.bench-report/1";

    /// # Errors
    /// What is asked for cannot be: a `k` of 0, a `p` that is no number.
    pub fn new(run: &Run, asked: &Asked) -> Result<Self, BenchError> {
        if asked.ks.contains(&0) || asked.ps.iter().any(|p| !p.is_finite() || *p < 0.0) {
            return Err(BenchError::usage("k must be at least 1, and p a number of at least 0"));
        }
        let most = run.problems.iter().map(|problem| problem.outcomes.len() as u32).max().unwrap_or(0);
        let (ks, mut notes) = ks(&asked.ks, most);
        let mut ps = asked.ps.clone();
        ps.sort_by(f64::total_cmp);
        ps.dedup();
        let counts = rows::counts(run);
        notes.extend(rows::notes(run, &counts));
        let standard = |(at, profile): (usize, &String)| group::standard(run, at, profile, &ks, &ps);
        Ok(Self {
            schema: Self::SCHEMA.into(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            setting: run.setting.clone(),
            drivers: run.drivers.iter().cloned().collect(),
            runs: run.files.iter().map(|file| file.display().to_string()).collect(),
            suite: run.suite.clone(),
            samples_from: run.samples.clone(),
            counts,
            confidence: tilewright_audit::CONFIDENCE,
            resamples: crate::bootstrap::RESAMPLES as u32,
            standards: run.setting.profiles.iter().enumerate().map(standard).collect(),
            taxonomy: rows::taxonomy(run),
            problems: run.problems.iter().map(|problem| rows::problem(run, problem)).collect(),
            notes,
        })
    }

    /// The numbers of the deciding profile over all problems.
    pub fn headline(&self) -> Option<&Group> {
        self.standards.first()?.groups.first()
    }
}

/// The `k` to report, and what cannot be.
fn ks(asked: &[u32], most: u32) -> (Vec<u32>, Vec<String>) {
    if asked.is_empty() {
        let powers = (0..32).map(|power| 1u32 << power).take_while(|&k| k <= most);
        let mut ks: Vec<u32> = powers.chain([most]).filter(|&k| k > 0).collect();
        ks.dedup();
        return (ks, Vec::new());
    }
    let mut ks = asked.to_vec();
    ks.sort_unstable();
    ks.dedup();
    let beyond: Vec<String> = ks.iter().filter(|&&k| k > most).map(|k| format!("pass@{k}")).collect();
    ks.retain(|&k| k <= most);
    let note = format!("{} needs more samples than the {most} that a problem has at most", beyond.join(", "));
    (ks, if beyond.is_empty() { Vec::new() } else { vec![note] })
}
