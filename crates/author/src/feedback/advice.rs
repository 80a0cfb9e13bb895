//! Where an accepted candidate spends its time, and what to try next.

use std::fmt::Write as _;

use tilewright_contract::{LaunchCost, Verdict, VerdictKind};

/// Launches that are listed.
const MAX_LAUNCHES: usize = 12;
/// Accesses are taken to coalesce badly below this quotient.
const COALESCED: f64 = 0.5;
/// Of what the device can do: little is to be gained above.
const NEAR_LIMIT: f64 = 0.85;

/// A table of launches: device time where it was measured, else what the emulator counted.
pub(super) fn kernels(verdict: &Verdict) -> String {
    let mut out = String::new();
    if let Some(timing) = verdict.timing.as_ref().filter(|timing| !timing.launches.is_empty()) {
        let total: f64 = timing.launches.iter().map(|launch| launch.us).sum();
        out += "\nPER-KERNEL TIME\n";
        for launch in timing.launches.iter().take(MAX_LAUNCHES) {
            let share = 100.0 * launch.us / total.max(f64::MIN_POSITIVE);
            let _ = writeln!(out, "{} (line {}): {:.2} us, {share:.0} %", launch.kernel, launch.line, launch.us);
        }
    } else if !verdict.costs.is_empty() {
        out += "\nPER-KERNEL COST\n";
        for cost in verdict.costs.iter().take(MAX_LAUNCHES) {
            let LaunchCost { kernel, line, grid, bytes_loaded, bytes_stored, unique_bytes, .. } = cost;
            let _ = write!(
                out,
                "{kernel} (line {line}): grid {}x{}x{}, {} loaded, {} stored, {} touched",
                grid[0],
                grid[1],
                grid[2],
                bytes(*bytes_loaded),
                bytes(*bytes_stored),
                bytes(*unique_bytes)
            );
            if let Some(coalescing) = cost.coalescing {
                let _ = write!(out, ", coalescing {coalescing:.2}");
            }
            let _ = writeln!(out, ", {} operations", cost.flops + cost.dot_flops);
        }
    }
    for (name, resources) in &verdict.resources {
        if let Some(spilled) = resources.spill_bytes.filter(|&bytes| bytes > 0) {
            let _ = writeln!(out, "{name} spills {spilled} bytes a thread");
        }
    }
    out
}

/// What to try, the most promising first. Never empty.
pub(super) fn next_steps(verdict: &Verdict) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for help in verdict.reasons.iter().filter_map(|reason| reason.help.clone()) {
        if !steps.contains(&help) {
            steps.push(help);
        }
    }
    if verdict.verdict == VerdictKind::Accepted {
        steps.extend(faster(verdict));
    }
    if steps.is_empty() {
        steps.push(by_kind(verdict.verdict).into());
    }
    steps
}

fn by_kind(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Accepted => "try other tile sizes and warps, by triton.autotune",
        VerdictKind::Rejected => {
            "move all computing into @triton.jit kernels; torch may only allocate, copy and give views"
        }
        VerdictKind::Incorrect => {
            "check offsets and masks at the edges first, then the order of operations and the dtype of sums"
        }
        VerdictKind::CompileError => "mend the line that the message names; block sizes are tl.constexpr powers of two",
        VerdictKind::LaunchError => "check arguments, grid and the names of parameters against the reference",
        VerdictKind::MemoryFault => {
            "mask every load and store, and derive offsets from the strides and sizes that are passed"
        }
        VerdictKind::Race => {
            "let each program write elements of its own, or use atomics, or split it into two launches"
        }
        VerdictKind::Nondeterministic => "sum in a fixed order: a second launch instead of atomic additions",
        VerdictKind::Timeout => "less work for each program, and more programs; look for a loop that does not end",
        VerdictKind::OutOfMemory => "do not materialise intermediate results: compute them in blocks",
        VerdictKind::Untraceable => "decide by shapes and dtypes alone: no .item(), no .tolist(), no branch on values",
        VerdictKind::Unsupported => "use a plainer operation for the one that is named",
        VerdictKind::ProblemDefect | VerdictKind::Infrastructure => "nothing: the file is not at fault",
    }
}

fn faster(verdict: &Verdict) -> Vec<String> {
    let mut steps = Vec::new();
    let timing = verdict.timing.as_ref();
    if timing.and_then(|timing| timing.limit.as_ref()).is_some_and(|limit| limit.fraction > NEAR_LIMIT) {
        steps.push(
            "it is near what the device can do: only less traffic or a smaller number of operations helps".into(),
        );
    }
    if let Some(slowest) = timing.and_then(|timing| timing.launches.iter().max_by(|a, b| a.us.total_cmp(&b.us))) {
        steps.push(format!("begin with {} (line {}): it takes the longest", slowest.kernel, slowest.line));
    }
    if let Some(spilling) = verdict.resources.iter().find(|(_, r)| r.spill_bytes.is_some_and(|bytes| bytes > 64)) {
        steps.push(format!("{} spills registers: smaller tiles or more warps", spilling.0));
    }
    for cost in &verdict.costs {
        if cost.coalescing.is_some_and(|quotient| quotient < COALESCED) {
            let LaunchCost { kernel, line, .. } = cost;
            steps.push(format!(
                "{kernel} (line {line}) accesses memory across rows: let neighbours in a block be neighbours in memory"
            ));
        }
        let moved = cost.bytes_loaded.saturating_add(cost.bytes_stored);
        if cost.unique_bytes > 0 && moved / cost.unique_bytes >= 8 && cost.dot_flops > 0 {
            let times = moved / cost.unique_bytes;
            steps.push(format!(
                "{} moves what it touches {times} times: larger tiles, or programs ordered by groups of rows",
                cost.kernel
            ));
        }
    }
    let launches = timing.map_or(verdict.costs.len(), |timing| timing.launches.len());
    if launches > 1 {
        steps.push(format!("{launches} launches: fuse those that only pass a result on"));
    }
    steps
}

fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
