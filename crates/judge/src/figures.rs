//! Figures of a comparison that was made where the output is: in the oracle's process, on a GPU.

use serde::{Deserialize, Serialize};

use crate::scan::Scan;

/// What `python/tilewright/cell/scan.py` says of one tensor under one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    #[serde(flatten)]
    pub(crate) scan: Scan,
    /// What values were divided by.
    #[serde(with = "as_text")]
    pub(crate) unit: f64,
    /// The worst element.
    pub(crate) element: Option<Element>,
}

/// The bytes of one element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Element {
    pub(crate) native: Vec<u8>,
    pub(crate) float64: Option<Vec<u8>>,
    pub(crate) got: Vec<u8>,
}

impl Figures {
    /// Whether they can be of a tensor of so many elements of `size` bytes: what is not, is not read.
    pub fn fit(&self, elements: u64, size: u64) -> bool {
        let inside = |at: Option<(f64, usize)>| at.is_none_or(|(_, at)| (at as u64) < elements);
        let whole = |element: &Element| {
            element.native.len() as u64 == size
                && element.got.len() as u64 == size
                && element.float64.as_ref().is_none_or(|raw| raw.len() == 8)
        };
        self.scan.elements == elements
            && inside(self.scan.worst)
            && inside(self.scan.group)
            && self.scan.worst.is_some() == self.element.is_some()
            && self.element.as_ref().is_none_or(whole)
    }
}

/// Floats as text: JSON has no infinities, and not every parser reads its numbers exactly.
pub(crate) mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value:?}"))
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<f64, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The same with an index beside it.
pub(crate) mod place_as_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(value: &Option<(f64, usize)>, to: S) -> Result<S::Ok, S::Error> {
        value.map(|(score, at)| (format!("{score:?}"), at)).serialize(to)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<(f64, usize)>, D::Error> {
        let place: Option<(String, usize)> = Option::deserialize(from)?;
        place.map(|(score, at)| Ok((score.parse().map_err(D::Error::custom)?, at))).transpose()
    }
}
