//! Runs: what they ask for, when they end, and that nothing is lost or paid twice.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use support::{Reader, Said, Setting, Talker, Writer, settings};
use tilewright_author::{AuthorError, ChatError};
use tilewright_search::{Folder, FolderError, Limits, Plan, Selection, Stop, Until, Window};

fn setting(plan: Plan, limits: Limits, jobs: usize) -> (Setting, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let interrupted = AtomicBool::new(false);
    (Setting { folder: folder.path().join("run"), plan, limits, jobs, interrupted }, folder)
}

fn all() -> Limits {
    Limits { until: Until::All, ..Limits::default() }
}

fn code(text: impl Into<String>) -> Said {
    Said::Code(text.into())
}

#[test]
fn each_conversation_hears_what_became_of_its_own_candidates() {
    let (setting, _folder) = setting(Plan::Chains { n: 3, rounds: 3 }, all(), 2);
    let author = Writer(|request: &tilewright_author::Request<'_>| {
        let told: Vec<String> = request.turns.iter().map(|turn| turn.source.clone().unwrap_or("none".into())).collect();
        if request.sample == 1 { Said::NoCode } else { code(format!("incorrect {} {told:?}", request.sample)) }
    });
    let (tree, report) = setting.go(&author, &Reader::default());
    assert_eq!((report.stop.clone(), report.best, report.exit_code()), (Stop::Done, None, 1));
    let source = |sample: u64| tree.nodes[&sample].answer.source.clone().unwrap();
    assert_eq!(source(3), "incorrect 3 [\"incorrect 0 []\"]");
    assert_eq!(source(4), "incorrect 4 [\"none\"]");
    assert_eq!(tree.nodes[&6].parent, Some(3));
    assert!(source(6).contains("incorrect 0 []") && source(6).contains("incorrect 3"));
    assert_eq!((tree.nodes.len(), report.verdicts), (9, 8));
}

#[test]
fn a_run_ends_by_the_rule_that_it_was_given() {
    let author = || {
        Writer(|request: &tilewright_author::Request<'_>| {
            let speed = 1.0 + request.sample as f64 / 10.0;
            code(if request.sample < 2 { format!("incorrect {}", request.sample) } else { format!("accepted {speed}") })
        })
    };
    let plan = Plan::Chains { n: 10, rounds: 1 };
    for (limits, stop, candidates) in [
        (all(), Stop::Done, 10),
        (Limits::default(), Stop::Accepted, 3),
        (Limits { until: Until::Speedup(1.4), ..all() }, Stop::Speedup, 6),
        (Limits { tokens: Some(60), ..all() }, Stop::Tokens, 4),
        (Limits { verdicts: Some(5), ..all() }, Stop::Verdicts, 5),
        (Limits { money: Some(1.0), ..all() }, Stop::Money, 2),
        (Limits { time: Some(Duration::ZERO), ..all() }, Stop::Time, 0),
    ] {
        let (setting, _folder) = setting(plan, limits, 1);
        let (tree, report) = setting.go(&author(), &Reader::default());
        assert_eq!((report.stop.clone(), tree.nodes.len()), (stop, candidates), "{limits:?}");
        assert_eq!(
            report.exit_code(),
            if report.best.is_some() {
                0
            } else if candidates == 0 {
                3
            } else {
                1
            }
        );
    }
}

