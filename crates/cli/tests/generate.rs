//! `generate`, `search`, `tree`, `repl` and `ask` through the real binary, against a scripted server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../author/tests/support/server.rs"]
#[expect(dead_code, reason = "this program uses a part")]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use server::{Server, Step, completion, events};

const KEY: &str = "sk-cli-51d0a7e3bb40";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn problem() -> PathBuf {
    root().join("problems/bias_swish_clamp/problem.py")
}

/// An honest candidate as a model gives it.
fn good() -> String {
    let source = fs::read_to_string(root().join("problems/bias_swish_clamp/candidate.py")).unwrap();
    format!("<think>Easy.</think>\n```python\n{source}```")
}

fn said(text: &str) -> Step {
    Step::Stream(events(text, "stop"))
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = &server.url;
        let text =
            format!("[endpoints.m]\nbase_url = {url:?}\nmodel = \"m\"\nkey_env = \"MODEL_KEY\"\nprice_output = 1.0\n");
        fs::write(folder.path().join("tilewright.toml"), text).unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("tilewright"));
        // A folder that does not say where the tree is: the program must find its Python as from the tree's root.
        command
            .current_dir(root())
            .env("TILEWRIGHT_CACHE", self.at("cache"))
            .env("TILEWRIGHT_CONFIG", self.at("tilewright.toml"))
            .env("MODEL_KEY", KEY)
            .env("RUST_LOG", "trace")
            .arg(name);
        command
    }

    fn generate(&self, further: &[&str]) -> Command {
        let mut command = self.command("generate");
        command
            .arg(problem())
            .args(["--author", "m", "--trials", "1", "--jobs", "1", "--out"])
            .arg(self.at("run"))
            .args(further);
        command
    }
}

/// Runs to the end; nothing that comes out may show the key.
fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(!stdout.contains(KEY) && !stderr.contains(KEY), "{stdout}{stderr}");
    (status.code(), stdout, stderr)
}

#[test]
fn a_model_that_mends_its_file_is_told_what_was_wrong() {
    let broken = good().replace("tl.load", "tl.lode");
    let server = Server::start(vec![said("I would rather not."), said(&broken), said(&good())]);
    let bench = Bench::new(&server);
    let (code, stdout, stderr) = run(&mut bench.generate(&["--n", "1", "--rounds", "3"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout, fs::read_to_string(bench.at("run/best.py")).unwrap());
    assert!(stdout.contains("class ModelNew") && !stdout.contains("Easy."), "{stdout}");
    assert!(stderr.contains("no code") && stderr.contains("`triton.language.lode`"), "{stderr}");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].contains("there is no code in the answer"), "{}", requests[1]);
    assert!(requests[2].contains("RESULT") && requests[2].contains("lode"), "{}", requests[2]);
    let log = fs::read_to_string(bench.at("run/log.jsonl")).unwrap();
    assert!(!log.contains(KEY) && log.contains("<think>Easy."), "the log holds what was said, and no key");

    // What was recorded can be played back, drawn and asked for again, without the server.
    drop(server);
    let (code, again, stderr) = run(&mut bench.generate(&["--n", "1", "--rounds", "3"]));
    assert_eq!((code, &again), (Some(0), &stdout), "{stderr}");
    let page = bench.at("tree.html");
    let (code, tree, _) = run(bench.command("tree").arg(bench.at("run")).arg("--html").arg(&page));
    assert_eq!((code, tree.lines().count()), (Some(0), 3));
    assert!(tree.contains("   └─ 2 accepted") && fs::read_to_string(page).unwrap().contains("class ModelNew"));
    let script = format!("/load {}\n/another\n/another\n/list\n", problem().display());
    let (code, stdout, stderr) = repl(&bench, &format!("replay:{}", bench.at("run").display()), &script);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("0  no code") && stdout.contains("2  accepted") && stdout.contains("<- best"), "{stdout}");
    assert!(stderr.contains("I would rather not.") && stderr.contains("trace …"), "{stderr}");
}

fn repl(bench: &Bench, author: &str, script: &str) -> (Option<i32>, String, String) {
    let input = bench.at("script");
    fs::write(&input, script).unwrap();
    let folder = bench.at("work");
    fs::create_dir_all(&folder).unwrap();
    let mut command = bench.command("repl");
    let python = root().join(".venv/bin/python");
    if std::env::var_os("TILEWRIGHT_PYTHON").is_none() && python.is_file() {
        command.env("TILEWRIGHT_PYTHON", python);
    }
    command.current_dir(folder).args(["--author", author, "--trials", "1"]).stdin(fs::File::open(input).unwrap());
    run(&mut command)
}

#[test]
fn a_module_that_is_pasted_is_the_one_that_the_model_is_asked_about() {
    let server = Server::start(vec![said(&good())]);
    let bench = Bench::new(&server);
    let module = fs::read_to_string(problem()).unwrap();
    let (code, stdout, stderr) = repl(&bench, "m", &module);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("accepted"), "{stdout}");
    let request: Value = serde_json::from_str(
        server.requests()[0].split_once("\r\n\n").or(server.requests()[0].split_once("\n\n")).unwrap().1,
    )
    .unwrap();
    let question = request["messages"][1]["content"].as_str().unwrap().to_owned();
    assert!(question.contains(module.trim()), "{question}");
}

