use std::fmt::Write as _;

use owo_colors::{OwoColorize, Stream};
use tilewright_search::{Node, Tree};

use super::{plain, style};

/// Characters of a reason.
const MAX_WHY: usize = 100;

/// A run's candidates, each below the one that it comes from.
pub(crate) fn tree(tree: &Tree) -> String {
    let mut out = String::new();
    let best = tree.best().map(|node| node.sample);
    let roots: Vec<&Node> = tree.nodes.values().filter(|node| node.parent.is_none()).collect();
    for root in roots {
        branch(&mut out, tree, root, best, "", None);
    }
    out
}

/// `last`: whether it is the last child of its parent.
fn branch(out: &mut String, tree: &Tree, node: &Node, best: Option<u64>, indent: &str, last: Option<bool>) {
    let (mark, deeper) = match last {
        None => ("", String::new()),
        Some(true) => ("└─ ", format!("{indent}   ")),
        Some(false) => ("├─ ", format!("{indent}│  ")),
    };
    let _ = writeln!(out, "{indent}{mark}{}", line(node, best == Some(node.sample)));
    let children: Vec<&Node> = tree.nodes.values().filter(|child| child.parent == Some(node.sample)).collect();
    for (index, child) in children.iter().enumerate() {
        branch(out, tree, child, best, &deeper, Some(index + 1 == children.len()));
    }
}

fn line(node: &Node, best: bool) -> String {
    let what = match node.kind() {
        Some(kind) => {
            let style = style(kind.fault());
            kind.name().if_supports_color(Stream::Stdout, |name| name.style(style)).to_string()
        }
        None if node.answer.source.is_err() => "no code".into(),
        None => "not verified".into(),
    };
    let mut text = format!("{} {what}  {}", node.sample, plain(&node.answer.variant));
    if let Some(speedup) = node.speedup() {
        let _ = write!(text, ", {speedup:.2} x");
    }
    if let Some(other) = node.checked.as_ref().and_then(|checked| checked.same_as) {
        let _ = write!(text, ", the same as {other}");
    } else if let Some(reason) = node.verdict().and_then(|verdict| verdict.reasons.first()) {
        let why: String = plain(&reason.message).lines().next().unwrap_or_default().chars().take(MAX_WHY).collect();
        let _ = write!(text, ": {why}");
    }
    if best {
        text += "  <- best";
    }
    text
}
