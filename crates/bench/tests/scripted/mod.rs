//! Runs by script: logs with verdicts that nobody had to wait for.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use tilewright_bench::{Line, Listed, ListedSample, Manifest, Setting};
use tilewright_contract::{
    BaselineKind, BaselineTime, CandidateId, Certificate, Estimate, Fault, Limit, Mark, ProfileCertificate,
    ProfileOutcome, Reason, StageTime, Timing, Trust, Verdict, VerdictKind,
};

/// What a scripted sample gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    pub(crate) kind: VerdictKind,
    /// Code of the deciding reason.
    pub(crate) code: &'static str,
    /// Whether it got as far as a compiler.
    pub(crate) compiled: bool,
    /// Under the second profile.
    pub(crate) second: bool,
    pub(crate) speedup: Option<f64>,
}

pub(crate) fn fast(speedup: f64) -> Option<Script> {
    Some(Script { speedup: Some(speedup), ..accepted() })
}

pub(crate) fn accepted() -> Script {
    Script { kind: VerdictKind::Accepted, code: "", compiled: true, second: true, speedup: None }
}

pub(crate) fn failed(kind: VerdictKind, code: &'static str, compiled: bool) -> Option<Script> {
    Some(Script { kind, code, compiled, second: false, speedup: None })
}

pub(crate) fn setting() -> Setting {
    Setting {
        tilewright: "0.1.0".into(),
        torch: "2.11.0".into(),
        triton: "3.6.0".into(),
        target: "cuda:0".into(),
        device: "GPU".into(),
        arch: "sm_90".into(),
        trust: "replay".into(),
        profiles: vec!["tilewright-1/1".into(), "kernelbench-v0/1".into()],
        baselines: vec!["eager".into()],
        trials: 3,
        timeout: 120.0,
        seed: 7,
    }
}

/// Name and level of a problem, and its samples.
pub(crate) type Answered<'a> = (&'a str, Option<u32>, &'a [Option<Script>]);

/// Problems with their samples; none is a sample without a verdict.
pub(crate) struct Scripted {
    pub(crate) setting: Setting,
    pub(crate) problems: Vec<(String, Option<u32>, Vec<Option<Script>>)>,
    /// Marks under the first profile.
    pub(crate) marks: BTreeMap<String, Mark>,
}

impl Scripted {
    pub(crate) fn new(problems: &[Answered<'_>]) -> Self {
        let owned = |(id, level, samples): &Answered<'_>| ((*id).into(), *level, samples.to_vec());
        Self { setting: setting(), problems: problems.iter().map(owned).collect(), marks: BTreeMap::new() }
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        let listed = self.problems.iter().enumerate().map(|(number, (id, level, samples))| Listed {
            id: id.clone(),
            level: *level,
            number: Some(number as u32 + 1),
            digest: format!("blake3:{id}"),
            samples: (0..samples.len() as u32)
                .map(|index| ListedSample { index, digest: sample_digest(id, index) })
                .collect(),
        });
        let mut lines = vec![Line::Run(Box::new(Manifest {
            schema: Manifest::SCHEMA.into(),
            setting: self.setting.clone(),
            suite: "suite".into(),
            samples: "samples".into(),
            suite_problems: None,
            problems: listed.collect(),
        }))];
        lines.extend(self.marks.iter().map(|(id, mark)| Line::Controls(Box::new(certificate(id, *mark)))));
        for (id, _, samples) in &self.problems {
            for (index, script) in samples.iter().enumerate() {
                lines.extend(script.map(|script| Line::Verdict(Box::new(verdict(id, index as u32, script)))));
            }
        }
        lines
    }
}

pub(crate) fn write(path: &Path, lines: &[Line]) {
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "{}", serde_json::to_string(line).unwrap());
    }
    std::fs::write(path, text).unwrap();
}

fn sample_digest(id: &str, index: u32) -> String {
    format!("blake3:{id}:{index}")
}

fn certificate(id: &str, mark: Mark) -> Certificate {
    Certificate {
        schema: Certificate::SCHEMA.into(),
        problem: CandidateId { path: id.into(), digest: format!("blake3:{id}") },
        target: "cpu".into(),
        seed: 0,
        trials: 1,
        defect: None,
        profiles: vec![ProfileCertificate {
            profile: "tilewright-1".into(),
            version: 1,
            mark,
            findings: if mark == Mark::Ok { Vec::new() } else { vec!["zeros".into()] },
        }],
        controls: Vec::new(),
        notes: Vec::new(),
    }
}

pub(crate) fn verdict(id: &str, index: u32, script: Script) -> Verdict {
    let Script { kind, code, compiled, second, speedup } = script;
    let judged = matches!(kind, VerdictKind::Accepted | VerdictKind::Incorrect);
    let outcome = |pass: bool| ProfileOutcome { pass, version: 1, metrics: Default::default(), robustness: Vec::new() };
    let profiles = [("tilewright-1", kind == VerdictKind::Accepted), ("kernelbench-v0", second)];
    let stages = ["oracle", "screen", "trace", "compile"].iter().take(if compiled { 4 } else { 2 });
    let reason = Reason { code: code.into(), message: format!("{code} of {id}"), line: None, help: None };
    Verdict {
        schema: Verdict::SCHEMA.into(),
        verdict: kind,
        fault: kind.fault(),
        problem: CandidateId { path: id.into(), digest: format!("blake3:{id}") },
        candidate: CandidateId { path: format!("{id}_{index}.py"), digest: sample_digest(id, index) },
        target: "cuda:0".into(),
        arch: None,
        trust: Trust::Replay,
        profiles: profiles.into_iter().filter(|_| judged).map(|(name, pass)| (name.into(), outcome(pass))).collect(),
        reasons: if kind.fault() == Fault::None { Vec::new() } else { vec![reason] },
        findings: Vec::new(),
        resources: BTreeMap::new(),
        timing: speedup.map(timing),
        costs: Vec::new(),
        stages: stages.map(|stage| StageTime { stage: (*stage).into(), seconds: 0.1, cached: false }).collect(),
        weights: None,
        notes: Vec::new(),
        opinion: None,
    }
}

fn timing(speedup: f64) -> Timing {
    let estimate = |value: f64| Estimate { value, low: value * 0.95, high: value * 1.05 };
    // As others write a timing that failed.
    let us = if speedup > 0.0 { 100.0 / speedup } else { -1.0 };
    let time = serde_json::json!({
        "device_us": estimate(us), "warm_us": estimate(us * 0.9), "calls": 100, "overhead_us": 1.0,
        "launches": [],
        // What the reference's products take at least: 10 us.
        "work": {"flops": 1_000_000_000, "bytes": 4000},
    });
    Timing {
        baselines: vec![
            serde_json::from_value::<BaselineTime>(serde_json::json!({
                "baseline": BaselineKind::Eager, "device_us": estimate(100.0), "calls": 100, "graph": true,
                "speedup": estimate(speedup),
            }))
            .unwrap(),
        ],
        limit: Some(limit(speedup)),
        ..serde_json::from_value(time).unwrap()
    }
}

/// With what later versions added left to its default.
fn limit(speedup: f64) -> Limit {
    let limit = serde_json::json!({
        "bytes_per_second": 1e12, "flops_per_second": 1e14, "floor_us": 10.0, "fraction": (speedup / 10.0).min(1.0),
        "least_us": 1.0,
    });
    serde_json::from_value(limit).unwrap()
}
