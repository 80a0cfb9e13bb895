//! A problem's certificate on a terminal, and many of them as a Markdown table.

use std::fmt::Write as _;
use std::path::Path;

use owo_colors::{OwoColorize, Stream, Style};
use tilewright_contract::{Certificate, Control, ControlKind, Mark};

use super::{indent, table};

/// One line for each control, one column for each profile.
pub(crate) fn certificate(certificate: &Certificate) -> String {
    let mark = certificate.profiles.first().map_or(Mark::Ok, |profile| profile.mark);
    let style = match mark {
        Mark::Ok => Style::new().green().bold(),
        Mark::PrecisionBlind | Mark::Degenerate => Style::new().yellow().bold(),
        Mark::Defect => Style::new().red().bold(),
    };
    let name = mark.name();
    let mut out =
        format!("{}  {}", name.if_supports_color(Stream::Stdout, |name| name.style(style)), certificate.problem.path);
    if let Some(defect) = &certificate.defect {
        let _ = write!(out, "\n  why    {defect}");
        return out;
    }
    let header: Vec<&str> = ["control"].into_iter().chain(names(certificate)).collect();
    let mut table = table(&header);
    for control in certificate.controls.iter().filter(|control| control.inapplicable.is_none()) {
        let row = names(certificate).map(|profile| cell(control, profile));
        table.add_row([control.name.clone()].into_iter().chain(row));
    }
    let marks = certificate.profiles.iter().map(|profile| profile.mark.name().to_owned());
    table.add_row(["".to_owned()].into_iter().chain(marks));
    let _ = write!(out, "\n{}", indent(&table.to_string()));
    for finding in certificate.profiles.first().into_iter().flat_map(|profile| &profile.findings) {
        let _ = write!(out, "\n  why    {finding}");
    }
    for control in &certificate.controls {
        if let Some(reason) = &control.reason {
            let _ = write!(out, "\n  reason {}: {reason}", control.name);
        }
        if let Some(why) = &control.inapplicable {
            let _ = write!(out, "\n  none   {}: {why}", control.name);
        }
    }
    for note in &certificate.notes {
        let _ = write!(out, "\n  note   {note}");
    }
    out
}

fn names(certificate: &Certificate) -> impl Iterator<Item = &str> {
    certificate.profiles.iter().map(|profile| profile.profile.as_str())
}

/// A copy that passes and anything else that fails are as they should be.
fn cell(control: &Control, profile: &str) -> String {
    let passes = control.passes.contains_key(profile);
    match (control.kind, passes) {
        (ControlKind::Copy, true) => "passes".into(),
        (ControlKind::Copy, false) => "FAILS".into(),
        (_, false) => "fails".into(),
        (_, true) if control.reason.is_some() => "(passes)".into(),
        (_, true) => "PASSES".into(),
    }
}

/// Problems down, profiles across; what is not `ok` with its findings.
pub(crate) fn certificates_as_markdown(certificates: &[Certificate]) -> String {
    let mut out = String::new();
    let Some(first) = certificates.first() else { return out };
    let columns: Vec<&str> = names(first).collect();
    let _ = writeln!(out, "| problem | {} | reasons |", columns.join(" | "));
    let _ = writeln!(out, "|---|{}---|", "---|".repeat(columns.len()));
    for certificate in certificates {
        let path = Path::new(&certificate.problem.path);
        let folder = path.parent().and_then(Path::file_name).filter(|_| path.ends_with("problem.py"));
        let name = folder.or(path.file_stem()).unwrap_or_default().to_string_lossy();
        let marks = certificate.profiles.iter().map(|profile| match &profile.findings[..] {
            [] => profile.mark.name().to_owned(),
            findings => format!("{}: {}", profile.mark.name(), findings.join(", ")),
        });
        let passing = certificate.controls.iter().filter(|control| control.reason.is_some());
        let reasons: Vec<_> =
            passing.filter_map(|control| Some(format!("{}: {}", control.name, control.reason.as_ref()?))).collect();
        let _ = writeln!(out, "| {name} | {} | {} |", marks.collect::<Vec<_>>().join(" | "), reasons.join("; "));
    }
    out
}
