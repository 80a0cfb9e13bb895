//! Reports of runs whose verdicts are scripted: what counts, what does not, and that nothing vanishes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scripted;

use std::path::{Path, PathBuf};

use scripted::{Scripted, accepted, failed, fast, verdict, write};
use tilewright_bench::{Asked, BenchError, Line, Report, Run, RunFolder};
use tilewright_contract::{Mark, VerdictKind};

fn report_of(path: &Path) -> Report {
    Report::new(&Run::read(&[path.to_owned()]).unwrap(), &Asked::default()).unwrap()
}

fn report(run: &Scripted) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    write(&path, &run.lines());
    report_of(&path)
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-9, "{got}, not {want}");
}

/// Four problems: worked out by hand.
fn four() -> Scripted {
    let incorrect = failed(VerdictKind::Incorrect, "values", true);
    Scripted::new(&[
        ("a", Some(1), &[fast(2.0), fast(0.5), incorrect, incorrect]),
        ("b", Some(1), &[fast(1.0), fast(4.0), fast(1.0), fast(1.0)]),
        (
            "c",
            Some(2),
            &[
                failed(VerdictKind::CompileError, "compile", false),
                failed(VerdictKind::Rejected, "torch-compute", false),
                failed(VerdictKind::CompileError, "syntax", false),
                incorrect,
            ],
        ),
        ("d", Some(2), &[failed(VerdictKind::Race, "race", true), fast(1.5), incorrect, incorrect]),
    ])
}

#[test]
fn shares_by_hand() {
    let report = report(&four());
    let all = &report.standards[0].groups[0];
    // a: 2 of 4, b: 4 of 4, c: 0 of 4, d: 1 of 4.
    close(all.correct.unwrap().value, (0.5 + 1.0 + 0.0 + 0.25) / 4.0);
    // c: a rejected one and one that is no Python are not valid, one more does not compile.
    close(all.valid.unwrap().value, (1.0 + 1.0 + 0.5 + 1.0) / 4.0);
    close(all.compiled.unwrap().value, (1.0 + 1.0 + 0.25 + 1.0) / 4.0);
    let pass_2 = all.pass_at.iter().find(|of| of.k == 2).unwrap().share.value;
    // a: 1 - C(2,2)/C(4,2) = 5/6; d: 1 - C(3,2)/6 = 1/2.
    close(pass_2, (5.0 / 6.0 + 1.0 + 0.0 + 0.5) / 4.0);
    assert_eq!(all.pass_at.iter().map(|of| of.k).collect::<Vec<_>>(), [1, 2, 4]);
    let speed = &all.speed[0];
    let at = |p: f64| speed.fast.iter().find(|of| of.p == p).unwrap();
    close(at(0.0).share.value, all.correct.unwrap().value);
    // Strictly above 1: a 1 of 4, b 1 of 4, d 1 of 4; intervals are 5 % to each side.
    close(at(1.0).share.value, (0.25 + 0.25 + 0.25) / 4.0);
    close(at(1.0).surely, 0.75 / 4.0);
    close(at(1.0).possibly, (0.25 + 1.0 + 0.25) / 4.0);
    close(at(1.0).best, 0.75);
    close(at(2.0).share.value, 0.25 / 4.0);
    // Of problems: a sqrt(2 * 0.5) = 1, b 4^(1/4), d 1.5.
    let mean = speed.mean.unwrap();
    close(mean.geometric, (4f64.powf(0.25) * 1.5).powf(1.0 / 3.0));
    assert_eq!((mean.problems, speed.timed, speed.untimed), (3, 7, 0));
    let level = |name: &str| report.standards[0].groups.iter().find(|group| group.name == name).unwrap();
    close(level("level 1").correct.unwrap().value, 0.75);
    close(level("level 2").correct.unwrap().value, 0.125);
    assert_eq!(level("level 2").problems, 2);
}

