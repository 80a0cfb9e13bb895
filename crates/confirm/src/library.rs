//! The recording library on disk, in front of the driver of this machine.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The driver's name, and the library's.
const NAME: &str = "libcuda.so.1";
/// By this name the library needs the driver itself.
const DRIVER_NAME: &str = "libtilewright-driver.so.1";

static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libcuda.so.1"));

/// A folder with the recording library and a link to the driver. Goes when this goes.
#[derive(Debug)]
pub struct Library {
    folder: TempDir,
}

impl Library {
    /// Writes the library in front of the driver at `driver`.
    pub fn new(driver: &Path) -> io::Result<Self> {
        let driver = fs::canonicalize(driver)?;
        let folder = tempfile::Builder::new()
            .prefix("tilewright-recorder-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()?;
        let path = folder.path().join(NAME);
        fs::write(&path, LIBRARY)?;
        // The recorded process is another user, where there can be one.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
        std::os::unix::fs::symlink(driver, folder.path().join(DRIVER_NAME))?;
        Ok(Self { folder })
    }

    /// The folder, for linkers.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The library.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// Everything that a process which loads it must be able to read.
    pub fn files(&self) -> [PathBuf; 2] {
        [self.path(), self.folder.path().join(DRIVER_NAME)]
    }
}

/// The driver that a program on this machine would load: from `LD_LIBRARY_PATH`, the loader's cache, the usual folders.
pub fn find_driver() -> Option<PathBuf> {
    let variable = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/nvidia/lib64",
    ];
    let named = std::env::split_paths(&variable).map(|folder| folder.join(NAME));
    let cached = cached().into_iter();
    named.chain(cached).chain(usual.map(|folder| Path::new(folder).join(NAME))).find(|path| path.is_file())
}

/// What the loader's cache says.
fn cached() -> Option<PathBuf> {
    let program = ["/sbin/ldconfig", "/usr/sbin/ldconfig"].into_iter().find(|path| Path::new(path).is_file())?;
    let output = Command::new(program).arg("-p").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // libcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1
    let lines = text.lines().filter(|line| line.trim_start().starts_with(NAME) && !line.contains("i386"));
    lines.filter_map(|line| line.rsplit(" => ").next()).map(|path| Path::new(OsStr::new(path)).to_owned()).next()
}
