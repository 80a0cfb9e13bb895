use std::process::ExitCode;

use tilewright_search::{Plan, Selection, Window};

use super::generate::{Setup, finish};
use crate::args::{SearchArgs, SelectArg, WindowArg};

/// Exit status: 0 accepted, 1 none accepted, 3 the author, the problem or this machine is in the way.
pub(crate) fn run(args: &SearchArgs) -> anyhow::Result<ExitCode> {
    let window = args.author.window;
    let plan = Plan::Search {
        children: args.node_num,
        rounds: args.max_rounds,
        select: match args.select {
            SelectArg::Reward => Selection::Reward,
            SelectArg::Ucb => Selection::Ucb { explore: args.explore },
        },
        window: match args.context {
            WindowArg::Best => Window::Best(window),
            WindowArg::Last => Window::Last(window),
        },
    };
    let setup = Setup {
        problem: &args.problem,
        author: &args.author,
        budget: &args.budget,
        run: &args.run,
        common: &args.common,
        window,
        wanted: args.node_num.saturating_mul(args.max_rounds),
        // A search looks for more than the first that is right.
        thorough: true,
    };
    let (tree, report, out) = setup.run(plan, None)?;
    finish(&tree, &report, out.as_str(), args.common.json)
}
