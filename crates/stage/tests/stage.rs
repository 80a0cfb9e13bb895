//! The stages against the real Python side.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tilewright_cell::{CellError, Death, Job, Outcome, Zygote, ZygoteOptions, find_python};
use tilewright_confirm::{ChannelError, Library, Phase, Record, Recording, listen};
use tilewright_contract::{Constexpr, Expected, KernelSpec, LaunchOptions, Number, Param, Step, Target, Value};
use tilewright_stage::*;

static ZYGOTE: LazyLock<Arc<Zygote>> = LazyLock::new(|| {
    let python = find_python(None).expect("a Python with torch and Triton");
    Arc::new(Zygote::start(ZygoteOptions::new(python)).expect("a zygote"))
});

/// Counts the jobs that get through.
#[derive(Default)]
struct Counted {
    jobs: AtomicUsize,
}

impl Runner for Counted {
    fn preloading(&self, library: &Path) -> Result<Arc<dyn Runner>, CellError> {
        Ok(Arc::new(ZYGOTE.preloading(library.to_owned())?))
    }

    fn run(&self, job: &Job) -> Result<Outcome, CellError> {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        ZYGOTE.run(job)
    }

    fn versions(&self) -> (String, String) {
        Runner::versions(&**ZYGOTE)
    }
}

struct Fixture {
    stage: Stage,
    jobs: Arc<Counted>,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self::with(StageOptions::default())
    }

    fn with(options: StageOptions) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let jobs = Arc::new(Counted::default());
        let cache = Cache::open(folder.path().join("cache")).expect("a cache");
        Self { stage: Stage::new(jobs.clone(), cache, options), jobs, folder }
    }

    fn count(&self) -> usize {
        self.jobs.jobs.load(Ordering::Relaxed)
    }

    fn problem(&self, text: &str) -> OracleRequest {
        let problem = self.folder.path().join("problem.py");
        std::fs::write(&problem, text).expect("a file");
        OracleRequest {
            problem,
            seed: 1,
            trials: 2,
            regimes: true,
            device: "cpu".into(),
            max_bytes: 1 << 30,
            threads: 1,
            data: self.folder.path().join("data"),
            weights: Weights::Random,
        }
    }
}

const MODULE: &str = "\
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * 2, mask=offsets < n)
";

fn target() -> Target {
    Target { backend: "cuda".into(), arch: "90".into(), warp_size: 32 }
}

fn spec(block: i64) -> KernelSpec {
    let param = |name: &str, ty: &str| Param { name: name.into(), ty: ty.into() };
    KernelSpec {
        function: "double".into(),
        params: vec![param("x_ptr", "*fp32"), param("y_ptr", "*fp32"), param("n", "i32"), param("BLOCK", "constexpr")],
        constexprs: BTreeMap::from([("3".into(), Constexpr::Number { value: Number::Int(block) })]),
        attrs: BTreeMap::from([("0".into(), vec![("tt.divisibility".into(), 16)])]),
        options: LaunchOptions::default(),
    }
}

