//! Samples that a model writes for the run: asked once each, also after a kill.

use super::*;
use crate::server::{Server, Step, completion};

fn config(bench: &Bench, server: &Server) {
    let text = format!("[endpoints.m]\nbase_url = {:?}\nmodel = \"m\"\n", server.url);
    bench.write("tilewright.toml", &text);
}

fn said(text: &str) -> Step {
    Step::Say(200, "", completion(text))
}

/// Two samples of two problems. The first run is killed while the second answer is on its way; the next asks for the three
/// that are missing, and for nothing else.
#[test]
fn every_sample_is_asked_for_once() {
    let bench = Bench::new();
    let first =
        Server::start(vec![said(&format!("```python\n{}```", CANDIDATE.replace("FACTOR", "2.0"))), Step::Silence]);
    config(&bench, &first);
    let mut args = vec!["run", "KernelBench", "--author", "m", "--n", "2", "--config", "tilewright.toml"];
    args.extend(["--out", "runs/m", "--jobs", "1", "--trials", "1", "--no-controls", "--json"]);
    let mut child = bench.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let written = || {
        let files = fs::read_dir(bench.path("runs/m/samples")).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|ending| ending == "py")).count()
    };
    // The next question may be on its way before the last answer is a file.
    until(&mut child, || first.requests().len() == 2 && written() == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(first.requests().len(), 2);
    assert_eq!(written(), 1);

    let triple = format!("```python\n{}```", CANDIDATE.replace("FACTOR", "3.0"));
    let second = Server::start(vec![said("I would rather not."), said(&triple), said(&triple)]);
    config(&bench, &second);
    let report = bench.json(&args);
    assert_eq!((second.requests().len(), written()), (3, 4));
    let counts = &report["counts"];
    assert_eq!((counts["samples"].as_u64(), counts["missing"].as_u64()), (Some(4), Some(0)), "{counts}");
    assert_eq!((counts["accepted"].as_u64(), counts["failed"].as_u64()), (Some(3), Some(1)), "{counts}");
    assert_eq!(report["samples_from"], "m");
    assert_eq!(report["problems"][0]["verdicts"]["compile_error"], 1);
    // Equal texts are verified once, and are two samples.
    assert_eq!((&report["problems"][1]["correct"], verdicts(&bench.path("runs/m/run.jsonl"))), (&Value::from(2), 3));

    // A third time nothing is asked; and another author's samples, or another text of a problem, have no place here.
    assert_eq!(bench.json(&args)["counts"], *counts);
    assert_eq!(second.requests().len(), 3);
    let refused = |args: &[&str], words: &str| {
        let output = bench.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    };
    args[3] = "offline";
    refused(&args, "about samples of m, not of offline");
    args[3] = "m";
    bench.write("KernelBench/level1/2_triple.py", &PROBLEM.replace("FACTOR", "3.0 + 0.0"));
    refused(&args, "another text of problem level1/2_triple");
    assert_eq!(second.requests().len(), 3);
}
