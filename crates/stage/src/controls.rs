//! The job that makes a problem's controls.

use std::collections::BTreeMap;

use serde::Deserialize;
use tilewright_contract::{Blob, OracleData};

use crate::{OracleRequest, Stage, StageError};

/// What runs without the answer, or in a lower precision, would give for a problem.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Controls {
    /// By case and trial of the oracle's data.
    pub results: Vec<Vec<ControlResults>>,
    /// Why a control has no result anywhere, by name.
    pub inapplicable: BTreeMap<String, String>,
    /// The problem's own `CONTROLS`: why a control passes, and rightly so.
    pub reasons: BTreeMap<String, String>,
}

/// Of one trial, by name of the control: for each call one blob for each of its expected tensors, where there is one.
pub type ControlResults = BTreeMap<String, Vec<Vec<Option<Blob>>>>;

impl Controls {
    /// Every blob of every result.
    pub fn blobs(&self) -> impl Iterator<Item = Blob> {
        let calls = self.results.iter().flatten().flat_map(BTreeMap::values).flatten();
        calls.flatten().copied().flatten()
    }
}

impl Stage {
    /// A problem's oracle data and its controls. Trusted. Errors are those of [`Stage::oracle`].
    pub fn controls(&self, request: &OracleRequest) -> Result<(OracleData, Controls), StageError> {
        #[derive(Deserialize)]
        struct Response {
            oracle: OracleData,
            #[serde(flatten)]
            controls: Controls,
        }
        let Response { oracle, controls } = self.ask_oracle("controls", request)?;
        let malformed = |why: &str| StageError::Malformed { kind: "controls", why: why.into() };
        if controls.results.len() != oracle.cases.len() {
            return Err(malformed("not one result for each case"));
        }
        for (case, results) in oracle.cases.iter().zip(&controls.results) {
            if results.len() != case.trials.len() {
                return Err(malformed("not one result for each trial"));
            }
            for (trial, results) in case.trials.iter().zip(results) {
                let fits = |calls: &Vec<Vec<Option<Blob>>>| {
                    calls.len() == trial.calls.len()
                        && calls.iter().zip(&trial.calls).all(|(got, call)| got.len() == call.expected.tensors.len())
                };
                if !results.values().all(fits) {
                    return Err(malformed("not one blob for each expected tensor"));
                }
            }
        }
        Ok((oracle, controls))
    }
}
