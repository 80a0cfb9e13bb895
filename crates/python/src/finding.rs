//! Findings and costs of a launch as Python dicts.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright_emulate::{Defect, DefectKind, Fault, Report, Site, Usage};

/// A fault: `kind`, `message`, and `line` and `program` where they are known.
pub(crate) fn fault<'py>(py: Python<'py>, fault: &Fault) -> PyResult<Bound<'py, PyDict>> {
    let (kind, site) = match fault {
        Fault::OutOfBounds { site, .. } | Fault::BadAddress { site, .. } => ("out-of-bounds", Some(site)),
        Fault::Position { site, .. } => ("out-of-bounds", Some(site)),
        Fault::Misaligned { site, .. } => ("misaligned", Some(site)),
        Fault::Promise { site, .. } => ("promise", Some(site)),
        Fault::Race { first, .. } => ("race", Some(&first.1)),
        Fault::Lanes { site, .. } => ("race", Some(site)),
        Fault::Assert { site, .. } => ("assert", Some(site)),
        Fault::Deadlock { site } => ("deadlock", Some(site)),
        Fault::Deadline { site } => ("timeout", Some(site)),
        Fault::Unsupported(it) => return unsupported(py, &it.op, it.line, &it.why),
        Fault::Malformed { site, .. } => ("malformed", Some(site)),
        Fault::Arguments { .. } | Fault::Argument { .. } => ("arguments", None),
    };
    finding(py, kind, &fault.to_string(), site)
}

fn unsupported<'py>(py: Python<'py>, op: &str, line: u32, why: &str) -> PyResult<Bound<'py, PyDict>> {
    let dict = finding(py, "unsupported", why, None)?;
    dict.set_item("op", op)?;
    dict.set_item("line", line)?;
    Ok(dict)
}

/// A defect where it did harm: it decided something, or else it was stored.
pub(crate) fn defect<'py>(py: Python<'py>, defect: &Defect) -> PyResult<Bound<'py, PyDict>> {
    let kind = match defect.kind {
        DefectKind::DivisionByZero => "division-by-zero",
        DefectKind::Overflow => "overflow",
        DefectKind::LeftOver | DefectKind::Uninitialised => "uninitialised",
    };
    let dict = finding(py, kind, &defect.to_string(), Some(&defect.site))?;
    let used = defect.used.map(|(usage, _)| if usage == Usage::Address { "address" } else { "branch" });
    dict.set_item("used", used)?;
    Ok(dict)
}

fn finding<'py>(py: Python<'py>, kind: &str, message: &str, site: Option<&Site>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", kind)?;
    dict.set_item("message", message)?;
    dict.set_item("line", site.map_or(0, |site| site.line))?;
    dict.set_item("program", site.map(|site| site.program))?;
    Ok(dict)
}

pub(crate) fn report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let counts = [
        ("bytes_loaded", report.bytes_loaded),
        ("bytes_stored", report.bytes_stored),
        ("unique_bytes", report.unique_bytes),
        ("sectors", report.sectors),
        ("least_sectors", report.least_sectors),
        ("atomics", report.atomics),
        ("flops", report.flops),
        ("dot_flops", report.dot_flops),
        ("benign_races", report.benign_races),
        ("undefined_lanes", report.undefined_lanes),
    ];
    for (name, count) in counts {
        dict.set_item(name, count)?;
    }
    Ok(dict)
}
