//! Answers to a suite's problems, wherever they lie.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tilewright_verify::digest;

use crate::error::BenchError;
use crate::suite::{Code, Item, Suite, block_with, flat, label_id, labels};
use crate::table::{self, Row, number_of, text_of};

/// One answer to a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Where in the suite its problem lies.
    pub item: usize,
    /// From 0.
    pub index: u32,
    pub code: Code,
}

/// Samples of a suite, and how many are of no problem of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// By problem, then by number.
    pub found: Vec<Sample>,
    /// Problem and number of samples that were asked for and did not come: they must not vanish.
    pub lacking: Vec<(usize, u32)>,
    pub strangers: usize,
}

impl Samples {
    /// Reads samples: a KernelBench run folder (`level_1_problem_19_sample_0_kernel.py`), a folder of `NAME/*.py` or
    /// `NAME.py`, `NAME__*.py`, a folder with a `labels.csv`, or a `.jsonl` or `.parquet` table.
    ///
    /// # Errors
    /// They cannot be read, two have the same number, or none is of a problem of the suite.
    pub fn read(path: &Path, suite: &Suite) -> Result<Self, BenchError> {
        let mut samples = if table::is_table(path) {
            from_table(path, suite)?
        } else if path.join("labels.csv").is_file() {
            labelled(path, suite)?
        } else if path.is_file() {
            one(path, suite)?
        } else {
            folder(path, suite)?
        };
        let found = &mut samples.found;
        found.sort_by_key(|sample| (sample.item, sample.index));
        let key = |sample: &Sample| (sample.item, sample.index);
        if let Some(pair) = found.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
            let (id, index) = (&suite.items[pair[0].item].id, pair[0].index);
            return Err(BenchError::usage(format!("{}: sample {index} of {id} is there twice", path.display())));
        }
        if found.is_empty() {
            let message = format!("{}: no sample of a problem of {}", path.display(), suite.name);
            return Err(BenchError::usage(message));
        }
        Ok(samples)
    }

    fn new() -> Self {
        Self { found: Vec::new(), lacking: Vec::new(), strangers: 0 }
    }

    fn add(&mut self, item: Option<usize>, index: u32, code: Code) {
        match item {
            Some(item) => self.found.push(Sample { item, index, code }),
            None => self.strangers += 1,
        }
    }
}

/// The name of a sample's file in a run folder.
pub(crate) fn file_name(suite: &Suite, item: usize, index: u32) -> String {
    let item = &suite.items[item];
    match (item.level, item.number) {
        (Some(level), Some(number)) => format!("level_{level}_problem_{number}_sample_{index}_kernel.py"),
        _ => format!("{}__sample_{index}.py", flat(&item.id)),
    }
}

/// Level, problem and sample of a file of a KernelBench run.
fn kernelbench_name(name: &str) -> Option<(u32, u32, u32)> {
    let parts: Vec<&str> = name.strip_suffix("_kernel.py")?.split('_').collect();
    match parts[..] {
        ["level", level, "problem", problem, "sample", sample] => {
            Some((level.parse().ok()?, problem.parse().ok()?, sample.parse().ok()?))
        }
        _ => None,
    }
}

/// One candidate, which can only be of the one problem that is asked for.
fn one(path: &Path, suite: &Suite) -> Result<Samples, BenchError> {
    let is_python = path.extension().is_some_and(|ending| ending == "py");
    if !is_python || suite.items.len() > 1 {
        let what = "samples are a folder, a .jsonl or .parquet table, or, of a single problem, a Python file";
        return Err(BenchError::usage(format!("{}: {what}", path.display())));
    }
    let mut samples = Samples::new();
    samples.add(Some(0), 0, Code::File(path.to_owned()));
    Ok(samples)
}

