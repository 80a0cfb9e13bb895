use serde_json::json;
use tilewright_author::Answer;

use super::*;
use crate::{Planned, Settings};

const HOSTILE: &str = "</script><script>alert(1)</script> {{ 7 * 7 }} &\u{1b}[2J";

fn node(sample: u64, parent: Option<u64>, source: &str) -> Node {
    let answer: Answer =
        serde_json::from_value(json!({"variant": HOSTILE, "source": {"Ok": source}, "notes": [HOSTILE]})).unwrap();
    Node { sample, parent, round: 0, answer, checked: None }
}

fn tree() -> Tree {
    let nodes = [(0, None), (1, None), (2, Some(0)), (3, Some(0)), (4, Some(3))];
    Tree {
        rounds: vec![nodes.iter().map(|&(sample, parent)| Planned { sample, parent }).collect()],
        nodes: nodes
            .iter()
            .map(|&(sample, parent)| (sample, node(sample, parent, &format!("a\n{sample}{HOSTILE}\nb"))))
            .collect(),
    }
}

#[test]
fn no_two_candidates_stand_in_one_place_and_lines_join_children_to_parents() {
    let tree = tree();
    let layout = Layout::of(&tree);
    let mut places: Vec<_> = tree.nodes.keys().map(|&sample| layout.place(sample)).collect();
    places.sort_by(|a, b| a.partial_cmp(b).unwrap());
    places.dedup();
    assert_eq!(places.len(), tree.nodes.len());
    assert_eq!((layout.place(4).0, layout.place(2).0), (2.0, 1.0));
    let picture = svg(&tree);
    assert_eq!((picture.matches("<circle").count(), picture.matches("<path").count()), (5, 3));
}

#[test]
fn foreign_text_stays_text() {
    let settings: Settings = serde_json::from_value(json!({
        "schema": Settings::SCHEMA, "problem": {"path": HOSTILE, "digest": "d"}, "author": HOSTILE, "profiles": [], "trials": 1, "seed": 1,
        "goal": {"hardware": "cuda", "device": "cpu", "target": {"backend": "cuda", "arch": "90", "warp_size": 32}},
    }))
    .unwrap();
    let page = html(&settings, &tree()).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the page's own");
    assert!(!page.contains("alert(1)</script>") && !page.contains(">49<") && page.contains("7 * 7"));
    // What the page shows is what was written.
    let (_, data) = page.split_once("type=\"application/json\">").unwrap();
    let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["n3"]["source"], format!("a\n3{HOSTILE}\nb"));
    let diff = data["n4"]["diff"].as_str().unwrap();
    assert!(
        diff.contains(&format!("-3{HOSTILE}")) && diff.contains(&format!("+4{HOSTILE}")) && diff.contains("\n a\n"),
        "{diff}"
    );
    assert!(data["n0"]["diff"].is_null());
}
