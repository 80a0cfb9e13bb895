use std::process::ExitCode;

use anyhow::Context;
use camino::Utf8Path;
use tilewright_contract::Tier;
use tilewright_screen::{Manual, manual, tier_name};

use super::usage;
use crate::args::RuleArgs;
use crate::output;

pub(crate) fn run(args: &RuleArgs) -> anyhow::Result<ExitCode> {
    let pages = manual();
    match (&args.id, &args.pages) {
        (Some(id), _) => {
            let page = pages.iter().find(|page| page.id == id);
            let page = page.ok_or_else(|| usage(format!("no rule {id:?}: `tilewright rule` lists them")))?;
            output::text(page.page())?;
        }
        (None, Some(folder)) => write(&pages, folder).map_err(|error| usage(format!("--pages: {error:#}")))?,
        (None, None) => {
            let line = |page: &Manual| format!("{:<12} {:<28} {}\n", tier_name(page.tier), page.id, page.summary());
            output::text(pages.iter().map(line).collect::<String>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One page a rule, and `README.md` as their index by tier.
fn write(pages: &[Manual], folder: &Utf8Path) -> anyhow::Result<()> {
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {path}"))
    };
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make {folder}"))?;
    for page in pages {
        put(&format!("{}.md", page.id), page.page())?;
    }
    put("README.md", index(pages))
}

fn index(pages: &[Manual]) -> String {
    let mut out = String::from("# Rules\n\nGenerated from the code: `tilewright rule ID` prints a page.\n");
    for (tier, title) in [
        (Tier::Proof, "Proof: refuses a candidate alone"),
        (Tier::Evidence, "Evidence: reported, the trace decides"),
        (Tier::Advice, "Advice: feedback for the author"),
        (Tier::Untraceable, "Untraceable: the file cannot be followed here"),
        (Tier::Unsupported, "Unsupported: a feature that is missing here"),
    ] {
        out += &format!("\n## {title}\n\n| rule | reported by | what it does |\n|---|---|---|\n");
        for page in pages.iter().filter(|page| page.tier == tier) {
            let summary = page.summary().replace('|', "\\|");
            out += &format!("| [{0}]({0}.md) | {1} | {summary} |\n", page.id, page.stages.join(", "));
        }
    }
    out
}