fn folder(root: &Path, suite: &Suite) -> Result<Samples, BenchError> {
    let names = names(root)?;
    if names.iter().any(|(name, _)| kernelbench_name(name).is_some()) {
        return Ok(run_folder(names, suite));
    }
    let mut samples = Samples::new();
    // The folder of one problem holds its candidates, too.
    let own = Code::File(root.join("problem.py")).read().ok().map(|text| digest(&text));
    let is_whole = |item: &Item| own.as_ref().is_some_and(|own| suite.items.len() == 1 || *own == item.digest);
    let mut files: Vec<Vec<PathBuf>> = Vec::new();
    for item in &suite.items {
        let folder = if is_whole(item) { root.to_owned() } else { root.join(&item.id) };
        let inside = if folder.is_dir() { self::names(&folder)? } else { Vec::new() };
        files.push(inside.into_iter().filter(|(name, _)| name != "problem.py").map(|(_, path)| path).collect());
    }
    let by_name: HashMap<String, usize> =
        suite.items.iter().enumerate().map(|(at, item)| (flat(&item.id), at)).collect();
    for (name, path) in names.into_iter().filter(|_| own.is_none()) {
        match owner(&name, &by_name) {
            Some(at) => files[at].push(path),
            None => samples.strangers += 1,
        }
    }
    for (at, files) in files.into_iter().enumerate() {
        for (index, path) in files.into_iter().enumerate() {
            let index = numbered(&path).unwrap_or(index as u32);
            samples.add(Some(at), index, Code::File(path));
        }
    }
    Ok(samples)
}

fn run_folder(names: Vec<(String, PathBuf)>, suite: &Suite) -> Samples {
    let mut samples = Samples::new();
    let by_number = suite.by_number();
    for (name, path) in names {
        let (item, index) = match kernelbench_name(&name) {
            Some((level, number, index)) => (by_number.get(&(level, number)).copied(), index),
            None => (None, 0),
        };
        samples.add(item, index, Code::File(path));
    }
    samples
}

/// The problem that `NAME.py` or `NAME__*.py` is of. Where one's name begins as another's does, the longer one has it.
fn owner(file: &str, by_name: &HashMap<String, usize>) -> Option<usize> {
    let stem = file.strip_suffix(".py")?;
    let ends = (0..stem.len()).rev().filter(|&at| stem.as_bytes()[at..].starts_with(b"__"));
    std::iter::once(stem.len()).chain(ends).find_map(|end| by_name.get(&stem[..end])).copied()
}

/// The number in `…__sample_3.py` or `sample_3.py`.
fn numbered(path: &Path) -> Option<u32> {
    let stem = path.file_stem()?.to_str()?;
    stem.rsplit("__").next()?.strip_prefix("sample_")?.parse().ok()
}

/// Python files right in a folder, by name. One that cannot be a text is an error: as a sample it would vanish.
fn names(root: &Path) -> Result<Vec<(String, PathBuf)>, BenchError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root).map_err(BenchError::io("read", root))? {
        let path = entry.map_err(BenchError::io("read", root))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.ends_with(".py") {
            continue;
        }
        if !path.is_file() {
            let message = format!("{}: neither a file nor a link to one: rename it or remove it", path.display());
            return Err(BenchError::usage(message));
        }
        names.push((name, path));
    }
    names.sort();
    Ok(names)
}

/// Every candidate of a corpus, numbered by problem in the order of the labels.
fn labelled(root: &Path, suite: &Suite) -> Result<Samples, BenchError> {
    let mut samples = Samples::new();
    let (by_id, mut next) = (suite.by_id(), HashMap::new());
    for entry in labels(root)? {
        let id = label_id(root, &entry.problem);
        let index = next.entry(id.clone()).or_insert(0u32);
        samples.add(by_id.get(id.as_str()).copied(), *index, Code::File(entry.candidate));
        *index += 1;
    }
    Ok(samples)
}

/// Columns with the text of a sample, and with what a model said, of which the last block with ModelNew is taken.
const CODE: [&str; 8] =
    ["kernel", "candidate", "kernel_code", "code", "generated_code", "completion", "response", "output"];

fn from_table(path: &Path, suite: &Suite) -> Result<Samples, BenchError> {
    let mut samples = Samples::new();
    let (by_id, by_number, mut next) = (suite.by_id(), suite.by_number(), HashMap::new());
    for (at, row) in table::rows(path)?.iter().enumerate() {
        let wrong = |what: &str| BenchError::usage(format!("{}, row {}: {what}", path.display(), at + 1));
        let texts = || CODE.iter().filter_map(|name| text_of(row, &[name]));
        // A table may hold the problem as `code` and the answer as `response`.
        let Some(text) = texts().find(|text| text.contains("class ModelNew")).or_else(|| texts().next()) else {
            return Err(wrong(&format!("no sample: a text in one of the columns {}", CODE.join(", "))));
        };
        let item = named(row, &by_id, &by_number);
        let key = item.map_or_else(|| row_key(row), |item| suite.items[item].id.clone());
        let counted = next.entry(key).or_insert(0u32);
        let index = number_of(row, &["sample", "sample_id"]).unwrap_or(*counted);
        *counted += 1;
        samples.add(item, index, Code::Text(block_with(text, "class ModelNew").to_owned()));
    }
    Ok(samples)
}

