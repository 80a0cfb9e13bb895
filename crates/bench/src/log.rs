//! The file of a run: one JSON object a line, written as verdicts come. What counts is content: a verdict is found by
//! the digests of its problem and of its candidate, whoever gave it and whatever the files are called.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tilewright_contract::{Certificate, Verdict};

use crate::error::BenchError;
use crate::setting::Setting;

/// A line of a run's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What is to be verified, and under which circumstances. A later one, under the same, lists more.
    Run(Box<Manifest>),
    /// Whether a problem tells right from wrong.
    Controls(Box<Certificate>),
    /// What became of a sample.
    Verdict(Box<Verdict>),
    /// What somebody else's evaluator said of a sample.
    Imported(Box<Imported>),
}

/// Every sample that a run is about: so that none can vanish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// `tilewright.bench-run/1`
    pub schema: String,
    pub setting: Setting,
    /// Where the problems come from.
    pub suite: String,
    /// Where the samples come from.
    pub samples: String,
    pub problems: Vec<Listed>,
}

/// A problem with its samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// `level1/19_ReLU`, `softmax`
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// KernelBench's number within the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// `blake3:…` of the problem's text; empty where it is not known.
    pub digest: String,
    pub samples: Vec<ListedSample>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedSample {
    pub index: u32,
    /// `blake3:…` of its text; empty where it is not known.
    pub digest: String,
}

/// A result without evidence: what another evaluator's file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Id of its problem in the manifest.
    pub problem: String,
    pub index: u32,
    pub compiled: bool,
    pub correct: bool,
    /// Why there is no verdict: the file cannot tell a fault of the machine from one of the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// What it says went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Mean time of a call in microseconds; none where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_us: Option<Mean>,
    /// The same of the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_us: Option<Mean>,
}

/// A mean of measured times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    pub mean: f64,
    /// Standard deviation of one measurement, and their number, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u32>,
}

impl Manifest {
    pub const SCHEMA: &'static str = "tilewright.bench-run/1";
}

/// Digests of a problem and of a candidate.
pub(crate) type Key = (String, String);

pub(crate) fn key(verdict: &Verdict) -> Key {
    (verdict.problem.digest.clone(), verdict.candidate.digest.clone())
}

/// The file in a run's folder.
pub(crate) const FILE: &str = "run.jsonl";

/// A run is named by its folder or by its file.
pub(crate) fn file_of(run: &Path) -> PathBuf {
    if run.is_dir() { run.join(FILE) } else { run.to_owned() }
}

/// Hands over every line of a log in order, also of one that a run is writing: a last line that is not whole is left
/// out.
pub(crate) fn read(run: &Path, mut on_line: impl FnMut(Line)) -> Result<(), BenchError> {
    let path = file_of(run);
    let mut reader = BufReader::new(File::open(&path).map_err(BenchError::io("read", &path))?);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        if reader.read_until(b'\n', &mut line).map_err(BenchError::io("read", &path))? == 0 {
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(read) => on_line(read),
            Err(_) if !line.ends_with(b"\n") => return Ok(()),
            Err(why) => {
                let message =
                    format!("{}:{number}: not a line of a run, or damaged: delete it if it is: {why}", path.display());
                return Err(BenchError::usage(message));
            }
        }
    }
}

/// What lines say, by content.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) certificates: HashMap<String, Certificate>,
    pub(crate) imported: Vec<Imported>,
}

impl Known {
    /// Takes in what is no verdict; gives back a verdict.
    pub(crate) fn take(&mut self, line: Line) -> Option<Verdict> {
        match line {
            Line::Run(manifest) => self.manifests.push(*manifest),
            Line::Controls(certificate) => {
                self.certificates.insert(certificate.problem.digest.clone(), *certificate);
            }
            Line::Imported(imported) => self.imported.push(*imported),
            Line::Verdict(verdict) => return Some(*verdict),
        }
        None
    }
}
