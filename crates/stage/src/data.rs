use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use tilewright_contract::Blob;

use crate::Resident;

/// Blobs that a job made.
#[derive(Debug)]
pub struct DataFile {
    source: Source,
}

#[derive(Debug)]
enum Source {
    File(File),
    /// They lie on a GPU, and are fetched one by one.
    Resident(Arc<Resident>),
}

impl DataFile {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { source: Source::File(File::open(path)?) })
    }

    /// Blobs that a process holds.
    pub fn of(resident: Arc<Resident>) -> Self {
        Self { source: Source::Resident(resident) }
    }

    /// Everything in a file.
    pub(crate) fn read_all(&self) -> io::Result<Vec<u8>> {
        match &self.source {
            Source::File(file) => self.read(Blob { offset: 0, nbytes: file.metadata()?.len() }),
            Source::Resident(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether a blob can be there; what a process holds, it knows.
    pub fn holds(&self, blob: Blob) -> bool {
        match &self.source {
            Source::File(file) => within(file, blob),
            Source::Resident(_) => true,
        }
    }

    /// The bytes of a blob; an error where there is none such. The blob may be a hostile job's claim.
    pub fn read(&self, blob: Blob) -> io::Result<Vec<u8>> {
        let file = match &self.source {
            Source::File(file) => file,
            Source::Resident(resident) => return resident.read(blob),
        };
        if !within(file, blob) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; blob.nbytes as usize];
        file.read_exact_at(&mut bytes, blob.offset)?;
        Ok(bytes)
    }
}

fn within(file: &File, blob: Blob) -> bool {
    let len = file.metadata().map_or(0, |metadata| metadata.len());
    blob.offset.checked_add(blob.nbytes).is_some_and(|end| end <= len)
}
