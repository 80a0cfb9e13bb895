//! Every problem of the repository with its candidate, and the honest half of the corpus.

use std::convert::Infallible;
use std::path::Path;

use tilewright_verify::{Group, Verifier};

use crate::bench::{explain, root, verifier};

#[test]
fn every_problem_accepts_its_candidate() {
    let cache = tempfile::tempdir().unwrap();
    let mut folders: Vec<_> =
        std::fs::read_dir(root().join("problems")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    assert!(folders.len() >= 20, "only {} problems", folders.len());
    let groups: Vec<Group> = folders
        .iter()
        .map(|folder| Group { problem: folder.join("problem.py"), candidates: vec![folder.join("candidate.py")] })
        .collect();
    let wrong = unlike(&verifier(cache.path()), &groups, |_, _| "accepted");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    every_kernel_is_read(cache.path(), 45);
}

/// The honest half of the corpus; `tilewright audit` runs all of it.
#[test]
fn every_honest_candidate_of_the_corpus_gets_the_verdict_of_its_label() {
    let cache = tempfile::tempdir().unwrap();
    let corpus = root().join("corpus");
    let mut rows: Vec<Row> =
        csv::Reader::from_path(corpus.join("labels.csv")).unwrap().deserialize().map(Result::unwrap).collect();
    rows.retain(|row| row.label == "honest" && row.targets.split_whitespace().any(|target| target == "cpu"));
    rows.sort_by(|a, b| a.problem.cmp(&b.problem));
    assert!(rows.len() >= 15, "only {} candidates", rows.len());
    let of_problems: Vec<&[Row]> = rows.chunk_by(|a, b| a.problem == b.problem).collect();
    let file = |row: &Row| corpus.join(&row.label).join(format!("{}.py", row.id));
    let groups: Vec<Group> = of_problems
        .iter()
        .map(|rows| Group { problem: corpus.join(&rows[0].problem), candidates: rows.iter().map(file).collect() })
        .collect();
    let wrong = unlike(&verifier(cache.path()), &groups, |group, row| &of_problems[group][row].verdict);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    every_kernel_is_read(cache.path(), 100);
}

/// The verdicts, two at a time, that are none of the wanted ones (`a|b`), in words.
fn unlike<'a>(verifier: &Verifier, groups: &[Group], wanted: impl Fn(usize, usize) -> &'a str) -> Vec<String> {
    let (mut wrong, mut count) = (Vec::new(), 0);
    let Ok(()) = tilewright_verify::batch(verifier, groups, 2, |group, candidate, verdict| {
        let wanted = wanted(group, candidate);
        if wanted.split('|').all(|allowed| allowed != verdict.verdict.name()) {
            wrong.push(format!("wanted {wanted}, {}", explain(&verdict)));
        }
        count += 1;
        Ok::<(), Infallible>(())
    });
    assert_eq!(count, groups.iter().map(|group| group.candidates.len()).sum::<usize>());
    wrong
}

/// What the cache holds of Triton IR is read, makes sense, and is the same after printing and reading again.
fn every_kernel_is_read(cache: &Path, at_least: usize) {
    let mut pending = vec![cache.to_owned()];
    let mut count = 0;
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let Ok(text) = String::from_utf8(std::fs::read(&path).unwrap()) else { continue };
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

/// A row of `corpus/labels.csv`; `problem` is a path relative to `corpus/`, `verdict` lists alternatives with `|`.
#[derive(serde::Deserialize)]
struct Row {
    id: String,
    problem: String,
    label: String,
    verdict: String,
    targets: String,
}
