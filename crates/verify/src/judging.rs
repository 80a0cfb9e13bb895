use tilewright_contract::{ExpectedTensor, Trial};
use tilewright_judge::{JudgeError, Place, Side, Tally};

use crate::draft::Stop;
use crate::execute::{Got, Observation};
use crate::oracle::OracleSet;

/// Earlier tensors that a random one is judged together with.
const MATES: usize = 8;

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
    if oracle.data.stochastic {
        let first: Vec<_> = observations.iter().filter(|observation| observation.call == 0).collect();
        let drawn = first.iter().map(|one| Drawn::of(one.expected, observations, oracle));
        let drawn = drawn.collect::<Result<Vec<_>, Stop>>()?;
        drawn.iter().enumerate().try_for_each(|(at, one)| {
            tally.add_draws(place(0), one.expected, &one.reference, &one.got).map_err(bug)?;
            let before = drawn[..at].iter().filter(|other| other.numel() == one.numel()).take(MATES);
            before.into_iter().try_for_each(|other| tally.add_together(place(0), other.side(), one.side()).map_err(bug))
        })
    } else {
        observations.iter().try_for_each(|observation| {
            let (place, expected) = (place(observation.call), observation.expected);
            match &observation.got {
                Got::Figures(figures) => tally.add_figures(place, expected, figures),
                Got::Bytes(got) => {
                    let float64 = expected.float64.map(|blob| oracle.bytes(blob)).transpose()?;
                    tally.add(place, expected, oracle.bytes(expected.native)?, float64, got).map_err(bug)?;
                }
            }
            Ok(())
        })
    }
}

fn bug(error: JudgeError) -> Stop {
    Stop::infrastructure(error.to_string())
}

/// All draws of one tensor.
struct Drawn<'a> {
    expected: &'a ExpectedTensor,
    reference: Vec<&'a [u8]>,
    got: Vec<&'a [u8]>,
}

impl<'a> Drawn<'a> {
    fn of(
        expected: &'a ExpectedTensor,
        observations: &'a [Observation<'_>],
        oracle: &'a OracleSet,
    ) -> Result<Self, Stop> {
        let same = || observations.iter().filter(|other| other.expected.path == expected.path);
        let reference = same().map(|other| oracle.bytes(other.expected.native));
        let got = same().filter_map(|other| match &other.got {
            Got::Bytes(bytes) => Some(bytes.as_slice()),
            Got::Figures(_) => None,
        });
        Ok(Self { expected, reference: reference.collect::<Result<_, _>>()?, got: got.collect() })
    }

    fn numel(&self) -> u64 {
        self.expected.shape.iter().product()
    }

    fn side(&self) -> Side<'_> {
        Side { expected: self.expected, reference: &self.reference, got: &self.got }
    }
}
