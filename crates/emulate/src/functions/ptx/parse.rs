//! Reads the text of an inline assembly.

use std::collections::HashMap;

use super::arithmetic::by_name;
use super::convert::{self, COMBINATIONS, COMPARISONS};
use super::kinds::{Base, Kind};
use super::{Assembly, Flags, Instruction, Part, Rounding, Run, Source};
use crate::functions::{LaneFn, directed};

/// No kernel's assembly comes near.
const MAX_INSTRUCTIONS: usize = 2000;
const MAX_REGISTERS: usize = 4096;

type Result<T> = std::result::Result<T, String>;

struct Reader {
    instructions: Vec<Instruction>,
    /// Declared registers of each open brace, innermost last.
    scopes: Vec<HashMap<String, usize>>,
    registers: usize,
    operands: usize,
}

pub(super) fn assembly(text: &str, constraints: &str) -> Result<Assembly> {
    let (outputs, inputs) = count(constraints)?;
    let registers = outputs + inputs;
    let mut reader = Reader { instructions: Vec::new(), scopes: vec![HashMap::new()], registers, operands: registers };
    reader.text(&without_comments(text))?;
    Ok(Assembly { instructions: reader.instructions, registers: reader.registers, outputs, inputs })
}

/// Outputs and inputs of a list such as `=r,=f,r,f`; what is clobbered does not count.
fn count(constraints: &str) -> Result<(usize, usize)> {
    let (mut outputs, mut inputs) = (0, 0);
    for constraint in constraints.split(',').map(str::trim).filter(|constraint| !constraint.is_empty()) {
        let letter = constraint.trim_start_matches(['=', '&']);
        match letter {
            _ if constraint.starts_with("~{") => {}
            "r" | "f" | "l" | "d" | "h" | "b" | "c" if constraint.starts_with('=') => outputs += 1,
            "r" | "f" | "l" | "d" | "h" | "b" | "c" => inputs += 1,
            _ => return Err(format!("the constraint `{constraint}`")),
        }
    }
    Ok((outputs, inputs))
}

fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        plain += &rest[..at];
        rest = &rest[at..];
        let end = match rest.as_bytes().get(1) {
            Some(b'/') => rest.find('\n').unwrap_or(rest.len()),
            Some(b'*') => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => {
                plain.push('/');
                1
            }
        };
        plain.push(' ');
        rest = &rest[end..];
    }
    plain + rest
}

