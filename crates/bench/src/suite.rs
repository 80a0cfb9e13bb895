//! Problems to be solved, wherever they lie.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tilewright_verify::digest;
use walkdir::WalkDir;

use crate::error::BenchError;
use crate::table::{self, Row, number_of, text_of};

/// A problem of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Unique in its suite: `level1/19_ReLU`, `softmax`.
    pub id: String,
    pub level: Option<u32>,
    /// KernelBench's number within the level.
    pub number: Option<u32>,
    pub code: Code,
    /// Of the problem's text.
    pub digest: String,
}

/// A Python text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    File(PathBuf),
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suite {
    /// What it was read from.
    pub name: String,
    pub items: Vec<Item>,
    /// Problems that it had before any filter.
    pub whole: u32,
}

/// Which problems of a suite to take: all that every given condition names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Parts of ids, any of which will do.
    pub texts: Vec<String>,
    pub levels: Vec<u32>,
    /// First and last of ranges of numbers.
    pub numbers: Vec<(u32, u32)>,
    /// The how-many-th of how many parts, from 1: every machine takes one.
    pub shard: Option<(u32, u32)>,
}

impl Suite {
    /// Reads a suite: a KernelBench checkout (`level1/1_name.py` …), a folder of `NAME/problem.py`, a folder with a
    /// `labels.csv`, a folder of Python files, one Python file, or a `.jsonl` or `.parquet` table.
    ///
    /// # Errors
    /// It cannot be read, holds no problem, or two of one name.
    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let levels = [path.to_owned(), path.join("KernelBench")].into_iter().find(|root| has_levels(root));
        let mut items = if let Some(root) = levels {
            kernelbench(&root)?
        } else if table::is_table(path) {
            from_table(path)?
        } else if path.join("labels.csv").is_file() {
            labelled(path)?
        } else if path.is_dir() {
            folder(path)?
        } else if path.is_file() && path.extension().is_none_or(|ending| ending != "py") {
            let what = "a suite is a folder, a Python file, or a .jsonl or .parquet table";
            return Err(BenchError::usage(format!("{}: {what}", path.display())));
        } else {
            vec![item(path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into()), path.into())?]
        };
        items.sort_by(|a, b| (a.level, a.number, &a.id).cmp(&(b.level, b.number, &b.id)));
        unambiguous(path, &items)?;
        if items.is_empty() {
            return Err(BenchError::usage(format!("{}: no problems in it", path.display())));
        }
        Ok(Self { name: path.display().to_string(), whole: items.len() as u32, items })
    }

    /// The problems that a filter names, in order.
    ///
    /// # Errors
    /// It names none, or the part is none of the parts.
    pub fn filtered(mut self, filter: &Filter) -> Result<Self, BenchError> {
        self.items.retain(|item| filter.names(item));
        if let Some((part, of)) = filter.shard {
            if part == 0 || part > of {
                return Err(BenchError::usage(format!("--shard {part}/{of}: give 1/{of} to {of}/{of}")));
            }
            let mut at = 0;
            self.items.retain(|_| {
                at += 1;
                (at - 1) % of == part - 1
            });
        }
        if self.items.is_empty() {
            return Err(BenchError::usage(format!("{}: no problem is left by the filters", self.name)));
        }
        Ok(self)
    }

    /// Where in `items` a problem lies, by its id.
    pub(crate) fn by_id(&self) -> HashMap<&str, usize> {
        self.items.iter().enumerate().map(|(at, item)| (item.id.as_str(), at)).collect()
    }

    /// Where in `items` a problem lies, by its level and number.
    pub(crate) fn by_number(&self) -> HashMap<(u32, u32), usize> {
        let numbered = |(at, item): (usize, &Item)| Some(((item.level?, item.number?), at));
        self.items.iter().enumerate().filter_map(numbered).collect()
    }
}

impl Filter {
    fn names(&self, item: &Item) -> bool {
        let any =
            |list: &[u32], value: Option<u32>| list.is_empty() || value.is_some_and(|value| list.contains(&value));
        let inside = |number: u32| self.numbers.iter().any(|&(first, last)| (first..=last).contains(&number));
        (self.texts.is_empty() || self.texts.iter().any(|text| item.id.contains(text)))
            && any(&self.levels, item.level)
            && (self.numbers.is_empty() || item.number.is_some_and(inside))
    }
}

