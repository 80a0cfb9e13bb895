//! A run as it happens, for programs: one JSON line an event on standard output.

use serde_json::{Value, json};
use tilewright_author::Piece;
use tilewright_search::{Event, Report, Tree};

use crate::output;

/// A reader that has gone wants to hear nothing; the run goes on, and its folder holds everything.
pub(crate) fn tell(event: Event<'_>) {
    let _ = output::line(document(event));
}

pub(crate) fn end(tree: &Tree, report: &Report, out: &str) -> anyhow::Result<()> {
    let source = tree.best().and_then(|best| best.answer.source.as_ref().ok());
    Ok(output::line(json!({"event": "report", "source": source, "folder": out, "report": report}))?)
}

fn document(event: Event<'_>) -> Value {
    match event {
        Event::Round { planned } => json!({"event": "round", "planned": planned}),
        Event::Asking { sample, parent } => json!({"event": "asking", "sample": sample, "parent": parent}),
        Event::Piece { sample, piece } => match piece {
            Piece::Reading(tokens) => json!({"event": "reading", "sample": sample, "tokens": tokens}),
            Piece::Text(text) => json!({"event": "text", "sample": sample, "text": text}),
            Piece::Thought(text) => json!({"event": "thought", "sample": sample, "text": text}),
            Piece::Again(why) => json!({"event": "again", "sample": sample, "why": why}),
        },
        Event::Answered { sample, answer } => {
            let (source, why) = match &answer.source {
                Ok(source) => (Some(source), None),
                Err(why) => (None, Some(why.to_string())),
            };
            json!({"event": "answer", "sample": sample, "variant": answer.variant, "source": source, "why": why,
                "usage": answer.usage})
        }
        Event::Stage { sample, stage } => json!({"event": "stage", "sample": sample, "stage": stage}),
        Event::Failed { sample, why } => json!({"event": "failed", "sample": sample, "why": why}),
        Event::Checked { node, best } => {
            json!({"event": "verdict", "sample": node.sample, "best": best, "reward": node.reward(),
                "speedup": node.speedup(), "same_as": node.checked.as_ref().and_then(|checked| checked.same_as),
                "verdict": node.verdict()})
        }
    }
}