#[test]
fn a_budget_of_verdicts_holds_with_many_threads() {
    let (setting, _folder) = setting(Plan::Chains { n: 40, rounds: 1 }, Limits { verdicts: Some(7), ..all() }, 8);
    let checker = Reader { pause: Duration::from_millis(3), ..Reader::default() };
    setting.go(&Writer(|request: &tilewright_author::Request<'_>| code(format!("race {}", request.sample))), &checker);
    assert_eq!(checker.checks.load(Ordering::SeqCst), 7);
}

#[test]
fn equal_candidates_share_a_verdict_also_at_the_same_time() {
    let (setting, _folder) = setting(Plan::Chains { n: 24, rounds: 1 }, all(), 8);
    let checker = Reader { pause: Duration::from_millis(5), ..Reader::default() };
    let author = Writer(|request: &tilewright_author::Request<'_>| code(format!("incorrect {}", request.sample % 3)));
    let (tree, report) = setting.go(&author, &checker);
    assert_eq!((checker.checks.load(Ordering::SeqCst), report.verdicts), (3, 3));
    assert!(tree.nodes.values().all(|node| node.verdict().is_some()));
}

/// Both by its text and by what it does: the one who waits verifies it himself.
#[test]
fn who_waits_for_a_verdict_that_never_comes_is_not_left_waiting() {
    let (setting, _folder) = setting(Plan::Chains { n: 2, rounds: 1 }, all(), 2);
    let pause = Duration::from_millis(20);
    let checker = Reader { twin: Some(|_| "the same".into()), pause, breaks_at: 1, ..Reader::default() };
    let checker = Arc::new(checker);
    let (ended, end) = channel();
    let run = Arc::clone(&checker);
    // On its own: if it hangs, the test does not.
    std::thread::spawn(move || {
        let author = Writer(|_: &tilewright_author::Request<'_>| code("incorrect"));
        let run = || setting.go(&author, &*run);
        ended.send(catch_unwind(AssertUnwindSafe(run)).is_err())
    });
    assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(true), "it waits, or the panic is hidden");
    assert_eq!(checker.checks.load(Ordering::SeqCst), 2);
}

/// What a candidate does is known also after the run was stopped.
#[test]
fn candidates_that_do_the_same_share_a_verdict_also_in_another_command() {
    let (mut setting, _folder) = setting(Plan::Chains { n: 4, rounds: 1 }, Limits { verdicts: Some(1), ..all() }, 1);
    let does = |source: &str| source.split_whitespace().next().unwrap_or_default().to_owned();
    let checker = Reader { twin: Some(does), ..Reader::default() };
    let author = Writer(|request: &tilewright_author::Request<'_>| code(format!("incorrect {}", request.sample)));
    let (tree, _) = setting.go(&author, &checker);
    assert_eq!(tree.nodes.len(), 1);
    setting.limits = all();
    let (tree, report) = setting.go(&author, &checker);
    assert_eq!((tree.nodes.len(), report.verdicts, checker.checks.load(Ordering::SeqCst)), (4, 1, 1));
}

#[test]
fn a_silent_author_ends_the_run_and_another_command_goes_on() {
    let (setting, _folder) = setting(Plan::Chains { n: 12, rounds: 1 }, all(), 1);
    let checker = Reader::default();
    let silent = Writer(|request: &tilewright_author::Request<'_>| match request.sample {
        0..4 => code(format!("incorrect {}", request.sample)),
        _ => Said::Nothing(ChatError::Connection("refused".into()).into()),
    });
    let (tree, report) = setting.go(&silent, &checker);
    assert!(matches!(&report.stop, Stop::Author(why) if why.contains("refused")), "{:?}", report.stop);
    assert_eq!((tree.nodes.len(), report.exit_code()), (4, 3));
    // One that says no for good is not asked again and again.
    let refused = || ChatError::Status { status: 401, body: "no".into() };
    let (tree, _) = setting.go(&Writer(|_: &tilewright_author::Request<'_>| Said::Nothing(refused().into())), &checker);
    assert_eq!(tree.nodes.len(), 4);
    let good = Writer(|request: &tilewright_author::Request<'_>| code(format!("incorrect {}", request.sample)));
    let (tree, report) = setting.go(&good, &checker);
    assert_eq!((tree.nodes.len(), report.stop, checker.checks.load(Ordering::SeqCst)), (12, Stop::Done, 12));
}

#[test]
fn a_run_that_lacks_answers_or_verdicts_does_not_call_itself_done() {
    let refused = || Said::Nothing(ChatError::Connection("refused".into()).into());
    let code_of = |request: &tilewright_author::Request<'_>| code(format!("incorrect {}", request.sample));
    for (lacking, answers, exit_code) in [([true, true], 0, 3), ([false, true], 1, 1)] {
        let (setting, _folder) = setting(Plan::Chains { n: 2, rounds: 1 }, all(), 1);
        let checker = Reader::default();
        let partly = Writer(
            |request: &tilewright_author::Request<'_>| {
                if lacking[request.sample as usize] { refused() } else { code_of(request) }
            },
        );
        let (tree, report) = setting.go(&partly, &checker);
        let Stop::Missing(why) = &report.stop else { panic!("{:?}", report.stop) };
        assert!(why.contains(&format!("{} candidate", 2 - answers)) && why.contains("refused"), "{why}");
        assert_eq!(
            (tree.nodes.len(), report.exit_code(), report.stop.next()),
            (answers, exit_code, Some("by the same command"))
        );
        let (tree, report) = setting.go(&Writer(code_of), &checker);
        assert_eq!((tree.nodes.len(), report.stop, checker.checks.load(Ordering::SeqCst)), (2, Stop::Done, 2));
    }
    let (setting, _folder) = setting(Plan::Chains { n: 2, rounds: 1 }, all(), 1);
    let author = Writer(|request: &tilewright_author::Request<'_>| code(format!("infrastructure {}", request.sample)));
    let (_, report) = setting.go(&author, &Reader::default());
    assert_eq!(
        (report.stop.clone(), report.exit_code()),
        (Stop::Missing("2 candidates are missing: because".into()), 3)
    );
}

#[test]
fn one_broken_answer_is_no_end_and_three_in_a_row_are() {
    let malformed = || Said::Nothing(ChatError::Malformed("it is empty".into()).into());
    let (setting, _folder) = setting(Plan::Chains { n: 9, rounds: 1 }, all(), 1);
    let now_and_then = Writer(|request: &tilewright_author::Request<'_>| match request.sample {
        1 | 2 | 4 | 6..=8 => malformed(),
        sample => code(format!("incorrect {sample}")),
    });
    let (tree, report) = setting.go(&now_and_then, &Reader::default());
    assert_eq!(tree.nodes.keys().copied().collect::<Vec<_>>(), [0, 3, 5]);
    assert!(matches!(&report.stop, Stop::Author(why) if why.contains("empty")), "{:?}", report.stop);
}

#[test]
fn an_answer_that_the_user_breaks_off_ends_the_run_and_is_asked_for_again() {
    let (setting, _folder) = setting(Plan::Chains { n: 3, rounds: 1 }, all(), 1);
    let checker = Reader::default();
    setting.interrupted.store(true, Ordering::SeqCst);
    let (tree, report) = setting.go(&Talker, &checker);
    assert_eq!((tree.nodes.len(), report.stop, checker.checks.load(Ordering::SeqCst)), (0, Stop::Interrupted, 0));
    setting.interrupted.store(false, Ordering::SeqCst);
    let (tree, report) = setting.go(&Talker, &checker);
    assert_eq!((tree.nodes.len(), report.stop), (3, Stop::Done));
}

#[test]
fn faults_that_are_not_the_candidates_end_a_run_as_such() {
    for (said, stop) in [
        ("problem_defect", Stop::Problem("because".into())),
        ("infrastructure", Stop::Infrastructure("because".into())),
    ] {
        let (setting, _folder) = setting(Plan::Chains { n: 8, rounds: 2 }, all(), 1);
        let author = Writer(|request: &tilewright_author::Request<'_>| code(format!("{said} {}", request.sample)));
        let (_, report) = setting.go(&author, &Reader::default());
        assert_eq!((report.stop.clone(), report.exit_code(), report.verdicts), (stop, 3, 0));
    }
    let (setting, _folder) = setting(Plan::Chains { n: 8, rounds: 1 }, all(), 2);
    let cannot =
        Writer(|_: &tilewright_author::Request<'_>| Said::Nothing(AuthorError::Cannot("no such kernel".into())));
    let (_, report) = setting.go(&cannot, &Reader::default());
    assert_eq!((report.stop.clone(), report.exit_code()), (Stop::Author("no such kernel".into()), 3));
}

#[test]
fn another_run_is_not_continued() {
    let (setting, folder) = setting(Plan::Chains { n: 1, rounds: 1 }, all(), 1);
    setting.go(&Writer(|_: &tilewright_author::Request<'_>| code("race")), &Reader::default());
    let mut other = settings();
    other.problem.digest = "another".into();
    let error = Folder::open(&setting.folder, &mut other, b"").expect_err("another problem");
    assert!(matches!(error, FolderError::Other { what: "the problem", .. }), "{error}");
    std::fs::write(folder.path().join("run/log.jsonl"), "{\"event\":\"round\",\"nodes\":[]}\n").unwrap();
    let error = Folder::open(&setting.folder, &mut settings(), b"").expect_err("no run");
    assert!(matches!(error, FolderError::Line { line: 1, .. }), "{error}");
}

/// An author who answers the same to the same question: by its number and the rewards that it is told.
fn steady() -> Writer<impl Fn(&tilewright_author::Request<'_>) -> Said + Send + Sync> {
    Writer(|request: &tilewright_author::Request<'_>| {
        let told: f64 =
            request.turns.iter().filter_map(|turn| turn.verdict.as_ref()).map(tilewright_search::reward).sum();
        match request.seed % 5 {
            0 => Said::NoCode,
            1 => code(format!("incorrect {}", request.seed % 7)),
            2 => code("rejected"),
            _ => code(format!(
                "accepted {:.3} {}",
                0.5 + told.fract() + (request.seed % 100) as f64 / 100.0,
                request.sample
            )),
        }
    })
}

#[test]
fn a_run_that_is_killed_anywhere_ends_as_if_it_had_not_been() {
    for plan in [
        Plan::Chains { n: 4, rounds: 3 },
        Plan::Search { children: 4, rounds: 3, select: Selection::Ucb { explore: 0.5 }, window: Window::Best(2) },
    ] {
        let (whole, _folder) = setting(plan, all(), 3);
        let (expected, _) = whole.go(&steady(), &Reader::default());
        let log = std::fs::read(whole.folder.join("log.jsonl")).unwrap();
        let best = std::fs::read(whole.folder.join("best.py")).unwrap();
        // Every end of a line, and places within lines.
        let ends = log.iter().enumerate().filter(|(_, byte)| **byte == b'\n').flat_map(|(at, _)| [at, at + 1]);
        for cut in ends.chain((0..log.len()).step_by(997)) {
            let (cut_short, _folder) = setting(plan, all(), 3);
            std::fs::create_dir_all(&cut_short.folder).unwrap();
            std::fs::write(cut_short.folder.join("log.jsonl"), &log[..cut]).unwrap();
            let paid = String::from_utf8_lossy(&log[..cut]).matches("\"event\":\"verdict\"").count();
            let checker = Reader::default();
            let (tree, report) = cut_short.go(&steady(), &checker);
            assert_eq!(tree.best().map(|node| &node.answer.source), expected.best().map(|node| &node.answer.source));
            assert_eq!(tree.rounds, expected.rounds, "cut at {cut}");
            let sources = |tree: &tilewright_search::Tree| -> Vec<_> {
                tree.nodes.values().map(|node| (node.answer.source.clone(), node.kind())).collect()
            };
            assert_eq!(sources(&tree), sources(&expected), "cut at {cut}");
            assert_eq!(std::fs::read(cut_short.folder.join("best.py")).unwrap(), best);
            // A verdict that was torn off within its line is made again; one that was written is not.
            let made = checker.checks.load(Ordering::SeqCst);
            assert!(made + paid <= report.verdicts + 1, "cut at {cut}: {made} + {paid} of {}", report.verdicts);
        }
    }
}

#[test]
fn the_best_must_stand_a_closer_look() {
    let written = ["accepted 1.5", "accepted 3.0", "accepted 3.0", "accepted 2.0"];
    let author = || Writer(move |request: &tilewright_author::Request<'_>| code(written[request.sample as usize]));
    for (fails, best) in [
        (vec![], Some("accepted 3.0")),
        (vec!["accepted 3.0"], Some("accepted 2.0")),
        (vec!["accepted 3.0", "accepted 2.0", "accepted 1.5"], None),
    ] {
        let (setting, _folder) = setting(Plan::Chains { n: 4, rounds: 1 }, all(), 1);
        let checker = Reader { closer: Some(fails), ..Reader::default() };
        let (_, report) = setting.go(&author(), &checker);
        assert_eq!((report.best.is_some(), report.exit_code()), (best.is_some(), u8::from(best.is_none())));
        assert_eq!(std::fs::read_to_string(setting.folder.join("best.py")).ok().as_deref(), best);
        // What was looked at closely is not looked at again by a command that goes on.
        let (tree, again) = setting.go(&author(), &Reader::default());
        assert_eq!(
            (again.best, tree.best().map(|node| node.answer.source.clone().unwrap()).as_deref()),
            (report.best, best)
        );
        assert_eq!(std::fs::read_to_string(setting.folder.join("best.py")).ok().as_deref(), best);
    }
}
