//! `tilewright run FILE.py::KERNEL`: one launch of one kernel in the emulator.

mod grammar;
mod npy;

use std::collections::BTreeMap;
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tilewright_contract::{Constexpr, Dtype, Number};
use tilewright_screen::{Cut, Kernel};
use tilewright_verify::{Fill, Given, GivenTensor, Launched, Launching, bind, integer, launch, parse_arch};

use super::{session, usage};
use crate::args::LaunchArgs;
use crate::{output, render};
use grammar::{Size, Written};

/// What all tensors of a launch may take, in bytes: they are copied a few times.
const MOST_BYTES: u64 = 4 << 30;

pub(crate) fn run(args: &LaunchArgs) -> anyhow::Result<ExitCode> {
    let (path, name) = args
        .kernel
        .rsplit_once("::")
        .ok_or_else(|| usage(format!("{} names no kernel: give FILE.py::KERNEL", args.kernel)))?;
    let path = Utf8Path::new(path);
    let source = session::read_file(path, "kernel")?;
    let cut = tilewright_screen::cut(&source).map_err(|error| usage(format!("{path}: {error}")))?;
    let kernel = find(&cut, path, name)?;
    if args.target != "cpu" {
        let hint = "`tilewright verify` runs candidates on a GPU, --arch says what the kernel is compiled for";
        return Err(usage(format!("--target {}: one launch runs in the emulator, on cpu; {hint}", args.target)));
    }
    let target = parse_arch(&args.arch).map_err(|error| usage(error.to_string()))?;
    let (given, grid) = arguments(args, kernel).map_err(usage)?;
    let bound =
        bind(kernel, &given, args.num_warps, args.num_stages).map_err(|error| usage(format!("--args: {error}")))?;
    let tensors: Vec<&String> = given.iter().filter(|(_, given)| is_tensor(given)).map(|(name, _)| name).collect();
    let saves = saves(args, &tensors)?;
    for name in &args.out {
        known(name, &tensors, "--out")?;
    }
    let launching = Launching {
        path: path.as_std_path(),
        source: &source,
        module: &cut.module,
        kernel,
        bound,
        grid,
        target,
        outputs: args.out.clone(),
        seed: args.seed,
        reverse: args.reverse,
        births: args.nan,
        timeout: Duration::from_secs_f64(args.timeout),
        head: args.head,
    };
    let timeout = launching.timeout;
    let (stage, _) = session::stage(args.strict, timeout, &args.common)?;
    let launched = launch(&stage, &launching);
    save(&launched, &saves)?;
    let report = &launched.report;
    if args.common.json {
        output::json(report)?;
    } else {
        output::line(render::launch(report, &source, stdout().is_terminal()))?;
    }
    Ok(ExitCode::from(report.exit_code()))
}

/// The kernel of a name, or an error that lists those there are.
fn find<'a>(cut: &'a Cut, path: &Utf8Path, name: &str) -> anyhow::Result<&'a Kernel> {
    if let Some(kernel) = cut.kernels.iter().find(|kernel| kernel.name == name) {
        return Ok(kernel);
    }
    let why = cut.findings.iter().find(|finding| finding.message.contains(&format!("`{name}`")));
    if let Some(finding) = why {
        return Err(usage(format!("{path}:{}: {}", finding.line, finding.message)));
    }
    let names: Vec<&str> = cut.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    Err(usage(match &names[..] {
        [] => format!("{path} has no function with @triton.jit that can be cut out"),
        names => format!("{path} has no kernel {name:?}; it has {}", names.join(", ")),
    }))
}

/// Arguments by parameter.
type GivenArgs = Vec<(String, Given)>;

