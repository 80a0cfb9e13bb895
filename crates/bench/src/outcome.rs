//! A run as it is read back: what became of every sample that it lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use tilewright_contract::{Certificate, Fault, Mark, Reason, Timing, Verdict, VerdictKind};

use crate::error::BenchError;
use crate::log::{Imported, Key, Known, Listed, Mean, file_of, key, read};
use crate::setting::{Setting, list};

/// A finished or unfinished run, from one log or several of the same setting.
#[derive(Debug, Clone)]
pub struct Run {
    pub files: Vec<PathBuf>,
    pub setting: Setting,
    /// Where problems and samples came from.
    pub suite: String,
    pub samples: String,
    /// All that samples came from, in order: one, but for a folder that was used for several.
    pub sources: Vec<String>,
    /// Problems of the whole suite, where that is known.
    pub suite_problems: Option<u32>,
    pub problems: Vec<RunProblem>,
    /// Versions of the GPU's driver that verdicts name.
    pub drivers: BTreeSet<String>,
}

#[derive(Debug, Clone)]
pub struct RunProblem {
    pub id: String,
    pub level: Option<u32>,
    pub number: Option<u32>,
    pub digest: String,
    /// By the name of a profile; of problems that were not looked at there are none.
    pub marks: BTreeMap<String, (Mark, Vec<String>)>,
    /// In the order of the samples' numbers; each listed sample has one.
    pub outcomes: Vec<Outcome>,
}

/// What became of one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub index: u32,
    /// None: it is listed, and there is no verdict.
    pub kind: Option<VerdictKind>,
    /// It parses, launches kernels of its own, and leaves no computing to torch.
    pub valid: bool,
    /// Valid, and its kernels compile.
    pub compiled: bool,
    /// Correct, by profile in the order of the setting.
    pub passes: Vec<bool>,
    /// By baseline in the order of the setting; none where it was not timed.
    pub speedups: Vec<Option<Speedup>>,
    pub device_us: Option<f64>,
    /// Of what the device could do at best.
    pub fraction: Option<f64>,
    /// It took less time than the reference's own operations take on this device at best.
    pub outran: bool,
    /// The deciding reason.
    pub reason: Option<Reason>,
}

/// How many times faster than the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speedup {
    pub value: f64,
    /// 95 % limits, where they are known.
    pub limits: Option<(f64, f64)>,
}

impl Outcome {
    /// Whether there is a verdict on the candidate itself.
    pub fn decided(&self) -> bool {
        self.kind.is_some_and(|kind| matches!(kind.fault(), Fault::None | Fault::Candidate))
    }
}

impl RunProblem {
    /// Whether a right answer needs fewer operations than the reference is written with, as an answer has shown: its
    /// speedup tells of algebra, not of kernels. Where a lower precision passes, that may be all there is to it.
    pub(crate) fn collapsible(&self, at: usize, profile: &str) -> bool {
        let blind = self.marks.get(profile).is_some_and(|(mark, _)| *mark == Mark::PrecisionBlind);
        let shown = |outcome: &Outcome| outcome.outran && outcome.passes.get(at) == Some(&true);
        !blind && self.outcomes.iter().any(shown)
    }
}

impl Run {
    /// Reads logs of one run, which may have been made on several machines: folders or files.
    ///
    /// # Errors
    /// A log cannot be read, is no log, lists nothing, or was made under another setting than the first.
    pub fn read(paths: &[PathBuf]) -> Result<Self, BenchError> {
        let mut gathered = Gathered::default();
        let mut setting: Option<Setting> = None;
        let (mut suite, mut samples, mut sources) = (String::new(), String::new(), Vec::new());
        let mut suite_problems = None;
        for path in paths {
            let mut known = Known::default();
            let profiles = |known: &Known, setting: &Option<Setting>| {
                let last = known.manifests.last().map(|manifest| &manifest.setting);
                last.or(setting.as_ref()).map(|setting| (setting.profiles.clone(), setting.baselines.clone()))
            };
            read(path, |line| {
                if let Some(verdict) = known.take(line)
                    && let Some((profiles, baselines)) = profiles(&known, &setting)
                {
                    gathered.add(&verdict, &profiles, &baselines);
                }
            })?;
            let file = file_of(path);
            let Some(manifest) = known.manifests.last() else {
                let message =
                    format!("{} does not begin as a run's log does, or the run has not begun", file.display());
                return Err(BenchError::usage(message));
            };
            let first = setting.get_or_insert_with(|| manifest.setting.clone());
            for manifest in &known.manifests {
                suite_problems = suite_problems.max(manifest.suite_problems);
                if !sources.contains(&manifest.samples) {
                    sources.push(manifest.samples.clone());
                }
                let differences = first.differences(&manifest.setting);
                if !differences.is_empty() {
                    let (name, what) = (file.display(), list(&differences));
                    let message = format!("{name} is not of the same run; {what}: compare them instead");
                    return Err(BenchError::usage(message));
                }
            }
            suite.clone_from(&manifest.suite);
            samples.clone_from(&manifest.samples);
            gathered.take(known);
        }
        let setting = setting.ok_or_else(|| BenchError::usage("no run is given"))?;
        let drivers = std::mem::take(&mut gathered.drivers);
        let problems = gathered.problems(&setting);
        if let Some(pair) = problems.windows(2).find(|pair| pair[0].id == pair[1].id) {
            let message = format!("the logs are about two texts of problem {}: compare them instead", pair[0].id);
            return Err(BenchError::usage(message));
        }
        Ok(Self { files: paths.to_vec(), setting, suite, samples, sources, suite_problems, problems, drivers })
    }

