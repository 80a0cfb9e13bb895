//! Reads the fixtures and launches them.

use half::{bf16, f16};
use serde_json::Value;
use tilewright_emulate::{AllocId, Arg, Fault, Init, Kernel, Limits, Memory, Report, launch};

pub(crate) struct Case {
    pub(crate) kernel: Kernel,
    pub(crate) grid: [u32; 3],
    pub(crate) args: Vec<Arg>,
    pub(crate) memory: Memory,
    pub(crate) wanted: Vec<Wanted>,
}

/// What a buffer must hold after the launch.
pub(crate) struct Wanted {
    pub(crate) argument: usize,
    pub(crate) buffer: AllocId,
    pub(crate) dtype: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
}

pub(crate) fn folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.ttir"))).unwrap()
}

pub(crate) fn module(name: &str) -> tilewright_ttir::Module {
    tilewright_ttir::parse(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn case(name: &str) -> Case {
    let json = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let kernel = Kernel::new(&module(name), json["entry"].as_str().unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let grid = std::array::from_fn(|axis| json["grid"][axis].as_u64().unwrap() as u32);
    let mut case = Case { kernel, grid, args: Vec::new(), memory: Memory::new(), wanted: Vec::new() };
    for (index, arg) in json["args"].as_array().unwrap().iter().enumerate() {
        let arg = read_arg(&mut case, index, arg);
        let numbers: Vec<i64> = match &arg {
            Arg::Descriptor { shape, strides, .. } => shape.iter().chain(strides).copied().collect(),
            _ => Vec::new(),
        };
        case.args.push(arg);
        case.args.extend(numbers.into_iter().map(Arg::Int));
    }
    case
}

fn read_arg(case: &mut Case, index: usize, json: &Value) -> Arg {
    if let Some(value) = json["int"].as_i64() {
        return Arg::Int(value);
    }
    if let Some(value) = json["float"].as_f64() {
        return Arg::Float(value);
    }
    let buffer = if json["descriptor"].is_null() { json } else { &json["descriptor"] };
    let label = format!("argument {index}");
    let id = case.memory.alloc(&label, unhex(buffer["buffer"].as_str().unwrap()), Init::Written);
    if let Some(expect) = json["expect"].as_str() {
        case.wanted.push(Wanted {
            argument: index,
            buffer: id,
            dtype: json["dtype"].as_str().unwrap().to_owned(),
            bytes: unhex(expect),
            relative: json["rtol"].as_f64().unwrap(),
            absolute: json["atol"].as_f64().unwrap(),
        });
    }
    let base = case.memory.address(id, 0);
    match json["descriptor"].as_object() {
        None => Arg::Pointer(base),
        Some(described) => {
            let ints = |key: &str| described[key].as_array().unwrap().iter().map(|x| x.as_i64().unwrap()).collect();
            Arg::Descriptor { base, shape: ints("shape"), strides: ints("strides"), pad_nan: false }
        }
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

impl Case {
    pub(crate) fn run(&mut self) -> Result<Report, Fault> {
        launch(&self.kernel, self.grid, &self.args, &mut self.memory, &Limits::default())
    }

    /// The first difference between what is there and what must be.
    pub(crate) fn difference(&self) -> Option<String> {
        self.wanted.iter().find_map(|wanted| wanted.difference(self.memory.bytes(wanted.buffer)))
    }
}

impl Wanted {
    fn difference(&self, got: &[u8]) -> Option<String> {
        if self.relative == 0.0 && self.absolute == 0.0 && got == self.bytes {
            return None;
        }
        let (got, want) = (numbers(&self.dtype, got), numbers(&self.dtype, &self.bytes));
        got.iter().zip(&want).enumerate().find_map(|(index, (&got, &want))| {
            let equal = got == want && got.is_sign_negative() == want.is_sign_negative();
            let near = (got - want).abs() <= self.absolute + self.relative * want.abs();
            let same = equal || got.is_nan() && want.is_nan() || self.relative > 0.0 && near;
            (!same).then(|| format!("argument {} element {index}: {got:e}, not {want:e}", self.argument))
        })
    }
}

pub(crate) fn numbers(dtype: &str, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.chunks_exact(N).map(|chunk| f(chunk.try_into().unwrap())).collect()
    }
    match dtype {
        "fp32" => each(bytes, |b| f64::from(f32::from_le_bytes(b))),
        "fp64" => each(bytes, f64::from_le_bytes),
        "fp16" => each(bytes, |b| f16::from_le_bytes(b).to_f64()),
        "bf16" => each(bytes, |b| bf16::from_le_bytes(b).to_f64()),
        "i64" => each(bytes, |b| i64::from_le_bytes(b) as f64),
        "i32" => each(bytes, |b| f64::from(i32::from_le_bytes(b))),
        "i16" => each(bytes, |b| f64::from(i16::from_le_bytes(b))),
        _ => each(bytes, |[b]| f64::from(b)),
    }
}
