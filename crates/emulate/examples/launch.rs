//! Runs one launch from files, for trying a kernel by hand.
//!
//! `launch REQUEST` reads a JSON file: `{"ttir": path, "entry": name, "grid": [x, y, z], "buffers": [path, …],
//! "args": […]}`. A buffer is a file of raw bytes, rewritten in place. An argument is `{"pointer": [buffer, offset]}`,
//! `{"int": n}`, `{"float": x}` or `{"descriptor": {"pointer": [buffer, offset], "shape": […], "strides": […]}}`.
//!
//! With `"repeat": n` it launches n more times and prints, as JSON, the wall and processor seconds that each took. `"threads"` (0: as many as
//! there are cores) and `"bare": true` (bounds alone) set the limits of all launches.

use std::error::Error;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tilewright_emulate::{AllocId, Arg, Init, Kernel, Limits, Memory, launch};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: launch REQUEST")?;
    let request: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("a string is expected");
    let module = tilewright_ttir::parse(&std::fs::read_to_string(text(&request["ttir"])?)?)?;
    let kernel = Kernel::new(&module, &text(&request["entry"])?)?;

    let mut memory = Memory::new();
    let mut buffers: Vec<(String, AllocId)> = Vec::new();
    for path in request["buffers"].as_array().into_iter().flatten() {
        let path = text(path)?;
        let label = path.rsplit('/').next().unwrap_or_default().to_owned();
        buffers.push((path.clone(), memory.alloc(&label, std::fs::read(path)?, Init::Written)));
    }
    let mut args = Vec::new();
    for arg in request["args"].as_array().into_iter().flatten() {
        let arg = argument(arg, &memory, &buffers).ok_or_else(|| format!("not an argument: {arg}"))?;
        let Arg::Descriptor { shape, strides, .. } = &arg else {
            args.push(arg);
            continue;
        };
        // The function's parameters go on with the descriptor's shape and strides.
        let numbers: Vec<Arg> = shape.iter().chain(strides).map(|&number| Arg::Int(number)).collect();
        args.push(arg);
        args.extend(numbers);
    }
    let grid = std::array::from_fn(|axis| request["grid"][axis].as_u64().unwrap_or(1) as u32);
    let threads = request["threads"].as_u64().unwrap_or(0) as u32;
    let limits = Limits { threads, bare: request["bare"].as_bool() == Some(true), ..Limits::default() };
    let report = launch(&kernel, grid, &args, &mut memory, &limits)?;
    for (path, id) in &buffers {
        std::fs::write(path, memory.bytes(*id))?;
    }
    let mut seconds = Vec::new();
    for _ in 0..request["repeat"].as_u64().unwrap_or(0) {
        let (start, before) = (Instant::now(), processor_seconds()?);
        launch(&kernel, grid, &args, &mut memory, &limits)?;
        seconds.push((start.elapsed().as_secs_f64(), processor_seconds()? - before));
    }
    if seconds.is_empty() {
        println!("{report:?}")
    } else {
        println!("{}", serde_json::to_string(&seconds)?)
    }
    Ok(())
}

/// What all threads of this process have used so far.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?).as_secs_f64())
}

fn argument(arg: &Value, memory: &Memory, buffers: &[(String, AllocId)]) -> Option<Arg> {
    let address = |pointer: &Value| {
        let (_, id) = buffers.get(pointer[0].as_u64()? as usize)?;
        Some(memory.address(*id, pointer[1].as_u64()?))
    };
    let ints = |value: &Value| value.as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<_>>>();
    let (kind, value) = arg.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "pointer" if value.is_null() => Arg::Pointer(0),
        "pointer" => Arg::Pointer(address(value)?),
        "int" => Arg::Int(value.as_i64()?),
        "float" => Arg::Float(value.as_f64()?),
        "descriptor" => Arg::Descriptor {
            base: address(&value["pointer"])?,
            shape: ints(&value["shape"])?,
            strides: ints(&value["strides"])?,
            pad_nan: false,
        },
        _ => return None,
    })
}
