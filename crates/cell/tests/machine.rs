//! What the doctor sees.

mod common;

use std::path::Path;

use common::python;
use tilewright_cell::{Finding, Layer, PythonError, find_python, inspect, probe_python};

#[test]
fn the_interpreter_that_is_asked_for_is_used_or_missed() {
    assert_eq!(find_python(Some(&python())).unwrap(), python());
    assert!(find_python(Some(Path::new("sh"))).unwrap().is_absolute(), "a bare name is looked up on the PATH");
    let error = find_python(Some(Path::new("/nowhere/python"))).unwrap_err();
    assert!(matches!(error, PythonError::NotThere { origin: "--python", .. }));
    // Tests run in the package's folder: the environment is found above it, unless another one is active.
    assert!(find_python(None).unwrap().is_file());
}

#[test]
fn an_interpreter_says_what_it_has() {
    let report = probe_python(&python()).unwrap();
    assert!(report.problems().is_empty(), "{:?}", report.problems());
    assert!(matches!(probe_python(Path::new("/bin/false")), Err(PythonError::Broken { .. })));
    let bare = tilewright_cell::PythonReport { torch: None, version: "3.9.2".into(), ..report };
    let problems: Vec<String> = bare.problems().into_iter().map(|(problem, _)| problem).collect();
    assert_eq!(problems, ["Python 3.9.2 is too old", "torch is not installed"]);
}

#[test]
fn the_doctor_tries_the_sandbox_out() {
    let report = inspect(Some(&python()));
    assert!(report.cores > 0 && report.memory_bytes > report.memory_available_bytes);
    match report.sandbox {
        Finding::Found(layers) => assert!(layers.has(Layer::Seccomp) && layers.first_unmet(false).is_none()),
        Finding::Missing { why, .. } => panic!("{why}"),
    }
    match inspect(Some(Path::new("/nowhere/python"))).python {
        Finding::Found(report) => panic!("{report:?}"),
        Finding::Missing { why, .. } => assert!(why.contains("/nowhere/python"), "{why}"),
    }
}
