//! All comparisons of one candidate, joined into an outcome under each profile.

use std::collections::BTreeMap;

use tilewright_contract::{ExpectedTensor, Metrics, Profile, ProfileOutcome, Reason, Worst};

use crate::compare::{Comparison, JudgeError, check_sizes, compare, judge_figures};
use crate::diagnose::{Cause, Evidence, diagnose};
use crate::figures::Figures;
use crate::groups::SHORT;
use crate::scan::Typical;
use crate::stochastic::{Side, judge_stochastic, judge_together};

/// The case of the problem's own shapes.
pub const OWN_CASE: &str = "default";
/// The regime of the problem's own distribution.
pub const OWN_REGIME: &str = "seed";
/// Reasons and robustness lines that are spelled out; the rest is counted.
const SPELLED: usize = 8;

/// Where a comparison was made.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// [`OWN_CASE`], or the label of a shape variant.
    pub case: &'a str,
    /// [`OWN_REGIME`], or a value regime.
    pub regime: &'a str,
    /// Which call on the same module, from 0.
    pub call: usize,
}

impl Place<'_> {
    /// Whether these are the problem's own shapes and distribution.
    pub fn own(&self) -> bool {
        self.case == OWN_CASE && self.regime == OWN_REGIME
    }

    fn words(&self) -> String {
        let mut words = Vec::new();
        if self.case != OWN_CASE {
            words.push(format!("case {}", self.case));
        }
        if self.regime != OWN_REGIME {
            words.push(format!("regime {}", self.regime));
        }
        if self.call > 0 {
            words.push(format!("call {}", self.call + 1));
        }
        if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
    }
}

/// What the values say under every profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// By profile name.
    pub outcomes: BTreeMap<String, ProfileOutcome>,
    /// Whether the first profile passes: it decides.
    pub pass: bool,
    /// Why not, under the first profile, the likeliest and worst first; empty on a pass.
    pub reasons: Vec<Reason>,
    pub notes: Vec<String>,
}

/// Collects comparisons.
#[derive(Debug)]
pub struct Tally {
    profiles: Vec<Entry>,
    poison: Option<u8>,
    /// Whether failures are explained.
    explains: bool,
    failures: Vec<Failure>,
    /// Paths that were right on the problem's own inputs and shapes.
    right: Vec<String>,
    notes: Vec<String>,
    compared: u64,
    small: Vec<Small>,
}

/// A tensor of few elements, kept until all calls are known: the scale of a loss near zero shows only over several.
#[derive(Debug)]
struct Small {
    case: String,
    regime: String,
    call: usize,
    expected: ExpectedTensor,
    native: Vec<u8>,
    float64: Option<Vec<u8>>,
    got: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    profile: Profile,
    /// The same in a value regime.
    relaxed: Profile,
    outcome: ProfileOutcome,
    severity: f64,
    /// Robustness lines beyond those spelled out.
    unspelled: usize,
}

/// A failed comparison under the first profile.
#[derive(Debug)]
struct Failure {
    own: bool,
    regime: String,
    path: String,
    severity: f64,
    text: String,
    cause: Option<Cause>,
    integer: bool,
}

impl Tally {
    /// `profiles` in the order asked for: the first decides. `poison` is the byte that fresh buffers held.
    pub fn new(profiles: Vec<Profile>, poison: Option<u8>) -> Self {
        let entry = |profile: Profile| {
            let outcome = ProfileOutcome {
                pass: true,
                version: profile.version,
                metrics: Metrics::default(),
                robustness: Vec::new(),
            };
            Entry { relaxed: profile.in_regime(), profile, outcome, severity: f64::NEG_INFINITY, unspelled: 0 }
        };
        let profiles = profiles.into_iter().map(entry).collect();
        Self {
            profiles,
            poison,
            explains: true,
            failures: Vec::new(),
            right: Vec::new(),
            notes: Vec::new(),
            compared: 0,
            small: Vec::new(),
        }
    }

