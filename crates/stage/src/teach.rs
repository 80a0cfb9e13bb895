//! The job that writes candidates without a model: the offline teacher.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tilewright_contract::Target;

use crate::{Stage, StageError};

/// What to write candidates for.
#[derive(Debug, Clone)]
pub struct TeachRequest {
    /// The problem's file.
    pub problem: PathBuf,
    pub target: Target,
    /// `cpu` or `cuda:N`: where candidates will be verified.
    pub device: String,
    /// How many candidates are wanted, beside those in `skip`.
    pub max: u32,
    /// Names of variants that are known already.
    pub skip: Vec<String>,
    /// torch's threads.
    pub threads: u32,
}

/// What the teacher wrote, best guess first. The same request has the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Teaching {
    pub candidates: Vec<Taught>,
    /// Why something could not be written, one line each.
    pub notes: Vec<String>,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taught {
    /// Unique in an answer and the same in every run: `default`, `unfused`.
    pub variant: String,
    /// The whole file, with `ModelNew`.
    pub source: String,
    /// How it differs from the others, in one line.
    pub about: String,
}

impl Stage {
    /// Candidates for a problem from the offline teacher, which reads nothing but the problem's file. Trusted.
    ///
    /// No candidates and notes mean that the teacher cannot write it. [`StageError::Candidate`] of kind `problem` means
    /// that the file is no usable problem.
    pub fn teach(&self, request: &TeachRequest) -> Result<Teaching, StageError> {
        let problem = std::path::absolute(&request.problem).map_err(StageError::io("find the current folder"))?;
        let (mut job, scratch) = self.job("teach", &self.options.limits.teach, |_| {
            json!({
                "problem": problem,
                "target": request.target,
                "device": request.device,
                "max": request.max,
                "skip": request.skip,
                "threads": request.threads,
            })
        })?;
        job.trusted = true;
        Ok(self.answer("teach", (job, scratch))?.value)
    }
}
