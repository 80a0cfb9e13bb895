//! The rules on the examples in `tests/rules/*.md`.
//!
//! A Python block is a candidate. `# expect: rule` at the end of a line wants that rule to fire on that line,
//! `# evidence: rule` and `# advice: rule` want it with that tier; every other finding is a failure. A kernel is appended to each
//! block, unless its first line is `# as it is`. A block that starts with `# for an Ascend NPU` is screened for that too.

use std::fs;
use std::path::Path;

use tilewright_contract::Tier;
use tilewright_screen::{ascend, cut};

const KERNEL: &str =
    "\nimport triton as _t, triton.language as _tl\n\n\n@_t.jit\ndef _kernel(x):\n    _tl.store(x, 0)\n";

/// Nearly no example launches a kernel, so these are looked for only where a block names them.
const ABOUT_LAUNCHES: [&str; 2] = ["no-launch-reachable", "unreached-kernel"];

/// Each fenced Python block with its heading.
fn blocks(text: &str) -> Vec<(String, String)> {
    let (mut heading, mut open, mut found) = (String::new(), None::<String>, Vec::new());
    for line in text.lines() {
        match &mut open {
            Some(block) if line == "```" => {
                found.push((heading.clone(), std::mem::take(block)));
                open = None;
            }
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line == "```python" => open = Some(String::new()),
            None if line.starts_with('#') => heading = line.to_owned(),
            None => {}
        }
    }
    found
}

fn expected(block: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in block.lines().enumerate() {
        for (mark, tier) in
            [("# expect: ", Tier::Proof), ("# evidence: ", Tier::Evidence), ("# advice: ", Tier::Advice)]
        {
            if let Some((_, rules)) = line.split_once(mark) {
                let rules = rules.split("# ").next().unwrap_or(rules);
                found.extend(rules.split(',').map(|rule| format!("{} {} {tier:?}", index + 1, rule.trim())));
            }
        }
        if line == "# as it is" {
            found.push("0 no-triton-kernel Proof".to_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn rules_fire_where_the_examples_say_and_nowhere_else() {
    let (mut checked, mut wrong) = (0, String::new());
    let mut files: Vec<_> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        for (heading, block) in blocks(&fs::read_to_string(&file).unwrap()) {
            let text = if block.starts_with("# as it is") { block.clone() } else { format!("{block}{KERNEL}") };
            let cut = cut(text.as_bytes()).unwrap_or_else(|error| panic!("{} {heading}: {error}", file.display()));
            let mut findings = cut.findings;
            if block.starts_with("# for an Ascend NPU") {
                findings.extend(ascend(text.as_bytes()).unwrap());
            }
            let told = findings
                .iter()
                .filter(|finding| !ABOUT_LAUNCHES.contains(&finding.rule.as_str()) || block.contains(&finding.rule));
            let mut got: Vec<String> = told.map(|f| format!("{} {} {:?}", f.line, f.rule, f.tier)).collect();
            got.sort();
            let want = expected(&block);
            if got != want {
                let extra: Vec<_> = got.iter().filter(|finding| !want.contains(finding)).collect();
                let missing: Vec<_> = want.iter().filter(|finding| !got.contains(finding)).collect();
                wrong += &format!("{} {heading}\n  extra {extra:?}\n  missing {missing:?}\n", file.display());
            }
            assert!(findings.iter().all(|finding| finding.help.is_some()));
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(checked > 20, "only {checked} blocks");
}
