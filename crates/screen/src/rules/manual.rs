//! The manual: one page a rule, made from the doc comment above the rule.

use std::collections::BTreeMap;

use tilewright_contract::Tier;

use super::ALL;
use super::elsewhere::{CONFIRM, Elsewhere, FLOW, TRACE};

/// One rule as its manual shows it.
#[derive(Debug, Clone)]
pub struct Manual {
    /// Stable id, in kebab case.
    pub id: &'static str,
    /// The gravest tier of its findings.
    pub tier: Tier,
    /// The stages that report it: `screen`, `cut` (part of the screen), `trace`, `confirmation`.
    pub stages: Vec<&'static str>,
    /// Markdown: what it does, why, an example, what to use instead.
    pub text: String,
}

impl Manual {
    /// The first paragraph: what the rule does, in one line.
    pub fn summary(&self) -> String {
        let lines = self.text.lines().skip_while(|line| line.starts_with('#') || line.is_empty());
        lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The whole page, with its title.
    pub fn page(&self) -> String {
        let (tier, stages) = (tier_name(self.tier), self.stages.join(" and "));
        format!("# {}\n\nTier: {tier}. Reported by the {stages}.\n\n{}", self.id, self.text)
    }
}

/// The name of a tier, as documents write it.
pub fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Proof => "proof",
        Tier::Evidence => "evidence",
        Tier::Advice => "advice",
        Tier::Untraceable => "untraceable",
        Tier::Unsupported => "unsupported",
    }
}

/// What keeps a kernel from being cut out: rule ids, and the variant whose doc comment is the manual.
const CUT: [(&str, &str); 7] = [
    ("kernel-captures-value", "Captures"),
    ("kernel-uses-runtime-value", "RuntimeValue"),
    ("kernel-uses-reassigned-name", "Reassigned"),
    ("kernel-uses-foreign-import", "ForeignImport"),
    ("kernel-calls-python", "CallsPython"),
    ("kernel-not-plain", "NotPlain"),
    ("kernel-name-clash", "NameClash"),
];

/// The manual of every rule of every stage, by id.
pub fn manual() -> Vec<Manual> {
    let mut pages = BTreeMap::new();
    for (rule, file) in ALL {
        let text = doc_above(file, "pub(crate) const RULE:");
        pages.insert(rule.id, Manual { id: rule.id, tier: rule.tier, stages: vec!["screen"], text });
    }
    for (id, variant) in CUT {
        let text = doc_above(include_str!("../cut/obstacle.rs"), &format!("{variant},"));
        pages.insert(id, Manual { id, tier: Tier::Untraceable, stages: vec!["cut"], text });
    }
    for (stage, entries) in [("screen", FLOW), ("confirmation", CONFIRM)] {
        for entry in entries {
            let (id, tier, text) = (entry.id, entry.tier, sections(entry));
            pages.insert(id, Manual { id, tier, stages: vec![stage], text });
        }
    }
    for entry in TRACE {
        let page = pages.entry(entry.id).or_insert_with(|| Manual {
            id: entry.id,
            tier: entry.tier,
            stages: Vec::new(),
            text: String::new(),
        });
        if page.stages.is_empty() {
            page.text = sections(entry);
        } else {
            page.text += &format!("\n## In the trace\nTier {}. {}\n", tier_name(entry.tier), entry.what);
        }
        page.stages.push("trace");
    }
    pages.into_values().collect()
}

fn sections(entry: &Elsewhere) -> String {
    let Elsewhere { what, why, instead, .. } = entry;
    format!("## What it does\n{what}\n\n## Why is this bad?\n{why}\n\n## Use instead\n{instead}\n")
}

/// The doc comment directly above the line that starts with `item`, its headings one level down.
fn doc_above(file: &str, item: &str) -> String {
    let mut doc = String::new();
    for line in file.lines() {
        let line = line.trim_start();
        if let Some(text) = line.strip_prefix("///") {
            let text = text.strip_prefix(' ').unwrap_or(text);
            let heading = text.starts_with("# ") && text.chars().nth(2).is_some_and(char::is_uppercase);
            if heading {
                doc.push('#');
            }
            doc.push_str(text);
            doc.push('\n');
        } else if line.starts_with(item) {
            return doc;
        } else {
            doc.clear();
        }
    }
    String::new()
}
