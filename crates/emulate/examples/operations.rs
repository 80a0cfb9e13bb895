//! Writes the page of operations: which are read, and which run here, with the types that they take.
//!
//! `operations FOLDER… > docs/reference/operations.md` reads every `.ttir` file of the folders. `operations --check FILE…`
//! prints one line for each file that is not read, not stable when printed, or not lowered; `operations --count FILE…` how
//! many different kernels have each operation.
//!
//! Nothing is kept by hand: an operation counts as emulated if a kernel that has it is lowered, or a module made up here of
//! that operation alone; what is refused says why.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use tilewright_emulate::Kernel;
use tilewright_ttir::{Module, known_ops, parse, refused_ops, verify};

/// Counts of operations in kernels that are too many to keep: written by `operations --count FILE…`.
const CORPUS: &str = "crates/ttir/tests/candidates.csv";

const TYPES: [&str; 13] =
    ["i1", "i8", "i16", "i32", "i64", "f8E4M3FN", "f8E5M2", "f16", "bf16", "f32", "f64", "index", "!tt.ptr<f32>"];

#[derive(Default)]
struct Row {
    kernels: usize,
    runs: bool,
    /// Why a kernel or a module of this operation alone is refused.
    refusals: BTreeMap<String, usize>,
    /// Types of elements that it is verified for, and of these the ones that run.
    verified: Vec<&'static str>,
    emulated: Vec<&'static str>,
}

fn main() -> ExitCode {
    let mut args: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    if args.first().is_some_and(|arg| arg.as_os_str() == "--check") {
        return check(&args.split_off(1));
    }
    if args.first().is_some_and(|arg| arg.as_os_str() == "--count") {
        return count_files(&args.split_off(1));
    }
    let mut rows: BTreeMap<&str, Row> = known_ops().map(|name| (name, Row::default())).collect();
    let mut kernels = 0;
    for path in args.iter().flat_map(files) {
        match std::fs::read_to_string(&path).map_err(|error| error.to_string()).and_then(|text| read(&text)) {
            Ok(module) => {
                kernels += 1;
                count(&module, &mut rows);
            }
            Err(why) => {
                eprintln!("{}: {why}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    for (name, row) in &mut rows {
        probe(name, row);
    }
    print!("{}", page(&rows, kernels));
    ExitCode::SUCCESS
}

fn files(folder: &PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "ttir")).collect();
    files.sort();
    files
}

fn read(text: &str) -> Result<Module, String> {
    let module = parse(text).map_err(|error| error.to_string())?;
    verify(&module).map_err(|error| error.to_string())?;
    Ok(module)
}

/// The public functions of a module, lowered.
fn lowered(module: &Module) -> Result<(), tilewright_emulate::Unsupported> {
    let mut kernels = module.funcs.iter().filter(|func| func.public && !func.body.blocks.is_empty());
    kernels.try_for_each(|func| Kernel::new(module, &func.name).map(drop))
}

fn count(module: &Module, rows: &mut BTreeMap<&str, Row>) {
    let result = lowered(module);
    let mut names: Vec<&str> = module.op_names().into_iter().collect();
    names.push("tt.func");
    for name in names {
        let Some(row) = rows.get_mut(name) else { continue };
        row.kernels += 1;
        match &result {
            Ok(()) => row.runs = true,
            Err(refused) if refused.op == name => *row.refusals.entry(refused.why.clone()).or_default() += 1,
            Err(_) => {}
        }
    }
}

/// Tries the operation alone on operands of each type.
fn probe(name: &str, row: &mut Row) {
    for ty in TYPES {
        let tried: Vec<Module> = forms(name, ty).iter().filter_map(|text| read(text).ok()).collect();
        if tried.is_empty() || name == "tt.func" {
            continue;
        }
        row.verified.push(ty);
        let results: Vec<_> = tried.iter().map(lowered).collect();
        if results.iter().any(Result::is_ok) {
            row.emulated.push(ty);
            row.runs = true;
        }
        for refused in results.into_iter().filter_map(Result::err) {
            *row.refusals.entry(refused.why).or_default() += 1;
        }
    }
}

/// Modules of one operation: one to three operands of a type, the second maybe an exponent, with no result or those of any
/// other type. Those that make no sense are not verified.
fn forms(name: &str, ty: &str) -> Vec<String> {
    let results = TYPES.iter().map(|result| format!("%r = ;{result}"));
    let results: Vec<String> =
        results.chain([";()".to_owned(), format!("%r:2 = ;({ty}, {ty})"), format!("%r:2 = ;({ty}, i1)")]).collect();
    let mut forms = Vec::new();
    for (operands, types) in [
        ("%a", ty.to_owned()),
        ("%a, %b", format!("{ty}, {ty}")),
        ("%a, %b, %c", format!("{ty}, {ty}, {ty}")),
        ("%a, %n", format!("{ty}, i32")),
    ] {
        for result in &results {
            let (names, result) = result.split_once(';').unwrap_or_default();
            let message = if name == "cf.assert" { "<{msg = \"\"}>" } else { "" };
            forms.push(format!(
                "module {{ tt.func public @k(%a: {ty}, %b: {ty}, %c: {ty}, %n: i32) {{\n\
                 {names}\"{name}\"({operands}) {message} : ({types}) -> {result}\ntt.return\n}} }}"
            ));
        }
    }
    forms
}

/// `operation,kernels` lines.
fn corpus(path: &str) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(','));
    lines.filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?))).collect()
}

