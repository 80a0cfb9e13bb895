//! What a person sees. Data goes to stdout through here, talk goes to stderr.

mod audit;
mod bench;
mod controls;
mod excerpt;
mod launch;
mod sanitize;
mod tree;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use owo_colors::{OwoColorize, Stream, Style};
use tilewright_contract::{
    BaselineTime, Fault, Metrics, Opinion, OpinionAnswer, ProfileOutcome, Resources, Timing, Trust, Verdict,
    VerdictKind,
};
use tilewright_verify::arch_name;

pub(crate) use audit::audit;
pub(crate) use bench::{bench_comparison, bench_report};
pub(crate) use controls::{certificate, certificates_as_markdown};
pub(crate) use excerpt::{Excerpts, Mark};
pub(crate) use launch::launch;
pub(crate) use sanitize::sanitize;
pub(crate) use tree::tree;

/// A verdict on a terminal: what was decided, why, the worst element, resources, time by stage, the next thing to try.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}  {}", headline(verdict), plain(&verdict.candidate.path));
    let _ = writeln!(out, "  {}", circumstances(verdict));
    for reason in &verdict.reasons {
        let place = reason.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        let _ = writeln!(out, "  {:<6} {}{place} [{}]", "why", plain(&reason.message), reason.code);
        if let Some(help) = &reason.help {
            let _ = writeln!(out, "  {:<6} {}", "next", plain(help));
        }
    }
    if let Some(worst) = worst(verdict) {
        let _ = writeln!(out, "  {:<6} {worst}", "worst");
    }
    for finding in &verdict.findings {
        let _ = writeln!(out, "  {:<6} {} (line {}) [{}]", "seen", plain(&finding.message), finding.line, finding.rule);
    }
    if let Some(opinion) = &verdict.opinion {
        let _ = writeln!(out, "  {:<6} {}", "model", plain(&self::opinion(opinion)));
    }
    for note in &verdict.notes {
        let _ = writeln!(out, "  {:<6} {}", "note", plain(note));
    }
    if !verdict.profiles.is_empty() {
        let _ = writeln!(out, "{}", indent(&profiles(verdict).to_string()));
    }
    if !verdict.resources.is_empty() {
        let _ = writeln!(out, "{}", indent(&resources(verdict).to_string()));
    }
    if !verdict.costs.is_empty() {
        let _ = writeln!(out, "{}", indent(&sanitize::costs(&verdict.costs).to_string()));
    }
    if let Some(timing) = &verdict.timing {
        let _ = writeln!(out, "  {}", self::timing(timing));
    }
    let _ = write!(out, "  {}", stages(verdict));
    out
}

fn timing(timing: &Timing) -> String {
    let Timing { device_us: cold, warm_us: warm, calls, .. } = timing;
    let mut text = format!(
        "{:.2} us device time a call (95 %: {:.2} to {:.2}, {calls} calls), {:.2} us with a warm cache",
        cold.value, cold.low, cold.high, warm.value
    );
    for baseline in &timing.baselines {
        let BaselineTime { baseline: kind, device_us, speedup, graph, .. } = baseline;
        let gaps = if *graph { "" } else { ", gaps between its kernels included" };
        let verdict = if speedup.low > 1.0 {
            "faster"
        } else if speedup.high < 1.0 {
            "slower"
        } else {
            "undecided"
        };
        let _ = write!(
            text,
            "\n  {:.3} x against {} (95 %: {:.3} to {:.3}, {verdict}): {:.2} us{gaps}",
            speedup.value,
            kind.name(),
            speedup.low,
            speedup.high,
            device_us.value
        );
        if let Some(us) = baseline.end_to_end_us {
            let _ = write!(text, ", {us:.1} us end to end");
        }
    }
    if let Some(host) = &timing.host {
        let bound = if host.launch_bound { ": launching takes longer than computing" } else { "" };
        let _ =
            write!(text, "\n  about {:.1} us end to end, of which Python {:.1} us{bound}", host.end_to_end_us, host.us);
    }
    if let Some(limit) = &timing.limit {
        let _ = write!(
            text,
            "\n  {:.0} % of what this device can do: {:.2} us at {:.2} TB/s and {:.0} TFLOP/s",
            limit.fraction * 100.0,
            limit.floor_us,
            limit.bytes_per_second / 1e12,
            limit.flops_per_second / 1e12
        );
    }
    if let [before, .., after] = timing.device.as_slice() {
        let reasons: BTreeSet<&str> =
            timing.device.iter().flat_map(|state| &state.throttled).map(String::as_str).collect();
        let throttled = if reasons.is_empty() {
            String::new()
        } else {
            format!(", held down: {}", Vec::from_iter(reasons).join(", "))
        };
        let _ = write!(
            text,
            "\n  {} to {} MHz, {} to {} degrees{throttled}",
            before.clock_mhz, after.clock_mhz, before.temperature, after.temperature
        );
    }
    text
}

