//! Kernels that are nearly real: Triton IR of the fixtures, edited word by word, and launches of them.

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use arbitrary::{Arbitrary, Unstructured};
use tilewright_emulate::{Arg, Init, Kernel, Limits, Memory, launch};
use tilewright_ttir::{Func, Type, parse};

static FIXTURES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let folders = ["ttir/tests/fixtures", "emulate/tests/fixtures", "emulate/tests/fixtures/planted"];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(crates.join(folder)).expect("fixtures"));
    let mut paths: Vec<_> = files.map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "ttir"));
    paths.sort();
    let texts = paths.iter().map(|path| std::fs::read_to_string(path).expect("text"));
    // Locations only take room.
    let without = |text: String| {
        let lines = text.lines().filter(|line| !line.starts_with("#loc"));
        lines.map(|line| line.split(" loc(").next().unwrap_or_default().to_owned() + "\n").collect::<String>()
    };
    texts.map(without).filter(|text| text.len() < 12_000).collect()
});

#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "0", "1", "2", "3", "7", "8", "16", "31", "32", "64", "100", "1000", "1048576", "2147483647", "-1", "-2147483648",
];
const TYPES: &[&str] = &["i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2"];
/// Words of which one may stand for another: operations and attributes of the same form.
#[rustfmt::skip]
const CLASSES: &[&[&str]] = &[
    &[
        "arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui",
        "arith.andi", "arith.ori", "arith.xori", "arith.shli", "arith.shrsi", "arith.shrui", "arith.maxsi",
        "arith.minsi", "arith.maxui", "arith.minui", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui",
        "tt.mulhiui",
    ],
    &[
        "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.maxnumf", "arith.minnumf",
        "arith.maximumf", "arith.minimumf", "math.atan2", "math.copysign", "math.powf", "tt.precise_divf",
    ],
    &[
        "math.exp", "math.exp2", "math.log", "math.sqrt", "math.floor", "math.erf", "math.tanh", "math.absf",
        "math.round",
    ],
    &[
        "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "eq", "ne",
    ],
    &[
        "add", "fadd", "and", "or", "xor", "max", "min", "umax", "umin", "exch",
    ],
    &[
        "acq_rel", "acquire", "release", "relaxed",
    ],
    &[
        "tf32", "tf32x3", "ieee", "bf16x3", "bf16x6",
    ],
    &[
        "add.s32", "sub.s32", "mul.lo.s32", "and.b32", "bfe.s32", "prmt.b32", "lop3.b32", "cvt.u32.u8",
        "shl.b32", "popc.b32",
    ],
];

#[derive(Debug, Arbitrary)]
enum Edit {
    DropLine(u16),
    DoubleLine(u16, u16),
    SwapLines(u16, u16),
    /// A number of a line.
    Number(u16, u8, u8),
    /// A type in all of the text, or in a line.
    TypeEverywhere(u8, u8),
    Type(u16, u8, u8),
    /// A word by another of its class.
    Word(u16, u8, u8),
    /// A value by another.
    Value(u16, u8, u8),
}

/// An edited kernel, and what its launch is given.
#[derive(Debug)]
pub struct Edited {
    pub text: String,
    grid: u8,
    number: i16,
    bytes: u8,
    options: u8,
}

impl<'a> Arbitrary<'a> for Edited {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let text = u.choose(&FIXTURES)?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (grid, number, bytes, options) = u.arbitrary()?;
        for _ in 0..u.int_in_range(0..=6)? {
            edit(&mut lines, &u.arbitrary()?);
        }
        Ok(Self { text: lines.join("\n"), grid, number, bytes, options })
    }
}