fn failure(error: StageError) -> Failure {
    match error {
        StageError::Candidate(failure) => *failure,
        other => panic!("not the candidate's fault: {other:?}"),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

#[test]
fn a_kernel_is_compiled_once_and_again_when_the_cache_is_damaged() {
    let fixture = Fixture::new();
    let first = fixture.stage.compile(MODULE, &spec(256), &target()).unwrap();
    assert!(!first.cached);
    assert_eq!((first.kernel.entry.as_str(), first.kernel.threads, fixture.count()), ("double", 128, 2));
    assert!(first.kernel.resources.registers.unwrap() > 0);
    assert_eq!(first.kernel.resources.spill_bytes, Some(0));
    let digest = first.kernel.binary.clone().unwrap();
    assert!(fixture.stage.cache().get(&digest).unwrap().starts_with(b"\x7fELF"));
    let ptx = String::from_utf8(fixture.stage.cache().get(&first.asm).unwrap()).unwrap();
    assert!(ptx.contains(".visible .entry double"));

    let again = fixture.stage.compile(MODULE, &spec(256), &target()).unwrap();
    assert_eq!((again.cached, fixture.count()), (true, 2));
    assert_eq!(again.kernel, first.kernel);

    for path in files(fixture.stage.cache().root()) {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(bytes.len() - 1);
        std::fs::write(&path, bytes).unwrap();
    }
    let repaired = fixture.stage.compile(MODULE, &spec(256), &target()).unwrap();
    assert_eq!((repaired.cached, fixture.count()), (false, 4));
    assert_eq!(repaired.kernel, first.kernel);
    assert!(fixture.stage.compile(MODULE, &spec(256), &target()).unwrap().cached);
}

#[test]
fn a_kernel_further_down_the_file_is_the_same_machine_code() {
    let fixture = Fixture::new();
    let first = fixture.stage.compile(MODULE, &spec(128), &target()).unwrap();
    let moved = fixture.stage.compile(&format!("\n\n{MODULE}"), &spec(128), &target()).unwrap();
    assert_ne!(first.kernel.ttir, moved.kernel.ttir);
    assert_eq!(first.kernel.binary, moved.kernel.binary);
    assert_eq!(fixture.count(), 3);
    let other = Target { arch: "80".into(), ..target() };
    assert_ne!(fixture.stage.compile(MODULE, &spec(128), &other).unwrap().kernel.binary, first.kernel.binary);
}

#[test]
fn many_kernels_compile_in_parallel_in_order() {
    let fixture = Fixture::new();
    let specs: Vec<_> = [64, 128, 256, 512, 3, 1024].into_iter().map(spec).collect();
    let results = fixture.stage.compile_all(MODULE, &specs, &target(), 2);
    assert_eq!(results.len(), specs.len());
    for (spec, result) in specs.iter().zip(results) {
        match result {
            Ok(compiled) => {
                let Constexpr::Number { value } = &spec.constexprs["3"] else { unreachable!() };
                assert!(compiled.kernel.ttir.contains(&format!("tensor<{}xf32>", value.as_i64().unwrap())));
            }
            Err(error) => {
                let failure = failure(error);
                assert_eq!((failure.kind.as_str(), failure.line), ("compile_error", Some(7)));
                assert!(failure.message.contains("power of 2"), "{failure}");
            }
        }
    }
    assert!(fixture.stage.compile_all(MODULE, &[], &target(), 4).is_empty());
}

#[test]
fn hip_is_compiled_too() {
    let fixture = Fixture::new();
    let hip = Target { backend: "hip".into(), arch: "gfx942".into(), warp_size: 64 };
    let compiled = fixture.stage.compile(MODULE, &spec(256), &hip).unwrap();
    assert_eq!(compiled.kernel.threads, 256);
    assert!(fixture.stage.compile(MODULE, &spec(256), &hip).unwrap().cached);
}

#[test]
fn text_that_is_no_ir_is_a_compile_error_even_where_it_crashes_the_compiler() {
    let fixture = Fixture::new();
    for text in ["", "not IR", "module {\n}\n", "module {\n  tt.func public @k() {\n    tt.return %0 : i32\n  }\n}\n"] {
        let failure = failure(fixture.stage.binary(text, &LaunchOptions::default(), &target()).unwrap_err());
        assert_eq!(failure.kind, "compile_error", "{text:?}: {failure}");
    }
    assert!(files(fixture.stage.cache().root()).is_empty());
}

#[test]
fn a_compile_that_takes_too_long_is_a_death() {
    let mut options = StageOptions::default();
    options.limits.ttir.wall = Duration::from_millis(400);
    let fixture = Fixture::with(options);
    let endless = format!("{MODULE}\nwhile True: pass\n");
    match fixture.stage.ttir(&endless, &spec(64), &target()).unwrap_err() {
        StageError::Death { death: Death::Timeout, .. } => {}
        other => panic!("{other:?}"),
    }
}

const PROBLEM: &str = "
import torch
CASES = [{'N': 5, 'name': 'odd'}]
N = 8
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(N))
        self.register_buffer('calls', torch.zeros((), dtype=torch.int64))
    def forward(self, x, scale):
        self.calls += 1
        return {'y': x * self.w, 'z': (x * scale).sum()}
def get_inputs():
    return [torch.randn(3, N), 0.5]
";

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|chunk| f32::from_le_bytes(chunk.try_into().expect("four bytes"))).collect()
}

