use std::fmt::Write as _;

use tilewright_contract::VerdictKind;
use tilewright_search::{Node, Tree};

/// A line for each candidate.
pub(super) fn list(tree: &Tree) -> String {
    let best = tree.best().map(|node| node.sample);
    let mut out = String::new();
    for node in tree.nodes.values() {
        let mark = if best == Some(node.sample) { "  <- best" } else { "" };
        let parent = node.parent.map(|parent| format!(" after {parent}")).unwrap_or_default();
        let _ = writeln!(out, "{:>4}  {:<14}  {}{parent}{mark}", node.sample, kind(node), node.answer.variant);
    }
    out
}

/// Figures of two candidates, side by side.
pub(super) fn compare(one: &Node, other: &Node) -> String {
    let mut out =
        format!("{:<24}{:>16}{:>16}\n", "", format!("number {}", one.sample), format!("number {}", other.sample));
    let mut row = |name: &str, value: &dyn Fn(&Node) -> String| {
        let _ = writeln!(out, "{name:<24}{:>16}{:>16}", value(one), value(other));
    };
    row("verdict", &|node| kind(node).into());
    row("reward", &|node| format!("{:.3}", node.reward()));
    row("speedup", &|node| node.speedup().map_or("-".into(), |speedup| format!("{speedup:.3} x")));
    row("lines", &|node| node.answer.source.as_ref().map_or("-".into(), |source| source.lines().count().to_string()));
    row("launches", &|node| node.verdict().map_or("-".into(), |verdict| verdict.costs.len().to_string()));
    row("bytes moved", &|node| {
        let moved = |verdict: &tilewright_contract::Verdict| -> u64 {
            verdict.costs.iter().map(|cost| cost.bytes_loaded + cost.bytes_stored).sum()
        };
        node.verdict().map_or("-".into(), |verdict| moved(verdict).to_string())
    });
    out
}

fn kind(node: &Node) -> &'static str {
    match node.kind() {
        Some(kind) => VerdictKind::name(kind),
        None if node.answer.source.is_err() => "no code",
        None => "not verified",
    }
}
