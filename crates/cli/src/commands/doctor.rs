use std::fmt::Write as _;
use std::process::ExitCode;

use tilewright_cell::{Cuda, Finding, Layer, Layers, PythonReport, Report, inspect};

use crate::args::DoctorArgs;
use crate::output;

/// Exit status 1 when something that a verification needs is missing.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let report = inspect(args.common.python.as_ref().map(|path| path.as_std_path()));
    if args.common.json {
        output::json(&report)?;
    } else {
        output::text(shown(&report))?;
    }
    Ok(if usable(&report) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn usable(report: &Report) -> bool {
    let python = matches!(&report.python, Finding::Found(python) if python.problems().is_empty());
    let sandbox = matches!(&report.sandbox, Finding::Found(layers) if layers.first_unmet(false).is_none());
    python && sandbox
}

fn shown(report: &Report) -> String {
    let mut out = String::new();
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let _ = writeln!(out, "machine   {} {}, {} cores", report.kernel, report.architecture, report.cores);
    let _ = writeln!(
        out,
        "memory    {:.1} GiB, {:.1} GiB free",
        gib(report.memory_bytes),
        gib(report.memory_available_bytes)
    );
    finding(&mut out, "python", &report.python, show_python);
    finding(&mut out, "sandbox", &report.sandbox, show_layers);
    finding(&mut out, "cuda", &report.cuda, show_cuda);
    out
}

fn finding<T>(out: &mut String, name: &str, finding: &Finding<T>, show: impl Fn(&mut String, &T)) {
    match finding {
        Finding::Found(found) => show(out, found),
        Finding::Missing { why, hint } => {
            let _ = writeln!(out, "{name:<9} missing: {why}");
            let _ = writeln!(out, "{:<9} -> {hint}", "");
        }
    }
}

fn show_python(out: &mut String, python: &PythonReport) {
    let or_missing = |version: &Option<String>| version.clone().unwrap_or_else(|| "missing".into());
    let _ = writeln!(out, "python    {} {}", python.version, python.path.display());
    let _ = writeln!(out, "torch     {}", or_missing(&python.torch));
    let _ = writeln!(out, "triton    {}", or_missing(&python.triton));
    let _ = writeln!(out, "package   tilewright {}", or_missing(&python.tilewright));
    for (problem, hint) in python.problems() {
        let _ = writeln!(out, "          {problem}");
        let _ = writeln!(out, "          -> {hint}");
    }
}

fn show_layers(out: &mut String, layers: &Layers) {
    for layer in Layer::ALL {
        let name = serde_json::to_value(layer).ok().and_then(|value| value.as_str().map(str::to_owned));
        let name = name.unwrap_or_default();
        match layers.missing.get(&layer) {
            None => drop(writeln!(out, "sandbox   {name}: active")),
            Some(why) => {
                let _ = writeln!(out, "sandbox   {name}: not active: {why}");
                let _ = writeln!(out, "          -> {}", layer.hint());
            }
        }
    }
}

fn show_cuda(out: &mut String, cuda: &Cuda) {
    let _ = writeln!(out, "cuda      driver {}", cuda.driver);
    for gpu in &cuda.gpus {
        let _ = writeln!(
            out,
            "gpu {}     {}, {}, {:.0} GiB",
            gpu.index,
            gpu.name,
            gpu.arch,
            gpu.memory_bytes as f64 / f64::from(1 << 30)
        );
    }
}
