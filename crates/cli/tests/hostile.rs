//! Bad input of every kind through the real binary: one clear verdict each, nothing left running, nothing left on disk.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder for temporary files of its own, so that what is left behind shows.
struct Bench {
    work: tempfile::TempDir,
    temporary: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = || tempfile::tempdir().unwrap();
        Self { work: folder(), temporary: folder(), cache: folder() }
    }

    fn candidate(&self, name: &str, source: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work.path().join("candidates").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, source).unwrap();
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("tilewright").unwrap();
        command
            .current_dir(root())
            .env("TMPDIR", self.temporary.path())
            .env("TILEWRIGHT_CACHE", self.cache.path())
            .timeout(Duration::from_secs(300))
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Verdicts of every candidate written so far, by file name.
    fn batch(&self, problem: &str) -> Vec<(String, Value)> {
        let folder = self.work.path().join("candidates");
        let output =
            self.run(&["verify", problem, "--batch", folder.to_str().unwrap(), "--trials", "1", "--timeout", "60"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut verdicts: Vec<(String, Value)> = text
            .lines()
            .map(|line| {
                let verdict: Value = serde_json::from_str(line).unwrap();
                let path = Path::new(verdict["candidate"]["path"].as_str().unwrap()).to_owned();
                (path.file_stem().unwrap().to_str().unwrap().to_owned(), verdict)
            })
            .collect();
        verdicts.sort_by(|a, b| a.0.cmp(&b.0));
        verdicts
    }

    fn assert_nothing_is_left(&self) {
        let left: Vec<_> = fs::read_dir(self.temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "left on disk: {left:?}");
        let mark = self.temporary.path().to_str().unwrap().as_bytes();
        let running = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            // A process of the run has the temporary folder in its environment.
            fs::read(entry.path().join("environ")).is_ok_and(|text| text.windows(mark.len()).any(|part| part == mark))
        });
        let running: Vec<_> = running.map(|entry| entry.file_name()).collect();
        assert!(running.is_empty(), "left running: {running:?}");
    }
}

const HEADER: &str = "import torch\nimport triton\nimport triton.language as tl\n\n\
@triton.jit\ndef scale(x, y, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
tl.store(y + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)\n\n\n";

const PROBLEM: &str = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        \
return x * 2.0\n\n\ndef get_inputs():\n    return [torch.randn(1000)]\n\n\ndef get_init_inputs():\n    return []\n";

/// An honest `ModelNew` with a statement at the start of `__init__` and of `forward`.
fn model(init: &str, forward: &str) -> String {
    format!(
        "{HEADER}class ModelNew(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n\n    \
def forward(self, x):\n        {forward}\n        y = torch.empty_like(x)\n        \
scale[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)\n        return y\n"
    )
}