#[test]
fn the_oracle_answers_in_the_contracts_words() {
    let fixture = Fixture::new();
    let request = fixture.problem(PROBLEM);
    let oracle = fixture.stage.oracle(&request).unwrap();
    assert_eq!((&oracle.defect, &oracle.no_float64, oracle.stochastic), (&None, &None, false));
    assert_eq!(oracle.cases.iter().map(|case| case.trials.len()).collect::<Vec<_>>(), [8, 1]);
    assert_eq!(oracle.cases[1].signature.case, "odd");
    let signature = &oracle.cases[0].signature;
    assert_eq!(signature.buffers, [96]);
    assert_eq!(signature.args[1], Value::Number { value: Number::Float(0.5) });
    assert_eq!(signature.parameters, ["w"]);
    let data = DataFile::open(&request.data).unwrap();
    for trial in &oracle.cases[0].trials {
        let weights = floats(&data.read(trial.state[0]).unwrap());
        for call in &trial.calls {
            let paths: Vec<_> = call.expected.output.tensors().into_iter().map(|(path, _)| path).collect();
            assert_eq!(paths, ["[\"y\"]", "[\"z\"]"]);
            let inputs = floats(&data.read(call.inputs[0]).unwrap());
            let got = floats(&data.read(call.expected.tensors[0].native).unwrap());
            let want: Vec<f32> = inputs.iter().enumerate().map(|(i, x)| x * weights[i % 8]).collect();
            assert_eq!(got, want);
            assert_eq!(call.expected.tensors[2].path, "state.calls");
        }
    }
}

#[test]
fn a_problem_that_is_no_good_is_the_problems_fault() {
    let fixture = Fixture::new();
    let broken = failure(fixture.stage.oracle(&fixture.problem("import torch\nx = (\n")).unwrap_err());
    assert_eq!((broken.kind.as_str(), broken.line), ("problem", Some(2)));
    let large = OracleRequest { max_bytes: 100, ..fixture.problem(PROBLEM) };
    assert_eq!(failure(fixture.stage.oracle(&large).unwrap_err()).kind, "too-large");
    let gpu = OracleRequest { device: "cuda:99".into(), ..fixture.problem(PROBLEM) };
    assert_eq!(failure(fixture.stage.oracle(&gpu).unwrap_err()).kind, "no-device");
}

const CANDIDATE: &str = "
import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(8))
        self.register_buffer('calls', torch.zeros((), dtype=torch.int64))
    def forward(self, x, scale):
        self.calls += 1
        return {'y': x * self.w, 'z': (x * scale).sum()}
";

#[test]
fn direct_runs_a_file_on_the_trials_data_and_sees_no_expected_output() {
    let fixture = Fixture::new();
    let request = fixture.problem(PROBLEM);
    let oracle = fixture.stage.oracle(&request).unwrap();
    let data = DataFile::open(&request.data).unwrap();
    let case = &oracle.cases[0];
    let ask = |source: &str, device: &str| {
        let device = device.into();
        fixture.stage.direct(&DirectRequest {
            source,
            signature: &case.signature,
            device,
            trial: &case.trials[0],
            data: &data,
        })
    };
    // torch on the CPU stands in for a device here: the candidate launches nothing.
    let direct = ask(CANDIDATE, "cpu").unwrap();
    let bytes = |expected: &Expected, file: &DataFile| {
        expected.tensors.iter().map(|t| (t.path.clone(), file.read(t.native).unwrap())).collect::<Vec<_>>()
    };
    for (call, expected) in direct.calls.iter().zip(&case.trials[0].calls) {
        assert_eq!(bytes(call, &direct.data), bytes(&expected.expected, &data));
        assert_eq!(call.output, expected.expected.output);
    }
    assert_eq!(failure(ask(CANDIDATE, "cuda:0").unwrap_err()).kind, "no-device");
    let renamed = failure(ask(&CANDIDATE.replace("self.w", "self.v"), "cpu").unwrap_err());
    assert_eq!(renamed.kind, "weights");
    assert!(renamed.message.contains("missing ['w'], extra ['v']"), "{renamed}");
    let raising = failure(ask(&CANDIDATE.replace("self.calls += 1", "raise KeyError(1)"), "cpu").unwrap_err());
    assert_eq!((raising.kind.as_str(), raising.line), ("exception", Some(9)));
    let class = CANDIDATE.replace("ModelNew", "Other");
    assert_eq!(failure(ask(&class, "cpu").unwrap_err()).kind, "exception");
}