    /// The name of a profile, without its version.
    pub(crate) fn profile_name(profile: &str) -> &str {
        profile.split('/').next().unwrap_or(profile)
    }
}

/// What several logs say, before it is put in order.
#[derive(Default)]
struct Gathered {
    listed: Vec<Listed>,
    certificates: HashMap<String, Certificate>,
    outcomes: HashMap<Key, Outcome>,
    imported: HashMap<(String, u32), Imported>,
    drivers: BTreeSet<String>,
}

impl Gathered {
    /// A later verdict stands for an earlier one, but no fault of the machine for a verdict.
    fn add(&mut self, verdict: &Verdict, profiles: &[String], baselines: &[String]) {
        let states = verdict.timing.iter().flat_map(|timing| &timing.device);
        self.drivers.extend(states.map(|state| state.driver.clone()));
        let outcome = of_verdict(verdict, profiles, baselines);
        let key = key(verdict);
        if outcome.kind != Some(VerdictKind::Infrastructure) || !self.outcomes.contains_key(&key) {
            self.outcomes.insert(key, outcome);
        }
    }

    fn take(&mut self, known: Known) {
        for problem in known.manifests.into_iter().flat_map(|manifest| manifest.problems) {
            match self.listed.iter_mut().find(|listed| listed.id == problem.id && listed.digest == problem.digest) {
                Some(listed) => {
                    // A later list of the same problem replaces what it says of a sample.
                    listed.samples.retain(|old| problem.samples.iter().all(|new| new.index != old.index));
                    listed.samples.extend(problem.samples);
                    listed.samples.sort_by_key(|sample| sample.index);
                }
                None => self.listed.push(problem),
            }
        }
        self.certificates.extend(known.certificates);
        let imported = known.imported.into_iter().map(|result| ((result.problem.clone(), result.index), result));
        self.imported.extend(imported);
    }

    fn problems(self, setting: &Setting) -> Vec<RunProblem> {
        let outcome = |problem: &Listed, index: u32, digest: &str| {
            let by_content = self.outcomes.get(&(problem.digest.clone(), digest.to_owned()));
            let imported = || self.imported.get(&(problem.id.clone(), index)).map(|result| of_import(result, setting));
            let found = by_content.cloned().or_else(imported).unwrap_or_else(|| missing(setting));
            Outcome { index, ..found }
        };
        let mut problems: Vec<RunProblem> = self
            .listed
            .iter()
            .map(|listed| RunProblem {
                id: listed.id.clone(),
                level: listed.level,
                number: listed.number,
                digest: listed.digest.clone(),
                marks: self.certificates.get(&listed.digest).map(marks).unwrap_or_default(),
                outcomes: listed.samples.iter().map(|sample| outcome(listed, sample.index, &sample.digest)).collect(),
            })
            .collect();
        problems.sort_by(|a, b| (a.level, a.number, &a.id).cmp(&(b.level, b.number, &b.id)));
        problems
    }
}

fn marks(certificate: &Certificate) -> BTreeMap<String, (Mark, Vec<String>)> {
    let of = certificate.profiles.iter();
    of.map(|profile| (profile.profile.clone(), (profile.mark, profile.findings.clone()))).collect()
}

/// A sample that is listed and has no verdict: it must not vanish.
fn missing(setting: &Setting) -> Outcome {
    Outcome {
        index: 0,
        kind: None,
        valid: false,
        compiled: false,
        passes: vec![false; setting.profiles.len()],
        speedups: vec![None; setting.baselines.len()],
        device_us: None,
        fraction: None,
        outran: false,
        reason: None,
    }
}

