//! The judge layer's place in a verification: it is asked about accepted candidates alone, and decides only where the
//! profile says so.

use tilewright_contract::{Opinion, OpinionAnswer, OpinionRole, Profile, StageTime, Verdict, VerdictKind};

use crate::draft::reason;

/// Asks somebody about the texts of a problem and a candidate; never fails.
pub(crate) type Reviewer = Box<dyn Fn(&str, &str) -> Opinion + Send + Sync>;

/// Records an opinion in the verdict on an accepted candidate.
pub(crate) fn record(verdict: &mut Verdict, opinion: Opinion, deciding: Option<&Profile>) {
    let decides = deciding.is_some_and(|profile| profile.opinion == OpinionRole::Decides);
    if decides && opinion.answer == OpinionAnswer::Doubts {
        verdict.verdict = VerdictKind::Rejected;
        verdict.fault = verdict.verdict.fault();
        let concerns = opinion.concerns.iter().chain([&opinion.text]).cloned().collect::<Vec<_>>().join("; ");
        verdict.reasons = vec![reason("opinion", format!("{} doubts it: {concerns}", opinion.endpoint))];
        verdict.stages.push(StageTime { stage: "opinion".into(), seconds: opinion.seconds, cached: false });
    }
    verdict.opinion = Some(opinion);
}