/// A recording library in front of a driver that can do nothing, and stages whose jobs have it.
static RECORDER: LazyLock<(Library, Stage)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, driver) = (folder.path().join("driver.c"), folder.path().join("driver.so"));
    std::fs::write(&code, "int cuInit(unsigned flags) { return 0; }").expect("a file");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC"]).arg(&code).arg("-o").arg(&driver).status().expect("a compiler");
    assert!(compiled.success());
    let library = Library::new(&driver).expect("a library");
    let stage = Fixture::new().stage.preloading(&library.path()).expect("a zygote");
    (library, stage)
});

/// Runs a file with torch on the CPU in a device's place.
fn record(source: &str) -> (Result<(), StageError>, Result<Recording, ChannelError>) {
    let fixture = Fixture::new();
    let request = fixture.problem(PROBLEM);
    let oracle = fixture.stage.oracle(&request).expect("an oracle");
    let (library, stage) = &*RECORDER;
    let (channel, listener) = listen(1 << 20).expect("a channel");
    let outcome = stage.confirm(ConfirmRequest {
        source,
        signature: &oracle.cases[0].signature,
        device: "cpu".into(),
        trial: &oracle.cases[0].trials[0],
        data: &DataFile::open(&request.data).expect("data"),
        library: &library.path(),
        files: &library.files(),
        channel,
    });
    (outcome, listener.finish())
}

#[test]
fn a_recorded_run_has_its_marks_in_order_and_nobody_can_move_them() {
    let phases = |recording: &Recording| -> Vec<Phase> {
        let phase = |record: &Record| match record {
            Record::Mark { phase } => *phase,
            other => panic!("there is no device: {other:?}"),
        };
        recording.records.iter().map(phase).collect()
    };
    let (outcome, recording) = record(CANDIDATE);
    outcome.unwrap();
    assert_eq!(phases(&recording.unwrap()), Phase::ALL);

    let tricks = |trick: &str| CANDIDATE.replace("self.calls += 1", trick);
    let (outcome, recording) = record(&tricks("raise KeyError(1)"));
    assert_eq!(failure(outcome.unwrap_err()).line, Some(9));
    assert_eq!(phases(&recording.unwrap()).last(), Some(&Phase::Warm));

    // A file that finds the function behind the marks can make more of them, which shows.
    let (outcome, recording) = record(&tricks(
        "import sys; f = sys._getframe()
        while 'mark' not in f.f_locals: f = f.f_back
        f.f_locals['mark']('outputs')",
    ));
    outcome.unwrap();
    assert!(phases(&recording.unwrap()).len() > Phase::ALL.len());

    let (outcome, _) = record(&tricks("import os; os.closerange(5, 256)"));
    assert!(matches!(outcome, Err(StageError::Death { death: Death::Exit(88), .. })), "{outcome:?}");
    let writes = "import os
        for fd in range(5, 256):
            try: os.write(fd, bytes(17))
            except OSError: pass";
    let (_, recording) = record(&tricks(writes));
    assert!(matches!(recording, Err(ChannelError::Forged(_) | ChannelError::CutOff(_))), "{recording:?}");
}

