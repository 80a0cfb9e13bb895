//! Whether a problem tells right from wrong: what knows no answer must fail, what is the reference must pass.
//!
//! The design is in `docs/design/controls.md`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use tilewright_contract::{
    Certificate, Control, ControlKind, Dtype, Expected, ExpectedTensor, Mark, Profile, ProfileCertificate, TensorRef,
    Trial, Value, VerdictKind,
};
use tilewright_judge::{OWN_CASE, OWN_REGIME, POOLED_BELOW, Tally, decode};
use tilewright_stage::Controls;

use crate::draft::Stop;
use crate::execute::{Got, Observation};
use crate::judging;
use crate::oracle::OracleSet;
use crate::pipeline::Verifier;
use crate::problem::identify;

/// One expected tensor of one call.
#[derive(Debug, Clone, Copy)]
struct Site<'a> {
    case: usize,
    trial: usize,
    call: usize,
    tensor: usize,
    expected: &'a ExpectedTensor,
}

/// What a control leaves in place of an expected tensor, if it leaves anything.
type Values<'a> = Box<dyn Fn(&Site<'_>) -> Option<Cow<'a, [u8]>> + 'a>;

impl Verifier {
    /// Judges the controls of a problem under every profile.
    ///
    /// # Errors
    /// What kept the controls from being made, through no fault of the problem.
    pub fn controls(&self, path: &Path) -> Result<Certificate, String> {
        let source = std::fs::read(path).unwrap_or_default();
        let mut certificate = Certificate {
            schema: Certificate::SCHEMA.into(),
            problem: identify(path, &source),
            target: self.options.device.to_string(),
            seed: self.options.seed,
            trials: self.options.trials,
            defect: None,
            profiles: Vec::new(),
            controls: Vec::new(),
            notes: Vec::new(),
        };
        match self.control_data(path) {
            Ok((oracle, controls)) => judge(&self.options.profiles, &oracle, &controls, &mut certificate)?,
            Err(stop) if stop.kind == VerdictKind::ProblemDefect => certificate.defect = Some(first_message(&stop)),
            Err(stop) => return Err(first_message(&stop)),
        }
        certificate.profiles = self.options.profiles.iter().map(|profile| summary(profile, &certificate)).collect();
        Ok(certificate)
    }
}