fn of_verdict(verdict: &Verdict, profiles: &[String], baselines: &[String]) -> Outcome {
    let kind = verdict.verdict;
    let code = verdict.reasons.first().map(|reason| reason.code.as_str());
    // Of errors in the text itself only the compiler's are about a candidate that could be one.
    let no_candidate = kind == VerdictKind::CompileError && code != Some("compile");
    let refused = matches!(kind, VerdictKind::Rejected | VerdictKind::Untraceable);
    let decided = matches!(kind.fault(), Fault::None | Fault::Candidate);
    let valid = decided && !no_candidate && !refused;
    let reached = verdict.stages.iter().any(|stage| stage.stage == "compile" || stage.stage == "direct");
    let judged = matches!(kind, VerdictKind::Accepted | VerdictKind::Incorrect);
    let passes = |(at, profile): (usize, &String)| {
        let outcome = verdict.profiles.get(Run::profile_name(profile)).map(|outcome| outcome.pass);
        // The verdict itself is that of the first profile.
        judged && if at == 0 { kind == VerdictKind::Accepted } else { outcome == Some(true) }
    };
    let timing = verdict.timing.as_ref();
    let speedup = |baseline: &String| {
        let of = timing?.baselines.iter().find(|of| of.baseline.name() == baseline)?;
        usable(of.speedup.value)
            .then_some(Speedup { value: of.speedup.value, limits: Some((of.speedup.low, of.speedup.high)) })
    };
    Outcome {
        index: 0,
        kind: Some(kind),
        valid,
        compiled: valid && kind != VerdictKind::CompileError && reached,
        passes: profiles.iter().enumerate().map(passes).collect(),
        speedups: baselines.iter().map(speedup).collect(),
        device_us: timing.map(|timing| timing.device_us.value),
        fraction: timing.and_then(|timing| timing.limit).map(|limit| limit.fraction),
        outran: timing.is_some_and(outran),
        reason: verdict.reasons.first().cloned(),
    }
}

fn of_import(result: &Imported, setting: &Setting) -> Outcome {
    let kind = match (&result.undecided, result.correct, result.compiled) {
        (Some(_), ..) => VerdictKind::Infrastructure,
        (None, true, _) => VerdictKind::Accepted,
        (None, false, true) => VerdictKind::Incorrect,
        (None, false, false) => VerdictKind::CompileError,
    };
    let correct = kind == VerdictKind::Accepted;
    let compiled = correct || kind == VerdictKind::Incorrect;
    let message = result.undecided.as_ref().or(result.error.as_ref());
    let speedup = result.baseline_us.zip(result.runtime_us).and_then(|(base, own)| quotient(base, own));
    let code = if result.undecided.is_some() { "not-separable" } else { "imported" };
    let reason = message.map(|message| Reason { code: code.into(), message: message.clone(), line: None, help: None });
    Outcome {
        index: 0,
        kind: Some(kind),
        valid: compiled,
        compiled,
        passes: vec![correct; setting.profiles.len()],
        speedups: setting.baselines.iter().map(|_| speedup.filter(|_| correct)).collect(),
        device_us: result.runtime_us.map(|mean| mean.mean).filter(|&mean| correct && usable(mean)),
        fraction: None,
        outran: false,
        reason,
    }
}

/// Share of the time that the reference's operations take at the measured rate, below which they were not all done: a
/// rate is measured by one product of one shape, and others may be somewhat faster.
const OUTRAN: f64 = 0.8;

/// Whether even the upper limit of a time is too short for the reference's products, convolutions and attentions.
fn outran(timing: &Timing) -> bool {
    let (Some(work), Some(limit)) = (timing.work, timing.limit) else { return false };
    let operations_us = work.flops as f64 / limit.flops_per_second * 1e6;
    usable(timing.device_us.high) && timing.device_us.high < OUTRAN * operations_us
}

/// A quotient of two means. Its limits are by the delta method on its logarithm, where both spreads are known.
fn quotient(base: Mean, own: Mean) -> Option<Speedup> {
    if !usable(base.mean) || !usable(own.mean) {
        return None;
    }
    let value = Some(base.mean / own.mean).filter(|&value| usable(value))?;
    let variance = |of: Mean| {
        let trials = of.trials.filter(|&trials| trials > 1)?;
        Some((of.std? / of.mean).powi(2) / f64::from(trials))
    };
    let limits = variance(base).zip(variance(own)).map(|(a, b)| {
        let reach = (1.96 * (a + b).sqrt()).exp();
        (value / reach, value * reach)
    });
    Some(Speedup { value, limits })
}

/// Whether a time or a quotient of times can be one.
fn usable(figure: f64) -> bool {
    figure.is_finite() && figure > 0.0
}
