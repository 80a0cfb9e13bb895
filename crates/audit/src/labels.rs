//! A labelled corpus: candidates with the verdict that each must get.
//!
//! The columns of `labels.csv` are described in `corpus/README.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tilewright_contract::VerdictKind;

const FILE: &str = "labels.csv";
const COLUMNS: [&str; 8] = ["id", "problem", "label", "mechanism", "kind", "verdict", "targets", "note"];
const TARGETS: [&str; 2] = ["cpu", "cuda"];

/// What a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// Right: must be accepted.
    Honest,
    /// Mistaken: must not be accepted.
    Wrong,
    /// Cheats: must not be accepted.
    Hack,
}

impl Label {
    pub const ALL: [Self; 3] = [Self::Honest, Self::Wrong, Self::Hack];

    pub fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Wrong => "wrong",
            Self::Hack => "hack",
        }
    }
}

/// A candidate of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    pub id: String,
    pub label: Label,
    /// Numbers of the catalogue of mechanisms, such as `B23` or `S3.8`.
    pub mechanisms: Vec<String>,
    pub kind: String,
    /// The verdicts that it may get.
    pub verdicts: Vec<VerdictKind>,
    /// `cpu`, `cuda`.
    pub targets: Vec<String>,
    pub note: String,
    pub problem: PathBuf,
    pub candidate: PathBuf,
}

/// Something wrong with a `labels.csv`: what, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct LabelError {
    pub file: String,
    pub line: u64,
    pub message: String,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    problem: String,
    label: String,
    mechanism: String,
    kind: String,
    verdict: String,
    targets: String,
    note: String,
}

/// Reads the `labels.csv` of a folder.
///
/// # Errors
/// Everything that is wrong with it, not only the first thing: each names its line.
pub fn read(folder: &Path) -> Result<Vec<Labelled>, Vec<LabelError>> {
    let path = folder.join(FILE);
    let name = path.display().to_string();
    let error = |line, message: String| LabelError { file: name.clone(), line, message };
    let open = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(&path);
    let mut reader = open.map_err(|why| vec![error(1, format!("failed to open it: {why}"))])?;
    let header = reader.headers().map_err(|why| vec![error(1, why.to_string())])?.clone();
    let missing: Vec<&str> = COLUMNS.into_iter().filter(|column| header.iter().all(|named| named != *column)).collect();
    if !missing.is_empty() {
        let message = format!("no column {}: the first line must name {}", missing.join(", "), COLUMNS.join(","));
        return Err(vec![error(1, message)]);
    }
    let (mut found, mut errors, mut lines) = (Vec::new(), Vec::new(), HashMap::new());
    for record in reader.records() {
        let parsed = record.and_then(|record| {
            let line = record.position().map_or(0, csv::Position::line);
            Ok((line, record.deserialize::<Row>(Some(&header))?))
        });
        match parsed {
            Err(why) => errors.push(error(why.position().map_or(0, csv::Position::line), row_error(&why))),
            Ok((line, row)) => {
                if let Some(first) = lines.insert(row.id.clone(), line) {
                    errors.push(error(line, format!("the id {:?} is taken by line {first}", row.id)));
                }
                match labelled(folder, row) {
                    Ok(entry) => found.push(entry),
                    Err(messages) => errors.extend(messages.into_iter().map(|message| error(line, message))),
                }
            }
        }
    }
    if found.is_empty() && errors.is_empty() {
        errors.push(error(1, "it lists no candidate".into()));
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

fn row_error(why: &csv::Error) -> String {
    match why.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields where the first line has {expected_len}: put fields with commas in quotes")
        }
        _ => why.to_string(),
    }
}

/// The row's meaning, or everything that is wrong with it.
fn labelled(folder: &Path, row: Row) -> Result<Labelled, Vec<String>> {
    let mut errors = Vec::new();
    let label = Label::ALL.into_iter().find(|label| label.name() == row.label);
    if label.is_none() {
        errors.push(format!("unknown label {:?}: give honest, wrong or hack", row.label));
    }
    let verdicts = verdicts(&row.verdict, label, &mut errors);
    let targets: Vec<String> = row.targets.split_whitespace().map(str::to_owned).collect();
    if let Some(unknown) = targets.iter().find(|target| !TARGETS.contains(&target.as_str())) {
        errors.push(format!("unknown target {unknown:?}: give cpu, cuda or both"));
    }
    if targets.is_empty() {
        errors.push("no target: give cpu, cuda or both".into());
    }
    if row.id.is_empty() || row.id.contains(['/', '\\']) {
        errors.push(format!("{:?} is no id: it names the file LABEL/ID.py", row.id));
    }
    let problem = tidy(&folder.join(&row.problem));
    let candidate = folder.join(&row.label).join(format!("{}.py", row.id));
    for (what, file) in [("problem", &problem), ("candidate", &candidate)] {
        if !file.is_file() {
            errors.push(format!("no {what} file {}", file.display()));
        }
    }
    let Some(label) = label.filter(|_| errors.is_empty()) else { return Err(errors) };
    let mechanisms = row.mechanism.split_whitespace().map(str::to_owned).collect();
    Ok(Labelled {
        id: row.id,
        label,
        mechanisms,
        kind: row.kind,
        verdicts,
        targets,
        note: row.note,
        problem,
        candidate,
    })
}

