use minijinja::context;
use serde_json::json;
use similar::TextDiff;

use super::{LEGEND, Layout, size, svg};
use crate::{Node, Settings, Tree};

const PAGE: &str = include_str!("../../templates/tree.html");

#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    #[error("failed to draw the page: {0}")]
    Page(#[from] minijinja::Error),
}

/// One page that needs no other file: the tree, and for each candidate its source, what it changed and its verdict.
pub fn html(settings: &Settings, tree: &Tree) -> Result<String, DrawError> {
    let nodes: serde_json::Map<String, serde_json::Value> =
        tree.nodes.values().map(|node| (format!("n{}", node.sample), told(tree, node))).collect();
    // Foreign text within a script element: nothing in it may end the element.
    let data = serde_json::Value::Object(nodes).to_string().replace('<', "\\u003c");
    let (width, _) = size(&Layout::of(tree));
    let page = tilewright_page::environment()?.render_str(
        PAGE,
        context! {
            problem => &settings.problem.path,
            author => &settings.author,
            candidates => tree.nodes.len(),
            verdicts => tree.verdicts(),
            first => tree.best().or(tree.nodes.values().next()).map(|node| format!("n{}", node.sample)),
            // As wide as the picture, up to half of the page.
            columns => format!("min({width:.0}px, 50%)"),
            legend => LEGEND,
            svg => svg(tree),
            data,
        },
    )?;
    Ok(page)
}

fn told(tree: &Tree, node: &Node) -> serde_json::Value {
    let source = node.answer.source.as_ref();
    let parent =
        node.parent.and_then(|parent| tree.nodes.get(&parent)).and_then(|parent| parent.answer.source.as_ref().ok());
    let diff = parent.zip(source.ok()).map(|(parent, own)| {
        TextDiff::from_lines(parent.as_str(), own.as_str()).unified_diff().context_radius(3).to_string()
    });
    json!({
        "title": super::title(node),
        "parent": node.parent,
        "same_as": node.checked.as_ref().and_then(|checked| checked.same_as),
        "speedup": node.speedup(),
        "reward": node.reward(),
        "notes": node.answer.notes,
        "source": source.map_or_else(|why| format!("({why})"), Clone::clone),
        "diff": diff,
        "reasons": node.verdict().map(|verdict| &verdict.reasons),
        "verdict": node.verdict(),
    })
}
