//! Takes over the files that a job left in a scratch of its own. Their names and contents are hostile.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::dir::Dir;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat};

/// Folders within folders; few enough that no path gets too long, whatever the names.
const MAX_DEPTH: usize = 8;

/// Copies regular files and folders out of the folder `from`, at most `limit` bytes; links and the like stay behind.
pub(super) fn copy(from: OwnedFd, to: &Path, limit: u64) -> io::Result<()> {
    let mut left = limit;
    copy_folder(from, to, &mut left, MAX_DEPTH)
}

fn copy_folder(from: OwnedFd, to: &Path, left: &mut u64, depth: usize) -> io::Result<()> {
    let mut folder = Dir::from_fd(from)?;
    let names: Vec<_> =
        folder.iter().map(|entry| entry.map(|entry| entry.file_name().to_owned())).collect::<Result<_, _>>()?;
    for name in names.iter().filter(|name| ![b".".as_slice(), b".."].contains(&name.to_bytes())) {
        // O_NOFOLLOW refuses links; O_NONBLOCK does not wait for a pipe's other end.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let Ok(entry) = openat(&folder, name.as_c_str(), flags, Mode::empty()) else { continue };
        let target = to.join(OsStr::from_bytes(name.to_bytes()));
        match SFlag::from_bits_truncate(fstat(&entry)?.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => copy_file(File::from(entry), &target, left)?,
            SFlag::S_IFDIR if depth > 0 => {
                if !target.is_dir() {
                    fs::create_dir(&target)?;
                }
                copy_folder(entry, &target, left, depth - 1)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sparse files can claim any size: what counts is what is read.
fn copy_file(from: File, to: &Path, left: &mut u64) -> io::Result<()> {
    let mut target = File::options().write(true).create_new(true).open(to)?;
    let copied = io::copy(&mut from.take(*left), &mut target)?;
    *left -= copied;
    Ok(())
}

/// Bytes of all files under `folder`, as far as they can be seen.
pub(super) fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let mut total = 0;
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        total += if metadata.is_dir() { size(&entry.path()) } else { metadata.len() };
    }
    total
}
