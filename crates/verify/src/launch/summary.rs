//! What a launch left in a tensor.

use tilewright_contract::{Dtype, TensorSummary};
use tilewright_replay::writer;

use super::bind::GivenTensor;

/// One tensor around a launch. `before`: none where nothing had written it. `shadow`: where each byte comes from.
pub(super) struct Seen<'a> {
    pub(super) name: &'a str,
    pub(super) tensor: &'a GivenTensor,
    pub(super) before: Option<&'a [u8]>,
    pub(super) after: &'a [u8],
    pub(super) shadow: &'a [u8],
}

impl Seen<'_> {
    pub(super) fn summary(&self, head: usize) -> TensorSummary {
        let (name, dtype, shape) = (self.name.to_owned(), self.tensor.dtype, self.tensor.shape.clone());
        let size = dtype.size() as usize;
        let mut values = Vec::new();
        tilewright_judge::decode(dtype, self.after, &mut values);
        let mut summary = TensorSummary {
            name,
            dtype,
            shape,
            min: None,
            max: None,
            mean: None,
            nans: 0,
            infinities: 0,
            changed: 0,
            unwritten: 0,
            first: Vec::new(),
        };
        let (mut sum, mut finite) = (0.0, 0u64);
        for (at, &value) in values.iter().enumerate() {
            let bytes = at * size..(at + 1) * size;
            let written = !self.shadow[bytes.clone()].contains(&writer::UNWRITTEN);
            if at < head {
                summary.first.push(if written { text(dtype, &self.after[bytes.clone()], value) } else { "?".into() });
            }
            if !written {
                summary.unwritten += 1;
                continue;
            }
            let same = self.before.is_some_and(|before| before[bytes.clone()] == self.after[bytes]);
            summary.changed += u64::from(!same);
            summary.nans += u64::from(value.is_nan());
            summary.infinities += u64::from(value.is_infinite());
            if value.is_finite() {
                summary.min = Some(summary.min.map_or(value, |min| min.min(value)));
                summary.max = Some(summary.max.map_or(value, |max| max.max(value)));
                sum += value;
                finite += 1;
            }
        }
        summary.mean = (finite > 0).then(|| sum / finite as f64);
        summary
    }
}

/// An element in the fewest digits that tell it from its neighbours.
fn text(dtype: Dtype, bytes: &[u8], value: f64) -> String {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    match dtype {
        Dtype::U64 => u64::from_le_bytes(word).to_string(),
        Dtype::I64 => i64::from_le_bytes(word).to_string(),
        Dtype::F64 => short(value, format!("{value}"), format!("{value:e}")),
        _ => short(value, format!("{}", value as f32), format!("{:e}", value as f32)),
    }
}

fn short(value: f64, plain: String, scientific: String) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() || (1e-4..1e7).contains(&size) { plain } else { scientific }
}
