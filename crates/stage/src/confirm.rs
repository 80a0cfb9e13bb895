//! The job that runs a candidate's file in front of a recording driver.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tilewright_contract::{CaseSignature, Trial};

use crate::jobs::{COMPILER, copy_inputs, nvidia_devices};
use crate::{DataFile, Stage, StageError};

/// What to run unmodified, and what records it.
#[derive(Debug)]
pub struct ConfirmRequest<'a> {
    /// The candidate's text.
    pub source: &'a str,
    pub signature: &'a CaseSignature,
    /// `cuda:N`.
    pub device: String,
    /// Weights to run on, and the inputs of its first call.
    pub trial: &'a Trial,
    /// The oracle's data, which the candidate does not get to see.
    pub data: &'a DataFile,
    /// The recording library, under which linkers find it.
    pub library: &'a Path,
    /// What the process must be able to read so as to link with it.
    pub files: &'a [PathBuf],
    /// The recorder's end of its channel. All copies of it are closed when the job is over.
    pub channel: OwnedFd,
}

impl Stage {
    /// Of stages that load the recording library before all others ([`Stage::preloading`]): runs a candidate's file
    /// unmodified on the first call of a trial, on a real device. Hostile: all that is known of
    /// the run afterwards is in the recording.
    ///
    /// [`StageError::Candidate`] of kind `no-device` where nothing can be recorded.
    pub fn confirm(&self, request: ConfirmRequest<'_>) -> Result<(), StageError> {
        // The job is another user, where there can be one.
        let inputs = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o644))
            .tempfile()
            .map_err(StageError::io("make a file of inputs"))?;
        let first = Trial { calls: request.trial.calls.iter().take(1).cloned().collect(), ..request.trial.clone() };
        let (state, calls) =
            copy_inputs(&first, request.data, inputs.as_file()).map_err(StageError::io("write inputs"))?;
        let (mut job, scratch) = self.job("confirm", &self.options.limits.confirm, |_| {
            json!({
                "source": request.source,
                "signature": request.signature,
                "device": request.device,
                "data": inputs.path(),
                "state": state,
                "calls": calls.iter().map(|inputs| json!({"inputs": inputs})).collect::<Vec<_>>(),
                "library": request.library,
            })
        })?;
        job.read_paths.push(inputs.path().to_owned());
        job.read_paths.extend(request.files.iter().cloned());
        job.devices = nvidia_devices();
        job.execute_paths = COMPILER.iter().map(PathBuf::from).collect();
        job.descriptor = Some(Arc::new(request.channel));
        self.answer::<Value>("confirm", (job, scratch)).map(drop)
    }
}
