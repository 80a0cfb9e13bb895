//! One candidate as it comes: its text as it is written, then each stage of verifying it. On standard error.

use std::sync::atomic::{AtomicBool, Ordering};

use owo_colors::{OwoColorize, Stream};
use tilewright_author::Piece;
use tilewright_search::Event;

use crate::render;

#[derive(Default)]
pub(super) struct Watch {
    /// Whether the line at the cursor is not at its beginning.
    within_line: AtomicBool,
}

impl Watch {
    pub(super) fn hear(&self, event: Event<'_>) {
        match event {
            Event::Piece { piece: Piece::Reading(tokens), .. } => self.line(&format!("reading {tokens} tokens …")),
            Event::Piece { piece: Piece::Text(text), .. } => self.put(&tame(text)),
            Event::Piece { piece: Piece::Thought(text), .. } => {
                let text = tame(text);
                self.put(&text.if_supports_color(Stream::Stderr, |text| text.dimmed()).to_string());
            }
            Event::Piece { piece: Piece::Again(why), .. } => self.line(&format!("asking again: {}", tame(why))),
            Event::Failed { why, .. } => self.line(&format!("no answer: {}", tame(why))),
            Event::Answered { answer, .. } => {
                let usage = answer.usage;
                let mut text = answer.variant.clone();
                if usage.tokens() > 0 {
                    let rate = usage.output_tokens as f64 / usage.seconds.max(1e-9);
                    text += &format!(
                        ": {} + {} tokens in {}, {rate:.1} a second",
                        usage.input_tokens,
                        usage.output_tokens,
                        render::seconds(usage.seconds)
                    );
                }
                answer.notes.iter().for_each(|note| text += &format!("; {}", tame(note)));
                self.line(&text);
            }
            Event::Stage { stage, .. } => self.put(&format!("{stage} … ")),
            Event::Checked { .. } => self.end(),
            Event::Round { .. } | Event::Asking { .. } => {}
        }
    }

    /// Ends the line at the cursor.
    pub(super) fn end(&self) {
        if self.within_line.swap(false, Ordering::Relaxed) {
            eprintln!();
        }
    }

    fn put(&self, text: &str) {
        if let Some(last) = text.chars().last() {
            eprint!("{text}");
            self.within_line.store(last != '\n', Ordering::Relaxed);
        }
    }

    fn line(&self, text: &str) {
        self.end();
        eprintln!("{text}");
    }
}

/// Foreign text that keeps its lines and does nothing else to a terminal.
fn tame(text: &str) -> String {
    let keep = |c: &char| {
        matches!(c, '\n' | '\t') || !(c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    text.chars().filter(keep).collect()
}
