//! What is planted, and the processes that hold it.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tilewright_cell::{Layer, Zygote, ZygoteOptions, find_python};
use tilewright_contract::{CaseSignature, Target, Verdict};
use tilewright_stage::{Cache, OracleRequest, Runner, Stage, StageOptions, Weights};
use tilewright_verify::{Device, Mode, Options, Problem, Verifier, parse_arch};

use crate::attack::{Role, UNWATCHED, run_text};

const SEED: u64 = 0x5EED_0F7E_57C4_11AB;
/// Every element of the input; the expected output holds the next number.
pub(crate) const INPUT: i64 = 0x1A7E_57C0_FFEE_4D21;
const PROBLEM_SECRET: &str = "planted-problem-6f1d7c02a94e";
const VICTIM_SECRET: &str = "planted-victim-b3e85510fd27";
const FILE_SECRET: &str = "planted-file-90ac4e61d8b3";
/// A variable of this process's environment that cargo sets, with a value that is nowhere else.
const VARIABLE: &str = "CARGO_PKG_DESCRIPTION";

const PROBLEM: &str = "import torch\n\n# @secret@\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        \
return x + 1\n\n\ndef get_inputs():\n    return [torch.full((64,), @input@, dtype=torch.int64)]\n\n\n\
def get_init_inputs():\n    return []\n";

