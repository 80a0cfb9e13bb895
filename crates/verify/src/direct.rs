//! `--mode direct`: the candidate's file, unmodified, on real data in its own process. The judge is here.

use tilewright_contract::{Buffer, BufferSource, Expected, OracleCase, Trial, VerdictKind};
use tilewright_judge::{Tally, check_output};
use tilewright_stage::{Direct, DirectRequest};

use crate::draft::{Draft, Stop};
use crate::execute::{Got, Observation};
use crate::judging;
use crate::pipeline::{Candidate, Verifier};
use crate::weights::Weights;

/// Runs every trial and judges what came back.
pub(crate) fn decide(verifier: &Verifier, candidate: &Candidate<'_>, draft: &mut Draft) -> Result<(), Stop> {
    let mut tally = Tally::new(verifier.options.profiles.clone(), None);
    for case in &candidate.oracle.data.cases {
        for trial in &case.trials {
            let direct = draft.stage("direct", || run(verifier, candidate, case, trial))?;
            draft.stage("judge", || judge(&mut tally, candidate, case, trial, &direct))?;
        }
    }
    draft.judged(tally.finish(), &Weights::by_name())
}

fn run(verifier: &Verifier, candidate: &Candidate<'_>, case: &OracleCase, trial: &Trial) -> Result<Direct, Stop> {
    Ok(verifier.stage.direct(&DirectRequest {
        source: &candidate.source,
        signature: &case.signature,
        device: verifier.options.device.to_string(),
        trial,
        data: &candidate.oracle.file,
    })?)
}

fn judge(
    tally: &mut Tally,
    candidate: &Candidate<'_>,
    case: &OracleCase,
    trial: &Trial,
    direct: &Direct,
) -> Result<(), Stop> {
    let mut observations = Vec::new();
    for (number, (call, got)) in trial.calls.iter().zip(&direct.calls).enumerate() {
        check_claim(&call.expected, got)?;
        for expected in &call.expected.tensors {
            let Some(tensor) = got.tensors.iter().find(|tensor| tensor.path == expected.path) else {
                let message = format!("{} is not modified, but the reference modifies it", expected.path);
                return Err(Stop::new(VerdictKind::Incorrect, "not-modified", message));
            };
            let got = direct.data.read(tensor.native).map_err(|error| Stop::infrastructure(error.to_string()))?;
            observations.push(Observation { expected, call: number, got: Got::Bytes(got) });
        }
    }
    judging::add(tally, &case.signature.case, trial, &observations, candidate.oracle)
}

/// Structure, shapes and dtypes, and nothing modified that the reference leaves alone.
fn check_claim(expected: &Expected, got: &Expected) -> Result<(), Stop> {
    // Whose storage an output shares is the process's own business: what came back are copies.
    let buffers: Vec<Buffer> =
        got.tensors.iter().map(|_| Buffer { nbytes: 0, source: BufferSource::Scratch }).collect();
    let mut reasons = check_output(expected, &got.output, &buffers);
    for tensor in &got.tensors {
        if !expected.tensors.iter().any(|other| other.path == tensor.path) {
            let message = format!("{} is modified, but the reference leaves it as it was", tensor.path);
            reasons.push(crate::draft::reason("input-modified", message));
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(Stop { kind: VerdictKind::Incorrect, reasons }) }
}
