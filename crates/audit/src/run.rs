//! Verdicts on every candidate of a corpus, kept as they come.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tilewright_contract::{Verdict, VerdictKind};
use tilewright_verify::{Group, Log, LogError, Verifier, batch, digest};

use crate::labels::{LabelError, Labelled, read};

/// Under which circumstances verdicts were given. The first line of a resume file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// `tilewright.audit-run/1`
    pub schema: String,
    /// Tilewright's version.
    pub tilewright: String,
    pub torch: String,
    pub triton: String,
    /// `cpu` or `cuda:N`.
    pub target: String,
    /// What kernels were compiled for: `sm_90`.
    pub arch: String,
    /// `NAME/VERSION`; the first one decides.
    pub profiles: Vec<String>,
    pub trials: u32,
    /// Seed of the secret seeds.
    pub seed: u64,
}

impl Setting {
    pub const SCHEMA: &'static str = "tilewright.audit-run/1";

    /// What differs from another setting, in words.
    fn difference(&self, other: &Self) -> Option<String> {
        let fields = |setting: &Self| {
            [
                ("tilewright", setting.tilewright.clone()),
                ("torch", setting.torch.clone()),
                ("triton", setting.triton.clone()),
                ("target", setting.target.clone()),
                ("arch", setting.arch.clone()),
                ("profiles", setting.profiles.join(", ")),
                ("trials", setting.trials.to_string()),
                ("seed", setting.seed.to_string()),
            ]
        };
        let pairs = fields(self).into_iter().zip(fields(other));
        let parts: Vec<String> =
            pairs.filter(|(a, b)| a != b).map(|((name, a), (_, b))| format!("{name} {b} there, {a} here")).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// What an audit is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    pub entries: Vec<Labelled>,
    /// Candidates that a filter leaves out.
    pub filtered: u64,
    /// Candidates whose labels do not name the target.
    pub other_targets: u64,
}

/// The candidates of some corpora that run on a target and that one of the filters names (if there are any).
///
/// # Errors
/// Everything that is wrong with their labels.
pub fn select(folders: &[PathBuf], target: &str, filters: &[String]) -> Result<Selection, Vec<LabelError>> {
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    for folder in folders {
        match read(folder) {
            Ok(found) => entries.extend(found),
            Err(found) => errors.extend(found),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let all = entries.len();
    entries.retain(|entry| filters.is_empty() || filters.iter().any(|filter| entry.matches(filter)));
    let named = entries.len();
    entries.retain(|entry| entry.runs_on(target));
    Ok(Selection { filtered: (all - named) as u64, other_targets: (named - entries.len()) as u64, entries })
}

#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("failed to write to the resume file: {0}")]
    Write(#[from] std::io::Error),
    #[error("{0} is of another run ({1}): give the same options, or another file")]
    Other(String, String),
    #[error("{0} holds something else than an audit's verdicts: give another file")]
    Foreign(String),
}

/// Verdicts of an audit so far, on disk. A verdict is in it once all of its line is written.
pub struct Resume {
    path: String,
    log: Log,
    setting: Option<Setting>,
    /// By digest of problem and candidate.
    known: HashMap<(String, String), Verdict>,
}

impl Resume {
    /// Opens or creates the file. Verdicts `infrastructure` in it are left out: those candidates are verified again.
    pub fn open(path: &Path) -> Result<Self, ResumeError> {
        let name = path.display().to_string();
        let (log, lines) = Log::open(path)?;
        let mut lines = lines.into_iter();
        let header = lines.next().map(serde_json::from_value::<Setting>).transpose();
        let setting = header.map_err(|_| ResumeError::Foreign(name.clone()))?;
        let verdicts: Vec<Verdict> = lines
            .map(serde_json::from_value)
            .collect::<Result<_, _>>()
            .map_err(|_| ResumeError::Foreign(name.clone()))?;
        let known = verdicts
            .into_iter()
            .filter(|verdict| verdict.verdict != VerdictKind::Infrastructure)
            .map(|verdict| ((verdict.problem.digest.clone(), verdict.candidate.digest.clone()), verdict))
            .collect();
        Ok(Self { path: name, log, setting, known })
    }

    /// The seed of the earlier run, if there was one.
    pub fn seed(&self) -> Option<u64> {
        self.setting.as_ref().map(|setting| setting.seed)
    }

    /// Holds this run to the circumstances of the earlier one, or notes those of the first.
    fn settle(&mut self, setting: &Setting) -> Result<(), ResumeError> {
        match &self.setting {
            Some(earlier) => setting
                .difference(earlier)
                .map_or(Ok(()), |difference| Err(ResumeError::Other(self.path.clone(), difference))),
            None => Ok(self.log.append(&serde_json::to_string(setting).map_err(std::io::Error::from)?)?),
        }
    }
}

/// Verifies every entry that has no verdict yet, `jobs` at a time; gives all verdicts in the order of the entries.
/// `on_verdict` hears of each as it comes, and whether it is an earlier one.
///
/// # Errors
/// The resume file cannot be written, or is of a run under another setting.
pub fn run(
    verifier: &Verifier,
    setting: &Setting,
    entries: &[Labelled],
    jobs: usize,
    mut resume: Option<Resume>,
    mut on_verdict: impl FnMut(&Labelled, &Verdict, bool),
) -> Result<Vec<Verdict>, ResumeError> {
    let mut verdicts: Vec<Option<Verdict>> = vec![None; entries.len()];
    if let Some(resume) = &mut resume {
        resume.settle(setting)?;
        for (at, key) in keys(entries).into_iter().enumerate() {
            if let Some(verdict) = key.and_then(|key| resume.known.get(&key)) {
                on_verdict(&entries[at], verdict, true);
                verdicts[at] = Some(verdict.clone());
            }
        }
    }
    let mut by_problem: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(at, _)| verdicts[*at].is_none()) {
        by_problem.entry(&entry.problem).or_default().push(at);
    }
    let indices: Vec<Vec<usize>> = by_problem.values().cloned().collect();
    let candidates = |of: &Vec<usize>| of.iter().map(|&at| entries[at].candidate.clone()).collect();
    let groups: Vec<Group> = by_problem
        .iter()
        .map(|(problem, of)| Group { problem: problem.to_path_buf(), candidates: candidates(of) })
        .collect();
    batch(verifier, &groups, jobs, |group, candidate, verdict| -> Result<(), ResumeError> {
        if let Some(resume) = &mut resume {
            resume.log.append(&serde_json::to_string(&verdict).map_err(std::io::Error::from)?)?;
        }
        let at = indices[group][candidate];
        on_verdict(&entries[at], &verdict, false);
        verdicts[at] = Some(verdict);
        Ok(())
    })?;
    Ok(verdicts.into_iter().flatten().collect())
}

/// Digests of problem and candidate of each entry; none where a file cannot be read.
fn keys(entries: &[Labelled]) -> Vec<Option<(String, String)>> {
    let of_file = |path: &Path| std::fs::read(path).ok().map(|bytes| digest(&bytes));
    let mut problems: HashMap<&Path, Option<String>> = HashMap::new();
    entries
        .iter()
        .map(|entry| {
            let problem = problems.entry(&entry.problem).or_insert_with(|| of_file(&entry.problem)).clone();
            Some((problem?, of_file(&entry.candidate)?))
        })
        .collect()
}
