//! The file of a run: one JSON object a line, written as verdicts come. What counts is content: a verdict is found by
//! the digests of its problem and of its candidate, whoever gave it and whatever the files are called.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    /// Problems of the whole suite, of which filters may have left fewer here; none where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite_problems: Option<u32>,
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
        let wrong = |what: String| Err(BenchError::usage(format!("{}:{number}: {what}", path.display())));
        let read = serde_json::from_slice::<Line>(&line);
        if let Some(schema) = foreign(&read, &line) {
            return wrong(format!("written by another version of Tilewright, as {schema}: use that one"));
        }
        match read {
            Ok(read) => on_line(read),
            Err(_) if !line.ends_with(b"\n") => return Ok(()),
            Err(why) => return wrong(format!("not a line of a run, or damaged: delete it if it is: {why}")),
        }
    }
}

/// The schema of a line, if it is none that this version reads.
fn foreign(read: &Result<Line, serde_json::Error>, line: &[u8]) -> Option<String> {
    match read {
        Ok(read) => read.foreign().map(str::to_owned),
        Err(_) => {
            let value: Value = serde_json::from_slice(line).ok()?;
            let schema = value.as_object()?.values().next()?.get("schema")?.as_str()?;
            let known = [Manifest::SCHEMA, Certificate::SCHEMA, Verdict::SCHEMA];
            (!known.contains(&schema)).then(|| schema.to_owned())
        }
    }
}

impl Line {
    /// Its schema, if it is none that this version writes.
    pub(crate) fn foreign(&self) -> Option<&str> {
        let (schema, own) = match self {
            Self::Run(manifest) => (&manifest.schema, Manifest::SCHEMA),
            Self::Controls(certificate) => (&certificate.schema, Certificate::SCHEMA),
            Self::Verdict(verdict) => (&verdict.schema, Verdict::SCHEMA),
            Self::Imported(_) => return None,
        };
        (schema != own).then_some(schema)
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
