//! Counts, the taxonomy of verdicts, and one row for each problem.

use std::collections::BTreeMap;

use tilewright_contract::{Fault, VerdictKind};

use crate::outcome::{Outcome, Run, RunProblem, Speedup};
use crate::report::{Counts, Kind, ProblemRow, ReasonCount, SampleRow, SpeedupOf};

pub(super) fn counts(run: &Run) -> Counts {
    let mut counts = Counts { problems: run.problems.len() as u64, ..Counts::default() };
    for problem in &run.problems {
        counts.unanswered += u64::from(problem.outcomes.is_empty());
        for outcome in &problem.outcomes {
            counts.samples += 1;
            let place = match outcome.kind.map(VerdictKind::fault) {
                None => &mut counts.missing,
                Some(Fault::None) => &mut counts.accepted,
                Some(Fault::Candidate) => &mut counts.failed,
                Some(Fault::Problem | Fault::Infrastructure) => &mut counts.undecided,
            };
            *place += 1;
        }
    }
    counts
}

/// What a reader must know before believing a number.
pub(super) fn notes(run: &Run, counts: &Counts) -> Vec<String> {
    let mut notes = Vec::new();
    let Counts { missing, undecided, unanswered, .. } = *counts;
    if missing > 0 {
        notes.push(format!("{missing} samples have no verdict: the run is not finished"));
    }
    if undecided > 0 {
        notes.push(format!(
            "{undecided} samples were not decided, through no fault of theirs: they count neither for nor against"
        ));
    }
    if run.sources.len() > 1 {
        notes.push(format!(
            "samples come from {}: where several have a sample of one number, the last one counts",
            run.sources.join(", ")
        ));
    }
    if let Some(whole) = run.suite_problems.filter(|&whole| u64::from(whole) > counts.problems) {
        notes.push(format!("a part of the suite: {} of its {whole} problems are asked for", counts.problems));
    }
    if unanswered > 0 {
        notes.push(format!("{unanswered} problems have no sample: they count as not solved"));
    }
    if run.setting.baselines.is_empty() {
        notes.push("nothing was timed: there is no speedup and no fast_p".into());
    }
    let unknown = run.problems.iter().filter(|problem| problem.marks.is_empty()).count();
    if unknown > 0 {
        notes.push(format!(
            "of {unknown} problems it is not known whether they tell right from wrong: they count as sound"
        ));
    }
    if run.setting.profiles.len() > 1 && !run.setting.baselines.is_empty() {
        let first = &run.setting.profiles[0];
        notes.push(format!("only what {first} accepts is timed: under other profiles the rest counts as not fast"));
    }
    if run.drivers.len() > 1 {
        notes.push("verdicts come from machines with different drivers".into());
    }
    notes
}

pub(super) fn taxonomy(run: &Run) -> Vec<Kind> {
    let mut kinds: BTreeMap<Option<VerdictKind>, Vec<&Outcome>> = BTreeMap::new();
    for outcome in run.problems.iter().flat_map(|problem| &problem.outcomes) {
        kinds.entry(outcome.kind).or_default().push(outcome);
    }
    let kind = |(kind, of): (Option<VerdictKind>, Vec<&Outcome>)| Kind {
        verdict: name(kind).into(),
        fault: kind.map(VerdictKind::fault),
        count: of.len() as u32,
        reasons: reasons(of.into_iter()),
    };
    let mut kinds: Vec<Kind> = kinds.into_iter().map(kind).collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
    kinds
}

/// Longest message that is kept as an example.
const EXAMPLE: usize = 300;

fn reasons<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Vec<ReasonCount> {
    let mut counts: BTreeMap<&str, ReasonCount> = BTreeMap::new();
    for reason in outcomes.filter_map(|outcome| outcome.reason.as_ref()) {
        let count = counts.entry(&reason.code).or_insert_with(|| ReasonCount {
            code: reason.code.clone(),
            count: 0,
            example: reason.message.chars().take(EXAMPLE).collect(),
        });
        count.count += 1;
    }
    let mut counts: Vec<ReasonCount> = counts.into_values().collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.count));
    counts
}

/// What most failures are due to; faults that are not the candidates' only where there is nothing else.
fn commonest<'a>(failed: impl Iterator<Item = &'a Outcome>) -> Option<ReasonCount> {
    let (decided, others): (Vec<&Outcome>, Vec<&Outcome>) = failed.partition(|outcome| outcome.decided());
    reasons(decided.into_iter()).into_iter().chain(reasons(others.into_iter())).next()
}

pub(super) fn problem(run: &Run, problem: &RunProblem) -> ProblemRow {
    let outcomes = &problem.outcomes;
    let count = |of: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| of(outcome)).count() as u32;
    let correct = |outcome: &Outcome| outcome.passes.first().copied().unwrap_or(false);
    let mut verdicts = BTreeMap::new();
    for outcome in outcomes {
        *verdicts.entry(name(outcome.kind).to_owned()).or_insert(0) += 1;
    }
    let timed = outcomes.iter().filter(|outcome| correct(outcome)).filter_map(speedup_of);
    let first = run.setting.profiles.first().map_or("", |profile| Run::profile_name(profile));
    ProblemRow {
        id: problem.id.clone(),
        level: problem.level,
        number: problem.number,
        marks: problem.marks.iter().map(|(profile, (mark, _))| (profile.clone(), *mark)).collect(),
        collapsible: problem.collapsible(0, first),
        findings: problem.marks.get(first).map(|(_, findings)| findings.clone()).unwrap_or_default(),
        samples: outcomes.len() as u32,
        decided: count(&|outcome| outcome.decided()),
        correct: count(&correct),
        verdicts,
        best: timed.max_by(|a, b| a.value.total_cmp(&b.value)),
        reason: commonest(outcomes.iter().filter(|outcome| !correct(outcome))),
        outcomes: outcomes.iter().map(sample).collect(),
    }
}

fn sample(outcome: &Outcome) -> SampleRow {
    SampleRow {
        index: outcome.index,
        verdict: outcome.kind,
        reason: outcome.reason.as_ref().map(|reason| reason.code.clone()),
        speedup: speedup_of(outcome),
        device_us: outcome.device_us,
    }
}

/// Against the first baseline.
fn speedup_of(outcome: &Outcome) -> Option<SpeedupOf> {
    let Speedup { value, limits } = outcome.speedups.first().copied().flatten()?;
    let (low, high) = (limits.map(|limits| limits.0), limits.map(|limits| limits.1));
    Some(SpeedupOf { value, low, high, fraction: outcome.fraction })
}

fn name(kind: Option<VerdictKind>) -> &'static str {
    kind.map_or("missing", VerdictKind::name)
}
