use std::path::Path;

use tilewright_author::Hardware;
use tilewright_contract::{Verdict, VerdictKind};
use tilewright_verify::{Problem, Verifier, Watch, digest};

/// Gives verdicts.
pub trait Checker: Sync {
    /// The verdict on a candidate with this text. Never fails: whatever happens is in the verdict. `watch` hears of the stages.
    fn check(&self, file: &Path, source: &str, watch: Watch<'_>) -> Verdict;

    /// Equal for candidates that are the same but for names and layout.
    fn form(&self, source: &str) -> String {
        digest(source.as_bytes())
    }

    /// Equal for candidates that do the same; takes longer to find than [`Self::form`]. None where that is not known.
    fn twin(&self, _file: &Path, _source: &str) -> Option<String> {
        None
    }

    /// A closer look at the candidate that ends a run, where there is one to be had.
    fn confirm(&self, _file: &Path, _source: &str) -> Option<Verdict> {
        None
    }

    /// Why no candidate can be verified, if that is known.
    fn trouble(&self) -> Option<(VerdictKind, String)> {
        None
    }
}

/// A verifier with the problem that it verifies against.
pub struct Verifying<'a> {
    pub verifier: &'a Verifier,
    pub problem: &'a Problem,
    /// What the candidates are for in the end; advice about it goes into the findings.
    pub hardware: Hardware,
    /// Whether it verifies on a GPU.
    pub on_gpu: bool,
}

impl Checker for Verifying<'_> {
    fn check(&self, file: &Path, source: &str, watch: Watch<'_>) -> Verdict {
        let mut verdict = self.verifier.verify_watched(self.problem, file, source.as_bytes(), watch);
        if self.hardware == Hardware::Ascend {
            // A file that cannot be read has a verdict that says so.
            verdict.findings.extend(tilewright_screen::ascend(source.as_bytes()).unwrap_or_default());
        }
        verdict
    }

    fn form(&self, source: &str) -> String {
        let form = tilewright_screen::normal_form(source.as_bytes());
        digest(form.as_deref().unwrap_or(source).as_bytes())
    }

    fn twin(&self, file: &Path, source: &str) -> Option<String> {
        self.verifier.twin(self.problem, file, source.as_bytes())
    }

    /// On a GPU the file is run unmodified in front of a recording driver, and must be its plan.
    fn confirm(&self, file: &Path, source: &str) -> Option<Verdict> {
        self.on_gpu.then(|| self.verifier.verify_last(self.problem, file, source.as_bytes()))
    }

    fn trouble(&self) -> Option<(VerdictKind, String)> {
        self.problem.trouble()
    }
}
