//! A position in the text, and the tokens read from there.

/// Why a text is not TTIR, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub message: String,
}

pub(crate) type Result<T, E = ParseError> = std::result::Result<T, E>;

/// Regions, types and attributes nest at most this deep, so that no reader of a module can exhaust its stack.
pub const MAX_NESTING: usize = 100;

#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) pos: usize,
    pub(crate) depth: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, pos: 0, depth: 0 }
    }

    pub(crate) fn error_at<T>(&self, pos: usize, message: impl Into<String>) -> Result<T> {
        let before = &self.text[..pos];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Err(ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        })
    }

    /// "expected …, found …" at the next token.
    pub(crate) fn expected<T>(&mut self, what: &str) -> Result<T> {
        self.skip_space();
        let found = self.next_word();
        self.error_at(self.pos, format!("expected {what}, found {found}"))
    }

    fn next_word(&self) -> String {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return "the end of the text".to_owned();
        };
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        let length = match rest[first.len_utf8()..].find(|c| !word(c)) {
            Some(at) if word(first) || matches!(first, '%' | '#' | '^' | '@' | '!') => first.len_utf8() + at,
            None if word(first) => rest.len(),
            _ => first.len_utf8(),
        };
        let shown: String = rest[..length].chars().take(40).collect();
        format!("`{shown}`")
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    /// Skips white space and `//` comments.
    pub(crate) fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.pos += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.pos += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// The next byte after white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.pos).copied()
    }

    pub(crate) fn peek_is(&mut self, literal: &str) -> bool {
        self.skip_space();
        let Some(after) = self.rest().strip_prefix(literal) else {
            return false;
        };
        let is_word = literal.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        !(is_word && after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$')))
    }

    /// Takes a punctuation mark or a whole word if it comes next.
    pub(crate) fn eat(&mut self, literal: &str) -> bool {
        let found = self.peek_is(literal);
        if found {
            self.pos += literal.len();
        }
        found
    }

    pub(crate) fn expect(&mut self, literal: &str) -> Result<()> {
        if self.eat(literal) { Ok(()) } else { self.expected(&format!("`{literal}`")) }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.pos += length;
        &rest[..length]
    }

    /// A bare word: letters, digits, `_`, `$`, `.`.
    pub(crate) fn word(&mut self, what: &str) -> Result<&'a str> {
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == b'_' => {
                Ok(self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.')))
            }
            _ => self.expected(what),
        }
    }

    /// What follows `%`, `^` or `#` directly: letters, digits and `_$.-`.
    pub(crate) fn suffix(&mut self, what: &str) -> Result<&'a str> {
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '-'));
        if name.is_empty() { self.expected(what) } else { Ok(name) }
    }

    pub(crate) fn digits(&mut self, what: &str) -> Result<u64> {
        self.skip_space();
        let start = self.pos;
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse() {
            Ok(value) => Ok(value),
            Err(_) if digits.is_empty() => self.expected(what),
            Err(_) => self.error_at(start, format!("{what} {digits} is too large")),
        }
    }

    /// A number as written: decimal, hexadecimal or floating, with its sign.
    pub(crate) fn number(&mut self) -> Result<&'a str> {
        self.skip_space();
        let start = self.pos;
        self.pos += usize::from(self.rest().starts_with('-'));
        if self.rest().starts_with("0x") {
            self.pos += 2;
            if self.take_while(|c| c.is_ascii_hexdigit()).is_empty() {
                return self.expected("hexadecimal digits");
            }
            return Ok(&self.text[start..self.pos]);
        }
        if self.take_while(|c| c.is_ascii_digit()).is_empty() {
            self.pos = start;
            return self.expected("a number");
        }
        if self.rest().starts_with('.') {
            self.pos += 1;
            self.take_while(|c| c.is_ascii_digit());
            let mantissa_end = self.pos;
            if self.rest().starts_with(['e', 'E']) {
                self.pos += 1;
                self.pos += usize::from(self.rest().starts_with(['+', '-']));
                if self.take_while(|c| c.is_ascii_digit()).is_empty() {
                    self.pos = mantissa_end;
                }
            }
        }
        Ok(&self.text[start..self.pos])
    }

    /// A quoted string, with its escapes (`\22`, `\n`, `\\`) resolved.
    pub(crate) fn string(&mut self) -> Result<String> {
        self.skip_space();
        let start = self.pos;
        if !self.rest().starts_with('"') {
            return self.expected("a string");
        }
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        let mut value = Vec::new();
        loop {
            match bytes.get(at) {
                None | Some(b'\n') => return self.error_at(start, "this string has no end"),
                Some(b'"') => break,
                Some(b'\\') => {
                    let (byte, length) = match escape(&bytes[at + 1..]) {
                        Some(found) => found,
                        None => return self.error_at(start, "unknown escape in this string"),
                    };
                    value.push(byte);
                    at += 1 + length;
                }
                Some(byte) => {
                    value.push(*byte);
                    at += 1;
                }
            }
        }
        self.pos = at + 1;
        match String::from_utf8(value) {
            Ok(value) => Ok(value),
            Err(_) => self.error_at(start, "this string is not UTF-8"),
        }
    }

    /// Skips a bracketed text whose first character is `open`, and returns it with its brackets.
    pub(crate) fn balanced(&mut self) -> Result<&'a str> {
        self.skip_space();
        let start = self.pos;
        let mut open = Vec::new();
        loop {
            let Some(c) = self.peek() else {
                return self.error_at(start, "this bracket has no end");
            };
            match c {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'{' => open.push(b'}'),
                b'<' => open.push(b'>'),
                b'-' if self.rest().starts_with("->") => self.pos += 1,
                b')' | b']' | b'}' | b'>' if open.pop() != Some(c) => return self.expected("the matching bracket"),
                _ => {}
            }
            self.pos += self.rest().chars().next().map_or(1, char::len_utf8);
            if open.is_empty() {
                return Ok(&self.text[start..self.pos]);
            }
        }
    }

    /// Runs `body` one level deeper, within [`MAX_NESTING`].
    pub(crate) fn enter(&mut self) -> Result<()> {
        if self.depth >= MAX_NESTING {
            return self.error_at(self.pos, format!("nested more than {MAX_NESTING} levels deep"));
        }
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// The byte that an escape stands for, and its length after the backslash.
fn escape(after: &[u8]) -> Option<(u8, usize)> {
    match after {
        [b'n', ..] => Some((b'\n', 1)),
        [b't', ..] => Some((b'\t', 1)),
        [c @ (b'"' | b'\\'), ..] => Some((*c, 1)),
        [high, low, ..] => {
            let digit = |c: &u8| (*c as char).to_digit(16);
            Some(((digit(high)? * 16 + digit(low)?) as u8, 2))
        }
        _ => None,
    }
}