#[test]
fn every_interval_holds_its_figure() {
    let report = report(&four());
    let mut with_samples = 0;
    for group in report.standards.iter().flat_map(|standard| &standard.groups) {
        let shares = [group.valid, group.compiled, group.correct].into_iter().flatten();
        let fast = group.speed.iter().flat_map(|speed| &speed.fast).map(|fast| fast.share);
        for share in shares.chain(fast).chain(group.pass_at.iter().map(|of| of.share)) {
            assert!(0.0 <= share.low && share.low <= share.value && share.value <= share.high && share.high <= 1.0);
            // None where all samples of each problem agree.
            let Some(samples) = share.samples else { continue };
            with_samples += 1;
            assert!(samples.low <= share.value + 1e-9 && share.value <= samples.high + 1e-9, "{share:?}");
        }
    }
    assert!(with_samples > 10);
}

#[test]
fn under_another_profile_other_samples_are_right() {
    let mut run = four();
    for script in run.problems[0].2.iter_mut().flatten() {
        script.second = true;
    }
    let report = report(&run);
    close(report.standards[1].groups[0].correct.unwrap().value, (1.0 + 1.0 + 0.0 + 0.25) / 4.0);
    // What only the second profile accepts was not timed, and is not fast.
    assert_eq!(report.standards[1].groups[0].speed[0].untimed, 2);
    assert!(report.notes.iter().any(|note| note.contains("only what tilewright-1/1 accepts is timed")));
}

#[test]
fn faults_of_the_machine_count_neither_way() {
    let mut run = four();
    let infrastructure = failed(VerdictKind::Infrastructure, "device", false);
    run.problems[0].2 = vec![fast(2.0), infrastructure, infrastructure, infrastructure];
    run.problems[1].2 = vec![infrastructure; 4];
    let report = report(&run);
    let correct = report.standards[0].groups[0].correct.unwrap();
    // a: 1 of 1; b: nothing decided, which counts as 0 and is said.
    close(correct.value, (1.0 + 0.0 + 0.0 + 0.25) / 4.0);
    assert_eq!(correct.short, 1);
    close(correct.without_short.unwrap(), 1.25 / 3.0);
    // What a problem's candidates fail at is told by their own failures, where there are any.
    assert_eq!(report.problems[0].reason.as_ref().unwrap().code, "device");
    assert_eq!(report.problems[3].reason.as_ref().unwrap().code, "values");
    // With fewer samples than k a problem counts with what it has: pass@k never falls with k.
    let pass_at: Vec<f64> = report.standards[0].groups[0].pass_at.iter().map(|of| of.share.value).collect();
    close(pass_at[2], (1.0 + 0.0 + 0.0 + 1.0) / 4.0);
    assert!(pass_at.windows(2).all(|pair| pair[0] <= pair[1]), "{pass_at:?}");
    assert_eq!(report.standards[0].groups[0].pass_at[2].share.short, 2);
    assert_eq!((report.counts.undecided, report.counts.accepted, report.counts.failed), (7, 2, 7));
}

#[test]
fn degenerate_problems_are_left_out_of_the_sound_groups() {
    let mut run = four();
    run.marks = [("a", Mark::Ok), ("b", Mark::Degenerate), ("c", Mark::PrecisionBlind), ("d", Mark::Defect)]
        .map(|(id, mark)| (id.to_owned(), mark))
        .into();
    let report = report(&run);
    let group = |name: &str| report.standards[0].groups.iter().find(|group| group.name == name).unwrap();
    close(group("all").correct.unwrap().value, 1.75 / 4.0);
    assert_eq!(group("all, sound").problems, 2);
    close(group("all, sound").correct.unwrap().value, 0.5 / 2.0);
    let marks = report.standards[0].marks;
    assert_eq!((marks.ok, marks.degenerate, marks.precision_blind, marks.defect, marks.unknown), (1, 1, 1, 1, 0));
    // Nothing is known under the second profile: no group is called sound.
    assert!(report.standards[1].groups.iter().all(|group| !group.sound));
}