/// Those of the controls that need no run of the reference and pass under a profile, as `zeros (output)`.
pub(crate) fn free_passes(oracle: &OracleSet, profile: &Profile) -> Vec<String> {
    if oracle.is_large() {
        return Vec::new();
    }
    let profiles = std::slice::from_ref(profile);
    let constants = constants(oracle);
    let free: [(&str, Values<'_>); 4] = [
        ("zeros", Box::new(zeros)),
        ("constant", constant(&constants)),
        ("input", Box::new(|site| same_input(oracle, site))),
        ("unchanged", Box::new(|site| unchanged(oracle, site))),
    ];
    let mut found = Vec::new();
    for (name, values) in &free {
        for path in paths(oracle).iter().filter(|path| takes(name, path)) {
            let passes = passing(oracle, profiles, |other| other == path, values);
            if passes.is_ok_and(|passes| !passes.is_empty()) {
                found.push(format!("{name} ({path})"));
            }
        }
    }
    found
}

fn judge(
    profiles: &[Profile],
    oracle: &OracleSet,
    controls: &Controls,
    certificate: &mut Certificate,
) -> Result<(), String> {
    let constants = constants(oracle);
    let free: [(&str, Values<'_>); 3] = [
        ("zeros", Box::new(zeros)),
        ("constant", constant(&constants)),
        ("unchanged", Box::new(|site| unchanged(oracle, site))),
    ];
    let names: BTreeSet<&String> =
        controls.results.iter().flatten().flat_map(BTreeMap::keys).chain(controls.inapplicable.keys()).collect();
    let run = names.into_iter().map(|name| -> (&str, Values<'_>) {
        let values = move |site: &Site<'_>| {
            let calls = controls.results[site.case][site.trial].get(name)?;
            oracle.bytes(calls[site.call][site.tensor]?).ok().map(Cow::Borrowed)
        };
        (name, Box::new(values))
    });
    let mut all: Vec<(&str, Values<'_>)> = free.into_iter().chain(run).collect();
    all.sort_by_key(|(name, _)| (kind(name) as u8, *name));
    let paths = paths(oracle);
    for (name, values) in &all {
        let mut control = Control {
            name: (*name).into(),
            kind: kind(name),
            passes: BTreeMap::new(),
            reason: reason(name, &controls.reasons),
            inapplicable: controls.inapplicable.get(*name).cloned(),
        };
        if control.inapplicable.is_none() {
            let judged: Vec<&[String]> = match control.kind {
                ControlKind::AnswerFree => {
                    paths.iter().filter(|path| takes(name, path)).map(std::slice::from_ref).collect()
                }
                ControlKind::Copy | ControlKind::LowerPrecision => vec![&paths[..]],
            };
            if judged.is_empty() {
                continue;
            }
            for of in judged {
                for profile in passing(oracle, profiles, |path| of.iter().any(|other| other == path), values)? {
                    control.passes.entry(profile).or_default().extend(of.iter().cloned());
                }
            }
        }
        certificate.controls.push(control);
    }
    certificate.notes.extend(oracle.data.notes.iter().cloned());
    certificate.notes.extend(needless(profiles, controls, &certificate.controls));
    Ok(())
}

/// Profiles under which these values pass for every tensor whose path `takes` accepts, judged as a candidate's are.
/// Where there is no value, a candidate would have the wrong shape.
fn passing(
    oracle: &OracleSet,
    profiles: &[Profile],
    takes: impl Fn(&str) -> bool,
    values: &Values<'_>,
) -> Result<Vec<String>, String> {
    let mut alive = profiles.to_vec();
    let mut compared = false;
    for Together { case, regime, trials } in groups(oracle, &takes) {
        let own = oracle.data.cases[case].signature.case == OWN_CASE && regime == OWN_REGIME;
        let decides = |profile: &Profile| own || profile.decides_robustness;
        let deciding: Vec<Profile> = alive.iter().filter(|profile| decides(profile)).cloned().collect();
        if deciding.is_empty() {
            continue;
        }
        let mut tally = Tally::new(deciding, None).without_causes();
        let (mut missing, mut some) = (false, false);
        for (index, trial) in trials {
            let observations = observe(case, index, trial, &takes, values, &mut missing);
            some |= !observations.is_empty();
            let label = &oracle.data.cases[case].signature.case;
            judging::add(&mut tally, label, trial, &observations, oracle).map_err(|stop| first_message(&stop))?;
        }
        if some || missing {
            let judged = tally.finish();
            let passes = |profile: &Profile| judged.outcomes.get(&profile.name).is_some_and(|outcome| outcome.pass);
            alive.retain(|profile| !decides(profile) || (!missing && passes(profile)));
        }
        compared |= some;
    }
    Ok(if compared { alive.into_iter().map(|profile| profile.name).collect() } else { Vec::new() })
}

/// Trials that are judged together.
struct Together<'a> {
    case: usize,
    regime: &'a str,
    trials: Vec<(usize, &'a Trial)>,
}

/// All trials of a case and regime where a tensor has few elements, whose scale is that of all of them; else one trial
/// at a time, so that what fails is through with the first.
fn groups<'a>(oracle: &'a OracleSet, takes: impl Fn(&str) -> bool) -> Vec<Together<'a>> {
    let mut groups: Vec<Together<'_>> = Vec::new();
    for (case, of) in oracle.data.cases.iter().enumerate() {
        let expected = of.trials.iter().flat_map(|trial| &trial.calls).flat_map(|call| &call.expected.tensors);
        let few = expected
            .filter(|tensor| takes(&tensor.path))
            .any(|tensor| tensor.shape.iter().product::<u64>() < POOLED_BELOW as u64);
        for (index, trial) in of.trials.iter().enumerate() {
            let same = |other: &&mut Together<'_>| few && other.case == case && other.regime == trial.regime;
            match groups.iter_mut().find(same) {
                Some(together) => together.trials.push((index, trial)),
                None => groups.push(Together { case, regime: &trial.regime, trials: vec![(index, trial)] }),
            }
        }
    }
    groups
}

