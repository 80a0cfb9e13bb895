use std::any::Any;
use std::time::Instant;

use tilewright_cell::Death;
use tilewright_contract::{CandidateId, Finding, PlanError, Reason, StageTime, Tier, Trust, Verdict, VerdictKind};
use tilewright_judge::Judged;
use tilewright_replay::{Fault, FaultKind};
use tilewright_screen::ScreenError;
use tilewright_stage::StageError;

use crate::options::{Mode, Options};
use crate::weights::Weights;

/// Why a verification ends before the judge accepts.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) kind: VerdictKind,
    /// The deciding one first.
    pub(crate) reasons: Vec<Reason>,
}

impl Stop {
    pub(crate) fn new(kind: VerdictKind, code: &str, message: impl Into<String>) -> Self {
        Self { kind, reasons: vec![reason(code, message)] }
    }

    pub(crate) fn at(mut self, line: Option<u32>) -> Self {
        self.reasons[0].line = line;
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.reasons[0].help = Some(help.into());
        self
    }

    pub(crate) fn infrastructure(message: impl Into<String>) -> Self {
        Self::new(VerdictKind::Infrastructure, "infrastructure", message)
    }

    /// For a panic of ours that was caught.
    pub(crate) fn bug(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Self::infrastructure(format!("a bug in Tilewright: {text}"))
    }
}

pub(crate) fn reason(code: &str, message: impl Into<String>) -> Reason {
    Reason { code: code.into(), message: message.into(), line: None, help: None }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        let (kind, code) = match fault.kind {
            FaultKind::OutOfBounds => (VerdictKind::MemoryFault, "out-of-bounds"),
            FaultKind::Misaligned => (VerdictKind::MemoryFault, "misaligned"),
            FaultKind::UninitialisedRead => (VerdictKind::MemoryFault, "uninitialised-read"),
            FaultKind::TorchComputes => (VerdictKind::Rejected, "torch-compute"),
            FaultKind::LeftOver => (VerdictKind::Rejected, "hidden-state"),
            FaultKind::Overflow => (VerdictKind::MemoryFault, "offset-overflow"),
            FaultKind::DivisionByZero => (VerdictKind::MemoryFault, "division-by-zero"),
            FaultKind::Race => (VerdictKind::Race, "race"),
            FaultKind::Guard => (VerdictKind::MemoryFault, "guard-zone"),
            FaultKind::Trap => (VerdictKind::LaunchError, "trap"),
            FaultKind::Launch => (VerdictKind::LaunchError, "launch"),
            FaultKind::Deadlock => (VerdictKind::Timeout, "deadlock"),
            FaultKind::Timeout => (VerdictKind::Timeout, "replay-timeout"),
            FaultKind::OutOfMemory => (VerdictKind::OutOfMemory, "device-memory"),
            FaultKind::Unsupported => (VerdictKind::Unsupported, "unsupported"),
            FaultKind::Refused | FaultKind::Lost | FaultKind::Infrastructure => (VerdictKind::Infrastructure, "device"),
        };
        Self::new(kind, code, fault.message).at(fault.line)
    }
}

impl From<ScreenError> for Stop {
    fn from(error: ScreenError) -> Self {
        match &error {
            ScreenError::Thread(why) => Self::infrastructure(why.clone()),
            ScreenError::Empty => Self::new(VerdictKind::CompileError, "empty-file", error.to_string()),
            ScreenError::Syntax { message, .. } => Self::new(VerdictKind::CompileError, "syntax", message.clone()),
            // The place is told apart.
            _ => {
                let (place, text) = (format!("line {}: ", error.line().unwrap_or(0)), error.to_string());
                Self::new(VerdictKind::CompileError, "unreadable", text.strip_prefix(&place).unwrap_or(&text))
            }
        }
        .at(error.line())
    }
}

impl From<StageError> for Stop {
    fn from(error: StageError) -> Self {
        match error {
            StageError::Candidate(failure) => match stop_at(&failure.findings) {
                Err(stop) => stop,
                Ok(()) => {
                    let (kind, code) = failure_kind(&failure.kind, &failure.exception);
                    let named = !failure.exception.is_empty() && kind == VerdictKind::LaunchError;
                    let prefix = if named { format!("{}: ", failure.exception) } else { String::new() };
                    Self::new(kind, code, format!("{prefix}{}", failure.message)).at(failure.line)
                }
            },
            StageError::Death { kind, death, .. } => {
                let (verdict, code) = death_kind(&death);
                Self::new(verdict, code, format!("the {kind} process {death}"))
            }
            StageError::Malformed { .. } => Self::new(VerdictKind::Rejected, "forged-answer", error.to_string()),
            other => Self::infrastructure(other.to_string()),
        }
    }
}

/// What an error document of a job that runs the candidate means.
fn failure_kind(kind: &str, exception: &str) -> (VerdictKind, &'static str) {
    match kind {
        "compile_error" => (VerdictKind::CompileError, "compile"),
        "syntax" => (VerdictKind::CompileError, "syntax"),
        "missing-class" => (VerdictKind::CompileError, "missing-class"),
        "untraceable" => (VerdictKind::Untraceable, "untraceable"),
        "unsupported" => (VerdictKind::Unsupported, "unsupported"),
        "no-device" => (VerdictKind::Infrastructure, "no-device"),
        "weights" => (VerdictKind::Incorrect, "weights"),
        // Torch's, for a device that has not as much; a trace raises it where a tensor alone is larger than the device.
        _ if exception == "OutOfMemoryError" => (VerdictKind::OutOfMemory, "device-memory"),
        _ => (VerdictKind::LaunchError, "exception"),
    }
}