/// An answer that is faster than the reference's own arithmetic shows that the arithmetic can be left out: the products
/// take 10 us at best, and 100 us / 20 is less, with its interval and the margin.
#[test]
fn collapsible_problems_are_told_apart() {
    let mut run = four();
    run.problems[0].2[0] = fast(20.0);
    run.problems[1].2[0] = fast(20.0);
    // 100 us / 12 is near enough to what the rate may be off by.
    run.problems[3].2[0] = fast(12.0);
    run.marks = [("b", Mark::PrecisionBlind), ("c", Mark::Degenerate)].map(|(id, mark)| (id.to_owned(), mark)).into();
    let report = report(&run);
    let standard = &report.standards[0];
    let group = |name: &str| standard.groups.iter().find(|group| group.name == name).unwrap();
    // Where a lower precision passes, that may be why it is fast.
    assert_eq!(report.problems.iter().map(|row| row.collapsible).collect::<Vec<_>>(), [true, false, false, false]);
    assert_eq!(standard.marks.collapsible, 1);
    assert_eq!((group("all").problems, group("all, sound").problems), (4, 3));
    let straight = group("all, sound, none collapsible");
    assert_eq!((straight.problems, straight.sound, straight.straight), (2, true, true));
    close(straight.speed[0].mean.unwrap().geometric, ((20.0 * 4.0f64).powf(0.25) * (12.0f64 * 1.5).sqrt()).sqrt());
    assert!(report.html().unwrap().contains("needs fewer operations"));
    // Incorrect answers show nothing, however fast.
    assert!(four().marks.is_empty() && self::report(&four()).problems.iter().all(|row| !row.collapsible));
}

/// The task of a crashed worker must not vanish: what is listed and has no verdict is counted.
#[test]
fn as_many_come_out_as_went_in() {
    let mut run = four();
    run.problems[0].2[3] = None;
    run.problems.push(("e".into(), Some(2), Vec::new()));
    let report = report(&run);
    let counts = report.counts;
    assert_eq!((counts.samples, counts.missing, counts.unanswered, counts.problems), (16, 1, 1, 5));
    assert_eq!(counts.accepted + counts.failed + counts.undecided + counts.missing, counts.samples);
    assert_eq!(report.taxonomy.iter().map(|kind| u64::from(kind.count)).sum::<u64>(), counts.samples);
    assert_eq!(report.problems.iter().map(|row| row.outcomes.len() as u64).sum::<u64>(), counts.samples);
    // A problem that nobody answered is not solved, and does not shrink the suite.
    assert_eq!(report.standards[0].groups[0].problems, 5);
    close(report.standards[0].groups[0].correct.unwrap().value, (2.0 / 3.0 + 1.0 + 0.0 + 0.25 + 0.0) / 5.0);
}

/// A correct sample without a time is correct, is not fast, is not 1.0, and makes no mean NaN.
#[test]
fn a_timing_that_failed_is_no_figure() {
    for speedup in [None, Some(0.0), Some(-1.0)] {
        let mut run = Scripted::new(&[("a", None, &[fast(2.0)]), ("b", None, &[fast(8.0)])]);
        run.problems[0].2 = vec![Some(scripted::Script { speedup, ..accepted() })];
        let report = report(&run);
        let speed = &report.standards[0].groups[0].speed[0];
        let at = |p: f64| speed.fast.iter().find(|of| of.p == p).unwrap().share.value;
        assert_eq!((at(0.0), at(0.5), at(1.0)), (1.0, 0.5, 0.5), "{speedup:?}");
        close(speed.mean.unwrap().geometric, 8.0);
        assert_eq!((speed.timed, speed.untimed, speed.mean.unwrap().problems), (1, 1, 1));
    }
}

/// One problem says nothing about others: its intervals are wide, and its speedup has none.
#[test]
fn one_problem_is_no_certainty() {
    let incorrect = failed(VerdictKind::Incorrect, "values", true);
    let report = report(&Scripted::new(&[("a", None, &[fast(2.0), fast(2.0), incorrect, incorrect])]));
    let group = &report.standards[0].groups[0];
    let correct = group.correct.unwrap();
    close(correct.value, 0.5);
    assert!(correct.low < 0.02 && correct.high > 0.98, "{correct:?}");
    let mean = group.speed[0].mean.unwrap();
    close(mean.geometric, 2.0);
    assert_eq!((mean.low, mean.high), (None, None));
    assert!(!report.html().unwrap().contains("None"));
}

