//! One launch on a terminal: its hazards, what it left in each tensor, what it cost.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table};
use owo_colors::{OwoColorize, Stream};
use tilewright_contract::{LaunchReport, TensorSummary};
use tilewright_verify::{arch_name, kernel_name};

use super::sanitize::{costs, hazards, outcome, stopped};
use super::{indent, plain, seconds, table};

pub(crate) fn launch(report: &LaunchReport, source: &[u8], colours: bool) -> String {
    let path = &report.file.path;
    let mut out = hazards(&report.hazards, path, source, colours);
    out += &hazards(&report.births, path, source, colours);
    let (words, style) = outcome(report.outcome, report.hazards.len());
    let words = words.if_supports_color(Stream::Stdout, |words| words.style(style));
    let _ = writeln!(out, "{words}  {}", kernel_name(&report.kernel));
    let [x, y, z] = report.grid;
    let (path, arch) = (plain(path), arch_name(&report.arch));
    let _ = writeln!(out, "  {path}:{}, grid {x} x {y} x {z}, compiled for {arch}, on cpu", report.line);
    out += &stopped(report.stopped.as_ref());
    for note in &report.notes {
        let _ = writeln!(out, "  {:<6} {}", "note", plain(note));
    }
    if !report.tensors.is_empty() {
        let _ = writeln!(out, "{}", indent(&tensors(&report.tensors).to_string()));
    }
    if let Some(cost) = &report.cost {
        let _ = writeln!(out, "{}", indent(&costs(std::slice::from_ref(cost)).to_string()));
    }
    let _ = write!(out, "  emulated in {}", seconds(report.seconds));
    out
}

fn tensors(tensors: &[TensorSummary]) -> Table {
    let mut table = table(&["tensor", "changed", "unwritten", "min", "max", "mean", "nan", "inf", "first"]);
    if let Some(first) = table.column_mut(8) {
        first.set_cell_alignment(CellAlignment::Left);
    }
    for tensor in tensors {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.6}"));
        let count = |count: u64| if count == 0 { "-".to_owned() } else { count.to_string() };
        table.add_row([
            format!("{}: {}{:?}", tensor.name, tensor.dtype.name(), tensor.shape),
            count(tensor.changed),
            count(tensor.unwritten),
            number(tensor.min),
            number(tensor.max),
            number(tensor.mean),
            count(tensor.nans),
            count(tensor.infinities),
            tensor.first.join(" "),
        ]);
    }
    table
}
