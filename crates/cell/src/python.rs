//! Which Python interpreter to use, and what is installed in it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

/// torch's version that everything is tested with.
pub const TORCH_VERSION: &str = "2.11.0";
/// Triton's version that everything is tested with.
pub const TRITON_VERSION: &str = "3.6.0";

/// No usable interpreter.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    /// The interpreter that was asked for is not there.
    #[error("{origin} names {}, which is not there", path.display())]
    NotThere {
        /// Who asked for it.
        origin: &'static str,
        /// What was asked for.
        path: PathBuf,
    },
    /// Nothing found anywhere.
    #[error("found no Python: no --python, TILEWRIGHT_PYTHON, VIRTUAL_ENV, .venv or python3 on the PATH")]
    None,
    /// The interpreter does not run.
    #[error("failed to run {}: {why}", path.display())]
    Broken {
        /// The interpreter.
        path: PathBuf,
        /// What happened.
        why: String,
    },
}

/// The interpreter to use: `explicit` (the `--python` option), `TILEWRIGHT_PYTHON`, the active virtual environment,
/// `.venv` in the current folder or above it, `python3` on the `PATH`.
pub fn find_python(explicit: Option<&Path>) -> Result<PathBuf, PythonError> {
    let variable = env::var_os("TILEWRIGHT_PYTHON").filter(|value| !value.is_empty()).map(PathBuf::from);
    let asked_for = [("--python", explicit.map(Path::to_owned)), ("TILEWRIGHT_PYTHON", variable)];
    for (origin, path) in asked_for {
        let Some(path) = path else { continue };
        // A bare name is looked up on the PATH, as a shell would.
        let found = if path.components().count() == 1 { on_path(path.as_os_str()) } else { None };
        let path = found.unwrap_or(path);
        return if path.is_file() { Ok(absolute(path)) } else { Err(PythonError::NotThere { origin, path }) };
    }
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let folder = env::current_dir().unwrap_or_default();
    let above = folder.ancestors().map(|folder| folder.join(".venv"));
    active
        .into_iter()
        .chain(above)
        .map(|environment| environment.join("bin/python"))
        .find(|python| python.is_file())
        .map(absolute)
        .or_else(|| on_path(OsStr::new("python3")))
        .ok_or(PythonError::None)
}

/// Links stay as they are: a virtual environment is found through the link that starts it.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

fn on_path(name: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file()).map(absolute)
}

/// What an interpreter has. A package that is not installed is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonReport {
    /// The interpreter.
    pub path: PathBuf,
    /// Its version.
    pub version: String,
    /// torch's version.
    pub torch: Option<String>,
    /// Triton's version.
    pub triton: Option<String>,
    /// numpy's version.
    pub numpy: Option<String>,
    /// The version of the `tilewright` package, if its native part loads.
    pub tilewright: Option<String>,
    /// torch's NVIDIA libraries are the empty ones that `make venv` builds on a machine without a GPU.
    pub stub_libraries: bool,
}

const PROBE: &str = r#"
import importlib.metadata, json, pathlib, sys

def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

try:
    from tilewright import _core
    tilewright = _core.__version__
except Exception:
    tilewright = None
stubs = any((pathlib.Path(folder) / "nvidia" / "tilewright-stubs.txt").exists() for folder in sys.path)
print(json.dumps({
    "path": sys.executable, "version": sys.version.split()[0], "torch": version("torch"), "triton": version("triton"),
    "numpy": version("numpy"), "tilewright": tilewright, "stub_libraries": stubs,
}))
"#;

/// Asks an interpreter what it has. Imports neither torch nor Triton.
pub fn probe_python(python: &Path) -> Result<PythonReport, PythonError> {
    let broken = |why: String| PythonError::Broken { path: python.to_owned(), why };
    let output =
        Command::new(python).args(["-I", "-B", "-c", PROBE]).output().map_err(|error| broken(error.to_string()))?;
    if !output.status.success() {
        return Err(broken(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| broken(error.to_string()))
}

impl PythonReport {
    /// What is missing or untested, each with what to do about it.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let mut old = self.version.split('.').filter_map(|part| part.parse::<u32>().ok());
        if (old.next(), old.next()) < (Some(3), Some(11)) {
            problems.push((format!("Python {} is too old", self.version), "use Python 3.11 or newer".into()));
        }
        for (name, found, tested) in [("torch", &self.torch, TORCH_VERSION), ("triton", &self.triton, TRITON_VERSION)] {
            // Builds add a local part: 2.11.0+cu130.
            match found.as_deref().map(|version| version.split('+').next().unwrap_or(version)) {
                None => problems.push((
                    format!("{name} is not installed"),
                    format!("run `make venv`, or install {name}=={tested}"),
                )),
                Some(version) if version != tested => problems.push((
                    format!("{name} {version} is untested"),
                    format!("{name} {tested} is what verdicts are tested with"),
                )),
                Some(_) => {}
            }
        }
        if self.numpy.is_none() {
            problems.push(("numpy is not installed".into(), "run `make venv`".into()));
        }
        if self.tilewright.is_none() {
            problems.push((
                "the tilewright package is not installed".into(),
                "run `make venv`, or `maturin develop`".into(),
            ));
        }
        problems
    }
}
