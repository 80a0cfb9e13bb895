//! A verdict in the words of whoever is to write the next candidate.

mod advice;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use tilewright_contract::{Metrics, Reason, Tier, Verdict, VerdictKind};

/// How a verdict is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// The verdict as it is, as JSON.
    Json,
    /// What was decided, why, and the figures, in a few lines.
    Compact,
    /// RESULT, WHY, PERFORMANCE, PER-KERNEL TIME, NEXT STEP.
    #[default]
    Coach,
    /// One line.
    Line,
}

/// Characters of one reason.
const MAX_REASON: usize = 600;
const MAX_REASONS: usize = 6;
/// Characters of a verdict as JSON.
const MAX_JSON: usize = 16_000;

/// The verdict on a candidate with this source.
pub fn feedback(verdict: &Verdict, source: &str, style: Style) -> String {
    match style {
        Style::Json => json(verdict),
        Style::Compact => compact(verdict, source),
        Style::Coach => coach(verdict, source),
        Style::Line => line(verdict),
    }
}

/// Without what says nothing about the candidate.
fn json(verdict: &Verdict) -> String {
    let mut document = serde_json::to_value(verdict).unwrap_or_default();
    if let Some(object) = document.as_object_mut() {
        for field in ["schema", "problem", "candidate", "stages"] {
            object.remove(field);
        }
    }
    let mut text = document.to_string();
    if text.len() > MAX_JSON {
        let end = (0..=MAX_JSON).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text += " …";
    }
    text
}

fn line(verdict: &Verdict) -> String {
    let why = verdict.reasons.first().map(|reason| format!(": {}", placed(reason))).unwrap_or_default();
    let speed = speedups(verdict).first().map(|speed| format!(", {speed}")).unwrap_or_default();
    cut(&format!("{}{why}{speed}", verdict.verdict.name()), MAX_REASON)
}

fn compact(verdict: &Verdict, source: &str) -> String {
    let mut out = format!("verdict: {}\n", verdict.verdict.name());
    why(&mut out, verdict, source);
    for speed in speedups(verdict) {
        let _ = writeln!(out, "speed: {speed}");
    }
    seen(&mut out, verdict);
    out.trim_end().into()
}

fn coach(verdict: &Verdict, source: &str) -> String {
    let mut out = format!("RESULT\n{}\n", result(verdict));
    if !verdict.reasons.is_empty() {
        out += "\nWHY\n";
        why(&mut out, verdict, source);
    }
    if verdict.verdict == VerdictKind::Accepted {
        let speed = speedups(verdict);
        out += "\nPERFORMANCE\n";
        if speed.is_empty() {
            out += "not timed: it ran in an emulator; see what each launch moves and computes\n";
        }
        speed.iter().for_each(|line| out += &format!("{line}\n"));
        out += &advice::kernels(verdict);
    }
    let mut advice = String::new();
    seen(&mut advice, verdict);
    if !advice.is_empty() {
        out += &format!("\nSEEN\n{advice}");
    }
    out += "\nNEXT STEP\n";
    advice::next_steps(verdict).iter().for_each(|step| out += &format!("- {step}\n"));
    out.trim_end().into()
}

fn result(verdict: &Verdict) -> String {
    let meaning = match verdict.verdict {
        VerdictKind::Accepted => "the outputs are right on every trial",
        VerdictKind::Rejected => "the file breaks a rule, whatever its outputs are",
        VerdictKind::Incorrect => "it runs, and the outputs are wrong",
        VerdictKind::CompileError => "it does not compile",
        VerdictKind::LaunchError => "it fails while it runs",
        VerdictKind::MemoryFault => "a kernel accesses memory that it must not access",
        VerdictKind::Race => "two programs or threads access the same memory in no certain order",
        VerdictKind::Nondeterministic => "the same inputs give other outputs",
        VerdictKind::Timeout => "it takes too long",
        VerdictKind::OutOfMemory => "it takes too much memory",
        VerdictKind::Untraceable => "its launches cannot be recorded",
        VerdictKind::Unsupported => "the checker lacks a feature that it uses",
        VerdictKind::ProblemDefect => "the problem is at fault, not the file",
        VerdictKind::Infrastructure => "the checker failed, not the file",
    };
    format!("{}: {meaning}", verdict.verdict.name())
}

/// Reasons with the lines that they point at, the worst element, and what was measured beside the decision.
fn why(out: &mut String, verdict: &Verdict, source: &str) {
    let lines: Vec<&str> = source.lines().collect();
    for reason in verdict.reasons.iter().take(MAX_REASONS) {
        let _ = writeln!(out, "- {} [{}]", cut(&placed(reason), MAX_REASON), reason.code);
        let at = reason.line.and_then(|line| lines.get((line as usize).checked_sub(1)?));
        if let Some(text) = at.map(|text| text.trim()).filter(|text| !text.is_empty()) {
            let _ = writeln!(out, "    {}", cut(text, 160));
        }
    }
    let left = verdict.reasons.len().saturating_sub(MAX_REASONS);
    if left > 0 {
        let _ = writeln!(out, "- and {left} more");
    }
    if let Some(metrics) = failing(verdict) {
        let _ = writeln!(
            out,
            "- {} of {} elements are outside the tolerance; the largest difference is {:.3e}, relative {:.3e}",
            metrics.mismatched, metrics.elements, metrics.max_abs, metrics.max_rel
        );
        if let Some(worst) = &metrics.worst {
            let _ = writeln!(
                out,
                "- worst: {}{:?}: got {}, want {} (case {}, {})",
                worst.path, worst.index, worst.got, worst.want, worst.case, worst.regime
            );
        }
    }
}

fn failing(verdict: &Verdict) -> Option<&Metrics> {
    verdict.profiles.values().find(|outcome| !outcome.pass).map(|outcome| &outcome.metrics)
}

/// Advice about the hardware, where the checker has some.
fn seen(out: &mut String, verdict: &Verdict) {
    for finding in verdict.findings.iter().filter(|finding| finding.tier == Tier::Advice).take(MAX_REASONS) {
        let help = finding.help.as_deref().map(|help| format!(": {help}")).unwrap_or_default();
        let _ =
            writeln!(out, "- line {}: {}{}", finding.line, cut(&finding.message, MAX_REASON), cut(&help, MAX_REASON));
    }
}

/// How fast it is against each baseline.
fn speedups(verdict: &Verdict) -> Vec<String> {
    let Some(timing) = &verdict.timing else { return Vec::new() };
    let mut lines = vec![];
    for baseline in &timing.baselines {
        let speedup = baseline.speedup;
        lines.push(format!(
            "{:.2} x against {} (95 % interval {:.2} to {:.2}): {:.2} us, the reference {:.2} us",
            speedup.value,
            baseline.baseline.name(),
            speedup.low,
            speedup.high,
            timing.device_us.value,
            baseline.device_us.value
        ));
    }
    if let Some(limit) = &timing.limit {
        lines.push(format!("{:.0} % of what this device can do ({:.2} us)", limit.fraction * 100.0, limit.floor_us));
    }
    lines
}

fn placed(reason: &Reason) -> String {
    let place = reason.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("{place}{}", reason.message)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests;
