//! Controls: small problems that show one mark each, and all problems of the repository.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tilewright_contract::{Certificate, Mark};
use tilewright_verify::Verifier;

use crate::bench::verifier_with;

/// A verifier under some of the shipped profiles.
fn verifier(folder: &Path, profiles: &[&str]) -> Verifier {
    verifier_with(&folder.join("cache"), profiles, Duration::from_secs(300))
}

/// A problem: the body of `forward(self, x)`, what draws `x`, and further lines of the file.
fn problem(folder: &Path, forward: &str, inputs: &str, more: &str) -> PathBuf {
    let path = folder.join("problem.py");
    let text = format!(
        "import torch\nimport torch.nn as nn\n\n{more}\n\nclass Model(nn.Module):\n    def forward(self, x):\n        \
         {forward}\n\n\ndef get_inputs():\n    return [{inputs}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn mark(certificate: &Certificate, profile: &str) -> (Mark, Vec<String>) {
    let found = certificate.profiles.iter().find(|of| of.profile == profile).unwrap();
    (found.mark, found.findings.clone())
}

const DRAWN: &str = "torch.randn(16, 300)";

#[test]
fn each_mark_is_found_where_it_is_due() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(folder.path(), &["tilewright-1", "kernelbench-v0", "kernelbench"]);
    let certify = |forward: &str, inputs: &str, more: &str| {
        verifier.controls(&problem(folder.path(), forward, inputs, more)).unwrap()
    };

    let sound = certify("return torch.relu(x + 1.0) * 2.0", DRAWN, "");
    assert_eq!(mark(&sound, "tilewright-1"), (Mark::Ok, vec![]), "{sound:#?}");
    let names: Vec<&str> = sound.controls.iter().map(|control| control.name.as_str()).collect();
    let all =
        ["copy", "constant", "input[0]", "mean-over-seeds", "other-seed", "skipped-stage", "zeros", "bf16", "fp16"];
    assert_eq!(names, all);

    // Two outputs of which the second says nothing: under a loose profile its size hides it.
    let tiny = certify("return x * 2.0, x * 1e-4", DRAWN, "");
    assert_eq!(mark(&tiny, "tilewright-1").0, Mark::Ok);
    let (mark_v0, findings) = mark(&tiny, "kernelbench-v0");
    assert_eq!(mark_v0, Mark::Degenerate);
    assert!(findings.contains(&"zeros (output[1])".to_owned()), "{findings:?}");
    assert!(!findings.iter().any(|finding| finding.contains("output[0]")), "{findings:?}");

    // A last stage that does nothing on what is drawn.
    let (found, findings) = mark(&certify("return (x * 2.0).clamp(-1e30, 1e30)", DRAWN, ""), "tilewright-1");
    assert_eq!((found, findings), (Mark::Degenerate, vec!["skipped-stage (output)".to_owned()]));

    // The answer is all but an input.
    let gated = certify("return x + 1e-12 * x.sin()", DRAWN, "");
    assert!(mark(&gated, "tilewright-1").1.contains(&"input[0] (output)".to_owned()), "{gated:#?}");

    // Signs are the same in a dtype of the same range.
    let blind = certify("return x.sign()", DRAWN, "");
    assert_eq!(mark(&blind, "tilewright-1").0, Mark::PrecisionBlind, "{blind:#?}");
    assert!(mark(&blind, "tilewright-1").1.contains(&"bf16".to_owned()), "{blind:#?}");

    // A loose profile cannot tell precisions apart.
    assert_eq!(mark(&certify("return x.tanh()", DRAWN, ""), "kernelbench-v0").0, Mark::PrecisionBlind);

    // torch.allclose refuses the reference's own NaN.
    let undefined = certify("return (x + 0.5).log()", DRAWN, "");
    assert_eq!((mark(&undefined, "tilewright-1").0, mark(&undefined, "kernelbench").0), (Mark::Ok, Mark::Defect));
}