fn observe<'a>(
    case: usize,
    trial: usize,
    data: &'a Trial,
    takes: impl Fn(&str) -> bool,
    values: &Values<'_>,
    missing: &mut bool,
) -> Vec<Observation<'a>> {
    let mut observations = Vec::new();
    for (call, of) in data.calls.iter().enumerate() {
        for (tensor, expected) in of.expected.tensors.iter().enumerate() {
            if expected.native.nbytes == 0 || !takes(&expected.path) {
                continue;
            }
            match values(&Site { case, trial, call, tensor, expected }) {
                Some(got) => observations.push(Observation { expected, call, got: Got::Bytes(got.into_owned()) }),
                None => *missing = true,
            }
        }
    }
    observations
}

/// Paths of all expected tensors, in their first order.
fn paths(oracle: &OracleSet) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for tensor in expected(oracle).flat_map(|(_, expected)| &expected.tensors) {
        if !paths.contains(&tensor.path) {
            paths.push(tensor.path.clone());
        }
    }
    paths
}

fn expected(oracle: &OracleSet) -> impl Iterator<Item = (usize, &Expected)> {
    let trials =
        oracle.data.cases.iter().enumerate().flat_map(|(at, case)| case.trials.iter().map(move |trial| (at, trial)));
    trials.flat_map(|(at, trial)| trial.calls.iter().map(move |call| (at, &call.expected)))
}

/// Whether a control says anything about a tensor: what a candidate leaves as it was, or what it returns.
fn takes(name: &str, path: &str) -> bool {
    (name == "unchanged") == (path.starts_with("input[") || path.starts_with("state."))
}

fn kind(name: &str) -> ControlKind {
    match name {
        "copy" => ControlKind::Copy,
        "fp32" | "bf16" | "fp16" | "fp8" | "lower precision" => ControlKind::LowerPrecision,
        _ => ControlKind::AnswerFree,
    }
}

/// The problem's reason for a control: `input` stands for every input.
fn reason(name: &str, reasons: &BTreeMap<String, String>) -> Option<String> {
    reasons.get(name).or_else(|| reasons.get(name.split('[').next()?)).cloned()
}

fn zeros<'a>(site: &Site<'_>) -> Option<Cow<'a, [u8]>> {
    Some(Cow::Owned(vec![0; site.expected.native.nbytes as usize]))
}

/// Bytes of a tensor's values from which the element that stands for all is found.
const ENOUGH: usize = 16 << 20;

/// By case and path: the element that stands for all.
type Constants = HashMap<(usize, String), Vec<u8>>;

fn constant<'a>(constants: &'a Constants) -> Values<'a> {
    Box::new(|site| {
        let element = constants.get(&(site.case, site.expected.path.clone()))?;
        Some(Cow::Owned(element.repeat(site.expected.native.nbytes as usize / element.len())))
    })
}

/// Of floats the element nearest to the mean over all calls on the problem's own distribution, else the most frequent.
fn constants(oracle: &OracleSet) -> Constants {
    let mut gathered: HashMap<(usize, String), (Dtype, Vec<u8>)> = HashMap::new();
    for (case, of) in oracle.data.cases.iter().enumerate() {
        for trial in of.trials.iter().filter(|trial| trial.regime == OWN_REGIME) {
            for tensor in trial.calls.iter().flat_map(|call| &call.expected.tensors) {
                let (_, bytes) =
                    gathered.entry((case, tensor.path.clone())).or_insert_with(|| (tensor.dtype, Vec::new()));
                if bytes.len() < ENOUGH {
                    bytes.extend_from_slice(oracle.bytes(tensor.native).unwrap_or_default());
                }
            }
        }
    }
    let nonempty = gathered.into_iter().filter(|(_, (_, bytes))| !bytes.is_empty());
    nonempty
        .map(|(key, (dtype, bytes))| {
            let elements: Vec<&[u8]> = bytes.chunks_exact(dtype.size() as usize).collect();
            let element =
                if dtype.is_float() { nearest_to_mean(dtype, &bytes, &elements) } else { most_frequent(&elements) };
            (key, element.to_vec())
        })
        .collect()
}