fn death_kind(death: &Death) -> (VerdictKind, &'static str) {
    match death {
        Death::Timeout => (VerdictKind::Timeout, "timeout"),
        Death::OutOfMemory => (VerdictKind::OutOfMemory, "host-memory"),
        Death::DiskFull => (VerdictKind::Rejected, "fills-disk"),
        Death::Exit(_) | Death::Garbled(_) => (VerdictKind::Rejected, "left-process"),
        Death::TooLarge => (VerdictKind::Untraceable, "too-large"),
        Death::Signal(_) => (VerdictKind::LaunchError, "crash"),
    }
}

/// A plan that contradicts itself comes from a tampered tracer: an honest trace cannot produce one.
impl From<PlanError> for Stop {
    fn from(error: PlanError) -> Self {
        Self::new(VerdictKind::Rejected, "forged-plan", format!("the plan contradicts itself: {error}"))
    }
}

/// Stops at the gravest of the findings, if any of them decides; all that share its verdict become reasons.
pub(crate) fn stop_at(findings: &[Finding]) -> Result<(), Stop> {
    for (tier, kind) in [
        (Tier::Proof, VerdictKind::Rejected),
        (Tier::Untraceable, VerdictKind::Untraceable),
        (Tier::Unsupported, VerdictKind::Unsupported),
    ] {
        let reasons: Vec<Reason> = findings.iter().filter(|finding| finding.tier == tier).map(Reason::from).collect();
        if !reasons.is_empty() {
            return Err(Stop { kind, reasons });
        }
    }
    Ok(())
}

/// Hears the name of each stage as it begins.
pub type Watch<'w> = &'w (dyn Fn(&str) + Sync);

/// A verdict in the making.
pub(crate) struct Draft<'w> {
    pub(crate) verdict: Verdict,
    pub(crate) watch: Option<Watch<'w>>,
}

impl Draft<'_> {
    pub(crate) fn new(options: &Options, problem: CandidateId, candidate: CandidateId) -> Self {
        let kind = VerdictKind::Infrastructure;
        Self {
            watch: None,
            verdict: Verdict {
                schema: Verdict::SCHEMA.into(),
                verdict: kind,
                fault: kind.fault(),
                problem,
                candidate,
                target: options.device.to_string(),
                arch: Some(options.target.clone()),
                trust: if options.mode == Mode::Replay { Trust::Replay } else { Trust::Direct },
                profiles: Default::default(),
                reasons: Vec::new(),
                findings: Vec::new(),
                resources: Default::default(),
                timing: None,
                costs: Vec::new(),
                stages: Vec::new(),
                weights: None,
                notes: Vec::new(),
                opinion: None,
            },
        }
    }

    /// Runs a stage and notes its time; stages of the same name add up.
    pub(crate) fn stage<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        if let Some(watch) = self.watch {
            watch(name);
        }
        let result = work();
        self.spent(name, start.elapsed().as_secs_f64(), false);
        result
    }

    pub(crate) fn spent(&mut self, name: &str, seconds: f64, cached: bool) {
        match self.verdict.stages.iter_mut().find(|stage| stage.stage == name) {
            Some(stage) => {
                stage.seconds += seconds;
                stage.cached &= cached;
            }
            None => self.verdict.stages.push(StageTime { stage: name.into(), seconds, cached }),
        }
    }

    /// Findings that do not decide.
    pub(crate) fn see(&mut self, findings: &[Finding]) {
        for finding in findings {
            let told = matches!(finding.tier, Tier::Evidence | Tier::Advice);
            if told && !self.verdict.findings.contains(finding) {
                self.verdict.findings.push(finding.clone());
            }
        }
    }

    /// What the values say.
    pub(crate) fn judged(&mut self, judged: Judged, weights: &Weights) -> Result<(), Stop> {
        self.verdict.profiles = judged.outcomes;
        judged.notes.into_iter().for_each(|note| self.note(note));
        if judged.pass {
            return Ok(());
        }
        let mut reasons = judged.reasons;
        if let Some(names) = weights.differing_names() {
            reasons.push(reason("weights", format!("weights may not have been matched: {names}")));
        }
        Err(Stop { kind: VerdictKind::Incorrect, reasons })
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.verdict.notes.contains(&note) {
            self.verdict.notes.push(note);
        }
    }

    pub(crate) fn finish(mut self, outcome: Result<(), Stop>) -> Verdict {
        match outcome {
            Ok(()) => self.verdict.verdict = VerdictKind::Accepted,
            Err(stop) => {
                self.verdict.verdict = stop.kind;
                self.verdict.reasons = stop.reasons;
            }
        }
        self.verdict.fault = self.verdict.verdict.fault();
        self.verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_what_cannot_be_read_is_told_apart() {
        let stop = Stop::from(ScreenError::NotUtf8 { line: 2, offset: 10, hint: "" });
        let reason = &stop.reasons[0];
        assert_eq!((reason.line, reason.message.as_str()), (Some(2), "the file is not UTF-8 (byte 10)"));
    }
}