#[test]
fn a_part_of_a_suite_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let (mut first, mut second) = (four().lines(), four().lines());
    for (lines, part) in [(&mut first, 0..3), (&mut second, 3..4)] {
        let Line::Run(manifest) = &mut lines[0] else { panic!() };
        manifest.suite_problems = Some(4);
        manifest.problems = manifest.problems[part].to_vec();
    }
    write(&one, &first);
    write(&two, &second);
    let notes = |report: &Report| report.notes.iter().filter(|note| note.contains("a part of the suite")).count();
    let part = report_of(&one);
    assert!(part.notes.iter().any(|note| note.contains("3 of its 4 problems")), "{:?}", part.notes);
    // All parts together are the whole.
    let whole = Report::new(&Run::read(&[one, two]).unwrap(), &Asked::default()).unwrap();
    assert_eq!((notes(&part), notes(&whole)), (1, 0));
}

/// Lines of another version are refused by name, whether or not they can be read: what they say may mean something else.
#[test]
fn another_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let mut run = four();
    run.marks = [("b".to_owned(), Mark::Ok)].into();
    write(&path, &run.lines());
    let whole = std::fs::read_to_string(&path).unwrap();
    for schema in ["tilewright.bench-run/", "tilewright.controls/", "tilewright.verdict/"] {
        for (this, later) in [
            (format!("{schema}1"), format!("{schema}2")),
            (format!("{schema}1\","), format!("{schema}2\",\"added\":{{}},")),
        ] {
            let text = whole.replacen(&this, &later, 1).replacen("\"added\":{},\"setting\"", "\"settings\"", 1);
            assert_ne!(text, whole);
            std::fs::write(&path, text).unwrap();
            let read = Run::read(std::slice::from_ref(&path)).unwrap_err().to_string();
            assert!(read.contains("another version") && read.contains(&format!("{schema}2")), "{read}");
            assert!(RunFolder::open(folder.path()).is_err());
        }
    }
}

#[test]
fn one_verdict_for_each_text_whoever_gave_it() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let run = four();
    let lines = run.lines();
    // The first machine did a third of it, the second the rest and, once more, some of the same under other paths.
    write(&one, &lines[..6]);
    let mut rest = vec![lines[0].clone()];
    rest.extend_from_slice(&lines[4..]);
    for line in &mut rest {
        if let Line::Verdict(verdict) = line {
            verdict.candidate.path = "elsewhere.py".into();
        }
    }
    write(&two, &rest);
    let whole = report(&run);
    let joined = Report::new(&Run::read(&[one.clone(), two]).unwrap(), &Asked::default()).unwrap();
    assert_eq!((joined.counts, &joined.standards, &joined.problems), (whole.counts, &whole.standards, &whole.problems));
    assert_eq!(report_of(&one).counts.missing, 11);
}

/// What would mix two suites or hide where samples come from is refused or said.
#[test]
fn mixed_logs_are_refused_or_said() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let mut lines = four().lines();
    write(&one, &lines);
    let Line::Run(manifest) = &mut lines[0] else { panic!() };
    manifest.samples = "another author".into();
    write(&two, &lines);
    let mixed = Report::new(&Run::read(&[one.clone(), two.clone()]).unwrap(), &Asked::default()).unwrap();
    assert!(mixed.notes.iter().any(|note| note.contains("samples come from samples, another author")));
    let Line::Run(manifest) = &mut lines[0] else { panic!() };
    manifest.problems[2].digest = "blake3:edited".into();
    write(&two, &lines);
    let error = Run::read(&[one, two]).unwrap_err().to_string();
    assert!(error.contains("two texts of problem c"), "{error}");
}

#[test]
fn a_fault_of_the_machine_does_not_stand_in_for_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let run = Scripted::new(&[("a", None, &[fast(2.0)])]);
    let fault = verdict("a", 0, failed(VerdictKind::Infrastructure, "device", false).unwrap());
    for fault_first in [true, false] {
        let mut lines = run.lines();
        lines.insert(if fault_first { 1 } else { 2 }, Line::Verdict(Box::new(fault.clone())));
        write(&path, &lines);
        assert_eq!(report_of(&path).counts.accepted, 1);
    }
}

