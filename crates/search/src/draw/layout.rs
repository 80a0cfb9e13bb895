use std::collections::BTreeMap;

use crate::Tree;

/// Where each candidate stands: its column is its distance from a root, its row lies between those of its children.
pub(super) struct Layout {
    places: BTreeMap<u64, (f64, f64)>,
    rows: f64,
}

impl Layout {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut children: BTreeMap<Option<u64>, Vec<u64>> = BTreeMap::new();
        for node in tree.nodes.values() {
            let parent = node.parent.filter(|parent| tree.nodes.contains_key(parent) && *parent < node.sample);
            children.entry(parent).or_default().push(node.sample);
        }
        let mut layout = Self { places: BTreeMap::new(), rows: 0.0 };
        for &root in children.get(&None).into_iter().flatten() {
            layout.put(root, 0.0, &children);
        }
        layout
    }

    /// Gives the row that it stands in.
    fn put(&mut self, sample: u64, column: f64, children: &BTreeMap<Option<u64>, Vec<u64>>) -> f64 {
        let below: Vec<f64> = children
            .get(&Some(sample))
            .into_iter()
            .flatten()
            .map(|&child| self.put(child, column + 1.0, children))
            .collect();
        let row = match (below.first(), below.last()) {
            (Some(first), Some(last)) => (first + last) / 2.0,
            _ => {
                self.rows += 1.0;
                self.rows - 1.0
            }
        };
        self.places.insert(sample, (column, row));
        row
    }

    pub(super) fn place(&self, sample: u64) -> (f64, f64) {
        self.places.get(&sample).copied().unwrap_or_default()
    }

    pub(super) fn columns(&self) -> f64 {
        self.places.values().map(|&(column, _)| column).fold(0.0, f64::max)
    }

    pub(super) fn rows(&self) -> f64 {
        (self.rows - 1.0).max(0.0)
    }
}
