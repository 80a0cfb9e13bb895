use std::path::PathBuf;
use std::time::Duration;

use tilewright_contract::{BaselineKind, Profile, Target};

use crate::target::Device;

/// What a caller asks of a verification.
#[derive(Debug, Clone)]
pub struct Options {
    pub device: Device,
    pub target: Target,
    /// The first one decides the verdict.
    pub profiles: Vec<Profile>,
    pub trials: u32,
    /// Seed of the secret seeds.
    pub seed: u64,
    pub mode: Mode,
    /// What accepted candidates are timed against, on a GPU; without it, none is timed.
    pub timing: Option<Vec<BaselineKind>>,
    /// For each candidate, all stages together.
    pub timeout: Duration,
    /// Fail when a layer of the sandbox is missing.
    pub strict: bool,
    /// Share of the accepted candidates, 0 to 1, that run once more, unmodified, while what reaches the driver is held
    /// against their plans. On a GPU only.
    pub confirm: f64,
    /// Where plan, TTIR, binaries and oracle data are kept for inspection.
    pub keep: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The candidate's Python never sees data.
    Replay,
    /// The candidate runs on real data in its own process.
    Direct,
}
