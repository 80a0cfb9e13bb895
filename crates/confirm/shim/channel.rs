//! The way out: records with their tags, in order.

#![expect(deprecated, reason = "SipHash with a key of our own; the hasher that replaces it has none")]

use std::hash::{Hasher, SipHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::system::{read_exactly, send_or_die, take_descriptor};
use crate::wire::Record;

static CHANNEL: Mutex<Option<Channel>> = Mutex::new(None);

struct Channel {
    fd: i32,
    key: [u64; 2],
    /// Tag of the last record: each tag covers all records before it.
    last: u64,
}

/// Opens the channel on a socket, from which the key is read first. Only once.
pub(crate) fn open(fd: i32) -> bool {
    let mut channel = lock();
    let mut key = [0; 16];
    if channel.is_some() || !read_exactly(fd, &mut key) {
        return false;
    }
    let Some(fd) = take_descriptor(fd) else { return false };
    let (low, high) = key.split_at(8);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    *channel = Some(Channel { fd, key: [word(low), word(high)], last: 0 });
    true
}

/// Sends a record; without a channel there is nobody to hear it.
pub(crate) fn send(record: Record) {
    let mut channel = lock();
    let Some(channel) = channel.as_mut() else { return };
    let payload = record.0;
    let mut hasher = channel.hasher();
    hasher.write(&channel.last.to_le_bytes());
    hasher.write(&payload);
    channel.last = hasher.finish();
    let mut frame = Vec::with_capacity(payload.len() + 12);
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(&payload);
    frame.extend_from_slice(&channel.last.to_le_bytes());
    send_or_die(channel.fd, &frame);
}

/// Digest of some bytes under the key; 0 without a channel.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let Some(mut hasher) = lock().as_ref().map(Channel::hasher) else { return 0 };
    hasher.write(bytes);
    hasher.finish()
}

impl Channel {
    fn hasher(&self) -> SipHasher {
        SipHasher::new_with_keys(self.key[0], self.key[1])
    }
}

fn lock() -> MutexGuard<'static, Option<Channel>> {
    CHANNEL.lock().unwrap_or_else(PoisonError::into_inner)
}