#[test]
fn a_server_that_fails_loses_no_work() {
    let server = Server::start(vec![said("no code here"), Step::Say(401, "", format!("bad key {KEY}"))]);
    let bench = Bench::new(&server);
    let (code, stdout, stderr) = run(&mut bench.generate(&["--n", "2", "--rounds", "1"]));
    assert_eq!((code, stdout.as_str()), (Some(3), ""), "{stderr}");
    assert!(stderr.contains("401: bad key (hidden)"), "{stderr}");
    let report: Value = serde_json::from_str(&fs::read_to_string(bench.at("run/report.json")).unwrap()).unwrap();
    assert_eq!((&report["stop"]["why"], report["candidates"].as_array().unwrap().len()), (&"author".into(), 1));
    // The answer that came is not paid for again.
    let server = Server::start(vec![said(&good())]);
    let text = fs::read_to_string(bench.at("tilewright.toml")).unwrap();
    let line = text.lines().find(|line| line.starts_with("base_url")).unwrap();
    fs::write(bench.at("tilewright.toml"), text.replace(line, &format!("base_url = {:?}", server.url))).unwrap();
    let (code, stdout, stderr) = run(&mut bench.generate(&["--n", "2", "--rounds", "1", "--events"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(server.requests().len(), 1);
    let told: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> =
        told.iter().filter_map(|event| event["event"].as_str()).filter(|name| *name != "text").collect();
    assert_eq!((names[0], names[1], names.last()), ("round", "asking", Some(&"report")), "{names:?}");
    let text: String = told.iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(text, good());
    assert!(told.last().unwrap()["source"].as_str().unwrap().contains("class ModelNew"));
}

#[test]
fn a_search_that_is_killed_goes_on_and_pays_nothing_twice() {
    // Every answer is another text; half of them do the same as another.
    let bad =
        |number: usize| format!("{}\n# {number}\n```", good().trim_end_matches('`').replace("tl.store", "tl.stor"));
    let fine = |number: usize| format!("{}\n# {number}\n```", good().trim_end_matches('`'));
    let server = Server::start(vec![
        said(&bad(0)),
        said(&fine(1)),
        said("nothing"),
        said(&bad(3)),
        said(&fine(4)),
        said(&fine(5)),
    ]);
    let bench = Bench::new(&server);
    let search = || {
        let mut command = bench.command("search");
        command.arg(problem()).args([
            "--author",
            "m",
            "--trials",
            "1",
            "--jobs",
            "1",
            "--node-num",
            "2",
            "--max-rounds",
            "3",
        ]);
        command.arg("--out").arg(bench.at("run")).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let log = || fs::read_to_string(bench.at("run/log.jsonl")).unwrap_or_default();
    let count = |event: &str| log().matches(&format!("\"event\":\"{event}\"")).count();
    // Killed after its first verdict, and after its third answer.
    for reached in [&|| count("verdict") >= 1, &|| count("answer") >= 3] as [&dyn Fn() -> bool; 2] {
        let mut child = search().spawn().unwrap();
        while !reached() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (code, _, stderr) = run(search().stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(
        (count("round"), count("answer"), count("verdict")),
        (3, 6, 2),
        "one verdict for each thing that was tried"
    );
    assert!(server.requests().len() <= 8, "two questions at most were under way when it was killed");
}

#[test]
fn what_cannot_be_meant_is_told_before_anything_starts() {
    let server = Server::start(vec![said("never asked")]);
    let bench = Bench::new(&server);
    let inside_a_file = problem().join("run");
    for (command, arguments, told) in [
        ("generate", vec!["--temperature", "nan"], "give 0"),
        ("generate", vec!["--temperature", "-1"], "give 0"),
        ("generate", vec!["--top-p", "1.5"], "at most 1"),
        ("generate", vec!["--answer-tokens", "0"], "--answer-tokens"),
        ("generate", vec!["--max-cost", "nan"], "above 0"),
        ("generate", vec!["--max-cost", "-1"], "above 0"),
        ("generate", vec!["--max-time", "-1"], "above 0"),
        ("generate", vec!["--max-tokens", "0"], "--max-tokens"),
        ("generate", vec!["--max-verdicts", "0"], "--max-verdicts"),
        ("generate", vec!["--until", "1.5x"], "takes a GPU"),
        ("generate", vec!["--out", inside_a_file.to_str().unwrap()], "another folder by --out"),
        ("search", vec!["--explore", "-1"], "give 0 or more"),
        ("search", vec!["--explore", "nan"], "give 0 or more"),
        ("repl", vec!["--author", "nobody"], "it has m"),
    ] {
        let mut command = bench.command(command);
        let (code, stdout, stderr) = run(command.arg(problem()).args(&arguments).stdin(Stdio::null()));
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(told), "{arguments:?}: {stderr}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_question_is_asked_as_it_stands() {
    let server = Server::start(vec![said("an answer, é"), Step::Say(200, "", completion("whole"))]);
    let bench = Bench::new(&server);
    let question = bench.at("question");
    fs::write(&question, "Why {{ 7 * 7 }}?\n").unwrap();
    for told in ["an answer, é", "whole"] {
        let mut command = bench.command("ask");
        command.args(["--author", "m", "--temperature", "0.5"]).stdin(fs::File::open(&question).unwrap());
        let (code, stdout, stderr) = run(&mut command);
        assert_eq!((code, stdout.as_str()), (Some(0), told), "{stderr}");
    }
    assert!(server.requests()[0].contains("Why {{ 7 * 7 }}?"), "{}", server.requests()[0]);
    for (arguments, told) in
        [(vec!["--author", "nobody"], "it has m"), (vec!["--author", "replay:/nowhere"], "/nowhere")]
    {
        let (code, _, stderr) = run(bench.command("ask").args(arguments).stdin(Stdio::null()));
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(told), "{stderr}");
    }
}