    /// Says of failures that they are there, and not why: for that all of an output is read once more.
    pub fn without_causes(self) -> Self {
        Self { explains: false, ..self }
    }

    /// Judges one tensor under every profile. Bytes as for [`crate::judge`].
    ///
    /// # Errors
    /// As [`crate::judge`].
    pub fn add(
        &mut self,
        place: Place,
        expected: &ExpectedTensor,
        native: &[u8],
        float64: Option<&[u8]>,
        got: &[u8],
    ) -> Result<(), JudgeError> {
        check_sizes(expected, native, float64, got)?;
        self.compared += 1;
        if expected.dtype.is_float() && expected.shape.iter().product::<u64>() < SHORT as u64 {
            self.small.push(Small {
                case: place.case.into(),
                regime: place.regime.into(),
                call: place.call,
                expected: expected.clone(),
                native: native.into(),
                float64: float64.map(Into::into),
                got: got.into(),
            });
        } else {
            let evidence = Evidence { expected, native, float64, got, poison: self.poison };
            self.compare(place, &evidence, Typical::default());
        }
        Ok(())
    }

    fn compare(&mut self, place: Place, evidence: &Evidence, typical: Typical) {
        let Evidence { expected, native, float64, got, .. } = *evidence;
        for at in 0..self.profiles.len() {
            let comparison = compare(self.profiles[at].at(place), expected, (native, float64, got), typical);
            let explains = self.explains;
            self.record(at, place, expected, comparison, || explains.then(|| diagnose(evidence)).flatten());
        }
    }

    /// Takes the comparison under profile `at`; `cause` explains a failure.
    fn record(
        &mut self,
        at: usize,
        place: Place,
        expected: &ExpectedTensor,
        comparison: Comparison,
        cause: impl FnOnce() -> Option<Cause>,
    ) {
        self.profiles[at].add(place, expected, &comparison);
        if at > 0 {
            return;
        }
        let decides = place.own() || self.profiles[0].profile.decides_robustness;
        if comparison.pass {
            self.remark(place, expected, comparison.note);
        } else if decides && self.worse(place, &expected.path, comparison.severity) {
            self.keep(place, expected, &comparison, cause());
        }
    }

    /// The profiles as they hold at a place, in their order.
    pub fn profiles_at<'a>(&'a self, place: Place<'_>) -> Vec<&'a Profile> {
        self.profiles.iter().map(|entry| entry.at(place)).collect()
    }

    /// As [`Tally::add`], by figures that were made elsewhere under each of [`Tally::profiles_at`]. A failure stays
    /// without a likely cause, for which the whole output would have to be read.
    pub fn add_figures(&mut self, place: Place, expected: &ExpectedTensor, figures: &[Figures]) {
        self.compared += 1;
        for (at, figures) in figures.iter().enumerate().take(self.profiles.len()) {
            let comparison = judge_figures(self.profiles[at].at(place), expected, figures);
            self.record(at, place, expected, comparison, || None);
        }
    }

    /// Judges what was kept, each tensor at the scale it has over all calls of its case and regime.
    fn compare_small(&mut self) {
        let small = std::mem::take(&mut self.small);
        let mut typical: BTreeMap<_, Typical> = BTreeMap::new();
        for kept in &small {
            let one = Typical::of(&kept.expected, &kept.native, kept.float64.as_deref());
            let all = typical.entry((&kept.case, &kept.regime, &kept.expected.path)).or_default();
            *all = all.max(one);
        }
        for kept in &small {
            let place = Place { case: &kept.case, regime: &kept.regime, call: kept.call };
            let evidence = Evidence {
                expected: &kept.expected,
                native: &kept.native,
                float64: kept.float64.as_deref(),
                got: &kept.got,
                poison: self.poison,
            };
            self.compare(place, &evidence, typical[&(&kept.case, &kept.regime, &kept.expected.path)]);
        }
    }

