//! Runs that are killed, or for which there is no room, in a process of their own: nothing is lost, nothing paid twice.
//!
//! The process is this program once more, with the one test that [`CHILD`] names.

#[expect(dead_code, reason = "this program uses a part")]
mod support;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use support::{Said, Setting, Writer, verdict};
use tilewright_contract::{Verdict, VerdictKind};
use tilewright_search::{Checker, Folder, Limits, Plan, Selection, Until, Window};

/// Names the folder that the child works in.
const FOLDER: &str = "TILEWRIGHT_TEST_FOLDER";
const CHILD: &str = "a_run_in_a_process_of_its_own";
const KILLS: usize = 20;

/// Decides by the text, takes its time, and writes down what it has decided where the run does not look.
struct Slow {
    bill: PathBuf,
}

impl Checker for Slow {
    fn check(&self, _: &Path, source: &str, _: tilewright_verify::Watch<'_>) -> Verdict {
        std::thread::sleep(Duration::from_millis(4));
        let line = format!("{source}\n");
        let bill = OpenOptions::new().create(true).append(true).open(&self.bill);
        // There may be no room for it.
        let _ = bill.and_then(|mut bill| bill.write_all(line.as_bytes()));
        let speed = source.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        verdict(if speed.is_some() { VerdictKind::Accepted } else { VerdictKind::Incorrect }, speed)
    }
}

fn setting(folder: &Path) -> Setting {
    let select = Selection::Ucb { explore: 0.5 };
    Setting {
        interrupted: AtomicBool::new(false),
        folder: folder.join("run"),
        plan: Plan::Search { children: 4, rounds: 4, select, window: Window::Best(2) },
        limits: Limits { until: Until::All, ..Limits::default() },
        jobs: 3,
    }
}

#[test]
fn a_run_in_a_process_of_its_own() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    // The same answer to the same question.
    let author = Writer(|request: &tilewright_author::Request<'_>| {
        std::thread::sleep(Duration::from_millis(2));
        let told: f64 =
            request.turns.iter().filter_map(|turn| turn.verdict.as_ref()).map(tilewright_search::reward).sum();
        match request.seed % 4 {
            0 => Said::NoCode,
            1 => Said::Code(format!("incorrect {} wrong", request.seed % 5)),
            _ => Said::Code(format!("accepted {:.4}", 0.5 + told.fract() + (request.seed % 97) as f64 / 100.0)),
        }
    });
    setting(&folder).go(&author, &Slow { bill: folder.join("bill") });
}

fn child(folder: &Path, program: &mut Command) -> Child {
    let program = program.env(FOLDER, folder).stdout(Stdio::null()).stderr(Stdio::null());
    program.spawn().expect("a process")
}

fn this() -> Command {
    let mut program = Command::new(std::env::current_exe().expect("this program"));
    program.args(["--exact", CHILD]);
    program
}

/// A run to its end.
fn whole(folder: &Path) -> ExitStatus {
    child(folder, &mut this()).wait().expect("an end")
}

/// What a run has found: the best file, and each candidate with what became of it.
fn archive(folder: &Path) -> (String, Vec<String>) {
    let (_, tree) = Folder::look(&folder.join("run")).expect("a run");
    let rows = tree.nodes.values().map(|node| {
        format!("{} {:?} {:?} {:?} {:?}", node.sample, node.parent, node.round, node.answer.source, node.kind())
    });
    (fs::read_to_string(folder.join("run/best.py")).expect("a best one"), rows.collect())
}

/// The candidates that the log has verdicts of, each of which must be there once.
fn verdicts(folder: &Path) -> usize {
    let log = fs::read_to_string(folder.join("run/log.jsonl")).expect("a log");
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line"));
    let verdicts: Vec<u64> = lines
        .filter(|line| line["event"] == "verdict")
        .map(|line| line["sample"].as_u64().expect("a number"))
        .collect();
    let mut distinct = verdicts.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), verdicts.len(), "a verdict was written twice: {verdicts:?}");
    verdicts.len()
}

fn bill(folder: &Path) -> usize {
    fs::read_to_string(folder.join("bill")).map_or(0, |bill| bill.lines().count())
}

#[test]
fn twenty_kills_at_random_moments_change_nothing() {
    let (expected, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = Instant::now();
    assert!(whole(expected.path()).success());
    let took = start.elapsed();
    // Places by a golden ratio: all over what a run takes, never the same twice.
    for kill in 0..KILLS {
        let mut process = child(killed.path(), &mut this());
        std::thread::sleep(took.mul_f64((kill as f64 * 0.618_034).fract()));
        process.kill().unwrap();
        process.wait().unwrap();
    }
    assert!(whole(killed.path()).success());
    assert_eq!(archive(killed.path()), archive(expected.path()));
    assert_eq!(verdicts(killed.path()), verdicts(expected.path()));
    // What was being decided when a kill came is decided again: at most one for each thread of each kill.
    assert!(bill(killed.path()) <= verdicts(killed.path()) + 3 * KILLS);
}

#[test]
fn a_full_disk_ends_a_run_with_an_error_and_more_room_lets_it_go_on() {
    let expected = tempfile::tempdir().unwrap();
    assert!(whole(expected.path()).success());
    // No file may be larger than so many blocks, which is what a full disk looks like from within: a part of a line is written.
    for blocks in [0, 3, 12] {
        let full = tempfile::tempdir().unwrap();
        let exe = std::env::current_exe().unwrap();
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" --exact {CHILD}");
        let ended = child(full.path(), Command::new("sh").arg("-c").arg(script).arg(exe)).wait().unwrap();
        assert!(!ended.success(), "{blocks} blocks were enough");
        let before = bill(full.path());
        assert!(whole(full.path()).success(), "{blocks} blocks");
        assert_eq!(archive(full.path()), archive(expected.path()), "{blocks} blocks");
        assert!(verdicts(full.path()) <= verdicts(expected.path()), "{blocks} blocks");
        assert!(
            bill(full.path()) <= verdicts(expected.path()) + 3.min(before),
            "what was written is not decided again"
        );
    }
}
