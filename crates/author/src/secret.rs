use std::fmt;
use std::ops::ControlFlow;

use crate::{Listener, Piece};

/// A key. It is shown nowhere: `{:?}` gives a placeholder, and there is no way to serialise it.
#[derive(Clone)]
pub struct Secret(String);

const HIDDEN: &str = "(hidden)";

impl Secret {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for the one header that carries it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The text without the key, should a server have repeated it, also where it is quoted as JSON does.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.into();
        }
        let quoted = serde_json::Value::from(self.0.as_str()).to_string();
        text.replace(quoted.trim_matches('"'), HIDDEN).replace(&self.0, HIDDEN)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HIDDEN)
    }
}

/// A listener that never hears the key, wherever the pieces of an answer are cut.
pub(crate) struct Veil<'k, 'l> {
    key: Option<&'k Secret>,
    listener: &'k mut Listener<'l>,
    /// The end of what came, which may be the beginning of the key, and whether it is a thought.
    held: String,
    thought: bool,
    /// What the listener said last.
    flow: ControlFlow<()>,
}

impl<'k, 'l> Veil<'k, 'l> {
    pub(crate) fn new(key: Option<&'k Secret>, listener: &'k mut Listener<'l>) -> Self {
        Self { key, listener, held: String::new(), thought: false, flow: ControlFlow::Continue(()) }
    }

    pub(crate) fn hear(&mut self, piece: Piece<'_>) -> ControlFlow<()> {
        self.take_in(piece);
        self.flow
    }

    fn take_in(&mut self, piece: Piece<'_>) {
        let (text, thought) = match piece {
            Piece::Text(text) => (text, false),
            Piece::Thought(text) => (text, true),
            Piece::Reading(_) | Piece::Again(_) => return self.pass(piece),
        };
        if thought != self.thought {
            self.end();
            self.thought = thought;
        }
        self.held += text;
        let Some(key) = self.key else { return self.end() };
        let text = self.held.replace(key.expose(), HIDDEN);
        let begun = (1..key.expose().len()).rev().find(|&length| text.ends_with(&key.expose()[..length]));
        let (told, held) = text.split_at(text.len() - begun.unwrap_or(0));
        self.tell(told);
        self.held = held.into();
    }

    /// Nothing follows: what is held back is no key.
    pub(crate) fn end(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.tell(&held);
    }

    fn tell(&mut self, text: &str) {
        if !text.is_empty() {
            self.pass(if self.thought { Piece::Thought(text) } else { Piece::Text(text) });
        }
    }

    /// Who has broken it off hears no more.
    fn pass(&mut self, piece: Piece<'_>) {
        if self.flow.is_continue() {
            self.flow = (self.listener)(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a listener hears of a text that comes in pieces of so many characters.
    fn heard(key: &str, text: &str, size: usize) -> String {
        let key = Secret::new(key);
        let mut heard = String::new();
        let mut listener = |piece: Piece<'_>| {
            if let Piece::Text(text) | Piece::Thought(text) = piece {
                heard += text;
            }
            ControlFlow::Continue(())
        };
        let mut veil = Veil::new(Some(&key), &mut listener);
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            assert!(veil.hear(Piece::Text(&piece.iter().collect::<String>())).is_continue());
        }
        veil.end();
        heard
    }

    #[test]
    fn no_listener_hears_the_key_wherever_the_text_is_cut() {
        for key in ["sk-ab12ab1", "aaaa", "x"] {
            for text in [
                format!("é your key {key} is wrong: {key}{key}"),
                key.into(),
                format!("{}{key}", &key[..key.len() - 1]),
                "no key at all: sk-ab12a".into(),
            ] {
                for size in 1..=text.len() {
                    let heard = heard(key, &text, size);
                    assert!(!heard.contains(key) || HIDDEN.contains(key), "{key} in {heard}");
                    if !text.contains(key) {
                        assert_eq!(heard, text, "nothing else is changed");
                    }
                }
            }
        }
    }

    #[test]
    fn thoughts_and_text_keep_their_order() {
        let key = Secret::new("sk-1");
        let mut heard = String::new();
        let mut listener = |piece: Piece<'_>| {
            match piece {
                Piece::Text(text) => heard += text,
                Piece::Thought(text) => heard += &format!("({text})"),
                Piece::Again(why) => heard += &format!("[{why}]"),
                Piece::Reading(_) => {}
            }
            ControlFlow::Continue(())
        };
        let mut veil = Veil::new(Some(&key), &mut listener);
        for piece in [Piece::Thought("hm sk"), Piece::Text("-1 s"), Piece::Text("k-1"), Piece::Again("lost")] {
            assert!(veil.hear(piece).is_continue());
        }
        assert_eq!(heard, "(hm )(sk)-1 (hidden)[lost]");
    }

    #[test]
    fn a_key_is_hidden_as_it_is_and_as_json_quotes_it() {
        let key = Secret::new(r#"a"b\c"#);
        let told = serde_json::json!({"error": "bad key a\"b\\c"}).to_string();
        assert_eq!(key.hide_in(&told), r#"{"error":"bad key (hidden)"}"#);
        assert_eq!(key.hide_in(r#"bad a"b\c"#), "bad (hidden)");
    }
}