/// The problem that a row names: by id, or by level and number.
fn named(row: &Row, by_id: &HashMap<&str, usize>, by_number: &HashMap<(u32, u32), usize>) -> Option<usize> {
    let id = text_of(row, &["problem", "id", "name", "uuid", "extra_info.uuid"]);
    id.and_then(|id| by_id.get(id)).copied().or_else(|| {
        let level = number_of(row, &["level"])?;
        by_number.get(&(level, number_of(row, &["problem_id", "number", "problem"])?)).copied()
    })
}

fn row_key(row: &Row) -> String {
    text_of(row, &["problem", "id", "name", "uuid"]).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(folder: &Path) -> Suite {
        for file in ["level1/1_a.py", "level1/2_b.py", "level2/1_c.py"] {
            let path = folder.join("suite").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        Suite::read(&folder.join("suite")).unwrap()
    }

    fn write(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, *file).unwrap();
        }
    }

    fn keys(samples: &Samples) -> Vec<(usize, u32)> {
        samples.found.iter().map(|sample| (sample.item, sample.index)).collect()
    }

    #[test]
    fn a_kernelbench_run_folder_with_every_sample() {
        let folder = tempfile::tempdir().unwrap();
        let suite = suite(folder.path());
        let runs = folder.path().join("runs");
        write(
            &runs,
            &[
                "level_1_problem_2_sample_0_kernel.py",
                "level_1_problem_1_sample_10_kernel.py",
                "level_1_problem_1_sample_9_kernel.py",
                "level_3_problem_1_sample_0_kernel.py",
                "level_2_problem_1_sample_0_kernel.py",
                "level_2_problem_1_sample_0_prompt.txt",
            ],
        );
        let samples = Samples::read(&runs, &suite).unwrap();
        assert_eq!(keys(&samples), [(0, 9), (0, 10), (1, 0), (2, 0)]);
        assert_eq!(samples.strangers, 1);
        for (item, index) in keys(&samples) {
            assert!(runs.join(file_name(&suite, item, index)).exists());
        }
    }

    #[test]
    fn folders_by_name() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("p"), &["x/problem.py", "y/problem.py", "x/candidate.py", "x/other.py"]);
        let suite = Suite::read(&folder.path().join("p")).unwrap();
        let own = Samples::read(&folder.path().join("p"), &suite).unwrap();
        assert_eq!(keys(&own), [(0, 0), (0, 1)]);
        let apart = folder.path().join("s");
        write(&apart, &["x.py", "y__sample_4.py", "y__sample_2.py"]);
        assert_eq!(keys(&Samples::read(&apart, &suite).unwrap()), [(0, 0), (1, 2), (1, 4)]);
        assert!(Samples::read(&folder.path().join("absent"), &suite).is_err());
        // One problem's folder is a suite with its samples in it.
        let one = folder.path().join("p/x");
        let suite = Suite::read(&one).unwrap();
        assert_eq!(keys(&Samples::read(&one, &suite).unwrap()), [(0, 0), (0, 1)]);
        assert_eq!(keys(&Samples::read(&one.join("other.py"), &suite).unwrap()), [(0, 0)]);
        let both = Suite::read(&folder.path().join("p")).unwrap();
        assert!(Samples::read(&one.join("other.py"), &both).unwrap_err().to_string().contains("single problem"));
        // Links are followed: a problem must not vanish because it lies elsewhere.
        std::os::unix::fs::symlink(&one, folder.path().join("p/z")).unwrap();
        assert_eq!(Suite::read(&folder.path().join("p")).unwrap().items.len(), 3);
    }

    /// As many samples come out as lie there: what cannot be one is an error or is told.
    #[test]
    fn no_file_of_a_folder_vanishes() {
        let folder = tempfile::tempdir().unwrap();
        let (suite, runs) = (suite(folder.path()), folder.path().join("runs"));
        let odd = ["notes.py", "level_1_problem_2_sample_4294967296_kernel.py", "level_1_problem_2_sample_x_kernel.py"];
        write(&runs, &["level_1_problem_2_sample_0_kernel.py"]);
        write(&runs, &odd);
        let samples = Samples::read(&runs, &suite).unwrap();
        assert_eq!((keys(&samples), samples.strangers), (vec![(1, 0)], 3));
        let name = runs.join("level_1_problem_1_sample_0_kernel.py");
        let error = || Samples::read(&runs, &suite).unwrap_err().to_string();
        std::fs::create_dir(&name).unwrap();
        assert!(error().contains("sample_0_kernel.py: neither a file"), "{}", error());
        std::fs::remove_dir(&name).unwrap();
        std::os::unix::fs::symlink("nowhere", &name).unwrap();
        assert!(error().contains("sample_0_kernel.py: neither a file"), "{}", error());
        std::fs::remove_file(&name).unwrap();
        std::os::unix::fs::symlink("notes.py", &name).unwrap();
        assert_eq!(keys(&Samples::read(&runs, &suite).unwrap()), [(0, 0), (1, 0)]);
    }

    /// A problem's name may begin as another's does.
    #[test]
    fn a_file_is_a_sample_of_one_problem() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("p"), &["max.py", "max__grad.py", "max_.py"]);
        let suite = Suite::read(&folder.path().join("p")).unwrap();
        let name = |at: usize| suite.items[at].id.as_str();
        let samples = folder.path().join("s");
        write(&samples, &["max.py", "max__2.py", "max__grad.py", "max__grad__2.py", "max___a.py", "min.py", "maxi.py"]);
        let samples = Samples::read(&samples, &suite).unwrap();
        let found: Vec<_> = samples.found.iter().map(|sample| (name(sample.item), sample.index)).collect();
        assert_eq!(found, [("max", 0), ("max", 1), ("max_", 0), ("max__grad", 0), ("max__grad", 1)]);
        assert_eq!(samples.strangers, 2);
    }

    /// The candidates of one problem's folder are of that problem, and not of every one that is asked for.
    #[test]
    fn the_folder_of_one_problem_is_of_that_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("p");
        write(&root, &["x/problem.py", "y/problem.py", "x/candidate.py", "y/candidate.py"]);
        let suite = Suite::read(&root).unwrap();
        assert_eq!(keys(&Samples::read(&root.join("y"), &suite).unwrap()), [(1, 0)]);
    }

    /// Tables of answers hold the problem's text, too, and numbers that pandas has made floats.
    #[test]
    fn a_table_with_more_than_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        let suite = suite(folder.path());
        let path = folder.path().join("s.jsonl");
        let row = "{\"level\": 1.0, \"problem_id\": \"2\", \"sample_id\": 3.0, \"score\": NaN, \"code\": \"class Model: 0\", \"response\": \"class ModelNew: 1\"}";
        std::fs::write(&path, row).unwrap();
        let samples = Samples::read(&path, &suite).unwrap();
        assert_eq!((keys(&samples), samples.strangers), (vec![(1, 3)], 0));
        assert_eq!(samples.found[0].code, Code::Text("class ModelNew: 1".into()));
    }

    #[test]
    fn tables_by_number_and_by_id() {
        let folder = tempfile::tempdir().unwrap();
        let suite = suite(folder.path());
        let path = folder.path().join("s.jsonl");
        let rows = [
            serde_json::json!({"level": 1, "problem_id": 2, "sample_id": 5, "code": "class ModelNew: 1"}),
            serde_json::json!({"problem": "level2/1_c", "response": "Sure.\n```python\nclass ModelNew: 2\n```\nDone."}),
            serde_json::json!({"problem": "level2/1_c", "response": "no code"}),
            serde_json::json!({"problem": "elsewhere", "code": ""}),
        ];
        std::fs::write(&path, rows.map(|row| row.to_string()).join("\n")).unwrap();
        let samples = Samples::read(&path, &suite).unwrap();
        assert_eq!((keys(&samples), samples.strangers), (vec![(1, 5), (2, 0), (2, 1)], 1));
        assert_eq!(samples.found[1].code, Code::Text("class ModelNew: 2\n".into()));
        // What has no code in it is a sample all the same: it fails, and counts.
        assert_eq!(samples.found[2].code, Code::Text("no code".into()));
    }

    #[test]
    fn a_sample_that_is_there_twice_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let suite = suite(folder.path());
        let path = folder.path().join("s.jsonl");
        let row = serde_json::json!({"level": 1, "problem_id": 1, "sample_id": 0, "code": ""});
        std::fs::write(&path, format!("{row}\n{row}\n")).unwrap();
        assert!(
            Samples::read(&path, &suite).unwrap_err().to_string().contains("sample 0 of level1/1_a is there twice")
        );
    }
}
