//! How long a report of a large run takes, and how much memory: a run with scripted verdicts is written, read and
//! reported, as terminal, JSON and page do it.
//!
//!     cargo run --release -p tilewright-bench --example synthetic -- 250 8 [FOLDER]
//!
//! The run and the page are kept in FOLDER, if it is given.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]

#[path = "../tests/scripted/mod.rs"]
mod scripted;

use std::path::PathBuf;
use std::time::Instant;

use scripted::{Script, Scripted, accepted, failed, fast};
use tilewright_bench::{Asked, Line, Report, Run};
use tilewright_contract::{Mark, VerdictKind};

/// Bytes of a verdict as the verifier writes it: with resources, costs and notes.
const VERDICT: usize = 12_000;

const READER: &str = "SYNTHETIC_READER";

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |other: u32| args.next().map_or(other, |text| text.parse().unwrap());
    let (problems, samples) = (number(250), number(8));
    let temporary = tempfile::tempdir().unwrap();
    let folder = args.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let path = folder.join("run.jsonl");
    // The reader is a process of its own, so that its memory is its own.
    if std::env::var_os(READER).is_some() {
        return report(&path);
    }
    std::fs::create_dir_all(&folder).unwrap();
    scripted::write(&path, &lines(problems, samples));
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!("{problems} problems, {samples} samples each, log of {:.1} MB", bytes as f64 / 1e6);
    let mut reader = std::process::Command::new(std::env::current_exe().unwrap());
    reader.args([problems.to_string(), samples.to_string()]).arg(&folder).env(READER, "1");
    assert!(reader.status().unwrap().success());
}

fn report(path: &std::path::Path) {
    let start = Instant::now();
    let run = Run::read(&[path.to_owned()]).unwrap();
    let read = start.elapsed();
    let report = Report::new(&run, &Asked::default()).unwrap();
    let reported = start.elapsed();
    let json = serde_json::to_string(&report).unwrap();
    let page = report.html().unwrap();
    let all = start.elapsed();
    std::fs::write(path.with_file_name("page.html"), &page).unwrap();
    std::fs::write(path.with_file_name("report.json"), &json).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!(
        "read {read:.2?}, reported after {reported:.2?}, with JSON ({} kB) and page ({} kB) {all:.2?}; peak {}",
        json.len() / 1000,
        page.len() / 1000,
        peak.trim_start_matches("VmHWM:").trim()
    );
}

/// Verdicts of all kinds in about the shares that a middling model gets.
fn lines(problems: u32, samples: u32) -> Vec<Line> {
    let mut state = 1u64;
    let mut draw = move || {
        // Knuth's linear congruential generator, the upper bits.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1u32 << 24)
    };
    let mut run = Scripted::new(&[]);
    for problem in 0..problems {
        let (level, ease) = (1 + problem * 3 / problems, draw());
        let of = (0..samples).map(|_| sample(ease, draw(), draw())).collect();
        run.problems.push((format!("level{level}/{}_problem", problem + 1), Some(level), of));
    }
    for (id, _, _) in &run.problems {
        let mark = match draw() {
            x if x < 0.06 => Mark::Degenerate,
            x if x < 0.15 => Mark::PrecisionBlind,
            _ => Mark::Ok,
        };
        run.marks.insert(id.clone(), mark);
    }
    let mut lines = run.lines();
    for line in &mut lines {
        if let Line::Verdict(verdict) = line {
            verdict.notes.push("n".repeat(VERDICT));
        }
    }
    lines
}

fn sample(ease: f64, luck: f64, speed: f64) -> Option<Script> {
    let failures = [
        (VerdictKind::Incorrect, "values", true),
        (VerdictKind::CompileError, "compile", false),
        (VerdictKind::Rejected, "torch-compute", false),
        (VerdictKind::MemoryFault, "out-of-bounds", true),
        (VerdictKind::Timeout, "replay-timeout", true),
        (VerdictKind::Infrastructure, "device", true),
    ];
    if luck < ease * 0.8 {
        let found = fast((2.0 * speed - 1.0 + ease).exp2());
        return if speed < 0.01 { Some(accepted()) } else { found };
    }
    let (kind, code, compiled) = failures[(speed * speed * 6.0) as usize % 6];
    failed(kind, code, compiled)
}
