//! What the stages make of answers that a hostile job could give, without a Python side.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::{Value, json};
use tilewright_cell::{CellError, Death, Job, Layers, Outcome};
use tilewright_contract::{CaseSignature, KernelSpec, LaunchOptions, Target};
use tilewright_stage::*;

/// Gives one answer to every job, after leaving files in its scratch folder.
struct Canned {
    response: Result<Value, Death>,
    leave: fn(&Job),
}

impl Runner for Canned {
    fn run(&self, job: &Job) -> Result<Outcome, CellError> {
        (self.leave)(job);
        Ok(Outcome {
            response: self.response.clone(),
            output: "first\nlast words\n".into(),
            output_bytes: 17,
            seconds: 0.0,
            max_rss_kb: 0,
            cpu_seconds: 0.0,
            layers: Layers::default(),
        })
    }

    fn versions(&self) -> (String, String) {
        ("2".into(), "3".into())
    }
}

fn stage(response: Result<Value, Death>, leave: fn(&Job)) -> (Stage, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(folder.path()).expect("a cache");
    (Stage::new(Arc::new(Canned { response, leave }), cache, StageOptions::default()), folder)
}

fn target() -> Target {
    Target { backend: "cuda".into(), arch: "90".into(), warp_size: 32 }
}

fn signature() -> CaseSignature {
    serde_json::from_value(json!({
        "case": "default", "init_args": [], "init_kwargs": [], "args": [], "buffers": [], "state": [],
        "parameters": [], "training": true,
    }))
    .expect("a signature")
}

fn trace(response: Value) -> Result<Trace, StageError> {
    let (stage, _folder) = stage(Ok(response), |_| {});
    stage.trace(&TraceRequest {
        source: "",
        signature: &signature(),
        kernels: &[],
        calls: &[],
        target: &target(),
        further: Further::UpTo(0),
    })
}

fn plan(output: Value) -> Value {
    json!({"plans": [{
        "schema": "tilewright.plan/1", "buffers": [{"nbytes": 16, "source": {"kind": "scratch"}}], "kernels": [],
        "steps": [], "output": output,
    }]})
}

#[test]
fn a_plan_that_contradicts_itself_gets_no_further() {
    let tensor = |buffer: usize, offset: u64| {
        let shape = json!([4]);
        json!({"kind": "tensor", "buffer": buffer, "dtype": "float32", "shape": shape, "strides": [1], "offset": offset})
    };
    assert!(trace(plan(tensor(0, 0))).is_ok());
    let hostile = [
        plan(tensor(7, 0)),
        plan(tensor(0, 4)),
        plan(json!({"kind": "exec"})),
        json!({"plans": []}),
        json!({}),
        json!([]),
        json!("x"),
        Value::Null,
        json!({"error": 3}),
        json!({"error": {"kind": "exception"}}),
    ];
    for response in hostile {
        let error = trace(response.clone()).expect_err("no trace");
        assert!(matches!(error, StageError::Malformed { .. }), "{response}: {error:?}");
    }
}

#[test]
fn an_error_carries_its_line_and_what_the_trace_had_seen() {
    let finding = json!({"rule": "torch-compute", "tier": "proof", "message": "m", "line": 3});
    let error = json!({"kind": "exception", "type": "KeyError", "message": "no", "line": 4, "traceback": "line 4"});
    let StageError::Candidate(failure) = trace(json!({"error": error, "findings": [finding]})).expect_err("an error")
    else {
        panic!("not the candidate's fault")
    };
    assert_eq!(failure.to_string(), "line 4: no");
    assert_eq!((failure.exception.as_str(), failure.findings.len()), ("KeyError", 1));
    let internal = trace(json!({"error": {"kind": "internal", "message": "bug"}})).expect_err("an error");
    assert!(matches!(internal, StageError::Internal(_)), "{internal:?}");
}

fn binary_answer() -> Value {
    let resources = json!({"registers": 1, "spill_bytes": 0, "shared_bytes": 0, "instructions": 1, "num_warps": 4,
        "num_stages": 3, "num_ctas": 1});
    json!({"threads": 128, "resources": resources, "global_scratch": [0, 1], "profile_scratch": [0, 1]})
}

#[test]
fn links_and_missing_files_do_not_reach_the_cache() {
    let leave: [fn(&Job); 3] = [
        |_| {},
        |job| {
            for name in ["kernel.cubin", "kernel.ptx"] {
                symlink("/etc/passwd", job.scratch.join(name)).expect("a link");
            }
        },
        |job| std::fs::create_dir(job.scratch.join("kernel.cubin")).expect("a folder"),
    ];
    for leave in leave {
        let (stage, folder) = stage(Ok(binary_answer()), leave);
        let error = stage.binary("module {}", &LaunchOptions::default(), &target()).expect_err("no binary");
        assert!(matches!(error, StageError::Malformed { .. }), "{error:?}");
        assert_eq!(std::fs::read_dir(folder.path().join("v1/objects")).expect("objects").count(), 0);
    }
}

#[test]
fn what_is_compiled_is_kept_even_for_another_stage_over_the_same_folder() {
    let (first, folder) = stage(Ok(binary_answer()), |job| {
        std::fs::write(job.scratch.join("kernel.cubin"), "code").expect("a file");
        std::fs::write(job.scratch.join("kernel.ptx"), "text").expect("a file");
    });
    let compile = |stage: &Stage, text: &str| stage.binary(text, &LaunchOptions::default(), &target());
    let made = compile(&first, "module {} loc(#loc)").expect("a binary");
    assert!(!made.cached);
    let cache = Cache::open(folder.path()).expect("a cache");
    let dead = Canned { response: Err(Death::Timeout), leave: |_| {} };
    let second = Stage::new(Arc::new(dead), cache.clone(), StageOptions::default());
    let found = compile(&second, "module {} loc(#loc2)").expect("the same binary");
    assert_eq!(Binary { cached: true, ..made.clone() }, found);
    assert_eq!(cache.get(&found.binary).as_deref(), Some(b"code".as_slice()));
    assert!(compile(&second, "module { }").is_err());
}

#[test]
fn only_a_crash_of_the_compiler_is_a_compile_error() {
    let spec = KernelSpec {
        function: "f".into(),
        params: Vec::new(),
        constexprs: Default::default(),
        attrs: Default::default(),
        options: LaunchOptions::default(),
    };
    for (death, crash) in [
        (Death::Signal(11), true),
        (Death::Exit(1), true),
        (Death::Timeout, false),
        (Death::OutOfMemory, false),
        (Death::Garbled(String::new()), false),
    ] {
        let (stage, _folder) = stage(Err(death), |_| {});
        match stage.ttir("", &spec, &target()).expect_err("no text") {
            StageError::Candidate(failure) => {
                assert!(crash && failure.kind == "compile_error" && failure.message.contains("last words"));
            }
            other => assert!(!crash, "{other:?}"),
        }
    }
}
