//! Findings for people: an excerpt of the source with a mark under the place.

use std::fmt::Write as _;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report, Severity};
use tilewright_contract::{Finding, ScreenedFile, Screening, Tier};

/// Longest line that is quoted, in characters.
const LONGEST_LINE: usize = 300;

/// All findings of a file, the bytes of which are given.
pub(super) fn file(file: &ScreenedFile, bytes: &[u8], colours: bool) -> String {
    let path = &file.candidate.path;
    if let Some(error) = &file.error {
        return format!("{path}: {error}\n");
    }
    let text = printable(&tilewright_screen::decode(bytes).unwrap_or_default());
    let colours = colours && std::env::var_os("NO_COLOR").is_none();
    let theme = if colours { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(110);
    let mut out = String::new();
    for finding in &file.findings {
        let report = report(finding, path, &text);
        // Writing into a string fails only if an excerpt cannot be made; the finding is shown in any case.
        if handler.render_report(&mut out, report.as_ref()).is_err() {
            let _ = writeln!(out, "{path}:{}:{}: {} [{}]", finding.line, finding.column, finding.message, finding.rule);
        }
        out.push('\n');
    }
    out
}

fn report(finding: &Finding, path: &str, text: &str) -> Report {
    let severity = match finding.tier {
        Tier::Proof => Severity::Error,
        Tier::Evidence | Tier::Untraceable | Tier::Unsupported => Severity::Warning,
        Tier::Advice => Severity::Advice,
    };
    let tier = tilewright_screen::tier_name(finding.tier);
    let mut diagnostic =
        MietteDiagnostic::new(&finding.message).with_code(format!("{tier}: {}", finding.rule)).with_severity(severity);
    if let Some(help) = &finding.help {
        diagnostic = diagnostic.with_help(help);
    }
    match span(finding, text) {
        Some((start, length)) => Report::new(diagnostic.with_label(LabeledSpan::new(None, start, length)))
            .with_source_code(NamedSource::new(path, text.to_owned())),
        None if finding.line > 0 => {
            diagnostic.message = format!("{path}:{}: {}", finding.line, diagnostic.message);
            Report::new(diagnostic)
        }
        None => {
            diagnostic.message = format!("{path}: {}", diagnostic.message);
            Report::new(diagnostic)
        }
    }
}

/// Byte offset and length of what a finding points to: the dotted name at its place. None if it has no place, or its
/// line is too long to be quoted.
fn span(finding: &Finding, text: &str) -> Option<(usize, usize)> {
    let line = text.split('\n').nth((finding.line as usize).checked_sub(1)?)?;
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    if line.chars().count() > LONGEST_LINE {
        return None;
    }
    let indent = line.len() - line.trim_start().len();
    let at = match (finding.column as usize).checked_sub(1) {
        Some(column) => line.char_indices().nth(column).map_or(line.len(), |(at, _)| at),
        None => indent,
    };
    let rest = &line[at..];
    let named = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
    let first = rest.chars().next().map_or(0, char::len_utf8);
    Some((start + at, named.max(first)))
}

/// The text without what could play tricks on a terminal, character for character.
fn printable(text: &str) -> String {
    let replace = |c: char| match c {
        '\n' | '\t' => c,
        // Characters that change the direction of writing hide what a line says.
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(replace).collect()
}

/// One line: how many files, and what was found in them.
pub(super) fn summary(screening: &Screening) -> String {
    let files = &screening.files;
    let count = |tier: Tier| files.iter().flat_map(|file| &file.findings).filter(|found| found.tier == tier).count();
    let unread = files.iter().filter(|file| file.error.is_some()).count();
    let refused = files.iter().filter(|file| !file.clean).count() - unread;
    let mut line = format!(
        "{} {}: {refused} refused, {} not refused",
        files.len(),
        if files.len() == 1 { "file" } else { "files" },
        files.len() - refused - unread,
    );
    if unread > 0 {
        line += &format!(", {unread} not read");
    }
    let parts: Vec<_> = [Tier::Proof, Tier::Evidence, Tier::Advice, Tier::Untraceable, Tier::Unsupported]
        .into_iter()
        .filter(|&tier| count(tier) > 0)
        .map(|tier| format!("{} {}", count(tier), tilewright_screen::tier_name(tier)))
        .collect();
    if !parts.is_empty() {
        line += &format!(" ({})", parts.join(", "));
    }
    line
}
