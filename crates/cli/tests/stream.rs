//! `verify --batch -` through the real binary: one answer for every line, whatever is in it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PROBLEM: &str = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        \
return x * 2.0\n\n\ndef get_inputs():\n    return [torch.randn(1000)]\n\n\ndef get_init_inputs():\n    return []\n";

fn candidate(factor: f64) -> String {
    format!(
        "import torch\nimport triton\nimport triton.language as tl\n\n\
@triton.jit\ndef scale(x, y, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
tl.store(y + i, tl.load(x + i, mask=i < n) * {factor:?}, mask=i < n)\n\n\n\
class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        y = torch.empty_like(x)\n        \
scale[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)\n        return y\n"
    )
}

/// A running service, with a cache of its own.
struct Service {
    folder: tempfile::TempDir,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Service {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("tilewright"))
            .args(["verify", "--batch", "-", "--trials", "1", "--jobs", "2"])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .env("TILEWRIGHT_CACHE", folder.path().join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { folder, child, input, output }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn ask(&mut self, line: impl std::fmt::Display) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn answer(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// An answer as it is written.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Already over where all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_line_has_its_answer_and_a_problem_is_read_anew_when_its_file_changes() {
    let mut service = Service::start();
    let problem = service.file("problem.py", PROBLEM);
    let right = service.file("right.py", &candidate(2.0));
    service.ask(json!({"id": "right", "problem": problem, "candidate": right}));
    service.ask(json!({"id": {"any": 1}, "problem": problem, "source": candidate(3.0)}));
    service.ask("no JSON");
    service.ask(json!({"id": 7, "candidate": right}));
    service.ask(json!({"id": 8, "problem": problem}));
    service.ask(json!({"id": 9, "problem": problem, "candidate": "nowhere.py"}));
    service.ask(json!({"id": 10, "problem": problem, "candidate": right, "sauce": "x"}));
    let answers: BTreeMap<String, Value> =
        (0..7).map(|_| service.answer()).map(|answer| (answer["id"].to_string(), answer)).collect();
    let verdict = |id: &str| answers[id]["verdict"]["verdict"].as_str();
    assert_eq!(verdict("\"right\""), Some("accepted"), "{answers:?}");
    assert_eq!(verdict("{\"any\":1}"), Some("incorrect"), "{answers:?}");
    assert!(answers["\"right\""]["seconds"].as_f64().unwrap() > 0.0);
    for (id, says) in [
        ("3", "no JSON"),
        ("7", "names no problem"),
        ("8", "names no candidate"),
        ("9", "no candidate file nowhere.py"),
        ("10", "unknown field `sauce`"),
    ] {
        assert!(answers[id]["error"].as_str().unwrap().contains(says), "{id}: {}", answers[id]);
        assert!(answers[id].get("verdict").is_none());
    }
    // The service goes on, and sees that the problem is another now.
    service.file("problem.py", &PROBLEM.replace("2.0", "3.0"));
    service.ask(json!({"problem": problem, "source": candidate(3.0)}));
    let answer = service.answer();
    assert_eq!((&answer["id"], &answer["verdict"]["verdict"]), (&json!(8), &json!("accepted")), "{answer}");
    drop(service.input.take());
    assert!(service.child.wait().unwrap().success());
}

#[test]
fn a_reader_of_a_folders_verdicts_that_goes_away_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("problem.py"), PROBLEM).unwrap();
    std::fs::create_dir(folder.path().join("candidates")).unwrap();
    std::fs::write(folder.path().join("candidates/one.py"), "class ModelNew(:").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(assert_cmd::cargo::cargo_bin("tilewright"))
        .args([Path::new("verify"), &folder.path().join("problem.py"), Path::new("--batch")])
        .args([&folder.path().join("candidates"), Path::new("--trials"), Path::new("1")])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(3), ""));
}

/// Both from a line that is a request and from one that is not.
#[test]
fn an_id_comes_back_as_it_was_given() {
    let mut service = Service::start();
    let problem = service.file("problem.py", PROBLEM);
    let ids = [
        "123456789012345678901234567890",
        "-18446744073709551617",
        "0.1000000000000000055511151231257827",
        "1.0",
        "1e400",
        "\"\\u00e9\"",
        "[1, {\"b\": 2.50, \"a\": 12345678901234567890123}]",
    ];
    for (id, request) in ids.iter().flat_map(|id| [(id, true), (id, false)]) {
        let source = if request { json!("class ModelNew(:") } else { json!(7) };
        service.ask(format_args!("{{\"id\": {id}, \"problem\": {}, \"source\": {source}}}", json!(problem)));
        let line = service.line();
        assert!(line.starts_with(&format!("{{\"id\":{id},")), "{id}: {line}");
        assert_eq!(line.contains("\"verdict\""), request, "{line}");
    }
    // What is no object is no request, whatever is in it.
    let fields = [json!("1"), json!(problem), json!("c.py"), json!("class ModelNew(:")];
    let others =
        [json!(fields), json!(fields[..1]), json!([]), json!(null), json!("{}"), json!(1.5), json!([{"id": 1}])];
    for (number, other) in others.iter().enumerate() {
        service.ask(other);
        let answer = service.answer();
        assert_eq!(answer["id"], json!(2 * ids.len() + number + 1), "{other}: {answer}");
        assert!(answer["error"].as_str().unwrap().starts_with("no request: give an object"), "{other}: {answer}");
    }
    service.ask(json!({"id": null, "problem": problem, "source": "class ModelNew(:"}));
    assert_eq!(service.answer()["id"], json!(2 * ids.len() + others.len() + 1));
}

#[test]
fn a_reader_that_goes_away_ends_it_though_standard_input_is_open() {
    let mut service = Service::start();
    let problem = service.file("problem.py", PROBLEM);
    service.ask(json!({"problem": problem, "source": "class ModelNew(:"}));
    assert_eq!(service.answer()["verdict"]["verdict"], "compile_error");
    let (_, writer) = std::io::pipe().unwrap();
    drop(writer);
    // The other end of its standard output closes.
    let (reader, _) = std::io::pipe().unwrap();
    let gone =
        std::mem::replace(&mut service.output, BufReader::new(ChildStdout::from(std::os::fd::OwnedFd::from(reader))));
    drop(gone);
    service.ask(json!({"problem": problem, "source": "class ModelNew(:"}));
    let start = Instant::now();
    while service.child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "it still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
}