fn problem(bench: &Bench) -> String {
    let path = bench.work.path().join("problem.py");
    fs::write(&path, PROBLEM).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_bad_candidate_gets_one_clear_verdict() {
    let bench = Bench::new();
    let problem = problem(&bench);
    let wanted = [
        ("binary", "compile_error", [0u8, 159, 146, 150].repeat(100)),
        ("empty", "compile_error", Vec::new()),
        ("huge", "compile_error", b"x = 1\n".repeat((50 << 20) / 6)),
        ("syntax", "compile_error", b"class ModelNew(:\n".to_vec()),
        ("no_class", "compile_error", HEADER.into()),
        (
            "constructor",
            "launch_error",
            model("pass", "pass").replace("def __init__(self)", "def __init__(self, a)").into(),
        ),
        ("init_raises", "launch_error", model("raise ValueError('no luck')", "pass").into()),
        ("forward_raises", "launch_error", model("pass", "raise KeyError('lost')").into()),
        ("honest", "accepted", model("pass", "pass").into()),
        ("prints", "accepted", model("pass", "print('x' * 10_000_000)").into()),
        ("sleeps", "rejected", model("pass", "import time; time.sleep(10 ** 6)").into()),
        ("spins", "timeout", model("pass", "while True: pass").into()),
        ("forks", "rejected", model("import os", "os.fork()").into()),
        ("kills_parent", "rejected", model("import os", "os.kill(os.getppid(), 9)").into()),
        ("fills_memory", "out_of_memory", model("pass", "hoard = [bytearray(1 << 26) for _ in range(1 << 12)]").into()),
        ("fills_disk", "rejected", model("pass", "open('f', 'wb').write(bytes(1 << 33))").into()),
        ("opens_socket", "rejected", model("import socket", "socket.create_connection(('127.0.0.1', 80))").into()),
        ("leaves", "rejected", model("import os", "os._exit(0)").into()),
    ];
    for (name, _, source) in &wanted {
        bench.candidate(&format!("{name}.py"), source);
    }
    let verdicts = bench.batch(&problem);
    let got: Vec<(&str, &str)> =
        verdicts.iter().map(|(name, verdict)| (name.as_str(), verdict["verdict"].as_str().unwrap())).collect();
    let mut expected: Vec<(&str, &str)> = wanted.iter().map(|(name, kind, _)| (*name, *kind)).collect();
    expected.sort_unstable();
    assert_eq!(got, expected);
    for (name, verdict) in &verdicts {
        let reasons = verdict["reasons"].as_array().unwrap();
        assert_eq!(reasons.is_empty(), verdict["verdict"] == "accepted", "{name}: {reasons:?}");
    }
    bench.assert_nothing_is_left();
}

/// What the screen would refuse, let past it by `getattr`, still cannot do harm.
#[test]
fn behind_the_screen_the_cell_holds() {
    let bench = Bench::new();
    let problem = problem(&bench);
    // Reached through an object's attributes at run time, so no rule resolves it.
    let os = "m = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]";
    let call = |code: &str| model("pass", &format!("{os}; f = m.__init__.__globals__; {code}"));
    for (name, source) in [
        ("kill_all", call("f['kill'](-1, 9)")),
        ("kill_parent", call("f['kill'](f['getppid'](), 9)")),
        ("fork", call("[f['fork']() for _ in range(8)]")),
        ("exit", call("f['_exit'](0)")),
        ("list_root", call("f['listdir']('/root')")),
    ] {
        bench.candidate(&format!("{name}.py"), source);
    }
    bench.candidate("z_honest.py", model("pass", "pass"));
    let verdicts = bench.batch(&problem);
    assert_eq!(verdicts.len(), 6);
    for (name, verdict) in &verdicts {
        assert_eq!(verdict["verdict"] == "accepted", name == "z_honest", "{name}: {verdict}");
    }
    bench.assert_nothing_is_left();
}

#[test]
fn bad_usage_exits_with_2_and_says_what_to_do() {
    let bench = Bench::new();
    let problem = problem(&bench);
    let candidate = bench.candidate("c.py", model("pass", "pass"));
    let candidate = candidate.to_str().unwrap();
    for (arguments, says) in [
        (vec!["verify", "nowhere.py", candidate], "no problem file nowhere.py"),
        (vec!["verify", &problem, "nowhere.py"], "no candidate file nowhere.py"),
        (vec!["verify", &problem, candidate, "--target", "tpu"], "unknown target"),
        (vec!["verify", &problem, candidate, "--arch", "sm_1"], "unknown architecture"),
        (vec!["verify", &problem, candidate, "--profile", "vague"], "unknown profile"),
        (vec!["verify", &problem, candidate, "--mode", "direct"], "--target cuda:N"),
        (vec!["verify", &problem, candidate, "--trials", "0"], "--trials"),
        (vec!["verify", &problem, candidate, "--timeout=-1"], "--timeout"),
        (vec!["verify", &problem], "<CANDIDATE>"),
    ] {
        let output = bench.run(&arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_broken_problem_is_the_problems_fault() {
    let bench = Bench::new();
    let candidate = bench.candidate("c.py", model("pass", "pass"));
    for (name, source) in [
        ("empty", String::new()),
        ("syntax", "def get_inputs(:\n".to_owned()),
        ("no_model", PROBLEM.replace("class Model", "class Other")),
        ("crashes", PROBLEM.replace("return x * 2.0", "raise RuntimeError('broken reference')")),
        ("ignores_its_input", PROBLEM.replace("return x * 2.0", "return torch.ones_like(x)")),
    ] {
        let path = bench.work.path().join(format!("{name}.py"));
        fs::write(&path, source).unwrap();
        let output = bench.run(&["verify", path.to_str().unwrap(), candidate.to_str().unwrap(), "--json"]);
        let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(verdict["verdict"], "problem_defect", "{name}: {verdict}");
        assert_eq!(verdict["fault"], "problem");
        assert_eq!(output.status.code(), Some(3));
    }
    bench.assert_nothing_is_left();
}

/// Two batches that append to one log would both verify everything.
#[test]
fn a_log_in_use_is_refused_and_so_is_a_keep_that_is_no_folder() {
    let bench = Bench::new();
    let problem = problem(&bench);
    let candidate = bench.candidate("c.py", model("pass", "pass"));
    let folder = bench.work.path().join("candidates");
    let log = bench.work.path().join("log.jsonl");
    let held = fs::File::create(&log).unwrap();
    held.lock().unwrap();
    let output =
        bench.run(&["verify", &problem, "--batch", folder.to_str().unwrap(), "--resume", log.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("in use by another run"));
    let output = bench.run(&["verify", &problem, candidate.to_str().unwrap(), "--keep", log.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--keep"));
}

/// A batch killed half-way goes on where it was, and every candidate ends with one line.
#[test]
fn a_killed_batch_resumes() {
    let bench = Bench::new();
    let problem = problem(&bench);
    for number in 0..6 {
        bench.candidate(&format!("c{number}.py"), format!("# {number}\n{}", model("pass", "pass")));
    }
    let folder = bench.work.path().join("candidates");
    let log = bench.work.path().join("log.jsonl");
    let arguments =
        ["verify", &problem, "--batch", folder.to_str().unwrap(), "--resume", log.to_str().unwrap(), "--jobs", "1"];
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("tilewright"))
        .args(arguments)
        .current_dir(root())
        .env("TMPDIR", bench.temporary.path())
        .env("TILEWRIGHT_CACHE", bench.cache.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let lines = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    while lines() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(lines() >= 2, "it ended before its second verdict");
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lines();
    // A line torn by the kill.
    let mut text = fs::read_to_string(&log).unwrap();
    text.push_str("{\"schema\":\"tilewri");
    fs::write(&log, text).unwrap();
    let output = bench.run(&arguments);
    assert!(output.status.success());
    let again = String::from_utf8(output.stdout).unwrap().lines().count();
    assert_eq!(before + again, 6);
    let verdicts = fs::read_to_string(&log).unwrap();
    let whole = verdicts.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count();
    assert_eq!(whole, 6);
    // Verdicts under another profile are others.
    let lines = |output: Output| String::from_utf8(output.stdout).unwrap().lines().count();
    assert_eq!(lines(bench.run(&[&arguments[..], &["--profile", "kernelbench"]].concat())), 6);
    assert_eq!(lines(bench.run(&[&arguments[..], &["--profile", "kernelbench"]].concat())), 0);
    assert_eq!(lines(bench.run(&arguments)), 0);
}
