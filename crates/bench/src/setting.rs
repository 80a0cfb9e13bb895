use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Under which circumstances verdicts were given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Tilewright's version; for an imported run, what it comes from.
    pub tilewright: String,
    pub torch: String,
    pub triton: String,
    /// `cpu` or `cuda:N`.
    pub target: String,
    /// The GPU's name, or `emulator`.
    pub device: String,
    /// What kernels were compiled for: `sm_90`.
    pub arch: String,
    /// `replay` or `direct`.
    pub trust: String,
    /// `NAME/VERSION`; the first one decides.
    pub profiles: Vec<String>,
    /// What accepted candidates are timed against; empty where none is timed.
    pub baselines: Vec<String>,
    pub trials: u32,
    /// Seconds for each candidate.
    pub timeout: f64,
    /// Seed of the secret seeds.
    pub seed: u64,
}

/// Something that two runs do not have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    pub what: String,
    pub a: String,
    pub b: String,
}

impl Setting {
    /// What makes figures of the two no longer comparable. Seeds may differ, and so may which of several equal GPUs it
    /// was.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let pairs = self.fields().into_iter().zip(other.fields());
        pairs.filter(|(a, b)| a.1 != b.1).map(|((what, a), (_, b))| Difference { what: what.into(), a, b }).collect()
    }

    fn fields(&self) -> [(&'static str, String); 10] {
        let kind = self.target.split(':').next().unwrap_or_default();
        [
            ("tilewright", self.tilewright.clone()),
            ("torch", self.torch.clone()),
            ("triton", self.triton.clone()),
            ("device", format!("{} ({kind})", self.device)),
            ("arch", self.arch.clone()),
            ("trust", self.trust.clone()),
            ("profiles", self.profiles.join(", ")),
            ("baselines", self.baselines.join(", ")),
            ("trials", self.trials.to_string()),
            ("timeout", format!("{} s", self.timeout)),
        ]
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |text: &'_ str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
        write!(f, "{}: {} and {}", self.what, shown(&self.a), shown(&self.b))
    }
}

/// `; ` between differences.
pub(crate) fn list(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
