//! Tries the sandbox out: a child confines itself exactly as a job does, and says what it got.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::Finding;
use crate::confine::{Confinement, ControlGroup};
use crate::{Layers, Limits};

#[derive(Deserialize)]
struct Answer {
    layers: Layers,
}

pub(super) fn try_out(python: &Path) -> Finding<Layers> {
    attempt(python).map_or_else(
        |why| Finding::Missing { why, hint: "no job of hostile code can run here: please report this".into() },
        Finding::Found,
    )
}

fn attempt(python: &Path) -> Result<Layers, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let limits = Limits::default();
    let groups = ControlGroup::create(std::process::id(), &limits);
    let confinement = Confinement {
        scratch: scratch.path().to_owned(),
        limits,
        trusted: false,
        strict: false,
        read_paths: Vec::new(),
        execute_paths: Vec::new(),
        devices: Vec::new(),
        control_groups: groups.paths(),
        number: std::process::id(),
    };
    let confinement = serde_json::to_string(&confinement).map_err(|error| error.to_string())?;
    let output = Command::new(python)
        .args(["-I", "-B", "-m", "tilewright.cell.tryout", &confinement])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let answer: Answer = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok(answer.layers)
}
