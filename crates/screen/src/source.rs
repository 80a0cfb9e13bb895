//! From bytes to text with line numbers, as CPython reads a source file.

use ruff_text_size::{TextRange, TextSize};

use crate::ScreenError;

/// Largest candidate, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

const BOM: &str = "\u{feff}";

/// The text of a candidate with `\n` line ends, and where its lines start.
pub(crate) struct Source {
    pub(crate) text: String,
    starts: Vec<u32>,
}

impl Source {
    /// Decodes a candidate: UTF-8 only, a byte order mark allowed, any of Python's three line ends.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ScreenError> {
        if bytes.len() > MAX_BYTES {
            return Err(ScreenError::TooLarge { bytes: bytes.len(), limit: MAX_BYTES });
        }
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err(ScreenError::NotUtf8 { line: 1, offset: 0, hint: "; it looks like UTF-16" });
        }
        if bytes.contains(&0) {
            let at = bytes.iter().position(|&b| b == 0).unwrap_or_default();
            return Err(ScreenError::NulByte { line: line_of(bytes, at) });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let offset = error.valid_up_to();
            ScreenError::NotUtf8 { line: line_of(bytes, offset), offset, hint: "" }
        })?;
        let text = text.strip_prefix(BOM).unwrap_or(text);
        let text = match text.contains('\r') {
            true => text.replace("\r\n", "\n").replace('\r', "\n"),
            false => text.to_owned(),
        };
        check_encoding_cookie(&text)?;
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect::<Vec<_>>();
        Ok(Self { text, starts })
    }

    /// Number of lines, the one after the last line end included.
    pub(crate) fn lines(&self) -> usize {
        self.starts.len()
    }

    /// 1-based line of a byte offset.
    pub(crate) fn line(&self, at: TextSize) -> u32 {
        self.starts.partition_point(|&start| start <= at.to_u32()) as u32
    }

    /// 1-based column of a byte offset, in characters.
    pub(crate) fn column(&self, at: TextSize) -> u32 {
        let start = self.line_start(self.line(at));
        self.text.get(start..at.to_usize()).map_or(1, |before| before.chars().count() as u32 + 1)
    }

    /// Byte offset at which a 1-based line starts.
    pub(crate) fn line_start(&self, line: u32) -> usize {
        self.starts[line as usize - 1] as usize
    }

    pub(crate) fn slice(&self, range: TextRange) -> &str {
        &self.text[range.start().to_usize()..range.end().to_usize()]
    }
}

fn line_of(bytes: &[u8], at: usize) -> u32 {
    bytes[..at].iter().filter(|&&b| b == b'\n').count() as u32 + 1
}

/// Refuses a coding cookie (PEP 263) other than UTF-8: with UTF-7, for one, what we parse is not what Python runs.
fn check_encoding_cookie(text: &str) -> Result<(), ScreenError> {
    for (index, line) in text.split('\n').take(2).enumerate() {
        let line = line.trim_start_matches([' ', '\t', '\x0c']);
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(name) = cookie(comment)
                && !matches!(name.to_ascii_lowercase().replace('_', "-").as_str(), "utf-8" | "utf8" | "utf-8-sig")
            {
                return Err(ScreenError::Encoding { line: index as u32 + 1, name: name.to_owned() });
            }
        } else if !line.is_empty() {
            break;
        }
    }
    Ok(())
}

/// The encoding named by `coding[:=]\s*([-\w.]+)` in a comment.
fn cookie(comment: &str) -> Option<&str> {
    comment.match_indices("coding").find_map(|(at, word)| {
        let rest = comment[at + word.len()..].strip_prefix([':', '='])?.trim_start_matches([' ', '\t']);
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> ScreenError {
        Source::read(bytes).map(|_| ()).unwrap_err()
    }

    #[test]
    fn bytes_that_are_not_plain_utf8_name_their_line() {
        assert_eq!(error(b"x = 1\ny = '\0'\n"), ScreenError::NulByte { line: 2 });
        assert_eq!(error(b"x = 1\n\xff\n"), ScreenError::NotUtf8 { line: 2, offset: 6, hint: "" });
        assert!(matches!(error(b"\xff\xfex\0"), ScreenError::NotUtf8 { line: 1, .. }));
        assert!(matches!(error(&vec![b'#'; MAX_BYTES + 1]), ScreenError::TooLarge { .. }));
    }

    #[test]
    fn only_utf8_cookies_are_read() {
        for good in
            ["# -*- coding: utf-8 -*-", "#!/usr/bin/python\n# vim: fileencoding=UTF_8", "x = 1\n\n# coding: utf-7"]
        {
            assert!(Source::read(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in ["# coding: utf-7", "\n# encoding=latin-1", "#coding:rot13\nx = 1"] {
            assert!(matches!(error(bad.as_bytes()), ScreenError::Encoding { .. }), "{bad}");
        }
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        let source = Source::read("\u{feff}é = 1\r\nb = 2\rc\n".as_bytes()).unwrap();
        assert_eq!(source.text, "é = 1\nb = 2\nc\n");
        let b = TextSize::new(source.text.find('b').unwrap() as u32);
        assert_eq!((source.line(b), source.column(b)), (2, 1));
        assert_eq!(source.column(TextSize::new(3)), 3);
    }
}
