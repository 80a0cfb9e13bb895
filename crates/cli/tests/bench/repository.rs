//! Every problem of the repository with its candidate, and the corpus, each through one run: the verdicts that they must
//! get, and a report that counts every one of them.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::symlink;

use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A run without controls, with one trial a problem: what is tested is the path, not the precision.
fn run(bench: &Bench, suite: &str) -> Value {
    let args = ["run", suite, suite, "--out", "runs/own", "--trials", "1", "--seed", "20261129", "--no-controls"];
    bench.json(&[&args[..], &["--timeout", "300", "--json"]].concat())
}

/// As many come out as went in, however they are counted.
fn all_are_counted(report: &Value, problems: usize, samples: usize) {
    let counts = &report["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap() as usize;
    assert_eq!((count("problems"), count("samples"), count("missing"), count("unanswered")), (problems, samples, 0, 0));
    assert_eq!(count("accepted") + count("failed") + count("undecided"), samples, "{counts}");
    let rows = |name: &str| report[name].as_array().unwrap().clone();
    let sum = |rows: Vec<Value>, of: fn(&Value) -> u64| rows.iter().map(of).sum::<u64>() as usize;
    assert_eq!(sum(rows("taxonomy"), |kind| kind["count"].as_u64().unwrap()), samples);
    assert_eq!(sum(rows("problems"), |row| row["outcomes"].as_array().unwrap().len() as u64), samples);
    let group = &report["standards"][0]["groups"][0];
    let decided = count("accepted") + count("failed");
    assert_eq!((group["problems"].as_u64(), group["samples"].as_u64()), (Some(problems as u64), Some(decided as u64)));
}

/// Verdict and deciding message of every candidate, by its path.
fn found(bench: &Bench) -> HashMap<String, (String, String)> {
    let text = fs::read_to_string(bench.path("runs/own/run.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let verdicts = lines.filter_map(|line| line.get("verdict").cloned());
    let of = |verdict: Value| {
        let name = verdict["candidate"]["path"].as_str().unwrap().to_owned();
        (name, (verdict["verdict"].as_str().unwrap().to_owned(), verdict["reasons"].to_string()))
    };
    verdicts.map(of).collect()
}

#[test]
fn every_problem_accepts_its_candidate() {
    let bench = Bench::new();
    symlink(root().join("problems"), bench.path("problems")).unwrap();
    let report = run(&bench, "problems");
    let folders = fs::read_dir(root().join("problems")).unwrap();
    let count = folders.filter(|folder| folder.as_ref().unwrap().path().is_dir()).count();
    assert!(count >= 20, "only {count} problems");
    all_are_counted(&report, count, count);
    let refused: BTreeMap<_, _> = found(&bench).into_iter().filter(|(_, (verdict, _))| verdict != "accepted").collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let correct = report["standards"][0]["groups"][0]["correct"]["value"].as_f64();
    assert_eq!((report["counts"]["accepted"].as_u64(), correct), (Some(count as u64), Some(1.0)));
    every_kernel_is_read(&bench.path("cache"), 45);
}

/// All that are honest; of the others every fourth, which keeps CI short, or all of them where
/// `TILEWRIGHT_CORPUS=all` says so; `tilewright audit` runs those, too, that may run until their time is over.
#[test]
fn the_corpus_gets_the_verdicts_of_its_labels() {
    let bench = Bench::new();
    let part = bench.path("corpus");
    fs::create_dir(&part).unwrap();
    for name in ["honest", "wrong", "hack", "problems"] {
        symlink(root().join("corpus").join(name), part.join(name)).unwrap();
    }
    symlink(root().join("problems"), bench.path("problems")).unwrap();
    let whole = std::env::var("TILEWRIGHT_CORPUS").is_ok_and(|value| value == "all");
    let labels = root().join("corpus/labels.csv");
    let mut rows: Vec<Row> = csv::Reader::from_path(&labels).unwrap().deserialize().map(Result::unwrap).collect();
    let all = rows.len();
    let mut others = 0;
    rows.retain(|row| {
        if row.verdict.split('|').any(|verdict| verdict == "timeout") {
            return false;
        }
        others += usize::from(row.label != "honest");
        row.targets.split_whitespace().any(|target| target == "cpu")
            && (whole || row.label == "honest" || others % 4 == 0)
    });
    assert!(rows.len() * 3 > all, "only {} candidates", rows.len());
    let mut table = csv::Writer::from_path(part.join("labels.csv")).unwrap();
    rows.iter().for_each(|row| table.serialize(row).unwrap());
    table.flush().unwrap();

    let report = run(&bench, "corpus");
    let mut problems: Vec<&str> = rows.iter().map(|row| row.problem.as_str()).collect();
    problems.sort_unstable();
    problems.dedup();
    all_are_counted(&report, problems.len(), rows.len());
    let found = found(&bench);
    let other = |row: &Row| {
        let name = format!("{}/{}", row.label, row.id);
        let Some((verdict, reasons)) = found.get(&format!("corpus/{name}.py")) else {
            return Some(format!("{name}: no verdict"));
        };
        let fits = row.verdict.split('|').any(|allowed| allowed == verdict);
        (!fits).then(|| format!("{name}: wanted {}, {verdict}: {reasons}", row.verdict))
    };
    let wrong: Vec<String> = rows.iter().filter_map(other).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    every_kernel_is_read(&bench.path("cache"), 100);
}

/// A row of `corpus/labels.csv`; `problem` is a path relative to `corpus/`, `verdict` lists alternatives with `|`.
#[derive(serde::Serialize, serde::Deserialize)]
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

/// What the cache holds of Triton IR is read, makes sense, and is the same after printing and reading again.
fn every_kernel_is_read(cache: &Path, at_least: usize) {
    let mut pending = vec![cache.to_owned()];
    let mut count = 0;
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let Ok(text) = String::from_utf8(fs::read(&path).unwrap()) else { continue };
        if !text.contains("tt.func public") {
            continue;
        }
        let read = |text: &str| tilewright_ttir::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let module = read(&text);
        tilewright_ttir::verify(&module).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read(&module.to_string()).to_string(), module.to_string(), "{text}");
        count += 1;
    }
    assert!(count >= at_least, "only {count} kernels in the cache");
}