    /// Judges draws of one tensor on the same inputs under the `stochastic` standard, which stands for every profile.
    ///
    /// # Errors
    /// As [`judge_stochastic`].
    pub fn add_draws(
        &mut self,
        place: Place,
        expected: &ExpectedTensor,
        reference: &[&[u8]],
        got: &[&[u8]],
    ) -> Result<(), JudgeError> {
        let comparison = judge_stochastic(expected, reference, got)?;
        self.compared += 1;
        self.profiles.iter_mut().for_each(|entry| entry.add(place, expected, &comparison));
        let note = format!("{}: random, so judged in distribution (stochastic)", expected.path);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        let decides = place.own() || self.profiles.first().is_some_and(|entry| entry.profile.decides_robustness);
        if comparison.pass {
            self.remark(place, expected, None);
        } else if decides {
            self.keep(place, expected, &comparison, None);
        }
        Ok(())
    }

    /// Judges how two tensors depend on each other, under the same standard.
    ///
    /// # Errors
    /// As [`judge_together`].
    pub fn add_together(&mut self, place: Place, first: Side<'_>, second: Side<'_>) -> Result<(), JudgeError> {
        let comparison = judge_together(first, second)?;
        let decides = place.own() || self.profiles.first().is_some_and(|entry| entry.profile.decides_robustness);
        if !comparison.pass {
            self.profiles.iter_mut().for_each(|entry| entry.add(place, second.expected, &comparison));
            if decides {
                self.keep(place, second.expected, &comparison, None);
            }
        }
        Ok(())
    }

    fn remark(&mut self, place: Place, expected: &ExpectedTensor, note: Option<String>) {
        if place.own() && !self.right.contains(&expected.path) {
            self.right.push(expected.path.clone());
        }
        if let Some(note) = note.filter(|note| !self.notes.contains(note)) {
            self.notes.push(note);
        }
    }

    /// Whether this failure says more than the one known of its path: own inputs before regimes, then the worst.
    fn worse(&self, place: Place, path: &str, severity: f64) -> bool {
        let known = self.failures.iter().find(|failure| failure.path == path);
        known.is_none_or(|old| (place.own() && !old.own) || (place.own() == old.own && severity > old.severity))
    }

    /// One failure a path.
    fn keep(&mut self, place: Place, expected: &ExpectedTensor, comparison: &Comparison, cause: Option<Cause>) {
        if !self.worse(place, &expected.path, comparison.severity) {
            return;
        }
        self.failures.retain(|failure| failure.path != expected.path);
        self.failures.push(Failure {
            own: place.own(),
            regime: place.regime.to_string(),
            path: expected.path.clone(),
            severity: comparison.severity,
            text: sentence(place, &expected.path, comparison, cause.as_ref()),
            cause,
            integer: !expected.dtype.is_float(),
        });
    }

    /// The outcome. Without a single comparison nothing passes.
    pub fn finish(mut self) -> Judged {
        self.compare_small();
        self.failures.sort_by(|a, b| b.own.cmp(&a.own).then(b.severity.total_cmp(&a.severity)));
        let mut reasons: Vec<Reason> =
            self.failures.iter().take(SPELLED).map(|failure| failure.reason(&self.right)).collect();
        if self.failures.len() > SPELLED {
            let message = format!("{} more tensors are wrong", self.failures.len() - SPELLED);
            reasons.push(Reason { code: "values".into(), message, line: None, help: None });
        }
        if self.compared == 0 {
            self.profiles.iter_mut().for_each(|entry| entry.outcome.pass = false);
            let message = "nothing was compared: the reference returns no tensor and changes none".into();
            reasons.push(Reason { code: "nothing-compared".into(), message, line: None, help: None });
        }
        let pass = self.profiles.first().is_some_and(|entry| entry.outcome.pass);
        let outcomes = self.profiles.into_iter().map(Entry::finish).collect();
        Judged { outcomes, pass, reasons, notes: self.notes }
    }
}

impl Entry {
    /// The profile as it holds at a place.
    fn at(&self, place: Place) -> &Profile {
        if place.regime == OWN_REGIME { &self.profile } else { &self.relaxed }
    }