fn edit(lines: &mut Vec<String>, edit: &Edit) {
    if lines.is_empty() {
        return;
    }
    let count = lines.len();
    let at = |line: &u16| usize::from(*line) % count;
    match edit {
        Edit::DropLine(line) => drop(lines.remove(at(line))),
        Edit::DoubleLine(from, to) => lines.insert(at(to), lines[at(from)].clone()),
        Edit::SwapLines(a, b) => lines.swap(at(a), at(b)),
        Edit::Number(line, word, by) => {
            replace(&mut lines[at(line)], *word, |word| word.bytes().all(|b| b.is_ascii_digit()), pick(NUMBERS, *by));
        }
        Edit::Type(line, word, by) => {
            replace(&mut lines[at(line)], *word, |word| TYPES.contains(&word), pick(TYPES, *by));
        }
        Edit::TypeEverywhere(from, to) => {
            let (from, to) = (pick(TYPES, *from), pick(TYPES, *to));
            for line in lines {
                for (open, close) in [("x", ">"), ("ptr<", ">"), (": ", " "), ("(", ")")] {
                    *line = line.replace(&format!("{open}{from}{close}"), &format!("{open}{to}{close}"));
                }
            }
        }
        Edit::Word(line, word, by) => {
            let line = &mut lines[at(line)];
            for class in CLASSES {
                if class.iter().any(|known| line.contains(known)) {
                    return replace(line, *word, |word| class.contains(&word), pick(class, *by));
                }
            }
        }
        Edit::Value(line, word, by) => {
            let values: Vec<&str> =
                lines[at(line)].split(['%', ' ', ',', ')']).filter(|word| !word.is_empty()).collect();
            let other = pick(&values, *by).to_owned();
            replace(&mut lines[at(line)], *word, |word| word.starts_with(|c: char| c.is_ascii_alphanumeric()), &other);
        }
    }
}

fn pick<'a>(items: &[&'a str], at: u8) -> &'a str {
    items.get(usize::from(at) % items.len().max(1)).copied().unwrap_or_default()
}

/// Replaces one of the words that fit.
fn replace(line: &mut String, which: u8, fits: impl Fn(&str) -> bool, by: &str) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let mut words = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        if !is_word(c) {
            if at > start && fits(&line[start..at]) {
                words.push(start..at);
            }
            start = at + c.len_utf8();
        }
    }
    if !words.is_empty() {
        let range = words[usize::from(which) % words.len()].clone();
        line.replace_range(range, by);
    }
}

/// Reads, verifies, lowers and launches it: whatever happens is a report or an error, soon.
pub fn emulate(edited: &Edited) {
    let Ok(module) = parse(&edited.text) else { return };
    let printed = module.to_string();
    assert_eq!(parse(&printed).map(|again| again.to_string()), Ok(printed), "printing is not stable");
    let Some(func) = module.funcs.iter().find(|func| func.public) else { return };
    let Ok(kernel) = Kernel::new(&module, &func.name) else { return };
    let mut memory = Memory::new();
    let args = arguments(func, edited, &mut memory);
    let started = Instant::now();
    let limits = Limits {
        deadline: Some(started + Duration::from_millis(100)),
        poison: edited.bytes,
        reverse: edited.options & 1 != 0,
        go_on: edited.options & 2 != 0,
        births: edited.options & 4 != 0,
        threads: u32::from(edited.options >> 3 & 1) + 1,
        ..Limits::default()
    };
    let grid = [u32::from(edited.grid & 7) + 1, u32::from(edited.grid >> 3 & 1) + 1, 1];
    let _ = launch(&kernel, grid, &args, &mut memory, &limits);
    assert!(started.elapsed() < Duration::from_secs(5), "the deadline was missed by far");
}

fn arguments(func: &Func, edited: &Edited, memory: &mut Memory) -> Vec<Arg> {
    let mut buffer = || {
        let bytes = vec![edited.bytes; 1 << 14];
        let id = memory.alloc("buffer", bytes, Init::Written);
        memory.address(id, 0)
    };
    let params = func.params.iter().map(|value| &func.values[value.0 as usize].ty);
    let argument = |ty: &Type| match ty {
        Type::Ptr(..) => Arg::Pointer(buffer()),
        Type::Float(_) => Arg::Float(f64::from(edited.number) / 7.0),
        Type::TensorDesc(block) => {
            let rank = if let Type::Tensor(shape, _) = &**block { shape.len() } else { 1 };
            let strides = (0..rank).rev().map(|axis| 16i64.pow(axis.min(3) as u32)).collect();
            Arg::Descriptor { base: buffer(), shape: vec![16; rank], strides, pad_nan: edited.options & 16 != 0 }
        }
        _ => Arg::Int(i64::from(edited.number)),
    };
    params.map(argument).collect()
}
