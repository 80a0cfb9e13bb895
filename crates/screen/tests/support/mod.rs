//! Shared by the integration tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright_screen::Cut;

/// A cut candidate on its way to the real Triton.
pub(crate) struct Module {
    pub(crate) id: String,
    pub(crate) cut: Cut,
    /// The candidate itself, if it may be executed.
    pub(crate) candidate: Option<String>,
}

pub(crate) fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Executes the modules under the virtual environment's Triton and says what is wrong with them.
/// Does nothing where there is no such environment.
pub(crate) fn execute(modules: &[Module]) -> io::Result<()> {
    let python: PathBuf = crate_root().join("../../.venv/bin/python");
    if !python.exists() {
        eprintln!("no {}: modules not executed", python.display());
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    for Module { id, cut, candidate } in modules {
        let kernels: Vec<_> = cut
            .kernels
            .iter()
            .map(|kernel| {
                let params: Vec<_> = kernel.params.iter().map(|param| &param.name).collect();
                serde_json::json!({"name": kernel.name, "line": kernel.line, "params": params})
            })
            .collect();
        let path = folder.path().join(id);
        fs::write(path.with_extension("py"), &cut.module)?;
        fs::write(path.with_extension("json"), serde_json::to_string(&kernels)?)?;
        if let Some(text) = candidate {
            fs::write(path.with_extension("candidate"), text)?;
        }
    }
    let script = crate_root().join("tests/exec_modules.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    if output.status.success() { Ok(()) } else { Err(io::Error::other(text)) }
}