/// What `--args` and `--grid` say, names resolved.
fn arguments(args: &LaunchArgs, kernel: &Kernel) -> Result<(GivenArgs, [u32; 3]), String> {
    let written = args.args.iter().map(|text| grammar::argument(text).map_err(|why| format!("--args {why}")));
    let written: Vec<(String, Written)> = written.collect::<Result<_, _>>()?;
    let integers: BTreeMap<&str, i64> = written
        .iter()
        .filter_map(|(name, written)| match written {
            Written::Value { value: Constexpr::Number { value: Number::Int(value) }, .. } => {
                Some((name.as_str(), *value))
            }
            _ => None,
        })
        .collect();
    let lookup = |name: &str| integers.get(name).copied().or_else(|| integer(kernel, name));
    let mut left = MOST_BYTES;
    let mut given = Vec::with_capacity(written.len());
    for (name, written) in &written {
        let one = self::given(written, &lookup, &mut left).map_err(|why| format!("--args {name}: {why}"))?;
        given.push((name.clone(), one));
    }
    let place = |why: String| format!("--grid {}: {why}", args.grid);
    let sizes = grammar::grid(&args.grid).map_err(place)?;
    let mut grid = [1; 3];
    for (slot, size) in grid.iter_mut().zip(&sizes) {
        let extent = size.resolve(&lookup).map_err(place)?;
        let extent = u32::try_from(extent).ok().filter(|&extent| extent > 0);
        *slot = extent.ok_or_else(|| format!("--grid {}: each size is from 1 to {}", args.grid, u32::MAX))?;
    }
    Ok((given, grid))
}

fn given(written: &Written, lookup: &impl Fn(&str) -> Option<i64>, left: &mut u64) -> Result<Given, String> {
    let tensor = match written {
        Written::Value { value, ty } => return Ok(Given::Value { value: value.clone(), ty: ty.clone() }),
        Written::Tensor { dtype, shape, fill } => {
            let shape = shape.iter().map(|size: &Size| size.resolve(lookup)).collect::<Result<_, _>>()?;
            GivenTensor { dtype: *dtype, shape, fill: fill.clone() }
        }
        Written::File { dtype, path } => {
            let array = npy::read(Utf8Path::new(path))?;
            let fill = Fill::Bytes { dtype: array.dtype, bytes: array.bytes };
            GivenTensor { dtype: dtype.unwrap_or(array.dtype), shape: array.shape, fill }
        }
    };
    let bytes = tensor.shape.iter().try_fold(tensor.dtype.size(), |bytes, &extent| bytes.checked_mul(extent));
    *left = bytes
        .and_then(|bytes| left.checked_sub(bytes))
        .ok_or_else(|| format!("the tensors take more than {} GiB together: give smaller shapes", MOST_BYTES >> 30))?;
    Ok(Given::Tensor(tensor))
}

fn is_tensor(given: &Given) -> bool {
    matches!(given, Given::Tensor(_))
}

fn known(name: &str, tensors: &[&String], option: &str) -> anyhow::Result<()> {
    if tensors.iter().any(|known| *known == name) {
        return Ok(());
    }
    let names: Vec<&str> = tensors.iter().map(|name| name.as_str()).collect();
    Err(usage(format!("{option} {name}: no tensor of that name is passed; there are {}", names.join(", "))))
}

/// `--save NAME=FILE.npy`.
fn saves(args: &LaunchArgs, tensors: &[&String]) -> anyhow::Result<Vec<(String, Utf8PathBuf)>> {
    let split = |text: &String| {
        let (name, path) = text.split_once('=').ok_or_else(|| usage(format!("--save {text}: give NAME=FILE.npy")))?;
        known(name, tensors, "--save")?;
        Ok((name.to_owned(), Utf8PathBuf::from(path)))
    };
    args.save.iter().map(split).collect()
}

fn save(launched: &Launched, saves: &[(String, Utf8PathBuf)]) -> anyhow::Result<()> {
    let tensors = launched.report.tensors.iter().zip(&launched.contents);
    for (summary, bytes) in tensors {
        for (_, path) in saves.iter().filter(|(name, _)| *name == summary.name) {
            let (dtype, shape): (Dtype, _) = (summary.dtype, summary.shape.clone());
            npy::write(path, &npy::Array { dtype, shape, bytes: bytes.clone() }).map_err(anyhow::Error::msg)?;
        }
    }
    Ok(())
}
