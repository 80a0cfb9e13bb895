//! The result channel: what becomes of answers that a job forges.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tilewright_cell::{CellError, Death, Job, Outcome};
use tilewright_contract::{Verdict, VerdictKind};
use tilewright_stage::Runner;

use crate::attack::{Role, run_text};
use crate::range::{HONEST, INPUT, RANGE, Range, explain};

/// Python that says these messages on the job's socket and ends.
fn saying(messages: &[Value]) -> String {
    let mut text = String::from("import os, struct\n\n\ndef say(text):\n    ");
    text.push_str(
        "left = struct.pack('<I', len(text)) + text\n    while left:\n        left = left[os.write(3, left):]\n\n\n",
    );
    for message in messages {
        text.push_str(&format!("say({}.encode())\n", Value::String(message.to_string())));
    }
    text + "os._exit(0)\n"
}

/// The whole pipeline over an honest file, where the tracer is given another: as if the screen had let it pass.
struct Swapped {
    hostile: Mutex<String>,
}

impl Runner for Swapped {
    fn run(&self, job: &Job) -> Result<Outcome, CellError> {
        let mut job = job.clone();
        if job.kind == "trace" {
            job.request["source"] = self.hostile.lock().unwrap().clone().into();
        }
        RANGE.zygote().run(&job)
    }

    fn versions(&self) -> (String, String) {
        Runner::versions(RANGE.zygote())
    }
}

fn honest_answer(range: &Range) -> Value {
    run_text(range, HONEST, Role::Forward, |_| {}).response.unwrap()
}

#[test]
fn a_job_answers_once_and_for_itself_alone() {
    let range = &*RANGE;
    let first = json!({"plans": [], "mine": true});
    let second = json!({"plans": [], "mine": false});
    let hostile = saying(&[first.clone(), json!({"exited": 1, "status": 0}), second]);
    std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| honest_answer(range));
        for _ in 0..4 {
            assert_eq!(run_text(range, &hostile, Role::Import, |_| {}).response.unwrap(), first);
        }
        assert_eq!(neighbour.join().unwrap()["plans"].as_array().unwrap().len(), 1);
    });
}

