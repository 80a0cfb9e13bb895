//! What a language model is told: prompts from minijinja files, and which turns of a conversation it still sees.

use std::path::PathBuf;

use minijinja::{Environment, UndefinedBehavior, context};
use tilewright_contract::{Target, VerdictKind};

use crate::{Goal, Hardware, Message, Request, Style, Turn, estimated_tokens, feedback};

/// The prompts that come with the program, by the names under which a folder may replace them.
const BUILT_IN: [(&str, &str); 9] = [
    ("system.j2", include_str!("../prompts/turns/system.j2")),
    ("first.j2", include_str!("../prompts/turns/first.j2")),
    ("rules.j2", include_str!("../prompts/turns/rules.j2")),
    ("short.j2", include_str!("../prompts/turns/short.j2")),
    ("cuda.j2", include_str!("../prompts/turns/cuda.j2")),
    ("ascend.j2", include_str!("../prompts/turns/ascend.j2")),
    ("example.py", include_str!("../prompts/turns/example.py")),
    ("repair.j2", include_str!("../prompts/turns/repair.j2")),
    ("optimise.j2", include_str!("../prompts/turns/optimise.j2")),
];

/// How conversations are led.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// How a verdict is told.
    pub style: Style,
    /// Turns that are shown whole; older ones are named in a line each.
    pub window: usize,
    /// Folder with prompts of the user's own.
    pub prompts: Option<PathBuf>,
}

impl Default for Conversation {
    fn default() -> Self {
        Self { style: Style::Coach, window: 4, prompts: None }
    }
}

/// How much of a conversation is told.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Turns that are shown whole.
    shown: usize,
    /// How the last verdict is told.
    style: Style,
    /// Rules in a few lines, for models that cannot read more.
    short: bool,
    /// Whether the turns that are not shown are named in a line each.
    earlier: bool,
}

impl Conversation {
    /// The messages that ask for a candidate. They have at most `budget` tokens, by estimate: older turns are left out first,
    /// then the last verdict is told in a line, the rules in a few, and the turns that are left out not at all; the problem and
    /// the last candidate always stay.
    pub fn messages(&self, request: &Request<'_>, budget: Option<u64>) -> Result<Vec<Message>, minijinja::Error> {
        let budget = budget.unwrap_or(u64::MAX);
        let mut messages = Vec::new();
        for extent in self.extents(request.turns.len()) {
            messages = self.told(request, extent)?;
            if tokens(&messages) <= budget {
                break;
            }
        }
        Ok(messages)
    }

    /// From all that is worth telling to the least.
    fn extents(&self, turns: usize) -> impl Iterator<Item = Extent> {
        let (most, style) = (turns.min(self.window.max(1)), self.style);
        let least = most.min(1);
        let whole = Extent { shown: most, style, short: false, earlier: true };
        let fewer = (least..=most).rev().map(move |shown| Extent { shown, ..whole });
        let last = Extent { shown: least, style: Style::Line, ..whole };
        let short = Extent { short: true, ..last };
        fewer.chain([last, short, Extent { earlier: false, ..short }])
    }

    fn told(&self, request: &Request<'_>, extent: Extent) -> Result<Vec<Message>, minijinja::Error> {
        let environment = self.environment();
        let Request { goal, text, turns, .. } = request;
        let (hidden, shown) = turns.split_at(turns.len() - extent.shown);
        let hidden = if extent.earlier { hidden } else { &[] };
        let earlier: Vec<String> = hidden.iter().map(|turn| outcome(turn, Style::Line)).collect();
        let hardware = hardware(goal);
        let first = environment.get_template("first.j2")?.render(context! {
            hardware,
            arch => arch_name(&goal.target),
            shared_kib => shared_kib(&goal.target),
            problem => text.trim_end(),
            short => extent.short,
            earlier,
        })?;
        let system = environment.get_template("system.j2")?.render(context! {})?;
        let mut messages = vec![Message::system(system.trim_end()), Message::user(first)];
        for (index, turn) in shown.iter().enumerate() {
            messages.push(Message::assistant(said(turn)));
            let last = index + 1 == shown.len();
            let feedback = outcome(turn, if last { extent.style } else { shorter(extent.style) });
            let accepted = turn.verdict.as_ref().is_some_and(|verdict| verdict.verdict == VerdictKind::Accepted);
            let template = if accepted { "optimise.j2" } else { "repair.j2" };
            let text = environment.get_template(template)?.render(context! { hardware, feedback })?;
            messages.push(Message::user(text));
        }
        Ok(messages)
    }

    fn environment(&self) -> Environment<'static> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let folder = self.prompts.clone();
        environment.set_loader(move |name| {
            let own = folder.as_ref().map(|folder| folder.join(name)).filter(|path| path.is_file());
            if let Some(path) = own {
                return std::fs::read_to_string(&path).map(Some).map_err(|error| {
                    let what = format!("failed to read {}: {error}", path.display());
                    minijinja::Error::new(minijinja::ErrorKind::TemplateNotFound, what)
                });
            }
            Ok(BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned()))
        });
        environment
    }
}

fn tokens(messages: &[Message]) -> u64 {
    messages.iter().map(|message| estimated_tokens(&message.content)).sum()
}

/// The code alone: thoughts and talk of earlier turns only take room.
fn said(turn: &Turn) -> String {
    match &turn.source {
        Ok(source) => format!("```python\n{}\n```", source.trim_end()),
        Err(_) => "(no code)".into(),
    }
}

fn outcome(turn: &Turn, style: Style) -> String {
    match (&turn.verdict, &turn.source) {
        (Some(verdict), source) => feedback(verdict, source.as_deref().unwrap_or_default(), style),
        (None, Err(why)) => why.to_string(),
        (None, Ok(_)) => "it was not checked".into(),
    }
}

/// For verdicts that newer ones have overtaken.
fn shorter(style: Style) -> Style {
    if style == Style::Line { Style::Line } else { Style::Compact }
}

fn hardware(goal: &Goal) -> &'static str {
    match goal.hardware {
        Hardware::Cuda => "cuda",
        Hardware::Ascend => "ascend",
    }
}

/// `sm_90`, `gfx942`.
fn arch_name(target: &Target) -> String {
    if target.backend == "cuda" { format!("sm_{}", target.arch) } else { target.arch.clone() }
}

/// What a program may have. Source: CUDA C++ programming guide, technical specifications per compute capability.
fn shared_kib(target: &Target) -> u32 {
    match target.arch.as_str() {
        "80" => 163,
        "90" | "100" => 227,
        "gfx942" => 64,
        _ => 99,
    }
}