pub(crate) const HONEST: &str = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n\
def add_one(x, y, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n\n\nclass ModelNew(torch.nn.Module):\n    \
def forward(self, x):\n        y = torch.empty_like(x)\n        \
add_one[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)\n        return y\n";

pub(crate) static RANGE: LazyLock<Range> = LazyLock::new(Range::new);

pub(crate) struct Range {
    python: PathBuf,
    zygote: Arc<Zygote>,
    cache: Cache,
    verifier: Verifier,
    problem: Problem,
    signature: CaseSignature,
    planted: BTreeMap<&'static str, Vec<u8>>,
    folder: TempDir,
    port: TcpListener,
    _sockets: [UnixListener; 2],
    abstract_name: String,
    shared: Option<tempfile::NamedTempFile>,
}

impl Range {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = PROBLEM.replace("@secret@", PROBLEM_SECRET).replace("@input@", &INPUT.to_string());
        std::fs::write(at("problem.py"), text).unwrap();
        std::fs::write(at("planted"), FILE_SECRET).unwrap();
        std::fs::create_dir(at("neighbour")).unwrap();
        std::fs::create_dir(at("scratch")).unwrap();
        std::fs::create_dir(at("stop")).unwrap();
        let python = find_python(None).expect("a Python with torch: run `make venv`");
        let mut zygote = ZygoteOptions::new(&python);
        zygote.test_kinds.push((UNWATCHED.into(), attacks().join("unwatched.py")));
        let zygote = Arc::new(Zygote::start(zygote).expect("the zygote starts: run `make venv`"));
        let cache = Cache::open(at("cache")).unwrap();
        cache.put(FILE_SECRET.as_bytes()).unwrap();
        let stage = Stage::new(zygote.clone(), cache.clone(), StageOptions::default());
        let verifier = Verifier::new(stage.clone(), options());
        let problem = verifier.load(&at("problem.py"));
        // The oracle's data too, as a file that lies about while the attacks run.
        let data = stage.oracle(&OracleRequest {
            problem: at("problem.py"),
            seed: SEED,
            trials: 1,
            regimes: false,
            device: "cpu".into(),
            max_bytes: 1 << 30,
            threads: 1,
            data: at("oracle"),
            weights: Weights::Random,
        });
        let signature = data.unwrap().cases.remove(0).signature;
        let shared = tempfile::Builder::new().prefix("tilewright-planted-").tempfile_in("/dev/shm").ok();
        if let Some(file) = &shared {
            std::fs::write(file.path(), FILE_SECRET).unwrap();
        }
        let abstract_name = format!("tilewright-planted-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let sockets = [UnixListener::bind(at("socket")).unwrap(), UnixListener::bind_addr(&address).unwrap()];
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let planted = planted();
        Self {
            python,
            zygote,
            cache,
            verifier,
            problem,
            signature,
            planted,
            folder,
            port,
            _sockets: sockets,
            abstract_name,
            shared,
        }
    }

    pub(crate) fn python(&self) -> &Path {
        &self.python
    }

    pub(crate) fn zygote(&self) -> &Zygote {
        &self.zygote
    }

    pub(crate) fn signature(&self) -> &CaseSignature {
        &self.signature
    }

    pub(crate) fn problem_path(&self) -> PathBuf {
        self.folder.path().join("problem.py")
    }

    /// A verifier with another way of running jobs.
    pub(crate) fn verifier_over(&self, runner: Arc<dyn Runner>) -> Verifier {
        Verifier::new(Stage::new(runner, self.cache.clone(), StageOptions::default()), options())
    }

    /// Where an attack may write without a cell.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    pub(crate) fn spec(&self) -> Value {
        json!({
            "function": "add_one",
            "params": [
                {"name": "x", "ty": "*i64"}, {"name": "y", "ty": "*i64"}, {"name": "n", "ty": "i32"},
                {"name": "BLOCK", "ty": "constexpr"},
            ],
            "constexprs": {"3": {"kind": "number", "value": 64}},
            "options": {},
        })
    }

    pub(crate) fn trace_request(&self, source: &str) -> Value {
        let line = source.lines().position(|line| line == "@triton.jit").map_or(0, |at| at + 1);
        json!({
            "source": source, "signature": self.signature, "kernels": [{"name": "add_one", "line": line}],
            "target": target(), "further": {"up_to": 0},
        })
    }

    pub(crate) fn verdict(&self, source: &str) -> Verdict {
        self.verifier.verify(&self.problem, Path::new("candidate.py"), source.as_bytes())
    }

    /// What an attack is told: where everything lies, which is more than a real one knows.
    pub(crate) fn want(&self) -> Value {
        let at = |name: &str| self.folder.path().join(name);
        let root = root();
        let mut paths = json!({
            "problem": at("problem.py"), "planted": at("planted"), "oracle": at("oracle"), "cache": at("cache"),
            "neighbour": at("neighbour"), "folder": self.folder.path(), "repository": root.join("Cargo.toml"),
        });
        if let Some(shared) = &self.shared {
            paths["shared"] = json!(shared.path());
        }
        let canaries: BTreeMap<_, _> = self
            .planted
            .iter()
            .map(|(name, bytes)| {
                let (first, rest) = bytes.split_at(bytes.len() / 2);
                (name, [hex(first), hex(rest)])
            })
            .collect();
        let zygote = self.zygote.pid();
        let mut pids = json!({"parent": std::process::id(), "zygote": zygote});
        if let Some(victim) = child_of(zygote) {
            pids["neighbour"] = json!(victim);
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        json!({
            "canaries": canaries, "pids": pids, "paths": paths, "port": self.port.local_addr().unwrap().port(),
            "socket": at("socket"), "abstract": self.abstract_name, "host": host.trim(), "readable": [root.join("python")],
        })
    }

    /// Nothing that is planted shows in a text, in any spelling.
    pub(crate) fn assert_silent(&self, text: &str) {
        for (name, bytes) in &self.planted {
            let mut spellings = vec![String::from_utf8_lossy(bytes).into_owned(), hex(bytes)];
            if let Ok(word) = <[u8; 8]>::try_from(bytes.as_slice()) {
                spellings.push(u64::from_le_bytes(word).to_string());
            }
            for spelling in spellings {
                assert!(!text.contains(&spelling), "{name} shows in {text}");
            }
        }
    }

    /// The names and contents of all that an attack could change.
    pub(crate) fn planted_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        ["problem.py", "planted", "oracle", "neighbour", "stop"]
            .into_iter()
            .flat_map(|name| {
                let path = self.folder.path().join(name);
                walk(&path)
            })
            .collect()
    }

    /// Runs `work` while a candidate next door holds a secret; the neighbour must come to its end untouched.
    pub(crate) fn beside_a_victim<T>(&self, work: impl FnOnce() -> T) -> T {
        let stop = self.folder.path().join("stop");
        let text = text_of("victim").replace("@secret@", VICTIM_SECRET);
        let text = text.replace("@stop@", stop.join("now").to_str().unwrap());
        std::thread::scope(|scope| {
            let victim = scope.spawn(|| {
                run_text(self, &text, Role::Forward, |job| {
                    job.limits.wall = Duration::from_secs(300);
                    job.read_paths.push(stop.clone());
                })
            });
            let done = work();
            std::fs::write(stop.join("now"), "").unwrap();
            let outcome = victim.join().unwrap();
            std::fs::remove_file(stop.join("now")).unwrap();
            let response = outcome.response.unwrap_or_else(|death| panic!("the victim: {death}: {}", outcome.output));
            // Once for each time that the tracer runs the file.
            assert!(
                outcome.output.lines().all(|line| line == "ready") && !outcome.output.is_empty(),
                "{}",
                outcome.output
            );
            assert!(response["plans"][0]["steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{response:#}");
            for layer in Layer::ALL {
                if let Some(why) = outcome.layers.missing.get(&layer) {
                    eprintln!("this machine lacks the layer {layer:?} ({why}): the attacks are judged without it");
                }
            }
            done
        })
    }
}

pub(crate) fn target() -> Target {
    parse_arch("sm_90").unwrap()
}

fn options() -> Options {
    Options {
        device: Device::Cpu,
        target: target(),
        profiles: vec![tilewright_judge::profile(tilewright_judge::DEFAULT_PROFILE).unwrap().unwrap()],
        trials: 1,
        seed: SEED,
        mode: Mode::Replay,
        timing: None,
        timeout: Duration::from_secs(120),
        strict: false,
        confirm: 0.0,
        keep: None,
    }
}

/// Names and bytes of what lies in memory, files and environment of others.
fn planted() -> BTreeMap<&'static str, Vec<u8>> {
    let input_seed = u64::from_le_bytes(
        blake3::Hasher::new().update(&SEED.to_le_bytes()).update(b"inputs").finalize().as_bytes()[..8]
            .try_into()
            .unwrap(),
    ) >> 1;
    let mut planted = BTreeMap::from([
        ("the seed", SEED.to_le_bytes().to_vec()),
        ("the seed as text", SEED.to_string().into_bytes()),
        ("the seed of inputs", input_seed.to_le_bytes().to_vec()),
        ("the seed of inputs as text", input_seed.to_string().into_bytes()),
        ("the input", INPUT.to_le_bytes().to_vec()),
        ("the expected output", (INPUT + 1).to_le_bytes().to_vec()),
        ("the problem", PROBLEM_SECRET.into()),
        ("the neighbour", VICTIM_SECRET.into()),
        ("a file", FILE_SECRET.into()),
    ]);
    match std::env::var(VARIABLE) {
        Ok(value) => drop(planted.insert("the environment", value.into_bytes())),
        Err(_) => eprintln!("no {VARIABLE} in the environment: cargo sets it"),
    }
    planted
}

pub(crate) fn explain(verdict: &Verdict) -> String {
    let reasons: Vec<_> = verdict.reasons.iter().map(|reason| format!("{} {}", reason.code, reason.message)).collect();
    format!("{}: {}", verdict.verdict.name(), reasons.join("; "))
}

/// A file of `tests/attacks`.
pub(crate) fn text_of(name: &str) -> String {
    let path = attacks().join(format!("{name}.py"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn attacks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn walk(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    if !path.is_dir() {
        return vec![(path.to_owned(), std::fs::read(path).unwrap())];
    }
    std::fs::read_dir(path).unwrap().flat_map(|entry| walk(&entry.unwrap().path())).collect()
}

/// Some living child of a process.
fn child_of(parent: u32) -> Option<u32> {
    let entries = std::fs::read_dir("/proc").ok()?;
    entries.flatten().find_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, tail) = stat.rsplit_once(") ")?;
        let found = tail.split_whitespace().nth(1)?.parse() == Ok(parent);
        found.then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    })
}
