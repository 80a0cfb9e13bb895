//! Messages on a job socket: a length (u32, little endian), then JSON text. The peer may be hostile.

use serde_json::Value;

/// Puts a message into its wire form.
pub(super) fn encode(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(text.len() + 4);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FrameError {
    TooLarge,
    Garbled(String),
}

/// Collects the bytes of messages as they come.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    bytes: Vec<u8>,
}

impl FrameReader {
    /// Takes bytes in.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether part of a message is there.
    pub(super) fn is_partial(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The next whole message, if it is there. `limit` bounds its text in bytes.
    pub(super) fn next(&mut self, limit: u64) -> Result<Option<Value>, FrameError> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head);
        if u64::from(length) > limit {
            return Err(FrameError::TooLarge);
        }
        let length = length as usize;
        let Some(text) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(text).map_err(|error| FrameError::Garbled(error.to_string()));
        self.bytes.drain(..4 + length);
        message.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_comes_out_whole_however_it_is_cut() {
        let messages = [json!({"a": [1, 2.5, "ä"]}), json!(null), json!({"b": "x".repeat(300)})];
        let wire: Vec<u8> = messages.iter().flat_map(encode).collect();
        for size in [1, 3, 4, 7, wire.len()] {
            let mut reader = FrameReader::default();
            let mut seen = Vec::new();
            for piece in wire.chunks(size) {
                reader.extend(piece);
                while let Some(message) = reader.next(1000).unwrap() {
                    seen.push(message);
                }
            }
            assert_eq!(seen, messages);
            assert!(!reader.is_partial());
        }
    }

    #[test]
    fn hostile_bytes_are_errors() {
        let mut reader = FrameReader::default();
        reader.extend(&[0xff, 0xff, 0xff, 0xff]);
        assert_eq!(reader.next(1000), Err(FrameError::TooLarge));

        let mut reader = FrameReader::default();
        reader.extend(&[2, 0, 0, 0, b'{', 0xff]);
        assert!(matches!(reader.next(1000), Err(FrameError::Garbled(_))));

        let deep = "[".repeat(100_000);
        let mut reader = FrameReader::default();
        reader.extend(&u32::try_from(deep.len()).unwrap().to_le_bytes());
        reader.extend(deep.as_bytes());
        assert!(matches!(reader.next(1 << 20), Err(FrameError::Garbled(_))));
    }
}
