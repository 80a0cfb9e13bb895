//! The language of `--args` and `--grid`.
//!
//! ```text
//! argument  NAME=VALUE
//! VALUE     TENSOR | NUMBER[:TYPE] | true | false | none | DTYPE | TEXT
//! TENSOR    DTYPE[EXTENT, …][:FILL]  |  [DTYPE]@FILE.npy
//! EXTENT    INTEGER | NAME of an integer argument
//! FILL      uninit | zeros | ones | NUMBER | arange[(start, step)] | randn[(mean, std)] | rand[(low, high)] | randint(low, high)
//! grid      SIZE[,SIZE[,SIZE]]
//! SIZE      INTEGER | NAME | cdiv(SIZE, SIZE)
//! ```

use std::num::{IntErrorKind, ParseIntError};

use tilewright_contract::{Constexpr, Distribution, Dtype, Number};
use tilewright_verify::Fill;

/// An argument as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Written {
    Tensor {
        dtype: Dtype,
        shape: Vec<Size>,
        fill: Fill,
    },
    /// A tensor from a file, converted to `dtype`.
    File {
        dtype: Option<Dtype>,
        path: String,
    },
    Value {
        value: Constexpr,
        ty: Option<String>,
    },
}

/// An extent of a tensor or of the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Size {
    Number(u64),
    Name(String),
    Cdiv(Box<Size>, Box<Size>),
}

/// One element of `--args`.
pub(super) fn argument(text: &str) -> Result<(String, Written), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is no NAME=VALUE"))?;
    let (name, value) = (name.trim(), value.trim());
    if !is_name(name) {
        return Err(format!("{name:?} is no name of a parameter (in {text:?})"));
    }
    let written = written(value).map_err(|why| format!("{name}: {why}"))?;
    Ok((name.to_owned(), written))
}

fn written(text: &str) -> Result<Written, String> {
    if let Some((dtype, path)) = text.split_once('@').filter(|(before, _)| before.is_empty() || is_name(before)) {
        let dtype = if dtype.is_empty() { None } else { Some(self::dtype(dtype)?) };
        return Ok(Written::File { dtype, path: path.to_owned() });
    }
    if let Some((dtype, rest)) = text.split_once('[').filter(|(before, _)| is_name(before)) {
        return tensor(dtype, rest);
    }
    value(text)
}

fn tensor(dtype: &str, rest: &str) -> Result<Written, String> {
    let dtype = self::dtype(dtype)?;
    let (shape, rest) = rest.split_once(']').ok_or("the shape's `]` is missing")?;
    let shape = list(shape).into_iter().map(size).collect::<Result<_, _>>()?;
    let fill = match rest.strip_prefix(':') {
        Some(text) => fill(text, dtype)?,
        None if rest.is_empty() => Fill::Unwritten,
        None => return Err(format!("{rest:?} after the shape: give :FILL")),
    };
    Ok(Written::Tensor { dtype, shape, fill })
}

fn fill(text: &str, dtype: Dtype) -> Result<Fill, String> {
    let (name, numbers) = called(text)?;
    let both = |first: Number, second: Number| match &numbers[..] {
        [] => Ok((first, second)),
        [a, b] => Ok((*a, *b)),
        _ => Err(format!("{name} takes two numbers")),
    };
    let none = |fill: Fill| if numbers.is_empty() { Ok(fill) } else { Err(format!("{name} takes no numbers")) };
    let float = |fill: Fill| {
        if dtype.is_float() { Ok(fill) } else { Err(format!("{name} fills floats, not {}", dtype.name())) }
    };
    match name {
        "uninit" => none(Fill::Unwritten),
        "zeros" => none(Fill::Value(Number::Int(0))),
        "ones" => none(Fill::Value(Number::Int(1))),
        "arange" => {
            let (start, step) = both(Number::Int(0), Number::Int(1))?;
            Ok(Fill::Count { start, step })
        }
        "randn" => {
            let (mean, std) = both(Number::Float(0.0), Number::Float(1.0))?;
            if std.as_f64() < 0.0 {
                return Err("randn's standard deviation is negative".into());
            }
            float(Fill::Random(Distribution::Normal { mean: mean.as_f64(), std: std.as_f64() }))
        }
        "rand" => {
            let (low, high) = both(Number::Float(0.0), Number::Float(1.0))?;
            float(Fill::Random(Distribution::Uniform { low: low.as_f64(), high: high.as_f64() }))
        }
        "randint" => match numbers[..] {
            [Number::Int(low), Number::Int(high)] if low < high => {
                Ok(Fill::Random(Distribution::Randint { low, high }))
            }
            _ => Err("randint takes (low, high), two integers of which the second is greater".into()),
        },
        _ => number(name).filter(|_| numbers.is_empty()).map(Fill::Value).ok_or_else(|| {
            format!(
                "unknown fill {text:?}: give uninit, zeros, ones, a number, arange, randn, rand or randint(low, high)"
            )
        }),
    }
}