impl Code {
    pub(crate) fn read(&self) -> Result<Vec<u8>, BenchError> {
        match self {
            Self::File(path) => std::fs::read(path).map_err(BenchError::io("read", path)),
            Self::Text(text) => Ok(text.clone().into_bytes()),
        }
    }
}

/// Samples are found by a problem's name, or by its level and number: no two may have the same. A `/` in a name is `--`
/// in the name of a file.
fn unambiguous(path: &Path, items: &[Item]) -> Result<(), BenchError> {
    let (mut names, mut numbers) = (HashMap::new(), HashMap::new());
    for item in items {
        let same = names.insert(flat(&item.id), &item.id).map(|first| (first, "their names".to_owned()));
        let numbered = item.level.zip(item.number);
        let number = numbered.and_then(|(level, number)| {
            let first = numbers.insert((level, number), &item.id)?;
            Some((first, format!("number {number} of level {level}")))
        });
        if let Some((first, what)) = same.or(number) {
            let (name, id) = (path.display(), &item.id);
            return Err(BenchError::usage(format!(
                "{name}: two problems, {first:?} and {id:?}, have {what} in common: give them names and numbers of their own"
            )));
        }
    }
    Ok(())
}

/// A name as part of a file's name.
pub(crate) fn flat(id: &str) -> String {
    id.replace(['/', '\\'], "--")
}

/// Whether a folder holds `level1`, `level2` or another of KernelBench's levels.
fn has_levels(root: &Path) -> bool {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_dir()).any(|entry| level_of(&entry.file_name()).is_some())
}

fn level_of(folder: &OsStr) -> Option<u32> {
    folder.to_str()?.strip_prefix("level")?.parse().ok()
}

fn item(id: String, path: PathBuf) -> Result<Item, BenchError> {
    let code = Code::File(path);
    let digest = digest(&code.read()?);
    Ok(Item { id, level: None, number: None, code, digest })
}

/// `level1/19_ReLU.py`.
fn kernelbench(root: &Path) -> Result<Vec<Item>, BenchError> {
    let mut items = Vec::new();
    for path in python_files(root, 2)? {
        let level = path.parent().and_then(Path::file_name).and_then(level_of);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let number = stem.split('_').next().and_then(|number| number.parse().ok());
        if let (Some(level), Some(number)) = (level, number) {
            let id = format!("level{level}/{stem}");
            items.push(Item { level: Some(level), number: Some(number), ..item(id, path)? });
        }
    }
    Ok(items)
}

/// `NAME/problem.py`, or else every Python file by its path.
fn folder(root: &Path) -> Result<Vec<Item>, BenchError> {
    let files = python_files(root, usize::MAX)?;
    let named: Vec<&PathBuf> = files.iter().filter(|path| path.ends_with("problem.py")).collect();
    let id = |path: &Path| path.strip_prefix(root).unwrap_or(path).with_extension("").display().to_string();
    if named.is_empty() {
        return files.into_iter().map(|path| item(id(&path), path)).collect();
    }
    let named_by_folder = |path: &PathBuf| {
        let own = path.parent().unwrap_or(path);
        // The folder of one problem is called as it is.
        let whole = own == root;
        let name = || root.canonicalize().ok()?.file_name().map(|name| name.to_string_lossy().into_owned());
        item(if whole { name().unwrap_or_else(|| "problem".into()) } else { id(own) }, path.clone())
    };
    named.into_iter().map(named_by_folder).collect()
}

/// The problems that a labelled corpus is about.
fn labelled(root: &Path) -> Result<Vec<Item>, BenchError> {
    let mut paths: Vec<PathBuf> = labels(root)?.into_iter().map(|entry| entry.problem).collect();
    paths.sort();
    paths.dedup();
    paths.into_iter().map(|path| item(label_id(root, &path), path)).collect()
}