impl Reader {
    fn text(&mut self, text: &str) -> Result<()> {
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let next = rest.chars().next();
            if next == Some('{') {
                self.scopes.push(HashMap::new());
                rest = rest[1..].trim_start();
            } else if next == Some('}') {
                self.scopes.pop();
                if self.scopes.is_empty() {
                    return Err("a brace too many".to_owned());
                }
                rest = rest[1..].trim_start();
            } else {
                let end = rest.find(';').unwrap_or(rest.len());
                self.statement(rest[..end].trim())?;
                rest = rest.get(end + 1..).unwrap_or_default().trim_start();
            }
        }
        Ok(())
    }

    fn statement(&mut self, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if let Some(declaration) = text.strip_prefix(".reg") {
            return self.declare(declaration);
        }
        if self.instructions.len() >= MAX_INSTRUCTIONS {
            return Err(format!("more than {MAX_INSTRUCTIONS} instructions"));
        }
        let (guard, text) = self.guard(text)?;
        let (opcode, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if matches!(opcode, "griddepcontrol.wait" | "griddepcontrol.launch_dependents") {
            return Ok(()); // orders launches, which never overlap here
        }
        let mut instruction = self.instruction(opcode, &split(operands))?;
        instruction.guard = guard;
        self.instructions.push(instruction);
        Ok(())
    }

    /// `.b32 a, b<2>`
    fn declare(&mut self, text: &str) -> Result<()> {
        let text = text.trim();
        let (kind, names) = text.split_once(char::is_whitespace).ok_or_else(|| format!("`.reg {text}`"))?;
        kind.strip_prefix('.').and_then(Kind::by_name).ok_or_else(|| format!("registers of type `{kind}`"))?;
        for name in names.split(',').map(str::trim) {
            match name.strip_suffix('>').and_then(|name| name.split_once('<')) {
                Some((stem, count)) => {
                    let count: usize = count.trim().parse().map_err(|_| format!("`{name}`"))?;
                    for at in 0..count.min(MAX_REGISTERS) {
                        self.register(format!("{stem}{at}"))?;
                    }
                }
                None => self.register(name.to_owned())?,
            }
        }
        Ok(())
    }

    fn register(&mut self, name: String) -> Result<()> {
        if self.registers >= MAX_REGISTERS {
            return Err(format!("more than {MAX_REGISTERS} registers"));
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, self.registers);
        }
        self.registers += 1;
        Ok(())
    }

    /// `@p` or `@!p` before an instruction.
    fn guard<'t>(&self, text: &'t str) -> Result<(Option<(usize, bool)>, &'t str)> {
        let Some(rest) = text.strip_prefix('@') else { return Ok((None, text)) };
        let (name, instruction) = rest.split_once(char::is_whitespace).ok_or_else(|| format!("`{text}`"))?;
        let wanted = !name.starts_with('!');
        let register = self.named(name.trim_start_matches('!'))?;
        Ok((Some((register, wanted)), instruction.trim_start()))
    }

    fn named(&self, name: &str) -> Result<usize> {
        if let Some(number) = name.strip_prefix('$') {
            let number = number.trim_start_matches('{').trim_end_matches('}').parse::<usize>();
            return number.ok().filter(|&at| at < self.operands).ok_or_else(|| format!("the operand `{name}`"));
        }
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.copied().ok_or_else(|| match name.starts_with('%') {
            true => format!("the special register `{name}`"),
            false => format!("`{name}`, which is not declared"),
        })
    }

    fn source(&self, text: &str, kind: Kind) -> Result<Source> {
        match constant(text, kind) {
            Some(value) => Ok(Source::Constant(value)),
            None => self.named(text).map(Source::Register),
        }
    }

    fn instruction(&mut self, opcode: &str, operands: &[&str]) -> Result<Instruction> {
        let unknown = || format!("`{opcode}`");
        let mut words = opcode.split('.');
        let name = words.next().unwrap_or_default();
        let modifiers: Vec<&str> = words.collect();
        let kinds: Vec<Kind> = modifiers.iter().filter_map(|word| Kind::by_name(word)).collect();
        let others: Vec<&str> = modifiers.into_iter().filter(|word| Kind::by_name(word).is_none()).collect();
        let mut flags = flags(name, &others).ok_or_else(unknown)?;
        let kind = *kinds.first().ok_or_else(unknown)?;
        let from = kinds.get(1).copied().unwrap_or(kind);
        let base = Instruction {
            run: nothing,
            kind,
            from,
            flags,
            args: Vec::new(),
            outs: Vec::new(),
            guard: None,
            directed: None,
        };
        if name == "mov" {
            return self.moved(base, operands);
        }
        let (run, count): (Run, usize) = match name {
            "cvt" => (convert::convert, if kind.lanes == 2 && from.lanes == 1 { 2 } else { 1 }),
            "setp" => (convert::set_predicate, if others.len() > 1 { 3 } else { 2 }),
            "set" => (convert::set, 2),
            "testp" => (convert::test_float, 1),
            _ => by_name(name, kind).ok_or_else(unknown)?,
        };
        let directed = directed_form(name, kind, flags);
        if name != "cvt" && flags.rounding != Rounding::Nearest && directed.is_none() {
            return Err(unknown());
        }
        let run = if directed.is_some() {
            |i: &Instruction, v: &[u64], out: &mut [u64; 4]| out[0] = i.directed.map_or(0, |f| f(v))
        } else {
            run
        };
        if !fits(name, &kinds, &others) {
            return Err(unknown());
        }
        if name == "setp" {
            // The type compared is the only one.
            flags.piece = 0;
        }
        let (outs, sources) = operands.split_first().ok_or_else(unknown)?;
        // A funnel shift or a permutation names no operand more than it has.
        if sources.len() != count {
            return Err(format!("`{opcode}` with {} operands", sources.len() + 1));
        }
        let outs = outs.split('|').map(|out| self.target(out.trim())).collect::<Result<Vec<_>>>()?;
        let source_kind = |at: usize| match (name, at) {
            ("setp" | "set", 2) => Kind::PREDICATE,
            ("shl" | "shr", 1) | ("shf", _) | ("bfe", 1 | 2) | ("bfi", 2 | 3) => WORD,
            _ => from,
        };
        let args = sources.iter().enumerate().map(|(at, text)| self.source(text, source_kind(at)));
        let args = args.collect::<Result<Vec<_>>>()?;
        Ok(Instruction { run, flags, args, outs, directed, ..base })
    }

    /// A register that is written; `_` is one that nobody reads.
    fn target(&mut self, name: &str) -> Result<usize> {
        if name == "_" {
            self.registers += 1;
            return Ok(self.registers - 1);
        }
        self.named(name)
    }

    /// `mov` of one register, or between one and the pieces in braces.
    fn moved(&mut self, mut base: Instruction, operands: &[&str]) -> Result<Instruction> {
        let [to, from] = operands else { return Err("`mov` without two operands".to_owned()) };
        let pieces = |text: &str| {
            let inner = text.strip_prefix('{')?.strip_suffix('}')?;
            Some(inner.split(',').map(|piece| piece.trim().to_owned()).collect::<Vec<_>>())
        };
        let (outs, sources) = (pieces(to), pieces(from));
        let count = outs.as_ref().or(sources.as_ref()).map_or(1, Vec::len);
        let width = base.kind.bits * base.kind.lanes;
        if count > 4 || outs.is_some() && sources.is_some() || count > 1 && !matches!(width, 16 | 32 | 64) {
            return Err(format!("`mov {to}, {from}`"));
        }
        base.flags.piece = width / count as u32;
        base.outs = match outs {
            Some(outs) => outs.iter().map(|out| self.target(out)).collect::<Result<_>>()?,
            None => vec![self.target(to)?],
        };
        let piece = Kind { bits: base.flags.piece, ..base.kind };
        base.args = match sources {
            Some(sources) => sources.iter().map(|text| self.source(text, piece)).collect::<Result<_>>()?,
            None => vec![self.source(from, base.kind)?],
        };
        base.run = convert::move_bits;
        Ok(base)
    }
}

