//! Triton itself, without a GPU: it still prints the fixtures, and makes the same binary of what we print.
//!
//! Needs the project's Python (`make venv`) and the example `ttir`, which `cargo test` builds. Every 20th fixture is
//! compiled; with `TILEWRIGHT_ALL=1` all of them.

use std::path::{Path, PathBuf};
use std::process::Command;

fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let folder = test.ancestors().nth(2).expect("the folder of binaries");
    folder.join("examples").join(format!("ttir{}", std::env::consts::EXE_SUFFIX))
}

fn python(script: &str, arguments: &[&str]) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let python = tests.join("../../../.venv/bin/python");
    assert!(python.is_file(), "this test needs {}: run `make venv` first", python.display());
    let output = Command::new(python).current_dir(&tests).args(["-W", "ignore", script]).args(arguments).output();
    let output = output.expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn triton_makes_the_same_binary_of_our_text() {
    let example = example();
    assert!(example.is_file(), "{} is missing: build the example `ttir`", example.display());
    let every = if std::env::var_os("TILEWRIGHT_ALL").is_some() { "1" } else { "20" };
    let said = python("same_binary.py", &[&example.to_string_lossy(), "--every", every]);
    let checked: usize = said.rsplit(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count");
    assert!(said.trim_end().ends_with("differ") && checked >= 15, "{said}");
}

#[test]
fn kernels_use_the_whole_language() {
    assert_eq!(python("harvest.py", &["--unused"]), "");
}