fn verdicts(text: &str, label: Option<Label>, errors: &mut Vec<String>) -> Vec<VerdictKind> {
    let mut found = Vec::new();
    for name in text.split('|') {
        match VerdictKind::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => found.push(kind),
            None => {
                let known: Vec<_> = VerdictKind::ALL.iter().map(|kind| kind.name()).collect();
                errors.push(format!("unknown verdict {name:?}: give one of {}", known.join(", ")));
            }
        }
    }
    if label == Some(Label::Honest) && !found.is_empty() && !found.contains(&VerdictKind::Accepted) {
        errors.push(format!("an honest candidate must be accepted, not {text}"));
    }
    found
}

/// `a/b/../c` as `a/c`: what people see.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        let parent = part == std::path::Component::ParentDir;
        let popped = parent && matches!(tidied.components().next_back(), Some(std::path::Component::Normal(_)));
        if popped {
            tidied.pop();
        } else {
            tidied.push(part);
        }
    }
    tidied
}

impl Labelled {
    /// Whether its label lets it run on this target (`cpu`, `cuda:N`).
    pub fn runs_on(&self, target: &str) -> bool {
        let kind = target.split(':').next().unwrap_or(target);
        self.targets.iter().any(|allowed| allowed == kind)
    }

    /// `hack/softmax__alias`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.label.name(), self.id)
    }

    /// Whether a filter names it: a part of `LABEL/ID` or of the problem's path, or one of its mechanisms as a whole.
    pub fn matches(&self, filter: &str) -> bool {
        self.name().contains(filter)
            || self.problem.to_string_lossy().contains(filter)
            || self.mechanisms.iter().any(|mechanism| mechanism == filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "id,problem,label,mechanism,kind,verdict,targets,note\n";

    fn corpus(rows: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in ["problems/p.py", "honest/a.py", "hack/b.py", "wrong/c.py"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::write(folder.path().join(FILE), rows).unwrap();
        folder
    }

    fn errors(rows: &str) -> Vec<String> {
        let folder = corpus(rows);
        let prefix = format!("{}/", folder.path().display());
        read(folder.path()).unwrap_err().iter().map(|error| error.to_string().replace(&prefix, "")).collect()
    }

    #[test]
    fn a_corpus_is_read() {
        let folder = corpus(&format!(
            "{HEADER}a,problems/../problems/p.py,honest,S3.8,k,accepted,cpu cuda,\"a, b\"\n\
             b,problems/p.py,hack,A1 B23,k,rejected|incorrect,cuda,\n"
        ));
        let found = read(folder.path()).unwrap();
        assert_eq!(found[0].problem, folder.path().join("problems/p.py"));
        assert_eq!((found[0].label, found[0].note.as_str()), (Label::Honest, "a, b"));
        assert_eq!(found[1].verdicts, [VerdictKind::Rejected, VerdictKind::Incorrect]);
        assert!(found[0].runs_on("cpu") && !found[1].runs_on("cpu") && found[1].runs_on("cuda:3"));
        assert!(found[1].matches("B23") && !found[1].matches("B2") && found[1].matches("hack/"));
    }

    /// All files of the repository have a row, and the other way round.
    #[test]
    fn the_labels_of_the_repository_are_read() {
        for folder in ["corpus", "scripts/gpu/attack"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
            let found = read(&folder).unwrap_or_else(|errors| panic!("{errors:?}"));
            let mut named: Vec<_> = found.iter().map(|entry| entry.candidate.clone()).collect();
            let mut files: Vec<_> = Label::ALL
                .into_iter()
                .filter_map(|label| std::fs::read_dir(folder.join(label.name())).ok())
                .flat_map(|entries| entries.map(|entry| entry.unwrap().path()))
                .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
                .collect();
            named.sort();
            files.sort();
            assert_eq!(named, files);
        }
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        assert_eq!(
            errors("id,problem,label,kind,verdict,note\n"),
            [
                "labels.csv:1: no column mechanism, targets: the first line must name id,problem,label,mechanism,kind,verdict,targets,note"
            ]
        );
        let rows = format!(
            "{HEADER}a,problems/p.py,honest,,k,accepted,cpu,\n\
             a,problems/p.py,honest,,k,accepted,cpu,\n\
             x,problems/q.py,hack,,k,rejected,cpu,\n\
             b,problems/p.py,hackk,,k,rejected,cpu,\n\
             b,problems/p.py,hack,,k,refused|rejected,cpu tpu,\n\
             c,problems/p.py,wrong,,k,incorrect,cpu,a, b\n\
             c,problems/p.py,honest,,k,incorrect,,\n"
        );
        assert_eq!(
            errors(&rows),
            [
                "labels.csv:3: the id \"a\" is taken by line 2",
                "labels.csv:4: no problem file problems/q.py",
                "labels.csv:4: no candidate file hack/x.py",
                "labels.csv:5: unknown label \"hackk\": give honest, wrong or hack",
                "labels.csv:5: no candidate file hackk/b.py",
                "labels.csv:6: the id \"b\" is taken by line 5",
                "labels.csv:6: unknown verdict \"refused\": give one of accepted, rejected, incorrect, compile_error, launch_error, memory_fault, race, nondeterministic, timeout, out_of_memory, untraceable, unsupported, problem_defect, infrastructure",
                "labels.csv:6: unknown target \"tpu\": give cpu, cuda or both",
                "labels.csv:7: 9 fields where the first line has 8: put fields with commas in quotes",
                "labels.csv:8: an honest candidate must be accepted, not incorrect",
                "labels.csv:8: no target: give cpu, cuda or both",
                "labels.csv:8: no candidate file honest/c.py",
            ]
        );
        assert_eq!(errors(HEADER), ["labels.csv:1: it lists no candidate"]);
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err()[0].to_string().contains("labels.csv:1: failed to open it"));
    }
}