#[test]
fn a_trace_gives_plans_that_hold_together() {
    let fixture = Fixture::new();
    let problem = "
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(1000)]
";
    let oracle = fixture.stage.oracle(&fixture.problem(problem)).unwrap();
    let source = format!(
        "{MODULE}

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"
    );
    let kernels = [KernelSite { name: "double".into(), line: 6 }];
    let signature = &oracle.cases[0].signature;
    let request = TraceRequest {
        source: &source,
        signature,
        kernels: &kernels,
        calls: &[],
        target: &target(),
        further: Further::UpTo(7),
    };
    let trace = fixture.stage.trace(&request).unwrap();
    assert_eq!((trace.plans.len(), trace.missing.len(), trace.extra.len()), (1, 0, 0));
    let plan = &trace.plans[0];
    let Some(Step::Launch { grid, .. }) = plan.launches().next() else { panic!("{plan:?}") };
    assert_eq!(*grid, [4, 1, 1]);
    let compiled = fixture.stage.compile_all(MODULE, &plan.kernels, &target(), 1);
    assert_eq!(compiled.into_iter().next().unwrap().unwrap().kernel.entry, "double");
}

#[test]
fn init_under_the_oracles_seed_makes_the_oracles_weights() {
    let fixture = Fixture::new();
    let problem = "
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inner = torch.nn.Linear(n, 3)
    def forward(self, x):
        return self.inner(x)
def get_inputs():
    return [torch.randn(2, 5)]
def get_init_inputs():
    return [5]
";
    let request =
        OracleRequest { weights: Weights::Init { seed: 77, rule: ChangeRule::Each }, ..fixture.problem(problem) };
    let oracle = fixture.stage.oracle(&request).unwrap();
    let data = DataFile::open(&request.data).unwrap();
    let source = "
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        inner = torch.nn.Linear(n, 3)
        self.w, self.b = inner.weight, inner.bias
";
    let init = fixture.stage.init(source, &oracle.cases[0], [77, 78], None).unwrap();
    assert_eq!(init.rule, ChangeRule::Each);
    let state = &oracle.cases[0].trials[0].state;
    for (tensor, blob) in init.tensors.iter().zip(state) {
        let want = data.read(*blob).unwrap();
        assert_eq!(init.data.read(tensor.blobs[0]).unwrap(), want, "{}", tensor.path);
        assert_ne!(init.data.read(tensor.blobs[1]).unwrap(), want, "{}", tensor.path);
    }
    assert_eq!(init.tensors.len(), 2);
}

#[test]
fn the_oracle_may_use_several_threads() {
    let fixture = Fixture::new();
    let problem = "
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        assert torch.get_num_threads() == 2
        return (x @ x).exp().sum(1)
def get_inputs():
    return [torch.randn(300, 300) / 100]
";
    let request = OracleRequest { threads: 2, ..fixture.problem(problem) };
    assert_eq!(fixture.stage.oracle(&request).unwrap().defect, None);
}

#[test]
fn who_holds_data_is_replaced_when_it_is_killed() {
    let fixture = Fixture::new();
    let request = fixture.problem(PROBLEM);
    let (data, resident) = fixture.stage.resident(&request, &[]).expect("data");
    let blobs: Vec<_> = data.cases[0].trials.iter().flat_map(|trial| trial.calls[0].inputs.clone()).collect();
    let read = || blobs.iter().map(|blob| resident.read(*blob)).collect::<Result<Vec<_>, _>>();
    let before = read().expect("bytes");
    assert!(resident.revive(&fixture.stage, &request, &[]).expect("it lives").is_none());

    let first = resident.pid().expect("a process");
    for _ in 0..2 {
        let pid = resident.pid().expect("a process").to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().expect("kill").success());
        assert!(read().is_err());
        assert!(resident.is_lost());
        assert!(matches!(resident.work(), Err(StageError::Lost(_))));
        assert_eq!(resident.revive(&fixture.stage, &request, &[]).expect("data"), Some(data.clone()));
        assert!(!resident.is_lost());
        assert_eq!(read().expect("bytes"), before);
    }
    assert_ne!(resident.pid(), Some(first));

    resident.close();
    assert!(resident.is_lost());
}
