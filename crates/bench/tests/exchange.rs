//! KernelBench's files in and out, tables, and comparisons of two runs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scripted;

use std::path::{Path, PathBuf};

use scripted::{Scripted, failed, fast};
use serde_json::{Value, json};
use tilewright_bench::{Asked, Comparison, Import, Line, Report, Run, eval_results, import, leaderboard};
use tilewright_contract::VerdictKind;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn json(&self, name: &str, value: &Value) -> PathBuf {
        std::fs::write(self.path(name), value.to_string()).unwrap();
        self.path(name)
    }

    fn run(&self, name: &str, run: &Scripted) -> Run {
        scripted::write(&self.path(name), &run.lines());
        Run::read(&[self.path(name)]).unwrap()
    }
}

fn take<'a>(results: &'a Path, baseline: Option<&'a Path>) -> Import<'a> {
    Import { results, level: 1, baseline, baseline_name: "torch", suite: None }
}

fn result(sample: u32, compiled: bool, correct: bool, runtime: f64, metadata: Value) -> Value {
    json!({"sample_id": sample, "compiled": compiled, "correctness": correct, "metadata": metadata, "runtime": runtime,
        "runtime_stats": {"mean": runtime, "std": 0.1, "num_trials": 100}})
}

fn result_with(name: &str, value: Value) -> Value {
    let mut result = result(0, true, true, 1.0, json!({}));
    result[name] = value;
    result
}

fn baseline(folder: &Folder) -> PathBuf {
    let times = json!({"level1": {"1_a.py": {"mean": 2.0, "std": 0.1, "num_trials": 100}, "2_b.py": {"mean": 4.0}, "3_c.py": {"mean": 1.0}}});
    folder.json("baseline.json", &times)
}

#[test]
fn results_of_kernelbench_become_a_run() {
    let folder = Folder::new();
    let results = folder.json("eval_results.json", &json!({
        "1": [result(0, true, true, 1.0, json!({"hardware": "NVIDIA H100"})), result(1, true, false, -1.0, json!({"correctness_issue": "values"}))],
        // Correct, but its timing failed: written as -1.
        "2": [result(0, true, true, -1.0, json!({}))],
        // What may be the machine's fault, and what is the candidate's.
        "3": [result(0, false, false, -1.0, json!({"cuda_error": "illegal access"})), result(1, false, false, -1.0, json!({"compilation_error": "no"}))],
    }));
    let out = folder.path("run");
    assert_eq!(import(&take(&results, Some(&baseline(&folder))), &out).unwrap(), 5);
    let run = Run::read(std::slice::from_ref(&out)).unwrap();
    assert_eq!(run.setting.device, "NVIDIA H100");
    let report = Report::new(&run, &Asked::default()).unwrap();
    let counts = report.counts;
    assert_eq!((counts.samples, counts.accepted, counts.failed, counts.undecided), (5, 2, 2, 1));
    let group = report.headline().unwrap();
    assert!((group.correct.unwrap().value - 1.5 / 3.0).abs() < 1e-12);
    let speed = &group.speed[0];
    let mean = speed.mean.unwrap();
    assert!((mean.geometric - 2.0).abs() < 1e-12 && mean.problems == 1 && speed.untimed == 1);
    let best = report.problems[0].best.unwrap();
    // Delta method: ln 2 plus or minus 1.96 * sqrt((0.1/2)^2/100 + (0.1/1)^2/100).
    let reach = (1.96f64 * (0.05f64.powi(2) / 100.0 + 0.1f64.powi(2) / 100.0).sqrt()).exp();
    assert!((best.low.unwrap() - 2.0 / reach).abs() < 1e-12 && (best.high.unwrap() - 2.0 * reach).abs() < 1e-12);
    // The same folder does not take a second run.
    assert!(import(&take(&results, None), &out).unwrap_err().to_string().contains("there already"));
}

