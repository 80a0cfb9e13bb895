//! `--confirm`: the candidate's file runs unmodified on real tensors, and what reaches the driver must be the plan.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use tilewright_confirm::{
    Confirmed, Difference, Expected, Library, Record, Recording, Uploads, compare, find_driver, listen, mixtures,
};
use tilewright_contract::{OracleCase, Trial, VerdictKind};
use tilewright_stage::{ConfirmRequest, Stage, StageError};

use crate::build::Build;
use crate::draft::{Draft, Stop};
use crate::options::Options;
use crate::oracle::OracleSet;
use crate::pipeline::{Candidate, Verifier};

/// Bytes of records that are kept: the images of an autotuner's configurations take most of it.
const RECORDS: u64 = 512 << 20;

/// Mixtures of several autotuners' configurations that are compared.
const MIXTURES: usize = 4096;

/// Whether this candidate is among the share that is confirmed: by its text and the secret seed, so that a run which is
/// taken up again chooses the same ones.
pub(crate) fn chosen(options: &Options, source: &[u8]) -> bool {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tilewright confirm").update(&options.seed.to_le_bytes()).update(source);
    let mut word = [0; 8];
    word.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    // 53 bits fit a float exactly.
    ((u64::from_le_bytes(word) >> 11) as f64) < options.confirm * (1u64 << 53) as f64
}

/// Confirms the plan of the problem's own case.
pub(crate) fn confirm(
    verifier: &Verifier,
    candidate: &Candidate<'_>,
    build: &Build,
    oracle: &OracleSet,
    draft: &mut Draft,
) -> Result<(), Stop> {
    let Some(case) = oracle.data.cases.first() else { return Ok(()) };
    let Some(trial) = case.trials.first() else { return Ok(()) };
    let Some(seat) = &candidate.seat else { return Ok(()) };
    // Before the turn: it takes seconds.
    draft.stage("recorder", || recorder(verifier).map(drop))?;
    let beside = || seat.lane.beside(|| run(verifier, candidate, build, oracle, (case, trial)));
    let confirmed = draft.stage("confirm", beside)?;
    draft.note(format!(
        "confirmed: the file, run unmodified, made the {} launches and {} other calls of its plan",
        confirmed.launches, confirmed.others
    ));
    Ok(())
}

fn run(
    verifier: &Verifier,
    candidate: &Candidate<'_>,
    build: &Build,
    oracle: &OracleSet,
    (case, trial): (&OracleCase, &Trial),
) -> Result<Confirmed, Stop> {
    let recorder = recorder(verifier)?;
    let plans = plans(build)?;
    let uploads = uploads(oracle, case, trial)?;
    let (channel, listener) =
        listen(RECORDS).map_err(|error| Stop::infrastructure(format!("failed to open a channel: {error}")))?;
    let outcome = recorder.stage.confirm(ConfirmRequest {
        source: verifier.confirmed_file.as_ref().unwrap_or(&candidate.source),
        signature: &case.signature,
        device: candidate
            .seat
            .as_ref()
            .map_or_else(|| verifier.options.device.to_string(), |seat| seat.lane.to_string()),
        trial,
        data: &oracle.file,
        library: &recorder.library.path(),
        files: &recorder.library.files(),
        channel,
    });
    let recording = listener.finish();
    if let (Some(folder), Ok(recording)) = (&verifier.options.keep, &recording) {
        keep(folder, recording)?;
    }
    outcome.map_err(unfinished)?;
    let recording = recording.map_err(|error| {
        Stop::new(VerdictKind::Rejected, "forged-recording", format!("the recording of the run is broken: {error}"))
    })?;
    compare(&recording, &plans, &uploads).map_err(|difference| match difference {
        Difference::Blind(why) => Stop::infrastructure(format!("the file cannot be confirmed: {why}")),
        Difference::Other { message, line } => other(format!("the plan is not the file: {message}")).at(line),
    })
}

/// Writes the records, images without their bytes, for inspection.
fn keep(folder: &Path, recording: &Recording) -> Result<(), Stop> {
    let without_bytes = |record: &Record| match record {
        Record::Image { number, .. } => Record::Image { number: *number, bytes: Vec::new() },
        record => record.clone(),
    };
    let records: Vec<Record> = recording.records.iter().map(without_bytes).collect();
    let written = serde_json::to_vec(&records)
        .map_err(std::io::Error::from)
        .and_then(|text| std::fs::write(folder.join("recording.json"), text));
    written.map_err(|error| Stop::infrastructure(format!("failed to keep the recording: {error}")))
}