pub(crate) fn labels(root: &Path) -> Result<Vec<tilewright_audit::Labelled>, BenchError> {
    tilewright_audit::read(root)
        .map_err(|errors| BenchError::usage(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}

/// In a corpus, `problems/add_relu.py` is `add_relu`; a problem from elsewhere is told with the folder it comes from, as
/// `problems/softmax`.
pub(crate) fn label_id(root: &Path, path: &Path) -> String {
    let named = if path.ends_with("problem.py") { path.parent().unwrap_or(path) } else { path };
    let name = named.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    match named.parent().and_then(Path::file_name) {
        Some(folder) if !path.starts_with(root) => format!("{}/{name}", folder.to_string_lossy()),
        _ => name,
    }
}

/// Every Python file under a folder, in the order of their names.
fn python_files(root: &Path, depth: usize) -> Result<Vec<PathBuf>, BenchError> {
    let mut files = Vec::new();
    for entry in WalkDir::new(root).max_depth(depth).follow_links(true).sort_by_file_name() {
        let entry = entry.map_err(|why| BenchError::usage(format!("failed to read {}: {why}", root.display())))?;
        if entry.file_type().is_file() && entry.path().extension().is_some_and(|ending| ending == "py") {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// Columns with the text of a problem: KernelBench's data set, KernelBook, the data of Dr. Kernel.
const CODE: [&str; 6] = [
    "code",
    "python_code",
    "problem",
    "original_python_code",
    "reward_model.ground_truth",
    "extra_info.original_prompt",
];
const ENTRY: [&str; 3] = ["entry_point", "extra_info.entry_point", "module_name"];
const NAME: [&str; 4] = ["id", "name", "uuid", "extra_info.uuid"];

fn from_table(path: &Path) -> Result<Vec<Item>, BenchError> {
    let rows = table::rows(path)?;
    let item = |(at, row): (usize, &Row)| {
        row_item(at, row).map_err(|why| BenchError::usage(format!("{}, row {}: {why}", path.display(), at + 1)))
    };
    rows.iter().enumerate().map(item).collect()
}

fn row_item(at: usize, row: &Row) -> Result<Item, String> {
    let texts = CODE.iter().filter_map(|name| text_of(row, &[name])).map(|text| block_with(text, "def get_inputs"));
    let Some(text) = texts.into_iter().find(|text| text.contains("def get_inputs")) else {
        return Err(format!("no problem: a text with get_inputs in one of the columns {}", CODE.join(", ")));
    };
    let text = match text_of(row, &ENTRY) {
        Some(entry) => with_model(text, entry)?,
        None => text.to_owned(),
    };
    let (level, number) = (number_of(row, &["level", "extra_info.level"]), number_of(row, &["problem_id", "number"]));
    let name = text_of(row, &NAME).map(str::to_owned);
    let id = match (name, level) {
        (Some(name), Some(level)) if number.is_some() => format!("level{level}/{name}"),
        (Some(name), _) => name,
        (None, _) => format!("row{}", at + 1),
    };
    Ok(Item { id, level, number, digest: digest(text.as_bytes()), code: Code::Text(text) })
}

/// KernelBook names its modules as their authors did: `Model` is what a problem calls it.
fn with_model(text: &str, entry: &str) -> Result<String, String> {
    let is_name = !entry.is_empty() && entry.chars().all(|c| c.is_alphanumeric() || c == '_');
    if entry == "Model" || text.contains("class Model(") {
        return Ok(text.to_owned());
    }
    if !is_name || !text.contains(&format!("class {entry}")) {
        return Err(format!("the entry point {entry:?} is no class of its text"));
    }
    Ok(format!("{}\n\n\nModel = {entry}\n", text.trim_end()))
}

/// The last block between ``` fences that holds a word; all of the text where there is none.
pub(crate) fn block_with<'a>(text: &'a str, word: &str) -> &'a str {
    let mut found = None;
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("```") {
        let Some((block, next)) = after.split_once("```") else { break };
        let body = block.split_once('\n').map_or("", |(_, body)| body);
        if body.contains(word) {
            found = Some(body);
        }
        rest = next;
    }
    found.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{write_parquet, write_texts};

    const PROBLEM: &str = "class Model: ...\ndef get_inputs(): ...\n";

    fn write(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, PROBLEM).unwrap();
        }
    }

    fn ids(suite: &Suite) -> Vec<&str> {
        suite.items.iter().map(|item| item.id.as_str()).collect()
    }

    #[test]
    fn a_kernelbench_checkout_by_level_and_number() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["level1/10_b.py", "level1/9_a.py", "level2/1_c.py", "level1/notes.py", "x.py"];
        write(&folder.path().join("KernelBench"), &files);
        let suite = Suite::read(folder.path()).unwrap();
        assert_eq!(ids(&suite), ["level1/9_a", "level1/10_b", "level2/1_c"]);
        assert_eq!(suite.by_number()[&(2, 1)], 2);
        assert_eq!(Suite::read(&folder.path().join("KernelBench")).unwrap().items, suite.items);
    }

    /// A whole checkout, with everything else that lies in one: read as it is.
    #[test]
    fn a_checkout_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let problems = [
            "KernelBench/level1/1_First_thing_.py",
            "KernelBench/level1/100_Last_one.py",
            "KernelBench/level2/9_A_B_C.py",
            "KernelBench/level3/21_Net-B7.py",
            "KernelBench/level4/7_some-model-1p3B_bs8_seq512.py",
        ];
        write(folder.path(), &problems);
        let others = [
            "setup.py",
            "src/kernelbench/eval.py",
            "scripts/1_generate.py",
            "KernelBench/changelog.py",
            "KernelBench/level1/__init__.py",
            "KernelBench/level1/__pycache__/1_First_thing_.cpython-310.py",
            "KernelBench/level_old/1_x.py",
            "runs/a/level_1_problem_1_sample_0_kernel.py",
            "results/timing/H100/baseline_time_torch.json",
        ];
        write(folder.path(), &others);
        let suite = Suite::read(folder.path()).unwrap();
        let want = problems.map(|path| path.trim_start_matches("KernelBench/").trim_end_matches(".py"));
        assert_eq!(ids(&suite), want);
        let numbers: Vec<_> = suite.items.iter().map(|item| (item.level.unwrap(), item.number.unwrap())).collect();
        assert_eq!(numbers, [(1, 1), (1, 100), (2, 9), (3, 21), (4, 7)]);
        let samples = crate::Samples::read(&folder.path().join("runs/a"), &suite).unwrap();
        assert_eq!((samples.found.len(), samples.found[0].item), (1, 0));
        // A part of a checkout is one, too.
        std::fs::remove_dir_all(folder.path().join("KernelBench/level1")).unwrap();
        assert_eq!(ids(&Suite::read(folder.path()).unwrap()), want[2..]);
        // Samples could not say which of the two they answer.
        write(folder.path(), &["KernelBench/level2/9_D.py"]);
        let error = Suite::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("number 9 of level 2"), "{error}");
    }

    #[test]
    fn names_that_would_be_one_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &["a/b.py", "a--b.py"]);
        assert!(Suite::read(folder.path()).unwrap_err().to_string().contains("have their names in common"));
    }

    #[test]
    fn folders_and_single_files() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &["a/b/problem.py", "c/problem.py", "c/candidate.py"]);
        assert_eq!(ids(&Suite::read(folder.path()).unwrap()), ["a/b", "c"]);
        assert_eq!(ids(&Suite::read(&folder.path().join("c")).unwrap()), ["c"]);
        assert_eq!(ids(&Suite::read(&folder.path().join("c/candidate.py")).unwrap()), ["candidate"]);
        assert!(Suite::read(&folder.path().join("absent")).is_err());
    }

    /// A corpus may have a problem of its own and one from elsewhere under one name.
    #[test]
    fn the_problems_of_a_corpus_keep_apart() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["corpus/problems/a.py", "problems/a/problem.py", "corpus/honest/x.py", "corpus/wrong/y.py"];
        write(folder.path(), &files);
        let rows = "x,problems/a.py,honest,,,accepted,cpu,\ny,../problems/a/problem.py,wrong,,,incorrect,cpu,\n";
        let labels = format!("id,problem,label,mechanism,kind,verdict,targets,note\n{rows}");
        let root = folder.path().join("corpus");
        std::fs::write(root.join("labels.csv"), labels).unwrap();
        let suite = Suite::read(&root).unwrap();
        assert_eq!(ids(&suite), ["a", "problems/a"]);
        let samples = crate::Samples::read(&root, &suite).unwrap();
        assert_eq!(samples.found.iter().map(|sample| sample.item).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn filters_and_shards_part_a_suite() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<String> = (1..=7).map(|number| format!("level{}/{number}_p.py", 1 + number % 2)).collect();
        write(folder.path(), &files.iter().map(String::as_str).collect::<Vec<_>>());
        let take = |filter| Suite::read(folder.path()).unwrap().filtered(&filter);
        let one = take(Filter { levels: vec![2], numbers: vec![(3, 5)], ..Filter::default() }).unwrap();
        assert_eq!(ids(&one), ["level2/3_p", "level2/5_p"]);
        let shard = |part| take(Filter { shard: Some((part, 3)), ..Filter::default() });
        let mut all: Vec<String> = (1..=3).flat_map(|part| shard(part).unwrap().items).map(|item| item.id).collect();
        all.sort();
        assert_eq!(all.len(), 7);
        all.dedup();
        assert_eq!(all.len(), 7);
        assert!(shard(0).is_err() && shard(4).is_err());
        assert!(take(Filter { texts: vec!["nothing".into()], ..Filter::default() }).is_err());
    }

    #[test]
    fn tables_of_three_sources() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernelbench.parquet");
        write_parquet(&path, ("code", &[PROBLEM, PROBLEM]), ("problem_id", &[2, 1]));
        let suite = Suite::read(&path).unwrap();
        assert_eq!(suite.items.iter().map(|item| item.number).collect::<Vec<_>>(), [Some(1), Some(2)]);

        let path = folder.path().join("kernelbook.jsonl");
        let row = serde_json::json!({"uuid": "7", "entry_point": "Gate", "triton_code": "def call(): ...",
            "python_code": "class Gate: ...\ndef get_inputs(): ...\n"});
        std::fs::write(&path, row.to_string()).unwrap();
        let suite = Suite::read(&path).unwrap();
        let Code::Text(text) = &suite.items[0].code else { panic!() };
        assert!(text.ends_with("\nModel = Gate\n"), "{text}");

        // The pool of RL data is a Parquet file with columns within columns.
        let path = folder.path().join("rl.parquet");
        let prompt = format!("Rewrite this.\n```python\n{PROBLEM}```\n");
        let columns = "REQUIRED BYTE_ARRAY data_source (UTF8);
            REQUIRED GROUP reward_model { REQUIRED BYTE_ARRAY ground_truth (UTF8); REQUIRED BYTE_ARRAY style (UTF8); }
            REQUIRED GROUP extra_info { REQUIRED BYTE_ARRAY entry_point (UTF8); REQUIRED BYTE_ARRAY level (UTF8);
                REQUIRED BYTE_ARRAY module_name (UTF8); REQUIRED BYTE_ARRAY ops (UTF8);
                REQUIRED BYTE_ARRAY original_prompt (UTF8); REQUIRED BYTE_ARRAY uuid (UTF8); }";
        let row = ["pool", "", "rule", "Model", "1", "Model", "[]", &prompt, "u7"];
        write_texts(&path, columns, &row);
        let suite = Suite::read(&path).unwrap();
        assert_eq!((ids(&suite), suite.items[0].level), (vec!["u7"], Some(1)));
        assert_eq!(suite.items[0].code, Code::Text(PROBLEM.into()));

        let path = folder.path().join("rl.jsonl");
        let prompt = format!("An example:\n```python\nclass Model: ...\n```\nYours:\n```python\n{PROBLEM}```\nGo.");
        let row = serde_json::json!({"reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"original_prompt": prompt, "entry_point": "Model", "uuid": "u1", "level": "2"}});
        std::fs::write(&path, row.to_string()).unwrap();
        let suite = Suite::read(&path).unwrap();
        assert_eq!((ids(&suite), suite.items[0].level), (vec!["u1"], Some(2)));
        assert_eq!(suite.items[0].code, Code::Text(PROBLEM.into()));
    }

    #[test]
    fn a_row_without_a_problem_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let good = serde_json::json!({"code": PROBLEM, "id": "a"});
        std::fs::write(&path, format!("{good}\n{{\"code\":\"x\"}}\n")).unwrap();
        assert!(Suite::read(&path).unwrap_err().to_string().contains("row 2"));
        std::fs::write(&path, format!("{good}\n{good}\n")).unwrap();
        assert!(Suite::read(&path).unwrap_err().to_string().contains("two problems"));
    }
}
