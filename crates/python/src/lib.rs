//! `tilewright._core`: the Rust that the Python package needs. Documents cross as JSON text.

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tilewright_cell::Prepared;

mod addresses;
mod emulate;
mod finding;
mod ledger;
mod recycled;
mod sealed;

pyo3::create_exception!(_core, ConfineError, PyRuntimeError, "A sandbox layer that must be there is missing.");

/// The native part of Tilewright's Python package.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::addresses::pointed;
    #[pymodule_export]
    use super::emulate::{Emulated, poison};
    #[pymodule_export]
    use super::ledger::{close_record, open_record, read_record, write_once, write_record};
    #[pymodule_export]
    use super::{confine, die_with_parent, enter_pid_namespace, leave_pid_namespace, prepare_zygote};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // Under a name of its own: the class itself shows another.
        module.add("Sealed", module.py().get_type::<sealed::Sealed>())?;
        module.add("ConfineError", module.py().get_type::<ConfineError>())
    }
}

/// Confine the calling process, which must have one thread, for good.
///
/// Takes a `Confinement` and returns a `Confined` (both documents of the Rust crate tilewright-cell), as JSON text.
/// After a ConfineError the process is half confined and must end.
#[pyfunction]
fn confine(confinement: &str) -> PyResult<String> {
    let confinement = serde_json::from_str(confinement).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let confined = tilewright_cell::confine(&confinement).map_err(|error| ConfineError::new_err(error.to_string()))?;
    serde_json::to_string(&confined).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Get the right to make namespaces, through a user namespace where the user has none. Once, with one thread.
///
/// Returns whether the caller must fork and go on in the child, and how it came by the right or why it did not.
#[pyfunction]
fn prepare_zygote() -> (bool, String) {
    match tilewright_cell::prepare_zygote() {
        Prepared::Privileged => (false, "not needed".into()),
        Prepared::ForkNext => (true, "entered".into()),
        Prepared::Unprivileged(why) => (false, format!("not available: {why}")),
    }
}

/// Have the kernel kill this process when its parent dies.
#[pyfunction]
fn die_with_parent() -> PyResult<()> {
    tilewright_cell::die_with_parent().map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Have the next fork make a child in a process id namespace of its own. False where that is not allowed.
#[pyfunction]
fn enter_pid_namespace() -> bool {
    tilewright_cell::enter_pid_namespace()
}

/// Have forks make children in this process's own namespace again.
#[pyfunction]
fn leave_pid_namespace() -> PyResult<()> {
    tilewright_cell::leave_pid_namespace().map_err(|error| PyOSError::new_err(error.to_string()))
}
