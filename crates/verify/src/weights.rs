//! Which weights the candidate gets, and where they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use once_cell::sync::OnceCell;
use tilewright_contract::{Blob, BufferSource, OracleCase, VerdictKind};
use tilewright_stage::{ChangeRule, Trace, Weights as WeightRule};

use crate::draft::{Draft, Stop};
use crate::oracle::OracleSet;
use crate::pipeline::{Candidate, Verifier};
use crate::problem::Problem;

/// The run of `__init__` with fixed weights changed, after those under two seeds.
const CHANGED: usize = 2;

/// How the candidate's weights relate to the reference's.
pub(crate) struct Weights {
    rule: Rule,
    /// Contents by attribute path, for each case.
    constants: Vec<BTreeMap<String, Vec<u8>>>,
    /// Oracle data under the init seed, where the rule needs them.
    initial: Option<Arc<OracleSet>>,
    missing: Vec<String>,
    extra: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// There are no weights.
    None,
    /// By name.
    StateDict,
    /// Renamed: each differs between init seeds, and equals one of the reference's under the same seed.
    Value,
    /// Computed from weights in `__init__`.
    Folded,
}

/// A problem's data with the weights of the reference's own `__init__`, once somebody needed them. Whoever needs those
/// that are being made waits for them, and nobody else does.
#[derive(Default)]
pub(crate) struct Initial {
    each: OnceCell<Arc<OracleSet>>,
    same: OnceCell<Arc<OracleSet>>,
}

impl Initial {
    fn under(&self, rule: ChangeRule) -> &OnceCell<Arc<OracleSet>> {
        match rule {
            ChangeRule::Each => &self.each,
            ChangeRule::Same => &self.same,
        }
    }

    /// Those that are made.
    pub(crate) fn made(&self) -> impl Iterator<Item = &OracleSet> {
        [&self.each, &self.same].into_iter().filter_map(OnceCell::get).map(Arc::as_ref)
    }
}

impl Weights {
    /// For a runner that loads the weights by name itself.
    pub(crate) fn by_name() -> Self {
        Self { rule: Rule::StateDict, constants: Vec::new(), initial: None, missing: Vec::new(), extra: Vec::new() }
    }

    pub(crate) fn constants(&self, case: usize) -> &BTreeMap<String, Vec<u8>> {
        &self.constants[case]
    }

