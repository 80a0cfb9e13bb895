use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Dtype;

/// A precision standard: named, versioned data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    pub version: u32,
    pub description: String,
    /// Where the numbers come from.
    pub source: String,
    /// Which of the oracle's results is the reference.
    pub golden: Golden,
    /// Precision that a float32 `dot` may be computed in: `ieee`, `tf32`.
    pub compute: String,
    /// Whether value regimes and shape variants decide the profile (otherwise they only inform).
    pub decides_robustness: bool,
    pub rule: Rule,
    /// Tolerances by dtype of the output.
    pub tolerance: BTreeMap<Dtype, Tolerance>,
    /// For floating dtypes without an entry.
    pub default: Tolerance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Golden {
    /// The reference in its own dtype.
    Native,
    /// The reference in float64 where it exists, else its own dtype.
    Float64,
}

/// How a profile decides; `d` is candidate minus golden, `g` golden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Every element: `|d| <= atol + rtol |g|`.
    Elementwise,
    /// `mean(|d| / (|g| + 1e-7)) < rtol` and `max(…) < 10 rtol`.
    MereMare,
    /// As `mere_mare`, with `max(|g|, rtol)` as the denominator.
    MereMareTruncated,
    /// Three conditions: elementwise cap, share of matched elements, mean relative error.
    ThreeWay,
    /// `rms(d) <= rms_tol * rms(g)` and every element: `|d| <= atol_scaled * rms(g) + rtol |g|`.
    ScaledRms,
    /// Share of elements outside `atol + rtol |g|` at most `mismatch`.
    MismatchRatio,
}

/// Numbers for a rule; a rule reads the ones it names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tolerance {
    pub rtol: f64,
    pub atol: f64,
    pub small_threshold: f64,
    pub small_error: f64,
    pub matched_ratio: f64,
    pub rms_tol: f64,
    pub atol_scaled: f64,
    pub mismatch: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("the profile is not valid TOML: {0}")]
    Toml(#[from] toml::de::Error),
}

impl Profile {
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        Ok(toml::from_str(text)?)
    }
}
