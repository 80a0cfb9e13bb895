use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Dtype, OpinionRole};

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
    pub non_finite: NonFinite,
    /// Whether an output that the reference only copies must be equal bit by bit.
    pub exact_copies: bool,
    /// Whether a language model's doubts, where one is asked, reject a candidate.
    #[serde(default)]
    pub opinion: OpinionRole,
    /// Tolerances by dtype of the output. Integers and bools are always compared exactly.
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
    /// The float64 reference rounded once to the dtype of the output, else the reference in its own dtype.
    Rounded,
}

/// What becomes of NaN and infinities. A NaN where the reference is a number fails under both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NonFinite {
    /// NaN and each infinity must be where the reference has them.
    Pattern,
    /// Infinities as in `pattern`; a NaN fails also where the reference has one (`torch.allclose`).
    NanFails,
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
    /// Every element: `|d| <= atol + rtol |g|`; at least `matched_ratio` of the elements match, which is
    /// `|d| <= small_error` where `|g| < small_threshold` and `|d| / (|g| + 1e-7) <= mean_rel` elsewhere;
    /// `mean(|d| / (|g| + 1e-7)) < mean_rel`.
    ThreeWay,
    /// In every group of neighbouring elements of scale `s`: `rms(d) <= rms_tol s` and every element
    /// `|d| <= atol_scaled s + rtol |g|`. `s` is the rms of the golden in the group (at least 1/1024 of the rms of
    /// the whole), raised where the reference in its own dtype is itself off by more than
    /// `rms_tol / reference_factor` of it.
    ScaledRms,
    /// `mean(|d| / (|g| + 1e-7)) < mean_rel`, and the share of elements with `|d| > atol + rtol |g|` is at most `mismatch`.
    MeanAndShare,
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
    pub mean_rel: f64,
    pub rms_tol: f64,
    pub atol_scaled: f64,
    pub reference_factor: f64,
    /// How many times wider `rms_tol`, `atol_scaled` and `rtol` are in a value regime, which looks for overflow, lost
    /// terms and assumptions about signs; precision is decided on the problem's own inputs. 0 stands for 1.
    pub regime_factor: f64,
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

    /// The profile as it holds in a value regime: see [`Tolerance::regime_factor`].
    pub fn in_regime(&self) -> Self {
        let mut wide = self.clone();
        for tolerance in wide.tolerance.values_mut().chain([&mut wide.default]) {
            let factor = tolerance.regime_factor.max(1.0);
            tolerance.rms_tol *= factor;
            tolerance.atol_scaled *= factor;
            tolerance.rtol *= factor;
        }
        wide
    }

    /// The numbers for an output of this dtype.
    pub fn tolerance(&self, dtype: Dtype) -> &Tolerance {
        self.tolerance.get(&dtype).unwrap_or(&self.default)
    }
}