/// Every one of these would make a wrong number if it were read with good will.
#[test]
fn files_that_would_make_wrong_numbers_are_refused() {
    let folder = Folder::new();
    let good = result(0, true, true, 1.0, json!({}));
    for (name, results, why) in [
        ("none", json!({"1": [null]}), "no truth value"),
        ("text", json!({"1": [{"compiled": "True", "correctness": true}]}), "no truth value \"compiled\""),
        ("twice", json!({"1": [good, good]}), "sample 0 is there twice"),
        ("empty", json!({}), "no results in it"),
        ("name", json!({"one": [good]}), "no number"),
        ("list", json!([good]), "no JSON object"),
        ("time as text", json!({"1": [result_with("runtime", json!("1.0"))]}), "its runtime \"1.0\" is no number"),
        ("a number below 0", json!({"1": [result_with("sample_id", json!(-1))]}), "its sample_id -1 is no number"),
        ("a number too large", json!({"1": [result_with("sample_id", json!(1u64 << 32))]}), "its sample_id 4294967296"),
        ("a number as text", json!({"1": [result_with("sample_id", json!("0"))]}), "its sample_id \"0\""),
        // A problem without a baseline would shrink the suite.
        ("baseline", json!({"4": [good]}), "no time of problem 4"),
    ] {
        let results = folder.json(name, &results);
        let error = import(&take(&results, Some(&baseline(&folder))), &folder.path("run")).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
    let results = folder.json("good", &json!({"1": [good]}));
    for mean in [json!("2.0"), json!(-1.0), json!(0), json!(null)] {
        let baseline = folder.json("b.json", &json!({"level1": {"1_a.py": {"mean": mean}}}));
        let error = import(&take(&results, Some(&baseline)), &folder.path("run")).unwrap_err().to_string();
        assert!(error.contains("no mean time above 0"), "{error}");
    }
    assert!(!folder.path("run").exists());
}

/// Python writes a mean of nothing as NaN, and 1/0 as Infinity: no times, and the other results stay.
#[test]
fn times_that_are_none_are_left_out() {
    let folder = Folder::new();
    let good = result(0, true, true, 1.0, json!({"note": "\"NaN\" and Infinity stay"}));
    for time in ["NaN", "Infinity", "-Infinity", "0.0", "-1", "null", "1e-320"] {
        let text = json!({"1": [good], "2": [result_with("runtime", json!("TIME"))]}).to_string();
        let name = format!("of {time}");
        std::fs::write(folder.path("r.json"), text.replace("\"TIME\"", time)).unwrap();
        import(&take(&folder.path("r.json"), Some(&baseline(&folder))), &folder.path(&name)).unwrap();
        let report = Report::new(&Run::read(&[folder.path(&name)]).unwrap(), &Asked::default()).unwrap();
        let speed = &report.headline().unwrap().speed[0];
        assert_eq!((report.counts.accepted, speed.timed, speed.untimed), (2, 1, 1), "{time}");
        assert!((speed.mean.unwrap().geometric - 2.0).abs() < 1e-12);
    }
}

#[test]
fn what_goes_out_comes_in_again() {
    let folder = Folder::new();
    let incorrect = failed(VerdictKind::Incorrect, "values", true);
    let run = folder.run(
        "own",
        &Scripted::new(&[
            ("a", Some(1), &[fast(2.0), incorrect]),
            (
                "b",
                Some(1),
                &[
                    failed(VerdictKind::CompileError, "compile", false),
                    failed(VerdictKind::Infrastructure, "device", false),
                ],
            ),
            ("c", Some(2), &[fast(4.0)]),
        ]),
    );
    let (results, left_out) = eval_results(&run, 1).unwrap();
    // A fault of the machine would count as a failure there: it is left out, to be evaluated again.
    assert_eq!((results.as_object().unwrap().len(), left_out), (2, 1));
    assert_eq!(results["1"][0]["runtime"], json!(0.05));
    assert_eq!(results["1"][1]["runtime"], json!(-1.0));
    assert_eq!((&results["2"][0]["compiled"], &results["1"][1]["compiled"]), (&json!(false), &json!(true)));
    let file = folder.json("eval_results.json", &results);
    import(&take(&file, None), &folder.path("again")).unwrap();
    let again = Run::read(&[folder.path("again")]).unwrap();
    let correct = |run: &Run| -> Vec<Vec<bool>> {
        let level = run.problems.iter().filter(|problem| problem.level == Some(1));
        level
            .map(|problem| problem.outcomes.iter().filter(|of| of.decided()).map(|of| of.passes[0]).collect())
            .collect()
    };
    assert_eq!(correct(&again), correct(&run));
    assert!(eval_results(&run, 3).is_err());
}

#[test]
fn a_table_has_one_line_for_each_figure() {
    let folder = Folder::new();
    let run = folder.run("own", &Scripted::new(&[("a", Some(1), &[fast(2.0)]), ("b", Some(2), &[fast(0.5)])]));
    let report = Report::new(&run, &Asked::default()).unwrap();
    let table = leaderboard(&[report.clone(), report]).unwrap();
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let header = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    // Two reports, two profiles, all and two levels.
    assert_eq!(rows.len(), 12);
    let cell = |row: usize, name: &str| &rows[row][header.iter().position(|column| column == name).unwrap()];
    assert_eq!(
        (cell(0, "group"), cell(0, "fast_1"), cell(0, "geometric_mean_speedup")),
        ("all", "0.500000", "1.000000")
    );
    assert_eq!((cell(1, "group"), cell(1, "pass@1")), ("level 1", "1.000000"));
}

#[test]
fn a_comparison_is_by_pairs_and_names_what_flipped() {
    let folder = Folder::new();
    let incorrect = failed(VerdictKind::Incorrect, "values", true);
    let problems = |second: &[Option<scripted::Script>; 30], scale: f64| {
        let names: Vec<String> = (0..30).map(|at| format!("p{at}")).collect();
        let first: Vec<_> = (0..30).map(|at| [fast(scale * (1.0 + f64::from(at))), second[at as usize]]).collect();
        let all: Vec<(&str, Option<u32>, &[_])> =
            names.iter().zip(&first).map(|(name, samples)| (name.as_str(), None, &samples[..])).collect();
        Scripted::new(&all)
    };
    // The second run answers twice as fast everywhere, and its second samples are right more often.
    let a = problems(&std::array::from_fn(|at| if at < 10 { fast(1.0) } else { incorrect }), 1.0);
    let second = |at: usize| match at {
        0..10 => fast(2.0),
        10..20 => fast(2.0 * (1.0 + at as f64)),
        _ => incorrect,
    };
    let mut b = problems(&std::array::from_fn(second), 2.0);
    b.problems[29].2 = vec![incorrect, incorrect];
    b.problems.push(("new".into(), None, vec![fast(1.0)]));
    let (a, b) = (folder.run("a", &a), folder.run("b", &b));
    let found = Comparison::new(&a, &b, &[1.0], false).unwrap();
    assert_eq!((found.common, found.only_a.len(), found.only_b), (30, 0, vec!["new".to_owned()]));
    let change = |what: &str| found.changes.iter().find(|change| change.what == what).unwrap();
    let correct = change("correct");
    assert!((correct.difference - (10.0 * 0.5 - 0.5) / 30.0).abs() < 1e-12);
    assert!(correct.low > 0.0 && correct.low <= correct.difference && correct.difference <= correct.high);
    // No pair differs; of others, one in nine could: 1 - 0.025^(1/30).
    let (valid, ninth) = (change("valid"), 1.0 - 0.025f64.powf(1.0 / 30.0));
    assert_eq!(valid.difference, 0.0);
    assert!((valid.low + ninth).abs() < 1e-9 && (valid.high - ninth).abs() < 1e-9, "{valid:?}");
    assert!((found.speed[0].ratio - 2.0).abs() < 1e-9 && found.speed[0].problems == 29);
    assert_eq!(found.flips.len(), 1);
    assert_eq!((found.flips[0].id.as_str(), found.flips[0].a, found.flips[0].b), ("p29", (1, 2), (0, 2)));
    assert_eq!(found.flips[0].reason.as_deref(), Some("values of p29"));
}

/// Two problems of one text are two pairs, each with its own samples; under another name, a text is still found.
#[test]
fn a_text_that_is_there_twice_is_paired_by_name() {
    let folder = Folder::new();
    let incorrect = failed(VerdictKind::Incorrect, "values", true);
    let mut lines = Scripted::new(&[("a", None, &[fast(2.0)]), ("b", None, &[incorrect])]).lines();
    for line in &mut lines {
        match line {
            Line::Run(manifest) => manifest.problems[1].digest = "blake3:a".into(),
            Line::Verdict(verdict) => verdict.problem.digest = "blake3:a".into(),
            _ => {}
        }
    }
    scripted::write(&folder.path("twice"), &lines);
    let run = Run::read(&[folder.path("twice")]).unwrap();
    let found = Comparison::new(&run, &run, &[1.0], false).unwrap();
    assert_eq!((found.common, found.flips.len(), found.only_b.len()), (2, 0, 0));
    assert!(found.changes.iter().all(|change| change.difference == 0.0), "{:?}", found.changes);
    let Line::Run(manifest) = &mut lines[0] else { panic!() };
    manifest.problems.truncate(1);
    manifest.problems[0].id = "renamed".into();
    scripted::write(&folder.path("renamed"), &lines);
    let renamed = Run::read(&[folder.path("renamed")]).unwrap();
    assert_eq!(Comparison::new(&renamed, &run, &[1.0], false).unwrap().common, 1);
}

/// That the one problem was solved by B alone is no proof that B is better.
#[test]
fn one_pair_decides_nothing() {
    let folder = Folder::new();
    let incorrect = failed(VerdictKind::Incorrect, "values", true);
    let run = |name: &str, script| folder.run(name, &Scripted::new(&[("p", None, &[script])]));
    let (slow, fast, wrong) = (run("a", fast(1.0)), run("b", fast(2.0)), run("c", incorrect));
    let found = Comparison::new(&wrong, &fast, &[1.0], false).unwrap();
    let correct = found.changes.iter().find(|change| change.what == "correct").unwrap();
    assert!(correct.difference == 1.0 && correct.low < 0.0 && correct.high == 1.0, "{correct:?}");
    let found = Comparison::new(&slow, &fast, &[1.0], false).unwrap();
    assert_eq!((found.speed[0].ratio, found.speed[0].low, found.speed[0].high), (2.0, None, None));
}

#[test]
fn runs_that_are_not_comparable_are_compared_only_on_demand() {
    let folder = Folder::new();
    let mut run = Scripted::new(&[("a", None, &[fast(2.0)])]);
    let a = folder.run("a", &run);
    run.setting.device = "another".into();
    run.setting.profiles[0] = "tilewright-1/2".into();
    let b = folder.run("b", &run);
    let error = Comparison::new(&a, &b, &[1.0], false).unwrap_err().to_string();
    assert!(
        error.contains("device: GPU") && error.contains("profiles: tilewright-1/1") && error.contains("--anyway"),
        "{error}"
    );
    let found = Comparison::new(&a, &b, &[1.0], true).unwrap();
    assert_eq!(found.differences.len(), 2);
    let other = folder.run("c", &Scripted::new(&[("z", None, &[fast(2.0)])]));
    assert!(Comparison::new(&a, &other, &[1.0], true).unwrap_err().to_string().contains("no problem in common"));
}
