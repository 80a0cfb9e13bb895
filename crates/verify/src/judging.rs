use tilewright_contract::Trial;
use tilewright_judge::{JudgeError, Place, Tally};

use crate::draft::Stop;
use crate::execute::Observation;
use crate::problem::OracleSet;

/// Judges what one trial left behind. Where the reference draws random numbers, the calls of a trial are draws on
/// equal inputs and are judged together.
pub(crate) fn add(
    tally: &mut Tally,
    case: &str,
    trial: &Trial,
    observations: &[Observation<'_>],
    oracle: &OracleSet,
) -> Result<(), Stop> {
    let place = |call| Place { case, regime: &trial.regime, call };
    let judged = if oracle.data.stochastic {
        let mut first = observations.iter().filter(|observation| observation.call == 0);
        first.try_for_each(|observation| draws(tally, place(0), observation, observations, oracle))
    } else {
        observations.iter().try_for_each(|observation| {
            let expected = observation.expected;
            let float64 = expected.float64.map(|blob| oracle.bytes(blob));
            tally.add(place(observation.call), expected, oracle.bytes(expected.native), float64, &observation.got)
        })
    };
    judged.map_err(|error| Stop::infrastructure(error.to_string()))
}

fn draws(
    tally: &mut Tally,
    place: Place<'_>,
    first: &Observation<'_>,
    observations: &[Observation<'_>],
    oracle: &OracleSet,
) -> Result<(), JudgeError> {
    let same = || observations.iter().filter(|other| other.expected.path == first.expected.path);
    let reference: Vec<&[u8]> = same().map(|other| oracle.bytes(other.expected.native)).collect();
    let got: Vec<&[u8]> = same().map(|other| other.got.as_slice()).collect();
    tally.add_draws(place, first.expected, &reference, &got)
}
