//! Findings for people: an excerpt of the source with a mark under the place.

use miette::{MietteDiagnostic, Severity};
use tilewright_contract::{Finding, ScreenedFile, Screening, Tier};

use crate::render::{Excerpts, Mark};

/// All findings of a file, the bytes of which are given.
pub(super) fn file(file: &ScreenedFile, bytes: &[u8], colours: bool) -> String {
    let path = &file.candidate.path;
    if let Some(error) = &file.error {
        return format!("{path}: {error}\n");
    }
    let excerpts = Excerpts::new(path, bytes, colours);
    let show = |finding: &Finding| {
        let mark = Mark { line: finding.line, column: finding.column, text: None };
        excerpts.show(diagnostic(finding), &[mark]) + "\n"
    };
    file.findings.iter().map(show).collect()
}

fn diagnostic(finding: &Finding) -> MietteDiagnostic {
    let severity = match finding.tier {
        Tier::Proof => Severity::Error,
        Tier::Evidence | Tier::Untraceable | Tier::Unsupported => Severity::Warning,
        Tier::Advice => Severity::Advice,
    };
    let tier = tilewright_screen::tier_name(finding.tier);
    let diagnostic =
        MietteDiagnostic::new(&finding.message).with_code(format!("{tier}: {}", finding.rule)).with_severity(severity);
    match &finding.help {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    }
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
