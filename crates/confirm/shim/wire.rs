//! The form of a record: one byte for its kind, then its fields, little-endian; texts and byte strings with their length
//! (u32) before them. `src/channel.rs` reads it.

pub(crate) const MARK: u8 = 1;
pub(crate) const IMAGE: u8 = 2;
pub(crate) const LAUNCH: u8 = 3;
pub(crate) const COPY: u8 = 4;
pub(crate) const SET: u8 = 5;
pub(crate) const OTHER: u8 = 6;
pub(crate) const TENSOR_MAP: u8 = 7;

pub(crate) struct Record(pub(crate) Vec<u8>);

impl Record {
    pub(crate) fn new(kind: u8) -> Self {
        Self(vec![kind])
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let mut record = self.u32(bytes.len() as u32);
        record.0.extend_from_slice(bytes);
        record
    }
}