/// `name(number, …)` or `name`.
fn called(text: &str) -> Result<(&str, Vec<Number>), String> {
    let Some((name, rest)) = text.split_once('(') else { return Ok((text, Vec::new())) };
    let inside = rest.strip_suffix(')').ok_or_else(|| format!("the `)` of {text:?} is missing"))?;
    let each = |text: &str| number(text).ok_or_else(|| format!("{text:?} is no number"));
    Ok((name, list(inside).into_iter().map(each).collect::<Result<_, _>>()?))
}

fn value(text: &str) -> Result<Written, String> {
    let plain = |value| Ok(Written::Value { value, ty: None });
    match text {
        "" => return Err("there is no value after the `=`".into()),
        "none" | "None" => return plain(Constexpr::None),
        _ => {}
    }
    if is_long(text) {
        return plain(Constexpr::Integer { value: text.to_owned() });
    }
    if let Some(value) = number(text) {
        return plain(Constexpr::Number { value });
    }
    if let Some((before, ty)) = text.rsplit_once(':')
        && let Some(value) = number(before)
    {
        return Ok(Written::Value { value: Constexpr::Number { value }, ty: Some(scalar_type(ty)?) });
    }
    let quoted = ['"', '\''].iter().find_map(|&quote| text.strip_prefix(quote)?.strip_suffix(quote));
    if let Some(text) = quoted {
        return plain(Constexpr::Str { value: text.to_owned() });
    }
    match self::dtype(text.strip_prefix("tl.").unwrap_or(text)) {
        Ok(dtype) => plain(Constexpr::Dtype { value: triton_name(dtype).to_owned() }),
        Err(_) => plain(Constexpr::Str { value: text.to_owned() }),
    }
}

/// `true`, `12`, `0x10`, `1_000`, `1e-5`, `inf`, `nan`.
fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    match text {
        "true" | "True" => return Some(Number::Bool(true)),
        "false" | "False" => return Some(Number::Bool(false)),
        _ => {}
    }
    integer(text).ok().or_else(|| text.replace('_', "").parse().ok().map(Number::Float))
}

fn integer(text: &str) -> Result<Number, ParseIntError> {
    let digits = text.replace('_', "");
    let (digits, radix) = match digits.split_once("0x") {
        Some((sign @ ("" | "-"), hex)) => (format!("{sign}{hex}"), 16),
        _ => (digits, 10),
    };
    let unsigned = || u64::from_str_radix(&digits, radix).map(Number::Unsigned);
    i64::from_str_radix(&digits, radix).map(Number::Int).or_else(|error| unsigned().map_err(|_| error))
}

/// Whether it is an integer that 64 bits do not hold.
fn is_long(text: &str) -> bool {
    let overflow = |error: ParseIntError| matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
    integer(text).is_err_and(overflow)
}

/// `--grid`.
pub(super) fn grid(text: &str) -> Result<Vec<Size>, String> {
    let sizes = list(text).into_iter().map(size).collect::<Result<Vec<_>, _>>()?;
    match sizes.len() {
        1..=3 => Ok(sizes),
        count => Err(format!("a grid has 1 to 3 sizes, not {count}: give X[,Y[,Z]]")),
    }
}

fn size(text: &str) -> Result<Size, String> {
    let text = text.trim();
    if let Some(inside) = text.strip_prefix("cdiv(").and_then(|rest| rest.strip_suffix(')')) {
        return match &list(inside)[..] {
            [a, b] => Ok(Size::Cdiv(Box::new(size(a)?), Box::new(size(b)?))),
            _ => Err(format!("{text:?}: cdiv takes two sizes")),
        };
    }
    if is_name(text) {
        return Ok(Size::Name(text.to_owned()));
    }
    let number = text.replace('_', "").parse().map(Size::Number);
    number.map_err(|_| format!("{text:?} is no size: give an integer, the name of an integer argument, or cdiv(a, b)"))
}