/// Descriptors that a job attaches to its answer are not taken, nor does a peer's half-open socket keep anybody waiting.
#[test]
fn an_answer_brings_no_descriptors() {
    let hostile = "import os, socket, struct\njob = socket.socket(fileno=3)\ntext = b'{}'\n\
socket.send_fds(job, [struct.pack('<I', 2) + text], [0, 1, 2] * 10)\njob.shutdown(socket.SHUT_WR)\nos._exit(0)\n";
    let before = descriptors();
    for _ in 0..20 {
        assert_eq!(run_text(&RANGE, hostile, Role::Import, |_| {}).response.unwrap(), json!({}));
    }
    assert!(descriptors() < before + 200, "descriptors pile up: {before} before, {} after", descriptors());
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn what_is_no_answer_is_a_death_of_its_own_job() {
    let huge = "import os, struct\nos.write(3, struct.pack('<I', 0xFFFFFFFF))\nos._exit(0)\n";
    assert_eq!(run_text(&RANGE, huge, Role::Import, |_| {}).response.unwrap_err(), Death::TooLarge);
    let half = "import os, struct\nos.write(3, struct.pack('<I', 100) + b'{')\nos._exit(0)\n";
    assert!(matches!(run_text(&RANGE, half, Role::Import, |_| {}).response.unwrap_err(), Death::Garbled(_)));
    let deep = format!(
        "import os, struct\ntext = {:?} * 100000\n{}",
        "[", "os.write(3, struct.pack('<I', len(text)) + text.encode())\nos._exit(0)\n"
    );
    assert!(matches!(run_text(&RANGE, &deep, Role::Import, |_| {}).response.unwrap_err(), Death::Garbled(_)));
}

/// A plan can name kernels of the file and describe their launches; whatever else it claims gets it nowhere.
#[test]
fn forged_plans_are_not_accepted() {
    let answer = honest_answer(&RANGE);
    let swapped = Arc::new(Swapped { hostile: Mutex::new(String::new()) });
    let verifier = RANGE.verifier_over(swapped.clone());
    let problem = verifier.load(&RANGE.problem_path());
    let verdict = |answer: &Value| -> Verdict {
        *swapped.hostile.lock().unwrap() = saying(std::slice::from_ref(answer));
        verifier.verify(&problem, "candidate.py".as_ref(), HONEST.as_bytes())
    };
    // The forger's tools work: the honest plan, said by it, is the honest plan.
    let honest = verdict(&answer);
    assert_eq!(honest.verdict, VerdictKind::Accepted, "{}", explain(&honest));
    for (what, change) in FORGERIES {
        let mut forged = answer.clone();
        change(&mut forged["plans"][0]);
        assert_ne!(forged, answer, "{what} changes nothing");
        let verdict = verdict(&forged);
        let kind = verdict.verdict;
        assert!(!matches!(kind, VerdictKind::Accepted | VerdictKind::Infrastructure), "{what}: {}", explain(&verdict));
        RANGE.assert_silent(&serde_json::to_string(&verdict).unwrap());
    }
    for (what, message) in other_messages() {
        let verdict = verdict(&message);
        assert_ne!(verdict.verdict, VerdictKind::Accepted, "{what}");
    }
}

type Forgery = (&'static str, fn(&mut Value));

const FORGERIES: &[Forgery] = &[
    ("no launch", |plan| plan["steps"] = json!([])),
    ("the input as the output", |plan| {
        plan["output"]["buffer"] = json!(input(plan));
    }),
    ("a kernel of its own", |plan| plan["kernels"][0]["function"] = json!("made_up")),
    ("a kernel of Triton's", |plan| plan["kernels"][0]["function"] = json!("tl.core.device_print")),
    ("a dotted way out of the file", |plan| plan["kernels"][0]["function"] = json!("triton.language.core.inspect.os")),
    ("foreign code", |plan| plan["kernels"][0]["options"]["extern_libs"] = json!([["x", "/tmp/x.bc"]])),
    ("an override", |plan| plan["kernels"][0]["options"]["ir_override"] = json!("/tmp/x.ttir")),
    ("a gigantic buffer", |plan| plan["buffers"][0]["nbytes"] = json!(1_u64 << 62)),
    ("a negative offset", |plan| plan["output"]["offset"] = json!(-8)),
    ("an offset that overflows", |plan| plan["output"]["offset"] = json!(u64::MAX - 3)),
    ("a shape that overflows", |plan| plan["output"]["shape"] = json!([1_u64 << 40, 1_u64 << 40])),
    ("a buffer that is not there", |plan| plan["output"]["buffer"] = json!(1_000_000)),
    ("an input that is not there", |plan| {
        for buffer in plan["buffers"].as_array_mut().unwrap() {
            if buffer["source"]["kind"] == "input" {
                buffer["source"]["index"] = json!(99);
            }
        }
    }),
    ("no programs", |plan| launch(plan)["grid"] = json!([0, 1, 1])),
    ("too many programs", |plan| launch(plan)["grid"] = json!([4_294_967_295_u64, 65_535, 65_535])),
    ("fewer elements", |plan| {
        for argument in launch(plan)["args"].as_array_mut().unwrap() {
            if argument["kind"] == "scalar" {
                argument["value"] = json!(1);
            }
        }
    }),
    ("no arguments", |plan| launch(plan)["args"] = json!([])),
    ("another dtype", |plan| plan["output"]["dtype"] = json!("float64")),
    ("another structure", |plan| plan["output"] = json!({"kind": "tuple", "items": [plan["output"].clone()]})),
    ("the answer as numbers", |plan| {
        let step = json!({"op": "literal", "dst": plan["output"].clone(), "values": vec![INPUT + 1; 64], "line": 1});
        plan["steps"].as_array_mut().unwrap().push(step);
    }),
    ("the input copied over the output", |plan| {
        let mut source = plan["output"].clone();
        source["buffer"] = json!(input(plan));
        let step = json!({"op": "copy", "src": source, "dst": plan["output"].clone(), "line": 1});
        plan["steps"].as_array_mut().unwrap().push(step);
    }),
    ("a new step", |plan| plan["steps"].as_array_mut().unwrap().push(json!({"op": "exec", "code": "1"}))),
    ("another schema", |plan| plan["schema"] = json!("tilewright.plan/99")),
];

fn input(plan: &Value) -> usize {
    let buffers = plan["buffers"].as_array().unwrap();
    buffers.iter().position(|buffer| buffer["source"]["kind"] == "input").expect("an input")
}

fn launch(plan: &mut Value) -> &mut Value {
    plan["steps"].as_array_mut().unwrap().iter_mut().find(|step| step["op"] == "launch").expect("a launch")
}

/// Messages of the other channels, and errors that would be ours.
fn other_messages() -> Vec<(&'static str, Value)> {
    vec![
        ("an exit", json!({"exited": 1, "status": 0, "max_rss_kb": 1, "cpu_seconds": 0.0})),
        ("a second hello", json!({"confined": {"layers": {"active": [], "missing": {}}}})),
        ("a refusal", json!({"refused": "no"})),
        ("a verdict", json!({"verdict": "accepted", "schema": "tilewright.verdict/1", "fault": "none"})),
        ("an error of ours", json!({"error": {"kind": "internal", "type": "X", "message": "bug", "line": null}})),
        ("no plan", json!({"plans": []})),
        ("nothing", Value::Null),
    ]
}