#[test]
fn a_run_that_is_being_written_can_be_read_and_foreign_files_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    write(&path, &four().lines());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 40]).unwrap();
    assert_eq!(report_of(&path).counts.missing, 1);
    for (text, what) in
        [("notes\n", "not a line of a run"), ("", "does not begin"), ("{\"a\":1}\n", "not a line of a run")]
    {
        std::fs::write(&path, text).unwrap();
        let error = Run::read(std::slice::from_ref(&path)).unwrap_err();
        assert!(matches!(&error, BenchError::Usage(message) if message.contains(what)), "{text:?}: {error}");
    }
    assert!(Run::read(&[PathBuf::from("absent")]).is_err());
}

/// A line that a disk has spoilt is named, with what to do; what is done of it is found out again.
#[test]
fn a_damaged_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    write(&path, &four().lines());
    let whole = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = whole.lines().collect();
    lines[4] = "{\"verdict\":{\"sch\0\0";
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let opened = RunFolder::open(folder.path()).err().unwrap().to_string();
    let read = Run::read(std::slice::from_ref(&path)).unwrap_err().to_string();
    for error in [opened, read] {
        assert!(error.contains("run.jsonl:5") && error.contains("delete it"), "{error}");
    }
    lines.remove(4);
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    assert_eq!(report_of(&path).counts.missing, 1);
    // Two processes do not write one log.
    let held = RunFolder::open(folder.path()).unwrap();
    assert!(RunFolder::open(folder.path()).err().unwrap().to_string().contains("in use by another run"));
    drop(held);
    assert!(RunFolder::open(folder.path()).is_ok());
}

#[test]
fn runs_of_different_settings_do_not_make_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let mut run = four();
    write(&one, &run.lines());
    run.setting.seed = 8;
    run.setting.target = "cuda:3".into();
    write(&two, &run.lines());
    assert!(Run::read(&[one.clone(), two.clone()]).is_ok());
    run.setting.device = "another".into();
    run.setting.triton = "3.7.0".into();
    write(&two, &run.lines());
    let error = Run::read(&[one, two]).unwrap_err().to_string();
    assert!(
        error.contains("device: GPU (cuda) and another (cuda)") && error.contains("triton: 3.6.0 and 3.7.0"),
        "{error}"
    );
}

#[test]
fn a_k_beyond_the_samples_is_said_and_not_lowered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    write(&path, &four().lines());
    let run = Run::read(&[path]).unwrap();
    let report = Report::new(&run, &Asked { ks: vec![2, 10], ..Asked::default() }).unwrap();
    assert_eq!(report.standards[0].groups[0].pass_at.iter().map(|of| of.k).collect::<Vec<_>>(), [2]);
    assert!(report.notes.iter().any(|note| note.contains("pass@10 needs more samples than the 4")));
    assert!(Report::new(&run, &Asked { ks: vec![0], ..Asked::default() }).is_err());
    assert!(Report::new(&run, &Asked { ps: vec![f64::NAN], ..Asked::default() }).is_err());
}

/// Equal runs give equal reports, to the last digit of every interval.
#[test]
fn a_report_repeats() {
    let (one, mut two) = (report(&four()), report(&four()));
    two.date.clone_from(&one.date);
    two.runs.clone_from(&one.runs);
    assert_eq!(one, two);
}

#[test]
fn the_page_is_complete_in_itself_and_says_what_the_document_says() {
    let mut run = four();
    run.problems[0].0 = "<b>&\"x\"".into();
    run.marks = [("b".to_owned(), Mark::Degenerate)].into();
    let page = report(&run).html().unwrap();
    for foreign in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(!page.contains("<b>&\"x"), "foreign text must be escaped");
    for text in ["fast_p", "pass@4", "all, sound", "torch-compute", "degenerate", "class=\"whisker\"", "geometric mean"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.replace("isNaN", "").contains("NaN"));
}
