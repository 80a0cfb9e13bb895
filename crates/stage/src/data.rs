use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tilewright_contract::Blob;

/// A file of blobs that a job wrote.
#[derive(Debug)]
pub struct DataFile {
    file: File,
}

impl DataFile {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)? })
    }

    /// Everything in the file.
    pub(crate) fn read_all(&self) -> io::Result<Vec<u8>> {
        self.read(Blob { offset: 0, nbytes: self.file.metadata()?.len() })
    }

    /// The bytes of a blob; an error where the file does not hold it. The blob may be a hostile job's claim.
    pub fn read(&self, blob: Blob) -> io::Result<Vec<u8>> {
        let end = blob.offset.checked_add(blob.nbytes).ok_or(io::ErrorKind::UnexpectedEof)?;
        if end > self.file.metadata()?.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; blob.nbytes as usize];
        self.file.read_exact_at(&mut bytes, blob.offset)?;
        Ok(bytes)
    }
}
