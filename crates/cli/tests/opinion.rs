//! `verify --opinion` through the real binary, against a scripted server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../author/tests/support/server.rs"]
#[expect(dead_code, reason = "this program uses a part")]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use server::{Server, Step};

const KEY: &str = "sk-cli-7be2f04d91aa";
const DOUBTS: &str =
    r#"{"implements": false, "omitted": ["the bias"], "delegated": [], "hard_coded": [], "text": "No bias."}"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = &server.url;
        let text =
            format!("[endpoints.judge]\nbase_url = {url:?}\nmodel = \"m\"\nkey_env = \"JUDGE_KEY\"\nretries = 0\n");
        fs::write(folder.path().join("tilewright.toml"), text).unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().into()
    }

    /// Verifies a problem of the suite; nothing that comes out may show the key.
    fn verify(&self, arguments: &[&str]) -> Output {
        let problem = root().join("problems/bias_swish_clamp/problem.py");
        let output = Command::cargo_bin("tilewright")
            .unwrap()
            .current_dir(root())
            .env("TILEWRIGHT_CACHE", self.at("cache"))
            .env("JUDGE_KEY", KEY)
            .env("TILEWRIGHT_CONFIG", self.at("tilewright.toml"))
            .env("RUST_LOG", "trace")
            .args(["verify", problem.to_str().unwrap(), "--trials", "1"])
            .args(arguments)
            .output()
            .unwrap();
        for text in [&output.stdout, &output.stderr] {
            assert!(!String::from_utf8_lossy(text).contains(KEY), "{}", String::from_utf8_lossy(text));
        }
        output
    }

    fn candidate(&self) -> String {
        root().join("problems/bias_swish_clamp/candidate.py").to_str().unwrap().into()
    }

    fn profile(&self) -> String {
        let text = fs::read_to_string(root().join("profiles/tilewright-1.toml")).unwrap();
        let path = self.at("strict.toml");
        fs::write(&path, format!("opinion = \"decides\"\n{text}")).unwrap();
        path
    }
}

fn verdict(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn doubts_are_advice_unless_the_profile_says_that_they_decide() {
    let server = Server::saying(DOUBTS);
    let bench = Bench::new(&server);
    let candidate = bench.candidate();

    let config = bench.at("tilewright.toml");
    let output = bench.verify(&[&candidate, "--opinion", "judge", "--json", "--config", &config]);
    let advised = verdict(&output);
    assert_eq!((output.status.code(), &advised["verdict"]), (Some(0), &"accepted".into()), "{advised:#}");
    assert_eq!(advised["opinion"]["answer"], "doubts");
    assert_eq!(advised["opinion"]["concerns"][0], "omitted: the bias");
    assert!(server.requests()[0].contains(&format!("Bearer {KEY}")));

    let output = bench.verify(&[&candidate, "--opinion", "judge", "--json", "--profile", &bench.profile()]);
    let decided = verdict(&output);
    assert_eq!((output.status.code(), &decided["verdict"]), (Some(1), &"rejected".into()), "{decided:#}");
    assert_eq!((&decided["reasons"][0]["code"], &decided["fault"]), (&"opinion".into(), &"candidate".into()));
    assert_eq!(decided["stages"].as_array().unwrap().last().unwrap()["stage"], "opinion");

    // Off by default; and nobody is asked about what was not accepted.
    let asked = server.requests().len();
    let silent = verdict(&bench.verify(&[&candidate, "--json"]));
    assert!(silent.get("opinion").is_none());
    fs::create_dir(bench.at("batch")).unwrap();
    fs::write(bench.at("batch/wrong.py"), "class ModelNew(:\n").unwrap();
    fs::copy(&candidate, bench.at("batch/good.py")).unwrap();
    let output = bench.verify(&["--batch", &bench.at("batch"), "--opinion", "judge"]);
    let lines: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().filter(|line| line.get("opinion").is_some()).count(), 1);
    assert_eq!((lines.len(), server.requests().len()), (2, asked + 1));
}

#[test]
fn an_endpoint_that_fails_changes_nothing() {
    let server = Server::start(vec![Step::Raw("")]);
    let bench = Bench::new(&server);
    let output = bench.verify(&[&bench.candidate(), "--opinion", "judge", "--profile", &bench.profile()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("no opinion: no connection"), "{text}");
}

#[test]
fn an_endpoint_that_is_not_there_is_a_mistake_of_the_caller() {
    let server = Server::start(vec![Step::Raw("")]);
    let bench = Bench::new(&server);
    let output = bench.verify(&[&bench.candidate(), "--opinion", "jugde"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no endpoint \"jugde\"") && text.contains("it has judge"), "{text}");
}
