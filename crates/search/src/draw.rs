//! Pictures of a run: a circle for each candidate, to the right of the one that it comes from.

mod layout;
mod page;

use std::fmt::Write as _;

use tilewright_contract::{Fault, VerdictKind};

use crate::{Node, Tree};
use layout::Layout;

pub use page::{DrawError, html};

/// Pixels between rounds, between neighbours, and around all.
const COLUMN: f64 = 110.0;
const ROW: f64 = 36.0;
const MARGIN: f64 = 30.0;

/// Room for the number and the speedup beside a circle.
const LABEL: f64 = 75.0;
const MAX_RADIUS: f64 = 16.0;

/// What the colours mean.
const LEGEND: [(&str, &str); 7] = [
    (ACCEPTED, "accepted"),
    (INCORRECT, "incorrect"),
    (FAULT, "fails while it runs"),
    (COMPILE_ERROR, "does not compile"),
    (REJECTED, "rejected"),
    (UNDECIDED, "not decided"),
    (NO_CODE, "no code"),
];
const ACCEPTED: &str = "#2a9d48";
const INCORRECT: &str = "#e07b00";
const FAULT: &str = "#d02f2f";
const COMPILE_ERROR: &str = "#9c6b4e";
const REJECTED: &str = "#a23ab8";
const UNDECIDED: &str = "#c9b400";
const NO_CODE: &str = "#8b8f97";

/// Width and height of the picture in pixels.
fn size(layout: &Layout) -> (f64, f64) {
    (2.0 * MARGIN + COLUMN * layout.columns() + LABEL, 2.0 * MARGIN + ROW * layout.rows())
}

/// The tree as one SVG document. Each circle is in a group with the id `nNUMBER`.
pub fn svg(tree: &Tree) -> String {
    let layout = Layout::of(tree);
    let at = |node: &Node| {
        let (column, row) = layout.place(node.sample);
        (MARGIN + COLUMN * column, MARGIN + ROW * row)
    };
    let (width, height) = size(&layout);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n"
    );
    for node in tree.nodes.values() {
        let Some(parent) = node.parent.and_then(|parent| tree.nodes.get(&parent)) else { continue };
        let ((x, y), (to_x, to_y)) = (at(parent), at(node));
        let middle = (x + to_x) / 2.0;
        let _ = writeln!(
            out,
            "<path d=\"M{x:.0} {y:.1} C{middle:.0} {y:.1} {middle:.0} {to_y:.1} {to_x:.0} {to_y:.1}\" fill=\"none\" stroke=\"#aaa\"/>"
        );
    }
    let best = tree.best().map(|node| node.sample);
    for node in tree.nodes.values() {
        let (x, y) = at(node);
        let hollow = node.checked.is_some() && !node.is_own();
        let (class, fill, ring) = match colour(node) {
            colour if best == Some(node.sample) => ("node best", colour, "#000"),
            colour if hollow => ("node same", "#fff", colour),
            colour => ("node", colour, "none"),
        };
        let _ = writeln!(
            out,
            "<g id=\"n{0}\" class=\"{class}\" role=\"button\" tabindex=\"0\"><title>{1}</title>\
             <rect x=\"{6:.0}\" y=\"{7:.1}\" width=\"{8:.0}\" height=\"{ROW:.0}\" fill-opacity=\"0\"/><circle cx=\"{x:.0}\" cy=\"{y:.1}\" r=\"{2:.1}\" \
             fill=\"{fill}\" stroke=\"{ring}\" stroke-width=\"2.5\"/><text x=\"{3:.0}\" y=\"{4:.1}\" stroke=\"#fff\" stroke-width=\"4\" paint-order=\"stroke\">{5}</text></g>",
            node.sample,
            escaped(&title(node)),
            radius(node),
            x + radius(node) + 6.0,
            y + 3.5,
            label(node),
            x - MAX_RADIUS,
            y - ROW / 2.0,
            MAX_RADIUS + LABEL,
        );
    }
    out + "</svg>\n"
}

fn title(node: &Node) -> String {
    let kind = node.kind().map_or("no verdict", VerdictKind::name);
    format!("{} {kind}: {}", node.sample, node.answer.variant)
}

fn label(node: &Node) -> String {
    match node.speedup() {
        Some(speedup) => format!("{} ({speedup:.2} x)", node.sample),
        None => node.sample.to_string(),
    }
}

/// An area that grows with the speedup.
fn radius(node: &Node) -> f64 {
    let area = match node.speedup() {
        Some(speedup) => speedup.max(0.2),
        None if node.accepted() => 1.0,
        None => 0.5,
    };
    (8.0 * area.sqrt()).min(MAX_RADIUS)
}

fn colour(node: &Node) -> &'static str {
    match node.kind() {
        Some(VerdictKind::Accepted) => ACCEPTED,
        Some(VerdictKind::Rejected) => REJECTED,
        Some(VerdictKind::Incorrect) => INCORRECT,
        Some(VerdictKind::CompileError) => COMPILE_ERROR,
        Some(kind) if kind.fault() == Fault::Candidate => FAULT,
        Some(_) => UNDECIDED,
        None => NO_CODE,
    }
}

fn escaped(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(clean).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