fn other(message: String) -> Stop {
    Stop::new(VerdictKind::Rejected, "plan-is-not-the-file", message)
        .help("let forward do the same on every kind of tensor: launch the kernels that the trace sees, and no more")
}

/// The library in front of the driver, and stages whose jobs have it.
pub(crate) struct Recorder {
    library: Library,
    stage: Stage,
}

/// Made when it is first needed: it takes a second Python.
fn recorder(verifier: &Verifier) -> Result<Arc<Recorder>, Stop> {
    let mut made = verifier.recorder.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(recorder) = made.as_ref() {
        return Ok(recorder.clone());
    }
    let driver = find_driver().ok_or_else(|| Stop::infrastructure("found no CUDA driver (libcuda.so.1)"))?;
    let library = Library::new(&driver)
        .map_err(|error| Stop::infrastructure(format!("failed to put the recorder in place: {error}")))?;
    let stage = verifier.stage.preloading(&library.path())?;
    Ok(made.insert(Arc::new(Recorder { library, stage })).clone())
}

/// Every plan of the problem's own case that the file may have on this device: one for each configuration of an
/// autotuner, and their mixtures where there are several autotuners.
fn plans(build: &Build) -> Result<Vec<Expected>, Stop> {
    let mut plans = Vec::new();
    let mut main = None;
    let mut variants: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for built in build.plans.iter().filter(|built| built.case == 0 && built.plan.is_usual()) {
        let mut changed = built.plan.choices.iter().enumerate().filter(|(_, choice)| choice.index > 0);
        match (changed.next(), changed.next()) {
            _ if built.main => main = Some(plans.len()),
            (Some((place, _)), None) => variants.entry(place).or_default().push(plans.len()),
            _ => {}
        }
        plans.push(Expected::new(&built.plan, &built.executables().0)?);
    }
    if let Some(main) = main.filter(|_| variants.len() > 1) {
        let variants: Vec<Vec<&Expected>> =
            variants.values().map(|of| of.iter().map(|&at| &plans[at]).collect()).collect();
        let mixed = mixtures(&plans[main], &variants, MIXTURES);
        plans.extend(mixed);
    }
    Ok(plans)
}

fn uploads(oracle: &OracleSet, case: &OracleCase, trial: &Trial) -> Result<Uploads, Stop> {
    let read = |blob| oracle.file.read(blob).map_err(|error| Stop::infrastructure(error.to_string()));
    let inputs = trial.calls.first().map_or(&[][..], |call| &call.inputs);
    let inputs = inputs.iter().map(|blob| read(*blob)).collect::<Result<_, _>>()?;
    let state = case.signature.state.iter().zip(&trial.state);
    let state = state.map(|(tensor, blob)| Ok((tensor.name.clone(), read(*blob)?))).collect::<Result<_, Stop>>()?;
    Ok(Uploads { inputs, state })
}

/// The file did not get through its run. Its plan did: what stops it here is not in the plan.
fn unfinished(error: StageError) -> Stop {
    let stop = Stop::from(error);
    match stop.kind {
        VerdictKind::Infrastructure | VerdictKind::Timeout | VerdictKind::OutOfMemory => stop,
        _ => other(format!("the file, run unmodified, fails: {}", stop.reasons[0].message)).at(stop.reasons[0].line),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::options::Mode;
    use crate::target::{Device, parse_arch};

    fn options(confirm: f64, seed: u64) -> Options {
        Options {
            device: Device::Cuda(0),
            target: parse_arch("sm_90").unwrap(),
            profiles: Vec::new(),
            trials: 1,
            seed,
            mode: Mode::Replay,
            timing: None,
            timeout: Duration::from_secs(1),
            strict: false,
            confirm,
            keep: None,
        }
    }

    #[test]
    fn a_share_of_the_candidates_is_confirmed_and_always_the_same_ones() {
        let sources: Vec<Vec<u8>> = (0..2000).map(|n| format!("# {n}").into_bytes()).collect();
        let count = |share, seed| sources.iter().filter(|source| chosen(&options(share, seed), source)).count();
        assert_eq!(count(0.0, 1), 0);
        assert_eq!(count(1.0, 1), sources.len());
        // 2000 draws of 0.25: the standard deviation is 19.4.
        assert!((400..600).contains(&count(0.25, 1)));
        let picks = |seed| -> Vec<bool> { sources.iter().map(|source| chosen(&options(0.25, seed), source)).collect() };
        assert_eq!(picks(1), picks(1));
        assert_ne!(picks(1), picks(2));
    }
}
