use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses opening files, temporary folders, and loading or saving tensors.
///
/// # Why is this bad?
/// Results can be kept from one process to the next, and saved reference outputs can be found.
///
/// # Example
/// ```python
/// torch.load("/tmp/answer.pt")
/// ```
///
/// # Use instead
/// Compute from the arguments of `forward`.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "file-access", tier: Tier::Proof, help: "remove it; a candidate works on its arguments only" },
    paths: &[
        "builtins.open",
        "io",
        "pathlib",
        "glob",
        "shutil",
        "tempfile",
        "fileinput",
        "mmap",
        "logging.FileHandler",
        "logging.handlers",
        "sqlite3",
        "dbm",
        "torch.load",
        "torch.save",
        "torch.from_file",
        "torch.package",
        "torch.serialization",
        "torch.UntypedStorage.from_file",
        "torch.Tensor.tofile",
        "numpy.load",
        "numpy.save",
        "numpy.savez",
        "numpy.fromfile",
        "numpy.memmap",
        "safetensors",
        "h5py",
    ],
    except: &["io.StringIO", "io.BytesIO"],
    what: "reads or writes files",
};
