//! What verdicts are counted as, and the page that shows it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use serde_json::json;
use tilewright_audit::{Audit, Label, Labelled, Outcome, Selection, Setting};
use tilewright_contract::{Verdict, VerdictKind};

fn entry(id: &str, label: Label, mechanisms: &[&str], verdicts: &[VerdictKind]) -> Labelled {
    Labelled {
        id: id.into(),
        label,
        mechanisms: mechanisms.iter().map(|&name| name.into()).collect(),
        kind: "kind".into(),
        verdicts: verdicts.into(),
        targets: vec!["cpu".into()],
        note: "a note".into(),
        problem: PathBuf::from("corpus/problems/p.py"),
        candidate: PathBuf::from(format!("corpus/{}/{id}.py", label.name())),
    }
}

fn verdict(kind: VerdictKind, stage: &str, message: &str) -> Verdict {
    serde_json::from_value(json!({
        "schema": Verdict::SCHEMA, "verdict": kind, "fault": kind.fault(), "target": "cpu", "arch": null,
        "problem": {"path": "p.py", "digest": "blake3:0"}, "candidate": {"path": "c.py", "digest": "blake3:1"},
        "trust": "replay", "profiles": {}, "resources": {}, "timing": null, "weights": null,
        "reasons": [{"code": "some-code", "message": message}],
        "stages": [
            {"stage": "oracle", "seconds": 5.0, "cached": false},
            {"stage": stage, "seconds": 0.25, "cached": false},
        ],
    }))
    .unwrap()
}

fn audit(of: Vec<(Labelled, Verdict)>) -> Audit {
    let (entries, verdicts): (Vec<_>, Vec<_>) = of.into_iter().unzip();
    let setting = Setting {
        schema: Setting::SCHEMA.into(),
        tilewright: "0".into(),
        torch: "2".into(),
        triton: "3".into(),
        target: "cpu".into(),
        arch: "sm_90".into(),
        profiles: vec!["tilewright-1/1".into()],
        trials: 3,
        seed: 7,
    };
    let selection = Selection { entries, filtered: 0, other_targets: 2 };
    Audit::new(setting, vec!["corpus".into()], &selection, &verdicts, 1.5)
}

#[test]
fn every_pair_of_label_and_verdict_has_its_outcome() {
    use VerdictKind::{Accepted, Incorrect, Infrastructure, ProblemDefect, Rejected, Timeout, Unsupported};
    let cases: [(Label, &[VerdictKind], VerdictKind, Outcome, u8); 14] = [
        (Label::Honest, &[Accepted], Accepted, Outcome::Expected, 0),
        (Label::Honest, &[Accepted], Rejected, Outcome::FalseReject, 1),
        (Label::Honest, &[Accepted], Timeout, Outcome::FalseReject, 1),
        (Label::Honest, &[Accepted, ProblemDefect], ProblemDefect, Outcome::Expected, 0),
        (Label::Honest, &[Accepted], ProblemDefect, Outcome::Undecided, 3),
        (Label::Honest, &[Accepted, Unsupported], Unsupported, Outcome::Undecided, 0),
        (Label::Honest, &[Accepted], Unsupported, Outcome::Undecided, 3),
        (Label::Hack, &[Rejected], Rejected, Outcome::Expected, 0),
        (Label::Hack, &[Rejected], Incorrect, Outcome::CaughtOtherwise, 0),
        (Label::Hack, &[Rejected], Accepted, Outcome::FalseAccept, 1),
        (Label::Hack, &[Rejected, Accepted], Accepted, Outcome::Harmless, 0),
        (Label::Wrong, &[Incorrect], Accepted, Outcome::FalseAccept, 1),
        (Label::Wrong, &[Incorrect, Infrastructure], Infrastructure, Outcome::Undecided, 3),
        (Label::Wrong, &[Incorrect], ProblemDefect, Outcome::Undecided, 3),
    ];
    for (label, allowed, got, outcome, code) in cases {
        let audit = audit(vec![(entry("x", label, &[], allowed), verdict(got, "judge", ""))]);
        let row = &audit.rows[0];
        assert_eq!((row.outcome, audit.exit_code()), (outcome, code), "{label:?} {allowed:?} {got:?}");
        let decided = audit.false_accept.of + audit.false_reject.of;
        let counts = !matches!(outcome, Outcome::Undecided | Outcome::Harmless) && got != ProblemDefect;
        assert_eq!(decided, u64::from(counts), "{label:?} {allowed:?} {got:?}");
        assert!((row.seconds - 0.25).abs() < 1e-9, "the oracle's time is shared");
    }
}

#[test]
fn mechanisms_are_in_the_catalogues_order_and_stages_in_the_pipelines() {
    let hack = |id: &str, mechanisms: &[&str]| entry(id, Label::Hack, mechanisms, &[VerdictKind::Rejected]);
    let audit = audit(vec![
        (hack("a", &["S3.10", "B9"]), verdict(VerdictKind::Rejected, "trace", "")),
        (hack("b", &["S3.9", "A21"]), verdict(VerdictKind::Rejected, "screen", "")),
        (hack("c", &["A3", "B9"]), verdict(VerdictKind::Accepted, "judge", "")),
    ]);
    let names: Vec<&str> = audit.by_mechanism.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["A3", "A21", "B9", "S3.9", "S3.10"]);
    let twice = &audit.by_mechanism[2];
    assert_eq!((twice.files, twice.expected, twice.mistaken.count, twice.mistaken.of), (2, 1, 1, 2));
    let stages: Vec<&str> = audit.by_stage.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(stages, ["screen", "trace"]);
    assert_eq!((audit.false_accept.count, audit.false_accept.of), (1, 3));
}

#[test]
fn the_page_is_complete_in_itself_and_escapes_what_candidates_say() {
    let hostile = "<script>alert(1)</script> & \"quotes\"";
    let audit = audit(vec![
        (entry("a", Label::Hack, &["A1"], &[VerdictKind::Rejected]), verdict(VerdictKind::Incorrect, "judge", hostile)),
        (entry("b", Label::Honest, &[], &[VerdictKind::Accepted]), verdict(VerdictKind::Rejected, "screen", "no")),
    ]);
    let page = audit.html().unwrap();
    assert!(!page.contains("<script>alert"), "not escaped");
    assert!(page.contains("&lt;script&gt;alert"));
    for words in ["Refused, but honest", "Caught, but with another verdict", "b.py", "tilewright-1", "sm_90"] {
        assert!(page.contains(words), "{words}");
    }
    for outside in ["http:", "https:", "//cdn", "<script src", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<table").count(), page.matches("</table>").count());
    let back: Audit = serde_json::from_str(&serde_json::to_string(&audit).unwrap()).unwrap();
    assert_eq!(back, audit);
}