#[test]
fn state_that_may_stay_as_it_was_is_degenerate() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(folder.path(), &["tilewright-1"]);
    let path = folder.path().join("problem.py");
    let text = "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        \
                super().__init__()\n        self.register_buffer('seen', torch.ones(300))\n\n    \
                def forward(self, x):\n        self.seen += STEP * x.mean(0)\n        return x * self.seen\n\n\n\
                def get_inputs():\n    return [torch.randn(16, 300)]\n\n\ndef get_init_inputs():\n    return []\n\n\nSTEP = 1.0\n";
    std::fs::write(&path, text).unwrap();
    assert_eq!(mark(&verifier.controls(&path).unwrap(), "tilewright-1"), (Mark::Ok, vec![]));
    std::fs::write(&path, text.replace("STEP = 1.0", "STEP = 3e-7")).unwrap();
    let (found, findings) = mark(&verifier.controls(&path).unwrap(), "tilewright-1");
    assert_eq!((found, findings), (Mark::Degenerate, vec!["unchanged (state.seen)".to_owned()]));
}

#[test]
fn a_stated_reason_exempts_and_a_needless_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(folder.path(), &["tilewright-1"]);
    let reasons = "CONTROLS = {\"input\": \"it is the identity\", \"zeros\": \"no reason at all\"}";
    let certificate = verifier.controls(&problem(folder.path(), "return x.clone()", DRAWN, reasons)).unwrap();
    assert_eq!(mark(&certificate, "tilewright-1").0, Mark::Ok, "{certificate:#?}");
    let control = certificate.controls.iter().find(|control| control.name == "input[0]").unwrap();
    assert_eq!(control.reason.as_deref(), Some("it is the identity"));
    let told = certificate.notes.iter().filter(|note| note.contains("reason for zeros")).count();
    assert_eq!(told, 1, "{:?}", certificate.notes);
    for (lines, words) in [
        ("CONTROLS = {\"copy\": \"never mind\"}", "no control with a choice"),
        ("CONTROLS = {\"zeros\": \"\"}", "not a dict of control to reason"),
        ("CONTROLS = 3", "not a dict of control to reason"),
    ] {
        let certificate = verifier.controls(&problem(folder.path(), "return x * 2", DRAWN, lines)).unwrap();
        let defect = certificate.defect.clone().unwrap();
        assert!(defect.contains(words) && defect.contains("problem.py"), "{defect}");
        assert_eq!(mark(&certificate, "tilewright-1").0, Mark::Defect);
    }
}

#[test]
fn a_verdict_says_that_its_problem_is_degenerate() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(folder.path(), &["kernelbench-v0"]);
    let degenerate = |forward: &str| {
        let problem = verifier.load(&problem(folder.path(), forward, DRAWN, ""));
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), b"x = 1\n");
        verdict.notes.into_iter().filter(|note| note.starts_with("degenerate: ")).collect::<Vec<_>>()
    };
    assert_eq!(degenerate("return x * 2.0"), Vec::<String>::new());
    let notes = degenerate("return x * 1e-4");
    assert_eq!(
        notes,
        [
            "degenerate: zeros (output) passes under kernelbench-v0",
            "degenerate: constant (output) passes under kernelbench-v0"
        ]
    );
}

/// Under the default profile every problem is sound, or says why not, and says no more than it needs to. A quarter of
/// them here, which takes a minute; `scripts/controls_table.sh` does all, under every profile.
#[test]
fn the_problems_of_the_repository_tell_right_from_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(folder.path(), &["tilewright-1"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems");
    let mut problems: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path().join("problem.py")).collect();
    problems.retain(|problem| problem.is_file());
    problems.sort();
    assert!(problems.len() >= 40, "only {} problems", problems.len());
    let problems = problems.into_iter().skip(1).step_by(4);
    let mut wrong = Vec::new();
    for problem in problems {
        let certificate = verifier.controls(&problem).unwrap();
        let (found, findings) = mark(&certificate, "tilewright-1");
        let needless = certificate.notes.iter().filter(|note| note.starts_with("CONTROLS"));
        let needless: Vec<_> = needless.cloned().collect();
        if found != Mark::Ok || !needless.is_empty() {
            let defect = certificate.defect.unwrap_or_default();
            wrong.push(format!("{}: {}: {findings:?} {needless:?} {defect}", problem.display(), found.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