fn nearest_to_mean<'a>(dtype: Dtype, bytes: &[u8], elements: &[&'a [u8]]) -> &'a [u8] {
    let mut values = Vec::with_capacity(elements.len());
    decode(dtype, bytes, &mut values);
    let finite = || values.iter().filter(|value| value.is_finite());
    let mean = finite().sum::<f64>() / finite().count().max(1) as f64;
    let far = |at: &usize| {
        let distance = (values[*at] - mean).abs();
        if distance.is_nan() { f64::INFINITY } else { distance }
    };
    let nearest = (0..elements.len()).min_by(|a, b| far(a).total_cmp(&far(b)));
    elements[nearest.unwrap_or(0)]
}

fn most_frequent<'a>(elements: &[&'a [u8]]) -> &'a [u8] {
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for element in elements {
        *counts.entry(element).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(element, count)| (count, element)).map_or(elements[0], |(element, _)| element)
}

/// The first input of an output's dtype and shape.
fn same_input<'a>(oracle: &'a OracleSet, site: &Site<'_>) -> Option<Cow<'a, [u8]>> {
    let case = &oracle.data.cases[site.case];
    let fits = |value: &&TensorRef| value.view.dtype == site.expected.dtype && value.view.shape == site.expected.shape;
    let arguments = case.signature.args.iter().flat_map(Value::tensors).map(|(_, tensor)| tensor);
    let input = arguments.into_iter().find(fits)?;
    let blob = case.trials[site.trial].calls[site.call].inputs.get(input.buffer)?;
    Some(Cow::Owned(input.view.gather(oracle.bytes(*blob).ok()?)))
}

/// What a modified input or state entry held before the call.
fn unchanged<'a>(oracle: &'a OracleSet, site: &Site<'_>) -> Option<Cow<'a, [u8]>> {
    let case = &oracle.data.cases[site.case];
    let trial = &case.trials[site.trial];
    let path = &site.expected.path;
    let before = match path.strip_prefix("state.") {
        Some(name) => {
            let earlier = trial.calls[..site.call].iter().rev().flat_map(|call| &call.expected.tensors);
            let initial = || Some(trial.state[case.signature.state.iter().position(|entry| entry.name == name)?]);
            earlier.into_iter().find(|tensor| tensor.path == *path).map(|tensor| tensor.native).or_else(initial)?
        }
        None => {
            let index: usize = path.strip_prefix("input[")?.strip_suffix(']')?.parse().ok()?;
            *trial.calls[site.call].inputs.get(index)?
        }
    };
    oracle.bytes(before).ok().map(Cow::Borrowed)
}

/// What the controls say under one profile.
fn summary(profile: &Profile, certificate: &Certificate) -> ProfileCertificate {
    let mut found = ProfileCertificate {
        profile: profile.name.clone(),
        version: profile.version,
        mark: if certificate.defect.is_some() { Mark::Defect } else { Mark::Ok },
        findings: Vec::new(),
    };
    for control in certificate.controls.iter().filter(|control| control.inapplicable.is_none()) {
        let passes = control.passes.get(&profile.name).map_or(&[][..], Vec::as_slice);
        let mark = match control.kind {
            ControlKind::Copy if passes.is_empty() => Mark::Defect,
            ControlKind::AnswerFree if !passes.is_empty() && control.reason.is_none() => Mark::Degenerate,
            ControlKind::LowerPrecision if !passes.is_empty() && control.reason.is_none() => Mark::PrecisionBlind,
            _ => continue,
        };
        found.mark = found.mark.max(mark);
        if control.kind == ControlKind::AnswerFree {
            found.findings.extend(passes.iter().map(|path| format!("{} ({path})", control.name)));
        } else {
            found.findings.push(control.name.clone());
        }
    }
    found
}

/// Reasons that the first profile does not need: they would hide what another change breaks.
fn needless(profiles: &[Profile], controls: &Controls, judged: &[Control]) -> Vec<String> {
    let Some(first) = profiles.first() else { return Vec::new() };
    let needed = |name: &String| {
        let passes = |control: &&Control| control.passes.contains_key(&first.name);
        judged
            .iter()
            .filter(passes)
            .any(|control| control.name == *name || control.name.split('[').next() == Some(name))
    };
    let needless = controls.reasons.keys().filter(|name| !needed(name));
    needless
        .map(|name| format!("CONTROLS gives a reason for {name}, which fails under {} anyway", first.name))
        .collect()
}

fn first_message(stop: &Stop) -> String {
    stop.reasons.first().map_or_else(String::new, |reason| reason.message.clone())
}
