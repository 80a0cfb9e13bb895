use std::process::ExitCode;

use tilewright_cell::{Cuda, Finding, Layer, Layers, PythonReport, Report, inspect};

use crate::args::DoctorArgs;

/// Exit status 1 when something that a verification needs is missing.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let report = inspect(args.common.python.as_ref().map(|path| path.as_std_path()));
    if args.common.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    Ok(if usable(&report) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn usable(report: &Report) -> bool {
    let python = matches!(&report.python, Finding::Found(python) if python.problems().is_empty());
    let sandbox = matches!(&report.sandbox, Finding::Found(layers) if layers.first_unmet(false).is_none());
    python && sandbox
}

fn print(report: &Report) {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    println!("machine   {} {}, {} cores", report.kernel, report.architecture, report.cores);
    println!("memory    {:.1} GiB, {:.1} GiB free", gib(report.memory_bytes), gib(report.memory_available_bytes));
    finding("python", &report.python, print_python);
    finding("sandbox", &report.sandbox, print_layers);
    finding("cuda", &report.cuda, print_cuda);
}

fn finding<T>(name: &str, finding: &Finding<T>, print: impl Fn(&T)) {
    match finding {
        Finding::Found(found) => print(found),
        Finding::Missing { why, hint } => {
            println!("{name:<9} missing: {why}");
            println!("{:<9} -> {hint}", "");
        }
    }
}

fn print_python(python: &PythonReport) {
    let or_missing = |version: &Option<String>| version.clone().unwrap_or_else(|| "missing".into());
    println!("python    {} {}", python.version, python.path.display());
    println!("torch     {}", or_missing(&python.torch));
    println!("triton    {}", or_missing(&python.triton));
    println!("package   tilewright {}", or_missing(&python.tilewright));
    for (problem, hint) in python.problems() {
        println!("          {problem}");
        println!("          -> {hint}");
    }
}

fn print_layers(layers: &Layers) {
    for layer in Layer::ALL {
        let name = serde_json::to_value(layer).ok().and_then(|value| value.as_str().map(str::to_owned));
        let name = name.unwrap_or_default();
        match layers.missing.get(&layer) {
            None => println!("sandbox   {name}: active"),
            Some(why) => {
                println!("sandbox   {name}: not active: {why}");
                println!("          -> {}", layer.hint());
            }
        }
    }
}

fn print_cuda(cuda: &Cuda) {
    println!("cuda      driver {}", cuda.driver);
    for gpu in &cuda.gpus {
        println!(
            "gpu {}     {}, {}, {:.0} GiB",
            gpu.index,
            gpu.name,
            gpu.arch,
            gpu.memory_bytes as f64 / f64::from(1 << 30)
        );
    }
}