fn opinion(opinion: &Opinion) -> String {
    let answer = match opinion.answer {
        OpinionAnswer::Implements => "implements the operation",
        OpinionAnswer::Doubts => "doubts that it implements the operation",
        OpinionAnswer::NoOpinion => "no opinion",
    };
    let concerns = opinion.concerns.iter().chain([&opinion.text]).map(String::as_str).collect::<Vec<_>>().join("; ");
    format!("{} ({}): {answer}: {concerns} [{}]", opinion.endpoint, seconds(opinion.seconds), opinion.model)
}

fn headline(verdict: &Verdict) -> String {
    let style = style(verdict.fault);
    verdict.verdict.name().if_supports_color(Stream::Stdout, |name| name.style(style)).to_string()
}

/// A verdict's name for standard error, padded to one width.
pub(crate) fn kind(kind: VerdictKind) -> String {
    let style = style(kind.fault());
    format!("{:<14}", kind.name()).if_supports_color(Stream::Stderr, |name| name.style(style)).to_string()
}

fn style(fault: Fault) -> Style {
    match fault {
        Fault::None => Style::new().green().bold(),
        Fault::Candidate => Style::new().red().bold(),
        Fault::Problem | Fault::Infrastructure => Style::new().yellow().bold(),
    }
}

fn circumstances(verdict: &Verdict) -> String {
    let mut parts = vec![format!("problem {}", verdict.problem.path), format!("on {}", verdict.target)];
    if let Some(arch) = &verdict.arch {
        parts.push(format!("compiled for {}", arch_name(arch)));
    }
    parts.push(match verdict.trust {
        Trust::Replay => "trust: replay".into(),
        Trust::Direct => "trust: direct".into(),
    });
    if let Some(weights) = &verdict.weights {
        parts.push(format!("weights by {weights}"));
    }
    parts.join(", ")
}

fn worst(verdict: &Verdict) -> Option<String> {
    let failing = verdict.profiles.values().find(|outcome| !outcome.pass)?;
    let worst = failing.metrics.worst.as_ref()?;
    Some(format!(
        "{}{:?}: got {}, want {} (case {}, {})",
        worst.path, worst.index, worst.got, worst.want, worst.case, worst.regime
    ))
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn profiles(verdict: &Verdict) -> Table {
    let mut table = table(&["profile", "", "max |d|", "rms d / rms", "mean rel", "outside", "robustness"]);
    for (name, outcome) in &verdict.profiles {
        let ProfileOutcome { pass, metrics, robustness, .. } = outcome;
        let Metrics { max_abs, rms, mean_rel, mismatched, elements, .. } = metrics;
        table.add_row([
            name.clone(),
            if *pass { "pass" } else { "fail" }.into(),
            format!("{max_abs:.1e}"),
            format!("{rms:.1e}"),
            format!("{mean_rel:.1e}"),
            format!("{mismatched} of {elements}"),
            robustness.join(", "),
        ]);
    }
    table
}

fn resources(verdict: &Verdict) -> Table {
    let mut table = table(&["kernel", "warps", "stages", "registers", "spilled", "shared", "instructions"]);
    for (name, resources) in &verdict.resources {
        let Resources { registers, spill_bytes, shared_bytes, instructions, num_warps, num_stages, .. } = resources;
        let known = |value: &Option<u32>| value.map_or_else(|| "-".into(), |value| value.to_string());
        table.add_row([
            plain(name),
            num_warps.to_string(),
            num_stages.to_string(),
            known(registers),
            spill_bytes.map_or_else(|| "-".into(), |bytes| format!("{bytes} B")),
            format!("{shared_bytes} B"),
            known(instructions),
        ]);
    }
    table
}

fn stages(verdict: &Verdict) -> String {
    let one = |stage: &tilewright_contract::StageTime| {
        let cached = if stage.cached { " (cached)" } else { "" };
        format!("{} {}{cached}", stage.stage, seconds(stage.seconds))
    };
    verdict.stages.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 0.001 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds:.1} s")
    }
}

/// Foreign text on a terminal. A control character could rewrite what stands above, and a line of its own could look
/// like a verdict.
pub(crate) fn plain(text: &str) -> String {
    let clean = |c: char| match c {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => ' ',
        c if c.is_control() => ' ',
        c => c,
    };
    text.lines().map(|line| line.chars().map(clean).collect::<String>()).collect::<Vec<_>>().join("\n         ")
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {}", line.trim_end())).collect::<Vec<_>>().join("\n")
}
