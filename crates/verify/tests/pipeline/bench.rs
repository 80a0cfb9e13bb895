//! Verifiers over the zygote that all tests share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tilewright_cell::{Zygote, ZygoteOptions, find_python};
use tilewright_contract::Verdict;
use tilewright_stage::{Cache, Stage, StageOptions};
use tilewright_verify::{Device, Mode, Options, Verifier, parse_arch};

static ZYGOTE: LazyLock<Arc<Zygote>> = LazyLock::new(|| {
    let python = find_python(None).expect("a Python with torch: run `make venv`");
    Arc::new(Zygote::start(ZygoteOptions::new(python)).expect("the zygote starts: run `make venv`"))
});

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A verifier with one trial a problem: what is tested is the path, not the precision.
pub(crate) fn verifier(cache: &Path) -> Verifier {
    verifier_with(cache, &[tilewright_judge::DEFAULT_PROFILE], Duration::from_secs(300))
}

/// A verifier under some of the shipped profiles, with a limit for each candidate.
pub(crate) fn verifier_with(cache: &Path, profiles: &[&str], timeout: Duration) -> Verifier {
    let options = Options {
        device: Device::Cpu,
        target: parse_arch("sm_90").unwrap(),
        profiles: profiles.iter().map(|name| tilewright_judge::profile(name).unwrap().unwrap()).collect(),
        trials: 1,
        seed: 20_261_129,
        mode: Mode::Replay,
        timing: None,
        timeout,
        strict: false,
        confirm: 0.0,
        keep: None,
    };
    Verifier::new(Stage::new(ZYGOTE.clone(), Cache::open(cache).unwrap(), StageOptions::default()), options)
}

/// A verdict in one line.
pub(crate) fn explain(verdict: &Verdict) -> String {
    let reasons: Vec<_> = verdict.reasons.iter().map(|reason| format!("{} {}", reason.code, reason.message)).collect();
    format!("{}: {}: {}", verdict.candidate.path, verdict.verdict.name(), reasons.join("; "))
}
