//! The trusted end of the channel: reads records as they come, and checks that nobody else wrote or dropped one.

#![expect(deprecated, reason = "SipHash with a key of our own; the hasher that replaces it has none")]

use std::fs::File;
use std::hash::{Hasher, SipHasher};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use crate::record::{Attribute, Axis, Copy, Direction, Launch, Phase, Record, TensorMap};

/// All records of a process in order.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    pub records: Vec<Record>,
    pub key: Key,
}

/// Under which records are tagged and contents digested; secret from the recorded process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Key(pub [u64; 2]);

impl Key {
    /// Digest of bytes that the process uploads.
    pub fn digest(self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    fn hasher(self) -> SipHasher {
        SipHasher::new_with_keys(self.0[0], self.0[1])
    }

    fn tag(self, last: u64, payload: &[u8]) -> u64 {
        let mut hasher = self.hasher();
        hasher.write(&last.to_le_bytes());
        hasher.write(payload);
        hasher.finish()
    }
}

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// Somebody in the process wrote to the channel, or took from it.
    #[error("record {0} is not the recorder's own")]
    Forged(usize),
    #[error("record {0} is cut off")]
    CutOff(usize),
    #[error("record {0} has no known form")]
    Malformed(usize),
    #[error("the process caused more than {0} MiB of records")]
    TooMuch(u64),
    #[error("failed to read records: {0}")]
    Read(#[from] io::Error),
    #[error("the reader of records ended early")]
    Lost,
}

/// Collects the records of one process.
pub struct Listener {
    thread: JoinHandle<Result<Recording, ChannelError>>,
}

/// Starts to listen. The descriptor is for the process; its recorder finds the key in it. Keeps at most `limit` bytes.
pub fn listen(limit: u64) -> io::Result<(OwnedFd, Listener)> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
    let key = Key(rand::random());
    let mut socket = File::from(ours);
    for word in key.0 {
        socket.write_all(&word.to_le_bytes())?;
    }
    let thread = std::thread::Builder::new().name("recording".into()).spawn(move || read(socket, key, limit))?;
    Ok((theirs, Listener { thread }))
}

impl Listener {
    /// All records, once the process and everybody who had its descriptor are gone.
    pub fn finish(self) -> Result<Recording, ChannelError> {
        self.thread.join().unwrap_or(Err(ChannelError::Lost))
    }
}

fn read(mut from: impl Read, key: Key, limit: u64) -> Result<Recording, ChannelError> {
    let mut recording = Recording { records: Vec::new(), key };
    let (mut last, mut left) = (0, limit);
    loop {
        let at = recording.records.len();
        let mut length = [0; 4];
        match fill(&mut from, &mut length)? {
            0 => return Ok(recording),
            4 => {}
            _ => return Err(ChannelError::CutOff(at)),
        }
        let length = u64::from(u32::from_le_bytes(length)) + 8;
        left = left.checked_sub(length).ok_or(ChannelError::TooMuch(limit >> 20))?;
        let mut frame = vec![0; length as usize];
        if fill(&mut from, &mut frame)? != frame.len() {
            return Err(ChannelError::CutOff(at));
        }
        let (payload, tag) = frame.split_at(frame.len() - 8);
        last = key.tag(last, payload);
        if tag != last.to_le_bytes() {
            return Err(ChannelError::Forged(at));
        }
        recording.records.push(Fields(payload).record().ok_or(ChannelError::Malformed(at))?);
    }
}

/// Reads until the buffer is full or the other end is closed; the bytes read.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match from.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The process ended with something of ours unread.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The fields of a record that are left to read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn record(mut self) -> Option<Record> {
        let record = match self.take(1)?[0] {
            1 => Record::Mark { phase: Phase::of(self.u32()?)? },
            2 => Record::Image { number: self.u32()?, bytes: self.bytes()?.to_vec() },
            3 => Record::Launch(self.launch()?),
            4 => Record::Copy(Copy {
                direction: Direction::of(self.u32()?)?,
                to: self.u64()?,
                from: self.u64()?,
                bytes: self.u64()?,
                content: self.u64()?,
            }),
            5 => Record::Set { to: self.u64()?, value: self.u32()?, width: self.u32()?, count: self.u64()? },
            6 => Record::Other { name: self.text()? },
            7 => Record::TensorMap(self.tensor_map()?),
            _ => return None,
        };
        self.0.is_empty().then_some(record)
    }

    fn launch(&mut self) -> Option<Launch> {
        let image = Some(self.u32()?).filter(|&number| number != u32::MAX);
        let name = self.text()?;
        let mut extents = [0; 6];
        for extent in &mut extents {
            *extent = self.u32()?;
        }
        let [gx, gy, gz, bx, by, bz] = extents;
        let (shared, stream) = (self.u32()?, self.u64()?);
        let mut attributes = Vec::new();
        for _ in 0..self.u32()? {
            attributes.push(Attribute { id: self.u32()?, value: self.bytes()?.to_vec() });
        }
        let readable = self.u32()? == 1;
        let mut params = Vec::new();
        for _ in 0..self.u32()? {
            params.push(self.bytes()?.to_vec());
        }
        let (grid, block) = ([gx, gy, gz], [bx, by, bz]);
        Some(Launch { image, name, grid, block, shared, stream, attributes, params: readable.then_some(params) })
    }

    fn tensor_map(&mut self) -> Option<TensorMap> {
        let encoded = self.bytes()?.to_vec();
        let (dtype, rank, address) = (self.u32()?, self.u32()?, self.u64()?);
        let (interleave, swizzle, fill) = (self.u32()?, self.u32()?, self.u32()?);
        let mut axes = Vec::new();
        for _ in 0..rank {
            axes.push(Axis { extent: self.u64()?, stride: self.u64()?, block: self.u32()?, step: self.u32()? });
        }
        Some(TensorMap { encoded, dtype, address, interleave, swizzle, fill, axes })
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    fn text(&mut self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}
