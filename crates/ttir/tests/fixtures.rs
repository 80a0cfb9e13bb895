//! Every fixture of real Triton output is read, verified and printed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tilewright_ttir::{Module, known_ops, parse, verify};

fn fixtures() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).expect("text"))).collect()
}

fn parsed(name: &str, text: &str) -> Module {
    parse(text).unwrap_or_else(|error| panic!("{name}:{error}"))
}

#[test]
fn every_fixture_parses() {
    for (name, text) in fixtures() {
        parsed(&name, &text);
    }
}

/// The printed names are for messages only: the printer numbers values.
fn without_names(mut module: Module) -> Module {
    for func in &mut module.funcs {
        func.values.iter_mut().for_each(|value| value.name.clear());
    }
    module
}

#[test]
fn printing_loses_nothing() {
    for (name, text) in fixtures() {
        let module = parsed(&name, &text);
        let printed = module.to_string();
        let again = parsed(&name, &printed);
        assert_eq!(without_names(again.clone()), without_names(module), "{name}");
        assert_eq!(again.to_string(), printed, "{name}");
    }
}

#[test]
fn every_fixture_makes_sense() {
    for (name, text) in fixtures() {
        verify(&parsed(&name, &text)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Operations that the table knows but Triton's front end does not emit.
const NEVER_EMITTED: &[&str] = &[
    "arith.addui_extended",
    "arith.ceildivsi",
    "arith.ceildivui",
    "arith.floordivsi",
    "arith.index_cast",
    "arith.index_castui",
    "arith.mulsi_extended",
    "arith.mului_extended",
    "arith.negf",
    "cf.assert",
    "tt.func",
];

#[test]
fn fixtures_cover_the_table() {
    let modules: Vec<_> = fixtures().iter().map(|(name, text)| parsed(name, text)).collect();
    let seen: BTreeSet<_> = modules.iter().flat_map(Module::op_names).collect();
    let emitted = |name: &&str| !name.starts_with("math.") && !NEVER_EMITTED.contains(name);
    let missing: Vec<_> = known_ops().filter(emitted).filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "no fixture has {missing:?}");
}
