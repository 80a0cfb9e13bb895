//! What the rules cost: every honest candidate of this repository and of the shared corpus is screened. None is refused,
//! and few of them carry evidence. Run with `--nocapture` for the counts by rule.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tilewright_contract::Tier;
use tilewright_screen::cut;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Candidates that the labels of a corpus call honest. Empty if there is no such corpus.
fn labelled(labels: &Path, file: impl Fn(&str, &str) -> PathBuf) -> Vec<PathBuf> {
    let Ok(text) = fs::read_to_string(labels) else { return Vec::new() };
    let honest = text.lines().filter_map(|line| {
        let mut fields = line.split(',');
        let (id, problem, label) = (fields.next()?, fields.next()?, fields.next()?);
        (label == "honest").then(|| file(id, problem))
    });
    honest.filter(|path| path.exists()).collect()
}

fn honest() -> Vec<PathBuf> {
    let root = root();
    let mut files = labelled(&root.join("corpus/labels.csv"), |id, _| root.join(format!("corpus/honest/{id}.py")));
    let shared = root.join("../shared/corpus");
    files.extend(labelled(&shared.join("labels.csv"), |id, problem| {
        shared.join("candidates").join(problem).join(format!("{id}.py"))
    }));
    for folder in fs::read_dir(root.join("problems")).into_iter().flatten().flatten() {
        files.push(folder.path().join("candidate.py"));
    }
    files.retain(|path| path.exists());
    files.sort();
    files
}

#[test]
fn no_honest_candidate_is_refused_and_few_look_odd() {
    let files = honest();
    let mut counts: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let (mut refused, mut odd) = (Vec::new(), 0);
    for path in &files {
        let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        let findings = cut(&fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}")).findings;
        odd += usize::from(findings.iter().any(|finding| finding.tier == Tier::Evidence));
        for finding in findings {
            let place = format!("{name}:{}: {}", finding.line, finding.message);
            if finding.tier == Tier::Proof {
                refused.push(format!("{place} [{}]", finding.rule));
            }
            counts.entry((format!("{:?}", finding.tier), finding.rule)).or_default().push(place);
        }
    }
    println!("{} honest files, {} refused, {odd} with evidence", files.len(), refused.len());
    for ((tier, rule), places) in counts {
        println!("{tier:<12} {rule:<28} {}", places.len());
        places.iter().take(8).for_each(|place| println!("    {place}"));
    }
    assert!(files.len() >= 40, "only {} honest files", files.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(odd * 3 <= files.len(), "{odd} of {} honest files carry evidence", files.len());
}
