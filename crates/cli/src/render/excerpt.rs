//! Excerpts of a source with marks under places.

use std::fmt::Write as _;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};

/// Longest line that is quoted, in characters.
const LONGEST_LINE: usize = 300;

/// A place in a source, and what to say there.
pub(crate) struct Mark {
    /// From 1; 0 is no place.
    pub(crate) line: u32,
    /// From 1; 0 is the whole line.
    pub(crate) column: u32,
    pub(crate) text: Option<String>,
}

/// Shows messages with excerpts of one file.
pub(crate) struct Excerpts {
    path: String,
    text: String,
    handler: GraphicalReportHandler,
}

impl Excerpts {
    pub(crate) fn new(path: &str, bytes: &[u8], colours: bool) -> Self {
        let colours = colours && std::env::var_os("NO_COLOR").is_none();
        let theme = if colours { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        Self {
            path: path.to_owned(),
            text: printable(&tilewright_screen::decode(bytes).unwrap_or_default()),
            handler: GraphicalReportHandler::new_themed(theme).with_width(110),
        }
    }

    /// A message over the excerpts of its marks; the first mark gives the place of a message without excerpts.
    pub(crate) fn show(&self, mut diagnostic: MietteDiagnostic, marks: &[Mark]) -> String {
        let spans: Vec<LabeledSpan> = marks
            .iter()
            .filter_map(|mark| {
                span(mark, &self.text).map(|(start, length)| LabeledSpan::new(mark.text.clone(), start, length))
            })
            .collect();
        let line = marks.first().map_or(0, |mark| mark.line);
        let place = if line > 0 { format!("{}:{line}", self.path) } else { self.path.clone() };
        let plain = format!("{place}: {}", diagnostic.message);
        let report = if spans.is_empty() {
            diagnostic.message.clone_from(&plain);
            Report::new(diagnostic)
        } else {
            Report::new(diagnostic.with_labels(spans)).with_source_code(NamedSource::new(&self.path, self.text.clone()))
        };
        let mut out = String::new();
        // Writing into a string fails only if an excerpt cannot be made; the message is shown in any case.
        if self.handler.render_report(&mut out, report.as_ref()).is_err() {
            let _ = writeln!(out, "{plain}");
        }
        out
    }
}

/// Byte offset and length of what a mark points to: the dotted name at its place, or the whole line. None if it has no
/// place, or its line is too long to be quoted.
fn span(mark: &Mark, text: &str) -> Option<(usize, usize)> {
    let line = text.split('\n').nth((mark.line as usize).checked_sub(1)?)?;
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    if line.chars().count() > LONGEST_LINE {
        return None;
    }
    let Some(column) = (mark.column as usize).checked_sub(1) else {
        let indent = line.len() - line.trim_start().len();
        return Some((start + indent, line.trim().len()));
    };
    let at = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let rest = &line[at..];
    let named = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
    let first = rest.chars().next().map_or(0, char::len_utf8);
    Some((start + at, named.max(first)))
}

/// The text without what could play tricks on a terminal, character for character.
fn printable(text: &str) -> String {
    let replace = |c: char| match c {
        '\n' | '\t' => c,
        // Characters that change the direction of writing hide what a line says.
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(replace).collect()
}
