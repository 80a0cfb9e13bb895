//! Every finding that any stage can make has a page in the manual.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tilewright_contract::Tier;
use tilewright_screen::{cut, manual};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> BTreeSet<String> {
    manual().into_iter().map(|page| page.id.to_owned()).collect()
}

/// The strings that directly follow `before`, spaces and line ends apart.
fn strings_after<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let starts = text.match_indices(before).filter_map(|(at, _)| {
        let rest = text[at + before.len()..].trim_start().strip_prefix('"')?;
        rest.split('"').next()
    });
    starts.collect()
}

#[test]
fn findings_of_the_trace_have_pages() {
    let (pages, mut ids) = (pages(), BTreeSet::new());
    for entry in fs::read_dir(root().join("python/tilewright/cell")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !(name.starts_with("trace") && name.ends_with(".py")) {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        for call in [".find(", ".note(", "\"rule\":", "_find(", "_refuse("] {
            ids.extend(strings_after(&text, call).into_iter().map(str::to_owned));
        }
    }
    for file in walk(&root().join("crates/verify/src"), "rs") {
        let text = fs::read_to_string(file).unwrap();
        ids.extend(strings_after(&text, "rule:").into_iter().map(str::to_owned));
    }
    assert!(ids.contains("torch-compute") && ids.contains("cuda-graph") && ids.len() > 20, "{ids:?}");
    let missing: Vec<_> = ids.difference(&pages).collect();
    assert!(missing.is_empty(), "no page in rules/elsewhere.rs for {missing:?}");
}

#[test]
fn findings_of_the_screen_have_pages_and_the_tier_that_their_page_says_at_most() {
    let (manual, pages) = (manual(), pages());
    let mut files: Vec<_> = walk(&root().join("corpus"), "py");
    files.extend(walk(&root().join("problems"), "py"));
    assert!(files.len() > 100);
    for file in files {
        let Ok(cut) = cut(&fs::read(&file).unwrap()) else { continue };
        for finding in cut.findings {
            assert!(pages.contains(&finding.rule), "{}: {finding:?} has no page", file.display());
            let page = manual.iter().find(|page| page.id == finding.rule).unwrap();
            let graver = finding.tier == Tier::Proof && page.tier != Tier::Proof;
            // `harden` says where: reading the environment in a function, for one.
            assert!(!graver || page.text.contains("Refuses"), "{finding:?} is graver than its page says");
        }
    }
}

fn walk(folder: &Path, wanted: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(walk(&path, wanted));
        } else if path.extension().is_some_and(|extension| extension == wanted) {
            found.push(path);
        }
    }
    found
}

#[test]
fn pages_are_whole() {
    for page in manual() {
        let text = page.page();
        assert!(text.starts_with(&format!("# {}\n\nTier: ", page.id)));
        for heading in ["## What it does\n", "## Why", "nstead\n"] {
            assert!(text.contains(heading), "{} lacks {heading:?}", page.id);
        }
        assert!(page.summary().ends_with('.'), "{}: {:?}", page.id, page.summary());
    }
}
