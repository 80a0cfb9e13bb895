//! Many tasks through `serve`, with something in the place of the Python side: how many are held, and that each comes back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tilewright_cell::{CellError, Job, Layers, Outcome};
use tilewright_contract::VerdictKind;
use tilewright_stage::{Cache, Runner, Stage, StageOptions};
use tilewright_verify::{Device, Mode, Options, Task, Verifier, Width, parse_arch, serve};

/// Oracles that answer as the name of the problem says; notes which were asked for, and how many at a time.
#[derive(Default)]
struct Oracles {
    asked: Mutex<Vec<PathBuf>>,
    jobs: AtomicUsize,
}

impl Runner for Oracles {
    fn run(&self, job: &Job) -> Result<Outcome, CellError> {
        let problem = PathBuf::from(job.request["problem"].as_str().unwrap());
        let name = problem.file_stem().unwrap().to_str().unwrap().to_owned();
        self.asked.lock().unwrap().push(problem);
        self.jobs.fetch_add(1, Ordering::SeqCst);
        match name.as_str() {
            "panics" => panic!("a bug of ours"),
            "fails" => return Err(CellError::ZygoteDied("for the test".into())),
            _ => {}
        }
        let kind = if name == "large" { "too-large" } else { "problem" };
        let error = json!({"kind": kind, "type": "ValueError", "message": format!("{name} is broken")});
        Ok(Outcome {
            response: Ok(json!({ "error": error })),
            output: String::new(),
            output_bytes: 0,
            seconds: 0.0,
            max_rss_kb: 0,
            cpu_seconds: 0.0,
            layers: Layers::default(),
        })
    }

    fn versions(&self) -> (String, String) {
        ("2".into(), "3".into())
    }
}

struct Bench {
    folder: tempfile::TempDir,
    oracles: Arc<Oracles>,
    verifier: Verifier,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let oracles = Arc::<Oracles>::default();
        let options = Options {
            device: Device::Cpu,
            target: parse_arch("sm_90").unwrap(),
            profiles: vec![tilewright_judge::profile(tilewright_judge::DEFAULT_PROFILE).unwrap().unwrap()],
            trials: 1,
            seed: 1,
            mode: Mode::Replay,
            timing: None,
            timeout: Duration::from_secs(60),
            strict: false,
            keep: None,
            confirm: 0.0,
        };
        let stage =
            Stage::new(oracles.clone(), Cache::open(folder.path().join("cache")).unwrap(), StageOptions::default());
        Self { folder, oracles, verifier: Verifier::new(stage, options) }
    }

    fn problem(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{name}.py"));
        std::fs::write(&path, text).unwrap();
        path
    }

    fn asked(&self, problem: &Path) -> usize {
        self.oracles.asked.lock().unwrap().iter().filter(|asked| *asked == problem).count()
    }

    /// Verdicts by tag; none comes twice.
    fn serve(&self, tasks: impl Iterator<Item = Task<usize>> + Send, width: Width) -> BTreeMap<usize, VerdictKind> {
        let mut found = BTreeMap::new();
        let served = serve(&self.verifier, tasks, width, |tag, verdict| -> Result<(), Infallible> {
            assert!(found.insert(tag, verdict.verdict).is_none(), "two verdicts for {tag}");
            Ok(())
        });
        served.unwrap();
        found
    }
}

fn task(tag: usize, problem: &Path) -> Task<usize> {
    Task { tag, problem: problem.to_owned(), candidate: "c.py".into(), source: Some(b"x = 1\n".to_vec()) }
}

#[test]
fn every_task_comes_back_once_whatever_happens_to_it() {
    let bench = Bench::new();
    let problems = ["panics", "fails", "broken", "other"].map(|name| bench.problem(name, name));
    let tasks = (0..200).map(|tag| task(tag, &problems[tag % 4]));
    let found = bench.serve(tasks, Width { jobs: 8, problems: 2 });
    assert!(found.keys().copied().eq(0..200));
    for (tag, kind) in found {
        let wanted = if tag % 4 < 2 { VerdictKind::Infrastructure } else { VerdictKind::ProblemDefect };
        assert_eq!(kind, wanted, "{tag}");
    }
}

#[test]
fn no_more_is_asked_for_than_there_are_hands() {
    let bench = Bench::new();
    let problem = bench.problem("broken", "");
    let (asked, mut answered, mut most) = (AtomicUsize::new(0), 0, 0);
    let tasks = (0..300).map(|tag| {
        asked.fetch_add(1, Ordering::SeqCst);
        task(tag, &problem)
    });
    let served = serve(&bench.verifier, tasks, Width { jobs: 3, problems: 1 }, |_, _| -> Result<(), Infallible> {
        answered += 1;
        if answered < 20 {
            // Whoever takes verdicts is slow: time enough for the others to run ahead.
            std::thread::sleep(Duration::from_millis(5));
        }
        most = most.max(asked.load(Ordering::SeqCst) - answered);
        Ok(())
    });
    served.unwrap();
    // In each hand one, and as many verdicts that nobody has taken yet.
    assert!(most <= 2 * 3, "{most} tasks were held");
    assert_eq!(answered, 300);
}

#[test]
fn after_a_failure_of_the_taker_no_task_is_asked_for() {
    let bench = Bench::new();
    let problem = bench.problem("broken", "");
    let asked = AtomicUsize::new(0);
    let tasks = std::iter::repeat_with(|| task(asked.fetch_add(1, Ordering::SeqCst), &problem));
    let served =
        serve(&bench.verifier, tasks, Width { jobs: 2, problems: 1 }, |tag, _| if tag < 5 { Ok(()) } else { Err(tag) });
    assert!(served.unwrap_err() >= 5);
    assert!(asked.into_inner() < 50);
}

#[test]
fn problems_are_kept_until_others_need_the_place_or_their_file_changes() {
    let bench = Bench::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| bench.problem(name, name));
    let width = Width { jobs: 1, problems: 2 };
    let order = [&a, &b, &a, &b, &c, &b, &a, &b];
    bench.serve(order.iter().enumerate().map(|(tag, problem)| task(tag, problem)), width);
    // c took the place of a, which was not used for longest, and then a that of c.
    assert_eq!([&a, &b, &c].map(|problem| bench.asked(problem)), [2, 1, 1]);

    let changes = (0..4).map(|tag| {
        if tag == 2 {
            bench.problem("c", "changed");
        }
        task(tag, &c)
    });
    bench.serve(changes, width);
    assert_eq!(bench.asked(&c), 1 + 2);
}

#[test]
fn what_this_machine_failed_at_is_tried_again() {
    let bench = Bench::new();
    let fails = bench.problem("fails", "");
    let found = bench.serve((0..3).map(|tag| task(tag, &fails)), Width { jobs: 1, problems: 4 });
    assert!(found.values().all(|&kind| kind == VerdictKind::Infrastructure));
    assert_eq!(bench.asked(&fails), 3);
}

#[test]
fn a_problem_that_finds_no_room_makes_those_go_that_nobody_uses() {
    let bench = Bench::new();
    let [a, large] = ["a", "large"].map(|name| bench.problem(name, name));
    let width = Width { jobs: 1, problems: 8 };
    let order = [&large, &a, &large, &a, &a];
    let found = bench.serve(order.iter().enumerate().map(|(tag, problem)| task(tag, problem)), width);
    assert_eq!(found[&0], VerdictKind::Infrastructure);
    // First there was nobody who could go; then it was tried once more without a, which is loaded again for the next.
    assert_eq!([&a, &large].map(|problem| bench.asked(problem)), [2, 1 + 2]);
}