    fn add(&mut self, place: Place, expected: &ExpectedTensor, comparison: &Comparison) {
        if !place.own() && !self.profile.decides_robustness {
            if !comparison.pass {
                self.inform(sentence(place, &expected.path, comparison, None));
            }
            return;
        }
        self.outcome.pass &= comparison.pass;
        let (all, new) = (&mut self.outcome.metrics, &comparison.metrics);
        all.max_abs = all.max_abs.max(new.max_abs);
        all.max_rel = all.max_rel.max(new.max_rel);
        all.mean_rel = all.mean_rel.max(new.mean_rel);
        all.rms = all.rms.max(new.rms);
        all.mismatched += new.mismatched;
        all.elements += new.elements;
        if comparison.severity > self.severity {
            self.severity = comparison.severity;
            let (case, regime) = (place.case.to_string(), place.regime.to_string());
            all.worst = new.worst.clone().map(|worst| Worst { case, regime, ..worst });
        }
    }

    fn inform(&mut self, line: String) {
        if self.outcome.robustness.len() < SPELLED {
            self.outcome.robustness.push(line);
        } else {
            self.unspelled += 1;
        }
    }

    fn finish(mut self) -> (String, ProfileOutcome) {
        if self.unspelled > 0 {
            self.outcome.robustness.push(format!("{} more", self.unspelled));
        }
        (self.profile.name, self.outcome)
    }
}

/// `output[1] (regime large): what is wrong; at [3, 5] got 1, want 2; figures`
fn sentence(place: Place, path: &str, comparison: &Comparison, cause: Option<&Cause>) -> String {
    let why = comparison.why.as_deref().unwrap_or("wrong");
    let mut parts = vec![cause.map_or(why, |cause| &cause.message).to_string()];
    if let Some(worst) = &comparison.metrics.worst {
        parts.push(format!("at {:?} got {}, want {}", worst.index, worst.got, worst.want));
    }
    if cause.is_some() && comparison.severity.is_finite() {
        parts.push(why.to_string());
    }
    format!("{path}{}: {}", place.words(), parts.join("; "))
}

impl Failure {
    fn reason(&self, right: &[String]) -> Reason {
        let elsewhere = !self.own && right.contains(&self.path);
        let mut message = self.text.clone();
        if elsewhere {
            message += "; right on the problem's own inputs";
        }
        let advice = if elsewhere { self.regime_help() } else { self.state_help() };
        let help = advice.map(String::from).or_else(|| self.cause.as_ref().map(|cause| cause.help.clone()));
        let code = self.cause.as_ref().map_or("values", |cause| cause.code);
        Reason { code: code.into(), message, line: None, help }
    }

    /// What to look for in an input or a buffer that the reference changes in place.
    fn state_help(&self) -> Option<&'static str> {
        let vague =
            self.cause.as_ref().is_none_or(|cause| ["all-zeros", "constant", "unrelated"].contains(&cause.code));
        let place = self.path.starts_with("state.") || self.path.starts_with("input[");
        (place && vague)
            .then_some("the reference changes this tensor in place on every call: store the new values to it")
    }

    /// What to look for where only a value regime is wrong.
    fn regime_help(&self) -> Option<&'static str> {
        let overflow = self.cause.as_ref().is_some_and(|cause| ["nan", "infinite"].contains(&cause.code));
        match self.regime.as_str() {
            "scaled-1e3" | "large" if overflow => {
                Some("subtract the maximum before exp; keep sums of squares in float32")
            }
            "negative" => Some(
                "the kernel relies on the sign of its inputs: check the neutral element of a masked maximum, and steps left out",
            ),
            "constant-rows" if self.integer => Some("ties: torch returns the first index"),
            "constant-rows" => {
                Some("compute the variance from the differences to the mean, and add eps where the reference adds it")
            }
            "mixed-rows" => Some(
                "rows of zeros, of numbers near zero or far from it: check the neutral element of a maximum, and where eps is added",
            ),
            "scaled-1e-3" => Some("an eps or a threshold is not where the reference has it"),
            _ => None,
        }
    }
}