fn page(rows: &BTreeMap<&str, Row>, kernels: usize) -> String {
    let corpus = corpus(CORPUS);
    let of_corpus = |name: &str| corpus.get(name).copied().unwrap_or(0);
    let read = rows.len();
    let run = rows.values().filter(|row| row.runs).count();
    let mut page = format!(
        "# Operations\n\n\
         Generated by `make reference`. Every operation that Triton 3.6 prints before its GPU passes is read, verified and\n\
         printed: {read} in all, of which the emulator runs {run}. *Kernels* counts those of the {kernels} kernels of the\n\
         repository's fixtures that have the operation; *candidates* those of {} kernels compiled from the\n\
         candidates of `problems/` and `corpus/` and others that were tried (`{CORPUS}`).\n\
         *Types* are the types of elements for which an operation of plain operands runs.\n",
        of_corpus("tt.func"),
    );
    for dialect in ["tt", "arith", "math", "scf", "cf", "ub", "gpu", "llvm"] {
        page += &format!(
            "\n## {dialect}\n\n| operation | kernels | candidates | emulated | types | not emulated |\n|---|---|---|---|---|---|\n"
        );
        for (name, row) in rows.iter().filter(|(name, _)| name.split('.').next() == Some(dialect)) {
            let refused: Vec<&str> = row.verified.iter().filter(|ty| !row.emulated.contains(ty)).copied().collect();
            let mut notes: Vec<String> = Vec::new();
            if !refused.is_empty() {
                notes.push(format!("on {}", refused.join(", ")));
            }
            if !row.runs || row.verified.is_empty() {
                notes.extend(row.refusals.keys().cloned());
            }
            let emulated = if row.runs { "yes" } else { "no" };
            let types = row.emulated.join(" ");
            page += &format!(
                "| `{name}` | {} | {} | {emulated} | {types} | {} |\n",
                row.kernels,
                of_corpus(name),
                cell(&notes.join("; "))
            );
        }
    }
    page += "\n## Refused\n\nOther operations of these dialects, which no kernel has before the GPU passes.\n\n\
             | operation | why |\n|---|---|\n";
    for (name, why) in refused_ops() {
        page += &format!("| `{name}` | {why} |\n");
    }
    page
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn count_files(files: &[PathBuf]) -> ExitCode {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for path in files {
        let Ok(mut module) =
            std::fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| read(&text))
        else {
            eprintln!("{} is not read", path.display());
            return ExitCode::FAILURE;
        };
        module.strip_locations();
        if seen.insert(module.to_string()) {
            module
                .op_names()
                .into_iter()
                .chain(["tt.func"])
                .for_each(|name| *counts.entry(name.to_owned()).or_default() += 1);
        }
    }
    counts.iter().for_each(|(name, count)| println!("{name},{count}"));
    ExitCode::SUCCESS
}

fn check(files: &[PathBuf]) -> ExitCode {
    let mut wrong = 0;
    for path in files {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        if let Err(why) = text.and_then(|text| sound(&text)) {
            println!("{}: {why}", path.display());
            wrong += 1;
        }
    }
    println!("{wrong} of {} files are not read, printed and lowered", files.len());
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Read, verified, the same after printing and reading again, and lowered.
fn sound(text: &str) -> Result<(), String> {
    let module = read(text)?;
    let printed = module.to_string();
    if read(&printed)?.to_string() != printed {
        return Err("printing is not stable".to_owned());
    }
    lowered(&module).map_err(|refused| refused.to_string())
}
