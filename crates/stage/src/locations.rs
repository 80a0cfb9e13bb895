//! Source locations in Triton IR text. The compiler gets the text without them, so that kernels which differ only in
//! their place in a file are compiled once.

use std::collections::HashMap;

/// The name that the Python side gives the candidate's source, whatever file it came from.
const SOURCE_NAME: &str = "candidate.py";

/// Chains of locations that are longer are not followed.
const MAX_DEPTH: usize = 32;

/// Triton IR text without locations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripped {
    pub text: String,
    /// For each line of `text`, the line in the candidate that it comes from.
    lines: Vec<Option<u32>>,
}

impl Stripped {
    /// The candidate's line behind a 1-based line of the text.
    pub fn source_line(&self, line: u32) -> Option<u32> {
        *self.lines.get((line as usize).checked_sub(1)?)?
    }
}

/// Removes every location: ` loc(…)` after operations and arguments, and the lines that define `#loc…`.
pub fn strip_locations(ttir: &str) -> Stripped {
    let aliases: HashMap<&str, &str> =
        ttir.lines().filter_map(|line| line.strip_prefix("#loc")).filter_map(|line| line.split_once(" = ")).collect();
    let mut text = String::with_capacity(ttir.len());
    let mut lines = Vec::new();
    for line in ttir.lines().filter(|line| !line.starts_with("#loc")) {
        let last = strip_line(line, &mut text);
        text.push('\n');
        lines.push(last.and_then(|location| resolve(location, &aliases, MAX_DEPTH)));
    }
    Stripped { text, lines }
}

/// Copies a line without its locations; gives the last of them.
fn strip_line<'a>(line: &'a str, out: &mut String) -> Option<&'a str> {
    const OPEN: &str = " loc(";
    let mut last = None;
    let (mut copied, mut at) = (0, 0);
    let mut quoted = Quoted::default();
    while at < line.len() {
        let byte = line.as_bytes()[at];
        if !quoted.inside && line.as_bytes()[at..].starts_with(OPEN.as_bytes()) {
            out.push_str(&line[copied..at]);
            let end = closing(line, at + OPEN.len());
            last = Some(&line[at + OPEN.len()..end]);
            at = (end + 1).min(line.len());
            copied = at;
        } else {
            quoted.step(byte);
            at += 1;
        }
    }
    out.push_str(&line[copied..]);
    last
}

/// Where the parenthesis closes whose inside begins at `start`; the end of the line if it does not.
fn closing(line: &str, start: usize) -> usize {
    let mut depth = 0usize;
    let mut quoted = Quoted::default();
    for (at, byte) in line.bytes().enumerate().skip(start) {
        match byte {
            b'(' if !quoted.inside => depth += 1,
            b')' if !quoted.inside && depth == 0 => return at,
            b')' if !quoted.inside => depth -= 1,
            _ => quoted.step(byte),
        }
    }
    line.len()
}

/// Whether a scan is inside a string literal.
#[derive(Default)]
struct Quoted {
    inside: bool,
    escaped: bool,
}

impl Quoted {
    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.inside => self.escaped = true,
            b'"' => self.inside = !self.inside,
            _ => {}
        }
    }
}

/// The candidate's line of a location: its own, or the first that it refers to. In `callsite(A at B)`, A is in the
/// function that is called and B the call.
fn resolve(location: &str, aliases: &HashMap<&str, &str>, depth: usize) -> Option<u32> {
    if let Some((_, rest)) = location.split_once(&format!("\"{SOURCE_NAME}\":")) {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        return digits.parse().ok().filter(|&line| line > 0);
    }
    let depth = depth.checked_sub(1)?;
    location.split("#loc").skip(1).find_map(|part| {
        let name = part.split(|c: char| !c.is_ascii_digit()).next()?;
        resolve(aliases.get(name)?, aliases, depth)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = r##"#loc = loc("candidate.py":11:0)
#loc4 = loc(unknown)
#loc21 = loc("x_ptr"(#loc))
module {
  tt.func public @k(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc)), %n: i32 loc("n"(#loc))) {
    %x = arith.constant dense<1.0> : tensor<4xf32> loc(#loc33)
    %s = tt.elementwise_inline_asm "a loc(b) \" loc(" {pure = true} %x : tensor<4xf32> loc(#loc34)
    ^bb0(%m: f32 loc(callsite(#loc4 at #loc21))):
    tt.return loc(#loc4)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("candidate.py":8:24)
#loc13 = loc("triton/language/standard.py":191:40)
#loc24 = loc("x"(#loc2))
#loc2 = loc("candidate.py":16:15)
#loc33 = loc(callsite(#loc1 at #loc24))
#loc34 = loc(callsite(#loc13 at #loc24))
"##;

    #[test]
    fn locations_go_and_lines_stay_known() {
        let stripped = strip_locations(TEXT);
        assert_eq!(
            stripped.text,
            r#"module {
  tt.func public @k(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %x = arith.constant dense<1.0> : tensor<4xf32>
    %s = tt.elementwise_inline_asm "a loc(b) \" loc(" {pure = true} %x : tensor<4xf32>
    ^bb0(%m: f32):
    tt.return
  }
}
"#
        );
        let lines: Vec<_> = (1..=8).map(|line| stripped.source_line(line)).collect();
        // An operation of Triton's library counts as the line of the call; an unknown place has none.
        assert_eq!(lines, [None, Some(11), Some(8), Some(16), Some(11), None, Some(11), Some(11)]);
        assert_eq!(stripped.source_line(0), None);
        assert_eq!(stripped.source_line(99), None);
    }

    #[test]
    fn a_location_that_refers_to_itself_ends() {
        let text = "#loc1 = loc(\"a\"(#loc2))\n#loc2 = loc(\"b\"(#loc1))\nx loc(#loc1)\n";
        assert_eq!(strip_locations(text).source_line(1), None);
    }

    proptest! {
        #[test]
        fn any_text_can_be_stripped(text in r#"([a-z"\\() #\n=é]|#loc|loc\(|"candidate.py":3:1){0,60}"#) {
            let stripped = strip_locations(&text);
            prop_assert_eq!(stripped.lines.len(), stripped.text.lines().count());
            prop_assert!(stripped.text.len() <= text.len() + 1);
        }

        #[test]
        fn text_without_locations_stays(lines in proptest::collection::vec(r#"[a-z"\\() =é]{0,20}"#, 0..8)) {
            let text: String = lines.iter().filter(|line| !line.contains(" loc(")).map(|line| format!("{line}\n")).collect();
            prop_assert_eq!(strip_locations(&text).text, text);
        }
    }
}
