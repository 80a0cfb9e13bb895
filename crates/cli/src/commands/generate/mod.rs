mod events;
mod live;
mod setup;

use std::process::ExitCode;

use tilewright_search::{Plan, Report, Tree};

use crate::args::GenerateArgs;
use crate::output;
use crate::render;

pub(crate) use live::Live;
pub(crate) use setup::{Prepared, Setup, Shop, on_interrupt};

/// Exit status: 0 accepted, 1 none accepted, 3 the author, the problem or this machine is in the way.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan::Chains { n: args.n, rounds: args.rounds };
    let setup = Setup {
        problem: &args.problem,
        author: &args.author,
        budget: &args.budget,
        run: &args.run,
        common: &args.common,
        window: args.author.window,
        wanted: args.n,
        thorough: false,
    };
    if args.events {
        let (tree, report, out) = setup.run(plan, Some(&events::tell))?;
        events::end(&tree, &report, out.as_str())?;
        return Ok(ExitCode::from(report.exit_code()));
    }
    let (tree, report, out) = setup.run(plan, None)?;
    finish(&tree, &report, out.as_str(), args.common.json)
}

/// Says what came out: the best file on standard output, the rest on standard error.
pub(crate) fn finish(tree: &Tree, report: &Report, out: &str, json: bool) -> anyhow::Result<ExitCode> {
    if tree.rounds.is_empty() {
        // Nothing was asked, and nothing is kept.
        eprintln!("tilewright: {}", report.stop.text());
    } else if let Some(best) = tree.best() {
        if let Some(verdict) = best.verdict() {
            eprintln!("{}", render::verdict(verdict));
        }
        eprintln!("best: {} (number {}) in {out}/best.py", best.answer.variant, best.sample);
        eprintln!("{}", summary(report, out));
    } else {
        match tree.nodes.is_empty() {
            true => eprintln!("there is no candidate"),
            false => eprintln!("no candidate is accepted; tilewright tree {out} shows why"),
        }
        eprintln!("{}", summary(report, out));
    }
    if json {
        output::json(report)?;
    } else if let Some(Ok(source)) = tree.best().map(|best| &best.answer.source) {
        output::text(source)?;
    }
    Ok(ExitCode::from(report.exit_code()))
}

fn summary(report: &Report, out: &str) -> String {
    let usage = report.usage;
    let mut text =
        format!("ended: {}; {} candidates, {} verdicts", report.stop.text(), report.candidates.len(), report.verdicts);
    if usage.tokens() > 0 {
        let about = if usage.estimated { "about " } else { "" };
        text += &format!(", {about}{} + {} tokens", usage.input_tokens, usage.output_tokens);
    }
    if usage.cost > 0.0 {
        text += &format!(", cost {:.4}", usage.cost);
    }
    match report.stop.next() {
        Some(how) => text + &format!("; --out {out} goes on {how}"),
        None => text,
    }
}