impl Size {
    /// Its value, names looked up among the integer arguments.
    pub(super) fn resolve(&self, lookup: &impl Fn(&str) -> Option<i64>) -> Result<u64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => match lookup(name).map(u64::try_from) {
                Some(Ok(value)) => Ok(value),
                Some(Err(_)) => Err(format!("{name} is negative")),
                None => Err(format!("there is no integer argument {name}")),
            },
            Self::Cdiv(a, b) => match b.resolve(lookup)? {
                0 => Err("cdiv divides by zero".into()),
                divisor => Ok(a.resolve(lookup)?.div_ceil(divisor)),
            },
        }
    }
}

/// Parts between commas that are not in parentheses.
fn list(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let (mut depth, mut start, mut parts) = (0usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_') && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// A dtype under torch's, Triton's, NumPy's or a short name.
fn dtype(name: &str) -> Result<Dtype, String> {
    Ok(match name {
        "bool" | "i1" | "int1" => Dtype::Bool,
        "u8" | "uint8" => Dtype::U8,
        "u16" | "uint16" => Dtype::U16,
        "u32" | "uint32" => Dtype::U32,
        "u64" | "uint64" => Dtype::U64,
        "i8" | "int8" => Dtype::I8,
        "i16" | "int16" => Dtype::I16,
        "i32" | "int32" => Dtype::I32,
        "i64" | "int64" => Dtype::I64,
        "fp8e4m3fn" | "fp8e4m3" | "f8e4m3" | "fp8e4nv" | "float8e4nv" | "float8_e4m3fn" => Dtype::F8E4M3,
        "fp8e5m2" | "f8e5m2" | "fp8e5" | "float8e5" | "float8_e5m2" => Dtype::F8E5M2,
        "f16" | "fp16" | "float16" | "half" => Dtype::F16,
        "bf16" | "bfloat16" => Dtype::Bf16,
        "f32" | "fp32" | "float32" | "float" => Dtype::F32,
        "f64" | "fp64" | "float64" | "double" => Dtype::F64,
        _ => {
            return Err(format!(
                "unknown dtype {name:?}: give bool, u8 to u64, i8 to i64, fp8e4m3fn, fp8e5m2, f16, bf16, f32 or f64"
            ));
        }
    })
}

/// The name under which Triton makes a dtype.
fn triton_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool => "int1",
        Dtype::F8E4M3 => "fp8e4nv",
        Dtype::F8E5M2 => "fp8e5",
        Dtype::F16 => "fp16",
        Dtype::Bf16 => "bf16",
        Dtype::F32 => "fp32",
        Dtype::F64 => "fp64",
        other => other.name(),
    }
}

