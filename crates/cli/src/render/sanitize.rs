//! What the sanitiser found, and what launches cost.

use std::fmt::Write as _;

use comfy_table::Table;
use miette::{MietteDiagnostic, Severity};
use owo_colors::{OwoColorize, Stream, Style};
use tilewright_contract::{Hazard, HazardKind, LaunchCost, Party, SanitizeOutcome, SanitizeReport, Stopped};
use tilewright_verify::arch_name;

use super::excerpt::{Excerpts, Mark};
use super::{indent, plain, seconds, table};

/// A report on a terminal: each hazard over its lines, then what kept launches from running, then costs.
pub(crate) fn sanitize(report: &SanitizeReport, source: &[u8], colours: bool) -> String {
    let mut out = hazards(&report.hazards, &report.candidate.path, source, colours);
    out += &hazards(&report.births, &report.candidate.path, source, colours);
    let _ = writeln!(out, "{}  {}", headline(report), plain(&report.candidate.path));
    let arch = report.arch.as_ref().map(|arch| format!(", compiled for {}", arch_name(arch))).unwrap_or_default();
    let _ = writeln!(out, "  problem {}, on {}{arch}; values are not judged", report.problem.path, report.target);
    out += &stopped(report.stopped.as_ref());
    for note in &report.notes {
        let _ = writeln!(out, "  {:<6} {}", "note", plain(note));
    }
    if !report.costs.is_empty() {
        let _ = writeln!(out, "{}", indent(&costs(&report.costs).to_string()));
    }
    let stages = report.stages.iter().map(|stage| format!("{} {}", stage.stage, seconds(stage.seconds)));
    let _ = write!(out, "  {} executions; {}", report.executions, stages.collect::<Vec<_>>().join(", "));
    out
}

fn headline(report: &SanitizeReport) -> String {
    let (words, style) = outcome(report.outcome, report.hazards.len());
    words.if_supports_color(Stream::Stdout, |words| words.style(style)).to_string()
}

pub(super) fn outcome(outcome: SanitizeOutcome, hazards: usize) -> (String, Style) {
    match outcome {
        SanitizeOutcome::Clean => ("clean".to_owned(), Style::new().green().bold()),
        SanitizeOutcome::Hazards if hazards == 1 => ("1 hazard".to_owned(), Style::new().red().bold()),
        SanitizeOutcome::Hazards => (format!("{hazards} hazards"), Style::new().red().bold()),
        SanitizeOutcome::Stopped => ("not checked".to_owned(), Style::new().yellow().bold()),
    }
}

/// Why launches were not run.
pub(super) fn stopped(stopped: Option<&Stopped>) -> String {
    let mut out = String::new();
    let Some(Stopped { verdict, reasons }) = stopped else { return out };
    for reason in reasons {
        let place = reason.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        let (verdict, message) = (verdict.name(), plain(&reason.message));
        let _ = writeln!(out, "  {:<6} {verdict}: {message}{place} [{}]", "stop", reason.code);
        if let Some(help) = &reason.help {
            let _ = writeln!(out, "  {:<6} {}", "next", plain(help));
        }
    }
    out
}

/// Each hazard over excerpts of its lines.
pub(super) fn hazards(hazards: &[Hazard], path: &str, source: &[u8], colours: bool) -> String {
    let excerpts = Excerpts::new(path, source, colours);
    hazards.iter().map(|hazard| excerpts.show(diagnostic(hazard), &marks(hazard)) + "\n").collect()
}

fn diagnostic(hazard: &Hazard) -> MietteDiagnostic {
    let code = if hazard.kernel.is_empty() {
        hazard.kind.name().to_owned()
    } else {
        format!("{} in {}", hazard.kind.name(), hazard.kernel)
    };
    MietteDiagnostic::new(plain(&hazard.message)).with_code(code).with_severity(Severity::Error).with_help(help(hazard))
}

fn help(hazard: &Hazard) -> String {
    let mut words = hazard.help.clone().unwrap_or_default();
    let mut often = match hazard.count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    if !hazard.seen.is_empty() {
        let _ = write!(often, ", first in {}", plain(&hazard.seen));
    }
    if hazard.executions > 1 {
        let _ = write!(often, ", in {} executions", hazard.executions);
    }
    if !words.is_empty() {
        words.push('\n');
    }
    words + "seen " + &often
}

fn marks(hazard: &Hazard) -> Vec<Mark> {
    let mark = |party: &Party, text: String| Mark { line: party.line, column: 0, text: Some(text) };
    let mut marks = Vec::new();
    match (&hazard.at, &hazard.other) {
        // Both sides on one line are one mark.
        (Some(at), Some(other)) if at.line == other.line => {
            marks.push(mark(at, format!("{}; {}", side(at), other_side(hazard, other))));
        }
        (at, other) => {
            marks.extend(at.as_ref().map(|at| mark(at, side(at))));
            marks.extend(other.as_ref().map(|other| mark(other, other_side(hazard, other))));
        }
    }
    if marks.is_empty() && hazard.launch > 0 {
        marks.push(Mark { line: hazard.launch, column: 0, text: None });
    }
    marks
}

fn side(party: &Party) -> String {
    let [x, y, z] = party.program;
    format!("{} of program ({x}, {y}, {z})", party.does.name())
}

fn other_side(hazard: &Hazard, party: &Party) -> String {
    let word = if hazard.kind == HazardKind::Race { "earlier" } else { "used:" };
    format!("{word} {}", side(party))
}

/// What each launch moved and computed.
pub(super) fn costs(costs: &[LaunchCost]) -> Table {
    let mut table = table(&[
        "launch",
        "grid",
        "loaded",
        "stored",
        "unique",
        "atomics",
        "flops",
        "dot flops",
        "coalescing",
        "flop/byte",
    ]);
    for cost in costs {
        let [x, y, z] = cost.grid;
        let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        table.add_row([
            if cost.line > 0 { format!("{} (line {})", cost.kernel, cost.line) } else { cost.kernel.clone() },
            format!("{x} x {y} x {z}"),
            bytes(cost.bytes_loaded),
            bytes(cost.bytes_stored),
            bytes(cost.unique_bytes),
            count(cost.atomics),
            count(cost.flops),
            count(cost.dot_flops),
            ratio(cost.coalescing),
            ratio(cost.intensity),
        ]);
    }
    table
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0 => "-".into(),
        1..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn count(count: u64) -> String {
    match count {
        0 => "-".into(),
        1..100_000 => count.to_string(),
        100_000..100_000_000 => format!("{:.1} M", count as f64 / 1e6),
        _ => format!("{:.2} G", count as f64 / 1e9),
    }
}
