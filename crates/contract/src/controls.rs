use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CandidateId;

/// Whether a problem tells right from wrong, under each precision profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// `tilewright.controls/1`
    pub schema: String,
    pub problem: CandidateId,
    /// `cpu` or `cuda:N`.
    pub target: String,
    /// Seed of the secret seeds.
    pub seed: u64,
    /// Trials on the problem's own inputs.
    pub trials: u32,
    /// Why there are no controls: the problem itself is unusable.
    pub defect: Option<String>,
    /// In the order asked for.
    pub profiles: Vec<ProfileCertificate>,
    pub controls: Vec<Control>,
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Certificate {
    pub const SCHEMA: &'static str = "tilewright.controls/1";
}

/// What the controls say under one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileCertificate {
    pub profile: String,
    pub version: u32,
    pub mark: Mark,
    /// Controls on the wrong side, as `zeros (output[1])`: those that pass and should fail, or the copy that fails.
    pub findings: Vec<String>,
}

/// The gravest finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// The copy passes and nothing else does.
    Ok,
    /// A lower precision passes.
    PrecisionBlind,
    /// Something without the answer passes.
    Degenerate,
    /// The reference, run once more, fails.
    Defect,
}

impl Mark {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::PrecisionBlind => "precision-blind",
            Self::Degenerate => "degenerate",
            Self::Defect => "defect",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControlKind {
    /// The reference once more: must pass.
    Copy,
    /// Does not know the answer: must fail, for every output on its own.
    AnswerFree,
    /// The reference in a lower precision: must fail.
    LowerPrecision,
}

/// One control under every profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// `copy`, `zeros`, `constant`, `unchanged`, `input[0]`, `mean-over-seeds`, `other-seed`, `skipped-stage`, `fp32`,
    /// `bf16`, `fp16`, `fp8`.
    pub name: String,
    pub kind: ControlKind,
    /// By profile: the tensors for which it passes, such as `output[1]`; all of them stand for a control that is judged
    /// as a whole.
    pub passes: BTreeMap<String, Vec<String>>,
    /// The problem's own reason why it passes, and rightly so: then it is no finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it has no result, if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inapplicable: Option<String>,
}
