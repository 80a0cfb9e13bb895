//! Messages between the client and the executor process: a JSON header, then blobs.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::program::Program;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) program: Program,
    /// Blob with the first contents of each buffer of the program; none is poison.
    pub(crate) contents: Vec<Option<usize>>,
    pub(crate) poison: u8,
    /// Buffers to send back.
    pub(crate) read_back: Vec<usize>,
    /// Further executions to time, each after a flush of the second-level cache.
    pub(crate) timed_calls: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    /// Buffer beside which a guard zone was written.
    pub(crate) guard: Option<usize>,
    /// Device time of each timed call in microseconds.
    pub(crate) times_us: Vec<f64>,
    pub(crate) failure: Option<Failure>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Name of the driver's result code, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub(crate) code: String,
    pub(crate) what: String,
    /// Line of the launch, where one was at fault.
    pub(crate) line: Option<u32>,
}

pub(crate) fn send<T: Serialize>(out: &mut impl Write, header: &T, blobs: &[Vec<u8>]) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    out.write_all(&(blobs.len() as u64).to_le_bytes())?;
    for blob in blobs {
        out.write_all(&(blob.len() as u64).to_le_bytes())?;
        out.write_all(blob)?;
    }
    out.flush()
}

pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<(T, Vec<Vec<u8>>)> {
    let header = bytes(from)?;
    let header = serde_json::from_slice(&header)?;
    let count = word(from)?;
    let blobs = (0..count).map(|_| bytes(from)).collect::<io::Result<_>>()?;
    Ok((header, blobs))
}

fn bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let len = word(from)?;
    let mut bytes = Vec::new();
    // Not `vec![0; len]`: a torn stream must not ask for the moon.
    from.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn word(from: &mut impl Read) -> io::Result<u64> {
    let mut word = [0; 8];
    from.read_exact(&mut word)?;
    Ok(u64::from_le_bytes(word))
}
