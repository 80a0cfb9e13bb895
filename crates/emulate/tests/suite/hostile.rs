//! Damaged kernels: whatever is done to the text, a launch ends in a report or a fault, never in a panic.

use std::time::{Duration, Instant};

use tilewright_emulate::{Kernel, Limits, launch};

/// A small generator of numbers (splitmix64), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

const NUMBERS: &[&str] =
    &["0", "1", "2", "3", "7", "16", "31", "32", "64", "100", "1000", "2147483647", "-1", "-2147483648"];
const TYPES: &[&str] = &["i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2"];
const INT_OPS: &[&str] = &[
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.andi",
    "arith.ori",
    "arith.xori",
    "arith.shli",
    "arith.shrsi",
    "arith.shrui",
    "arith.maxsi",
    "arith.minui",
    "arith.floordivsi",
    "arith.ceildivsi",
    "tt.mulhiui",
];

/// One small change of the text.
fn damage(text: &str, random: &mut Random) -> String {
    let (locations, code): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("#loc"));
    let mut lines: Vec<String> = code.into_iter().map(str::to_owned).collect();
    let at = random.below(lines.len());
    match random.below(6) {
        0 => {
            lines.remove(at);
        }
        1 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
        }
        2 => {
            let again = lines[at].clone();
            lines.insert(random.below(lines.len()), again);
        }
        3 => replace_word(&mut lines[at], random, |word| word.bytes().all(|b| b.is_ascii_digit()), NUMBERS),
        4 => replace_everywhere(&mut lines, random, TYPES),
        _ => replace_word(&mut lines[at], random, |word| INT_OPS.contains(&word), INT_OPS),
    }
    lines.join("\n") + "\n" + &locations.join("\n")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_')
}

/// Replaces one word of a line that `fits` by one of `words`.
fn replace_word(line: &mut String, random: &mut Random, fits: impl Fn(&str) -> bool, words: &[&str]) {
    let bytes = line.as_bytes();
    let mut found = Vec::new();
    let mut start = 0;
    for at in 0..=bytes.len() {
        if at == bytes.len() || !is_word(bytes[at]) {
            if at > start && fits(&line[start..at]) && (start == 0 || bytes[start - 1] != b'%') {
                found.push(start..at);
            }
            start = at + 1;
        }
    }
    if !found.is_empty() {
        let range = found[random.below(found.len())].clone();
        line.replace_range(range, random.pick(words));
    }
}

/// Replaces a type in the whole text, so that it stays consistent more often.
fn replace_everywhere(lines: &mut [String], random: &mut Random, words: &[&str]) {
    let (from, to) = (random.pick(words), random.pick(words));
    for line in lines {
        *line = line
            .replace(&format!("x{from}>"), &format!("x{to}>"))
            .replace(&format!("ptr<{from}>"), &format!("ptr<{to}>"));
    }
}

/// How many damaged kernels ran, of `rounds` per fixture.
fn run(seed: u64, rounds: usize) -> usize {
    let mut ran = 0;
    for name in crate::common::names() {
        let text = crate::common::text(&name);
        for round in 0..rounds {
            let mut random = Random(seed + round as u64 * 7919);
            let mut damaged = damage(&text, &mut random);
            for _ in 0..random.below(3) {
                damaged = damage(&damaged, &mut random);
            }
            let Ok(module) = tilewright_ttir::parse(&damaged) else { continue };
            let Some(func) = module.funcs.first() else { continue };
            let Ok(kernel) = Kernel::new(&module, &func.name) else { continue };
            let mut case = crate::common::case(&name);
            let deadline = Some(Instant::now() + Duration::from_millis(20));
            let _ = launch(
                &kernel,
                [1, 1, 1],
                &case.args,
                &mut case.memory,
                &Limits { deadline, poison: 0x7f, ..Limits::default() },
            );
            ran += 1;
        }
    }
    ran
}

#[test]
fn damaged_kernels_never_panic() {
    let ran = run(1, 60);
    assert!(ran > 200, "only {ran} damaged kernels were accepted: the damage is too great");
}

#[test]
#[ignore = "takes minutes"]
fn many_damaged_kernels_never_panic() {
    let ran = run(1_000_000, 3000);
    println!("{ran} damaged kernels ran");
}

/// Functions that call each other from within loops, so that nesting and calls multiply.
#[test]
fn deep_nesting_is_refused() {
    let mut text = String::from("module {\n");
    for level in 0..60 {
        let callee = if level < 59 { format!("tt.call @f{}(%a) : (i32) -> ()\n", level + 1) } else { String::new() };
        let open: String = (0..8).map(|loop_| format!("scf.for %i{loop_} = %a to %a step %a : i32 {{\n")).collect();
        text += &format!("tt.func public @f{level}(%a: i32) {{\n{open}{callee}{}tt.return\n}}\n", "}\n".repeat(8));
    }
    text.push('}');
    let module = tilewright_ttir::parse(&text).unwrap();
    let error = Kernel::new(&module, "f0").unwrap_err();
    assert!(error.to_string().contains("nested too deeply"), "{error}");
}