const WORD: Kind = Kind { base: Base::Unsigned, bits: 32, lanes: 1 };

fn nothing(_: &Instruction, _: &[u64], _: &mut [u64; 4]) {}

/// Operands at the commas outside of braces.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

/// An immediate operand as the bits of a type.
fn constant(text: &str, kind: Kind) -> Option<u64> {
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
    if let Some(digits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
        let single = f32::from_bits(u32::try_from(hexadecimal(digits)?).ok()?);
        return Some(if kind.base == Base::F64 { f64::from(single).to_bits() } else { u64::from(single.to_bits()) });
    }
    if let Some(digits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
        let double = f64::from_bits(hexadecimal(digits)?);
        return Some(if kind.base == Base::F32 { u64::from((double as f32).to_bits()) } else { double.to_bits() });
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits.trim_start()),
        None => (false, text),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if digits.contains('.') || kind.is_float() && kind.lanes == 1 && !digits.starts_with("0x") {
        let value: f64 = text.parse().ok()?;
        return Some(kind.rounded(value, Flags::default(), 0));
    }
    let plain = digits.trim_end_matches(['U', 'u']);
    let value = match (plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")), plain.strip_prefix("0b")) {
        (Some(digits), _) => hexadecimal(digits)?,
        (_, Some(digits)) => u64::from_str_radix(digits, 2).ok()?,
        _ => plain.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

/// What modifiers say; None if one of them is not known.
fn flags(name: &str, words: &[&str]) -> Option<Flags> {
    let mut flags = Flags::default();
    for &word in words {
        match word {
            "ftz" => flags.flush = true,
            "sat" | "satfinite" | "clamp" => flags.saturate = true,
            "NaN" => flags.propagate_nan = true,
            "relu" => flags.relu = true,
            "approx" | "full" => flags.approximate = true,
            "lo" | "wrap" | "l" | "to" => {}
            "hi" | "r" => flags.part = Part::High,
            "wide" => flags.part = Part::Wide,
            "rn" => flags.rounding = Rounding::Nearest,
            "rna" => flags.rounding = Rounding::NearestAway,
            "rz" => flags.rounding = Rounding::Zero,
            "rm" => flags.rounding = Rounding::Down,
            "rp" => flags.rounding = Rounding::Up,
            // To whole numbers.
            "rni" | "rzi" | "rmi" | "rpi" => {
                flags.piece = 1;
                flags.rounding = match word {
                    "rni" => Rounding::Nearest,
                    "rzi" => Rounding::Zero,
                    "rmi" => Rounding::Down,
                    _ => Rounding::Up,
                };
            }
            _ if matches!(name, "setp" | "set") => match COMPARISONS.iter().position(|&known| known == word) {
                Some(at) => flags.comparison |= at as u8,
                None => flags.comparison |= (COMBINATIONS.iter().position(|&known| known == word)? as u8) << 5,
            },
            _ if name == "testp" => {
                let tests = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
                flags.piece = tests.iter().position(|&known| known == word)? as u32;
            }
            _ => return None,
        }
    }
    Some(flags)
}

/// Combinations that are left out: what is not known to be right is refused.
fn fits(name: &str, kinds: &[Kind], others: &[&str]) -> bool {
    let kind = kinds[0];
    let words = match name {
        "cvt" | "dp4a" | "set" => kinds.len() == 2,
        _ => kinds.len() == 1,
    };
    let width = match name {
        "lop3" | "prmt" | "shf" | "dp4a" | "fns" | "sad" | "mul24" => kind.bits == 32,
        "bfe" | "bfi" | "popc" | "clz" | "brev" | "bfind" => matches!(kind.bits, 32 | 64),
        _ => true,
    };
    // Signed and unsigned arithmetic have no packed or bit types; saturation of sums is known for s32 alone.
    let integer = !kind.is_float() && !matches!(name, "cvt" | "setp" | "set");
    let saturates = others.iter().any(|word| matches!(*word, "sat" | "clamp"));
    words && width && (!integer || !saturates || name == "shf" || kind.base == Base::Signed && kind.bits == 32)
        // A shift without a direction, a comparison without a name.
        && (name != "shf" || others.contains(&"l") || others.contains(&"r"))
        && (!matches!(name, "setp" | "set" | "testp") || !others.is_empty())
}

/// The function of an instruction that rounds another way than to the nearest; None if there is none.
fn directed_form(name: &str, kind: Kind, flags: Flags) -> Option<LaneFn> {
    let way = match flags.rounding {
        Rounding::Zero => "rz",
        Rounding::Down => "rd",
        Rounding::Up => "ru",
        Rounding::Nearest | Rounding::NearestAway => return None,
    };
    if kind.lanes > 1 || flags.flush || flags.saturate || flags.relu {
        return None;
    }
    let stem = match (name, kind.base) {
        ("fma", Base::F32) => "fmaf".to_owned(),
        ("fma", Base::F64) => "fma".to_owned(),
        ("add" | "sub" | "mul" | "div" | "sqrt" | "rcp", Base::F32) => format!("f{name}"),
        ("add" | "sub" | "mul" | "div" | "sqrt" | "rcp", Base::F64) => format!("d{name}"),
        _ => return None,
    };
    directed::by_name(&format!("{stem}_{way}"))
}