/// Triton's type of a scalar parameter.
fn scalar_type(name: &str) -> Result<String, String> {
    let dtype = dtype(name)?;
    match dtype {
        Dtype::F8E4M3 | Dtype::F8E5M2 => Err(format!("a number is not passed as {name}: give f16, bf16, f32 or f64")),
        Dtype::Bool => Ok("u1".into()),
        dtype => Ok(tilewright_replay::pointer_type(dtype)[1..].to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(text: &str) -> (Dtype, Vec<Size>, Fill) {
        match argument(&format!("x={text}")).unwrap().1 {
            Written::Tensor { dtype, shape, fill } => (dtype, shape, fill),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn scalar(text: &str) -> (Constexpr, Option<String>) {
        match argument(&format!("x={text}")).unwrap().1 {
            Written::Value { value, ty } => (value, ty),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn tensors_of_every_fill() {
        let size = Size::Number;
        let (dtype, shape, fill) = tensor("f32[4, n]");
        assert_eq!((dtype, shape, fill), (Dtype::F32, vec![size(4), Size::Name("n".into())], Fill::Unwritten));
        assert_eq!(tensor("bf16[]:ones"), (Dtype::Bf16, vec![], Fill::Value(Number::Int(1))));
        assert_eq!(tensor("i64[cdiv(n,2)]:-3").2, Fill::Value(Number::Int(-3)));
        assert_eq!(
            tensor("f64[2]:arange(0.5, -1)").2,
            Fill::Count { start: Number::Float(0.5), step: Number::Int(-1) }
        );
        let random = |text| match tensor(text).2 {
            Fill::Random(distribution) => distribution,
            other => panic!("{other:?}"),
        };
        assert_eq!(random("f16[2]:randn"), Distribution::Normal { mean: 0.0, std: 1.0 });
        assert_eq!(random("fp8e5m2[2]:rand(-1,1)"), Distribution::Uniform { low: -1.0, high: 1.0 });
        assert_eq!(random("u8[2]:randint(0,255)"), Distribution::Randint { low: 0, high: 255 });
        let file = |dtype| Written::File { dtype, path: "a/b.npy".into() };
        assert_eq!(argument("x=@a/b.npy").unwrap().1, file(None));
        assert_eq!(argument("x=bf16@a/b.npy").unwrap().1, file(Some(Dtype::Bf16)));
    }

    #[test]
    fn values_of_every_kind() {
        let number = |value| (Constexpr::Number { value }, None);
        assert_eq!(scalar("1_024"), number(Number::Int(1024)));
        assert_eq!(scalar("-1e-5"), number(Number::Float(-1e-5)));
        assert_eq!(scalar("true"), number(Number::Bool(true)));
        assert_eq!(scalar("0x10"), number(Number::Int(16)));
        assert_eq!(scalar("-0x1_0"), number(Number::Int(-16)));
        assert_eq!(scalar("inf"), number(Number::Float(f64::INFINITY)));
        for long in [
            "18446744073709551616",
            "-9223372036854775809",
            "-0x1_0000_0000_0000_0000",
            "1_000_000_000_000_000_000_000",
        ] {
            assert_eq!(scalar(long), (Constexpr::Integer { value: long.into() }, None));
        }
        assert_eq!(scalar("9223372036854775807"), number(Number::Int(i64::MAX)));
        assert_eq!(scalar("9223372036854775808"), number(Number::Unsigned(1 << 63)));
        assert_eq!(scalar("0xffff_ffff_ffff_ffff"), number(Number::Unsigned(u64::MAX)));
        assert_eq!(scalar("-9223372036854775808"), number(Number::Int(i64::MIN)));
        assert_eq!(scalar("7:i64"), (Constexpr::Number { value: Number::Int(7) }, Some("i64".into())));
        assert_eq!(scalar("7:f16").1, Some("fp16".into()));
        assert_eq!(scalar("none").0, Constexpr::None);
        assert_eq!(scalar("tl.float16").0, Constexpr::Dtype { value: "fp16".into() });
        assert_eq!(scalar("int32").0, Constexpr::Dtype { value: "int32".into() });
        assert_eq!(scalar("relu").0, Constexpr::Str { value: "relu".into() });
        assert_eq!(scalar("'f16'").0, Constexpr::Str { value: "f16".into() });
    }

    #[test]
    fn grids_are_sizes_and_cdiv_of_names() {
        let lookup = |name: &str| {
            [("n", 1000), ("BLOCK", 256), ("minus", -1)].into_iter().find(|(n, _)| *n == name).map(|(_, v)| v)
        };
        let resolve = |text: &str| grid(text)?.iter().map(|size| size.resolve(&lookup)).collect::<Result<Vec<_>, _>>();
        assert_eq!(resolve("cdiv(n, BLOCK), 2,3"), Ok(vec![4, 2, 3]));
        assert_eq!(resolve("cdiv(cdiv(n,2),BLOCK)"), Ok(vec![2]));
        for (text, why) in [
            ("", "1 to 3"),
            ("1,2,3,4", "1 to 3"),
            ("-1", "no size"),
            ("m", "no integer argument m"),
            ("minus", "negative"),
            ("cdiv(n,0)", "zero"),
            ("cdiv(n)", "two sizes"),
        ] {
            let told = resolve(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, why) in [
            ("x", "no NAME=VALUE"),
            ("=3", "no name of a parameter"),
            ("x=", "no value"),
            ("x=f31[2]", "unknown dtype \"f31\""),
            ("x=f32[2", "`]` is missing"),
            ("x=f32[2]zeros", "give :FILL"),
            ("x=f32[2]:noise", "unknown fill"),
            ("x=f32[2]:zeros(1,2)", "takes no numbers"),
            ("x=f32[2]:randn(1)", "takes two numbers"),
            ("x=f32[2]:randn(0,-1)", "negative"),
            ("x=i32[2]:randn", "fills floats, not int32"),
            ("x=i32[2]:randint(5,5)", "randint takes"),
            ("x=f32[2]:arange(1,a)", "\"a\" is no number"),
            ("x=f32[2]:arange(1", "`)`"),
            ("x=f32[2.5]", "no size"),
            ("x=3:f31", "unknown dtype"),
            ("x=3:fp8e5m2", "not passed as"),
        ] {
            let told = argument(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
