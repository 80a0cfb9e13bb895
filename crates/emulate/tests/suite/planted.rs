//! Planted faults, each found at its line, and honest kernels that look like them: see `fixtures/planted.py`.

use std::time::{Duration, Instant};

use serde_json::Value;
use tilewright_emulate::{
    AllocId, Arg, Defect, DefectKind, Fault, Init, Kernel, Limits, Memory, Report, Site, Usage, launch, shadow,
};

pub(crate) fn planted() -> Vec<Value> {
    let text = std::fs::read_to_string(crate::common::folder().join("planted.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) struct Outcome {
    pub(crate) memory: Memory,
    pub(crate) result: Result<Report, Fault>,
}

fn contents(buffer: &Value) -> Vec<u8> {
    let n = buffer["n"].as_u64().unwrap() as usize;
    if buffer["unwritten"].as_bool().unwrap() {
        let size = match buffer["dtype"].as_str().unwrap() {
            "fp16" => 2,
            "i8" => 1,
            _ => 4,
        };
        return vec![0xff; n * size];
    }
    let skip = vec![0; buffer["skip"].as_u64().unwrap() as usize];
    let values = (0..n).map(|i| buffer["value"].as_f64().unwrap_or(i as f64));
    let elements = values.flat_map(|x| match buffer["dtype"].as_str().unwrap() {
        "fp32" => (x as f32).to_le_bytes().to_vec(),
        "fp16" => half::f16::from_f64(x).to_le_bytes().to_vec(),
        "i32" => (x as i32).to_le_bytes().to_vec(),
        "i8" | "i1" => vec![x as u8],
        other => panic!("{other}"),
    });
    skip.into_iter().chain(elements).collect()
}

fn run(case: &Value, reverse: bool) -> Outcome {
    run_with(case, &Limits { deadline: Some(deadline(case)), reverse, ..Limits::default() })
}

/// Soon where the case runs for ever; else so late that no machine is too slow.
pub(crate) fn deadline(case: &Value) -> Instant {
    let patience = if case["fault"] == "endless" { Duration::from_millis(20) } else { Duration::from_secs(60) };
    Instant::now() + patience
}

pub(crate) fn run_with(case: &Value, limits: &Limits) -> Outcome {
    let name = case["name"].as_str().unwrap();
    let text = std::fs::read_to_string(crate::common::folder().join(format!("planted/{name}.ttir"))).unwrap();
    run_text(case, &text, limits)
}

/// The case with another text of its kernel.
pub(crate) fn run_text(case: &Value, text: &str, limits: &Limits) -> Outcome {
    let name = case["name"].as_str().unwrap();
    let kernel = Kernel::new(&tilewright_ttir::parse(text).unwrap(), name).unwrap();
    let mut memory = Memory::new();
    let mut args = Vec::new();
    for (index, arg) in case["args"].as_array().unwrap().iter().enumerate() {
        args.push(match arg.as_i64() {
            Some(value) => Arg::Int(value),
            None => {
                let unwritten = arg["unwritten"].as_bool().unwrap();
                let init = if unwritten { Init::Uninitialised } else { Init::Written };
                let id = memory.alloc(&format!("buffer {index}"), contents(arg), init);
                Arg::Pointer(memory.address(id, arg["skip"].as_u64().unwrap()))
            }
        });
    }
    let grid = std::array::from_fn(|axis| case["grid"][axis].as_u64().unwrap() as u32);
    let result = launch(&kernel, grid, &args, &mut memory, limits);
    Outcome { memory, result }
}

/// What differs between a fault and what is wanted, one word each.
fn site_differs(case: &Value, allocation: &str, offset: Option<i64>, site: Site, first: Option<Site>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, wanted: &Value, got: Value| {
        if !wanted.is_null() && *wanted != got {
            wrong.push(format!("{what} {got}, not {wanted}"));
        }
    };
    same("line", &case["line"], site.line.into());
    same("program", &case["program"], serde_json::json!(site.program));
    if let Some(offset) = offset {
        same("offset", &case["offset"], offset.into());
    }
    if let Some(number) = allocation.strip_prefix("buffer ") {
        same("buffer", &case["buffer"], number.parse::<u64>().unwrap().into());
    }
    if let Some(first) = first {
        same("first line", &case["first_line"], first.line.into());
        same("first program", &case["first_program"], serde_json::json!(first.program));
    }
    wrong
}

fn defect_differs(case: &Value, kind: DefectKind, memory: &Memory) -> Vec<String> {
    let used = |defect: &&Defect| defect.kind == kind && (defect.used.is_some() || defect.stored.is_some());
    let Some(defect) = memory.defects().map(|(_, defect)| defect).find(used) else {
        return vec![format!("only {:?}", memory.defects().collect::<Vec<_>>())];
    };
    let mut wrong = site_differs(case, &defect.allocation, Some(defect.offset as i64), defect.site, None);
    let usage = match defect.used {
        Some((Usage::Address, _)) => "address",
        Some((Usage::Branch, _)) => "branch",
        None => "nothing",
    };
    if case["used"].as_str().is_some_and(|wanted| wanted != usage) {
        wrong.push(format!("used as {usage}"));
    }
    if case["stored"].as_bool() == Some(true) && defect.stored.is_none() {
        wrong.push("not stored".into());
    }
    wrong
}

fn honest_differs(case: &Value, Outcome { memory, result }: &Outcome) -> Vec<String> {
    let report = match result {
        Ok(report) => report,
        Err(fault) => return vec![fault.to_string()],
    };
    let mut wrong = Vec::new();
    let matters = |defect: &Defect| defect.used.is_some() || defect.stored.is_some();
    wrong.extend(memory.defects().filter(|(_, defect)| matters(defect)).map(|(_, defect)| defect.to_string()));
    if (report.benign_races > 0) != (case["benign"].as_bool() == Some(true)) {
        wrong.push(format!("{} benign races", report.benign_races));
    }
    // All cases with marks have buffers alone.
    if let (Some(index), Some(mark)) = (case["mark"][0].as_u64(), case["mark"][1].as_str()) {
        let wanted = if mark == "copied" { shadow::COPIED } else { shadow::LAUNCH };
        let marks = memory.shadow(AllocId(index as u32));
        let found = marks.iter().find(|&&mark| mark != wanted);
        wrong.extend(found.map(|mark| format!("a byte is marked {mark}, not {wanted}")));
    }
    // The buffer, its length: floats whose sum is that of 0 to 63.
    if let (Some(index), Some(count)) = (case["sums"][0].as_u64(), case["sums"][1].as_u64()) {
        let scalars = case["args"].as_array().unwrap()[..index as usize].iter().filter(|arg| arg.is_i64()).count();
        let bytes = memory.bytes(AllocId(index as u32 - scalars as u32));
        let sum: f64 = crate::common::numbers("fp32", bytes).iter().sum();
        if sum != 2016.0 {
            wrong.push(format!("{count} elements with the sum {sum}"));
        }
    }
    wrong
}

fn differs(case: &Value) -> Vec<String> {
    let outcome = run(case, case["reverse"].as_bool() == Some(true));
    let fault = case["fault"].as_str().unwrap();
    match (fault, &outcome.result) {
        ("none", _) => [honest_differs(case, &outcome), honest_differs(case, &run(case, true))].concat(),
        ("out-of-bounds", Err(Fault::OutOfBounds { allocation, offset, site, .. }))
        | ("misaligned", Err(Fault::Misaligned { allocation, offset, site, .. }))
        | ("lanes", Err(Fault::Lanes { allocation, offset, site })) => {
            site_differs(case, allocation, Some(*offset), *site, None)
        }
        ("race", Err(Fault::Race { allocation, offset, first, second })) => {
            site_differs(case, allocation, Some(*offset), second.1, Some(first.1))
        }
        ("deadlock", Err(Fault::Deadlock { site })) | ("endless", Err(Fault::Deadline { site })) => {
            site_differs(case, "", None, *site, None)
        }
        ("uninitialised", _) => defect_differs(case, DefectKind::Uninitialised, &outcome.memory),
        ("overflow", _) => defect_differs(case, DefectKind::Overflow, &outcome.memory),
        ("division", Ok(_)) => defect_differs(case, DefectKind::DivisionByZero, &outcome.memory),
        (_, Ok(_)) => vec!["nothing found".into()],
        (_, Err(other)) => vec![format!("found {other}")],
    }
}

#[test]
fn every_planted_fault_is_found_at_its_place_and_no_honest_kernel_is_blamed() {
    let cases = planted();
    let wrong: Vec<String> = cases
        .iter()
        .flat_map(|case| differs(case).into_iter().map(|what| format!("{}: {what}", case["name"])))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let honest = cases.iter().filter(|case| case["fault"] == "none").count();
    assert!(honest >= 16 && cases.len() - honest >= 45, "{honest} of {} are honest", cases.len());
}
