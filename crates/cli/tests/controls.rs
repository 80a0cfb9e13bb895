//! `tilewright controls` through the real binary: exit codes, the document, the tables.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn controls(folder: &Path, forward: &str, more: &[&str]) -> Output {
    let problem = folder.join("scaled.py");
    let text = format!(
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n        {forward}\n\n\n\
         def get_inputs():\n    return [torch.randn(16, 300)]\n"
    );
    std::fs::write(&problem, text).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("tilewright"));
    command.current_dir(root).env("TILEWRIGHT_CACHE", folder.join("cache"));
    command.arg("controls").arg(&problem).args(["--trials", "1"]).args(more).output().unwrap()
}

#[test]
fn certificates_say_what_passes_and_exit_by_the_first_profile() {
    let folder = tempfile::tempdir().unwrap();
    let output = controls(folder.path(), "return x.tanh()", &["--json", "--seed", "4"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{document:#}");
    assert_eq!((&document["schema"], &document["seed"]), (&"tilewright.controls/1".into(), &4.into()));
    let profiles = document["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), tilewright_judge::profile_names().count(), "every profile by default");
    assert_eq!(profiles[0]["profile"], "tilewright-1");

    let first = ["--profile", "kernelbench-v0", "--profile", "tilewright-1"];
    let output = controls(folder.path(), "return x * 1e-4", &first);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("degenerate") && text.contains("why    zeros (output)"), "{text}");

    let output = controls(folder.path(), "return x * 2", &["--profile", "tilewright-1", "--markdown"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "| problem | tilewright-1 | reasons |\n|---|---|---|\n| scaled | ok |  |\n");

    let output = controls(folder.path(), "return self.missing", &["--profile", "tilewright-1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.starts_with("defect") && text.contains("scaled.py:7"), "{text}");

    let output = controls(folder.path(), "return x", &["no-such-problem.py"]);
    assert_eq!(output.status.code(), Some(2));
}