    /// The oracle data that the candidate is judged on.
    pub(crate) fn oracle<'a>(&'a self, candidate: &'a Candidate<'_>) -> &'a OracleSet {
        self.initial.as_deref().unwrap_or(candidate.oracle)
    }

    pub(crate) fn report(&self, draft: &mut Draft) {
        let name = match self.rule {
            Rule::None => "none",
            Rule::StateDict => "state_dict",
            Rule::Value => "value",
            Rule::Folded => "folded",
        };
        draft.verdict.weights = Some(name.into());
        if let Some(names) = self.differing_names() {
            draft.note(names);
        }
    }

    /// Lists the names that differ, for a reader who wonders where the weights went.
    pub(crate) fn differing_names(&self) -> Option<String> {
        // A name that it has in another shape is both missing and its own.
        let (other, missing): (Vec<_>, Vec<_>) = self.missing.iter().partition(|name| self.extra.contains(name));
        let own = self.extra.iter().filter(|name| !self.missing.contains(name)).cloned().collect::<Vec<_>>();
        let join = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if !other.is_empty() {
            parts.push(format!("the candidate's state_dict has {} in another shape", join(other)));
        }
        if !missing.is_empty() {
            parts.push(format!("the candidate's state_dict lacks {}", join(missing)));
        }
        if !own.is_empty() {
            parts.push(format!("it has of its own {}", own.join(", ")));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl Verifier {
    /// Matches by name where that is enough. A tensor that the candidate's `__init__` makes itself is a constant if it is
    /// equal under two init seeds and under other numbers in place of fixed weights; otherwise it depends on weights, and
    /// the reference is given the same init seed and the same change.
    pub(crate) fn match_weights(&self, candidate: &Candidate<'_>, traces: &[Trace]) -> Result<Weights, Stop> {
        let problem = candidate.problem;
        let (missing, extra) =
            traces.first().map(|trace| (trace.missing.clone(), trace.extra.clone())).unwrap_or_default();
        let mut made = self.made_by_init(candidate, traces, None)?;
        let weights = |rule, initial: Option<Arc<OracleSet>>, made: &[Made]| {
            let constants =
                made.iter().enumerate().map(|(case, made)| made.constants(initial.as_deref(), case)).collect();
            Weights { rule, constants, initial, missing, extra }
        };
        if !made.iter().flat_map(|made| &made.tensors).any(MadeTensor::varies) {
            let stateless = candidate.oracle.data.cases.iter().all(|case| case.signature.state.is_empty());
            let rule = if stateless { Rule::None } else { Rule::StateDict };
            return Ok(weights(rule, None, &made));
        }
        let mut rules = made.iter().filter_map(|made| made.rule);
        let rule = if rules.all(|rule| rule == ChangeRule::Each) { ChangeRule::Each } else { ChangeRule::Same };
        if made.iter().any(|made| made.rule.is_some_and(|other| other != rule)) {
            made = self.made_by_init(candidate, traces, Some(rule))?;
        }
        let initial = candidate.waited.during(|| self.initial(problem, rule))?;
        let value = made.iter().enumerate().all(|(case, made)| {
            let run = run_of(&initial, case);
            made.tensors
                .iter()
                .filter(|tensor| tensor.varies())
                .all(|tensor| is_weight(&tensor.contents[run], &initial))
        });
        Ok(weights(if value { Rule::Value } else { Rule::Folded }, Some(initial), &made))
    }

    /// The tensors that `__init__` makes and that reach a step, for each case.
    fn made_by_init(
        &self,
        candidate: &Candidate<'_>,
        traces: &[Trace],
        rule: Option<ChangeRule>,
    ) -> Result<Vec<Made>, Stop> {
        let cases = traces.iter().zip(&candidate.oracle.data.cases);
        cases.map(|(trace, case)| self.made_in_case(candidate, trace, case, rule)).collect()
    }

    fn made_in_case(
        &self,
        candidate: &Candidate<'_>,
        trace: &Trace,
        case: &OracleCase,
        rule: Option<ChangeRule>,
    ) -> Result<Made, Stop> {
        let paths = constant_paths(trace);
        if paths.is_empty() {
            return Ok(Made::default());
        }
        let seed = candidate.problem.init_seed;
        let made = self.stage.init(&candidate.source, case, [seed, seed ^ 0x5DEE_CE66], rule)?;
        let find = |path: String| -> Result<MadeTensor, Stop> {
            let tensor = made.tensors.iter().find(|tensor| tensor.path == path).ok_or_else(|| unknown(&path))?;
            let read = |blob: &Blob| made.data.read(*blob).map_err(|_| unknown(&path));
            let contents = tensor.blobs.iter().map(read).collect::<Result<_, _>>()?;
            Ok(MadeTensor { contents, path })
        };
        Ok(Made { rule: Some(made.rule), tensors: paths.into_iter().map(find).collect::<Result<_, _>>()? })
    }

    /// Oracle data with the weights of the reference's own `__init__`, made once a problem and rule.
    pub(crate) fn initial(&self, problem: &Problem, rule: ChangeRule) -> Result<Arc<OracleSet>, Stop> {
        let make = || self.oracle(&problem.path, WeightRule::Init { seed: problem.init_seed, rule }).map(Arc::new);
        problem.initial.under(rule).get_or_try_init(make).map(Arc::clone)
    }
}

/// What the candidate's `__init__` makes in one case.
#[derive(Default)]
struct Made {
    /// How fixed weights were changed in the last run; none where nothing was asked for.
    rule: Option<ChangeRule>,
    tensors: Vec<MadeTensor>,
}

impl Made {
    /// Contents by path, of the run that the reference's weights are from.
    fn constants(&self, initial: Option<&OracleSet>, case: usize) -> BTreeMap<String, Vec<u8>> {
        let run = initial.map_or(0, |initial| run_of(initial, case));
        self.tensors.iter().map(|tensor| (tensor.path.clone(), tensor.contents[run].clone())).collect()
    }
}

/// A tensor that the candidate's `__init__` made.
struct MadeTensor {
    path: String,
    /// Under each init seed, and with fixed weights changed.
    contents: Vec<Vec<u8>>,
}

impl MadeTensor {
    fn varies(&self) -> bool {
        self.contents.iter().any(|contents| *contents != self.contents[0])
    }
}

/// Which run of the candidate's `__init__` belongs to the reference's: fixed weights stay where the reference does not
/// work with others.
fn run_of(initial: &OracleSet, case: usize) -> usize {
    if initial.data.cases.get(case).is_some_and(|case| case.changed) { CHANGED } else { 0 }
}

/// Attribute paths of the tensors that `__init__` makes and that reach a step.
fn constant_paths(trace: &Trace) -> BTreeSet<String> {
    let buffers = trace.plans.iter().flat_map(|plan| &plan.buffers);
    buffers
        .filter_map(|buffer| match &buffer.source {
            BufferSource::Constant { path } => Some(path.clone()),
            _ => None,
        })
        .collect()
}

/// Whether these are the values of one of the reference's weights, in whatever shape.
fn is_weight(contents: &[u8], initial: &OracleSet) -> bool {
    let trials = initial.data.cases.iter().filter_map(|case| case.trials.first());
    trials.flat_map(|trial| &trial.state).any(|blob| initial.bytes(*blob).is_ok_and(|weight| weight == contents))
}

fn unknown(path: &str) -> Stop {
    let message = format!("{path} is used in forward, but __init__ did not make it when it ran for real");
    Stop::new(VerdictKind::Rejected, "hidden-state", message)
        .help("make tensors in __init__ or forward, the same way in every process")
}
