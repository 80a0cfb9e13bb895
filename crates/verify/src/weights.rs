//! Which weights the candidate gets, and where they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use tilewright_contract::{Blob, BufferSource, CaseSignature, VerdictKind};
use tilewright_stage::{Trace, Weights as WeightRule};

use crate::draft::{Draft, Stop};
use crate::pipeline::{Candidate, Verifier};
use crate::problem::{OracleSet, Problem};

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
        let mut parts = Vec::new();
        if !self.missing.is_empty() {
            parts.push(format!("the candidate's state_dict lacks {}", self.missing.join(", ")));
        }
        if !self.extra.is_empty() {
            parts.push(format!("it has of its own {}", self.extra.join(", ")));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl Verifier {
    /// Matches by name where that is enough. A tensor that the candidate's `__init__` makes itself is a constant if it is
    /// equal under two init seeds; otherwise it depends on weights, and the reference is given the same init seed.
    pub(crate) fn match_weights(&self, candidate: &Candidate<'_>, traces: &[Trace]) -> Result<Weights, Stop> {
        let problem = candidate.problem;
        let (missing, extra) =
            traces.first().map(|trace| (trace.missing.clone(), trace.extra.clone())).unwrap_or_default();
        let mut constants = Vec::new();
        let mut varying = Vec::new();
        for (trace, case) in traces.iter().zip(&candidate.oracle.data.cases) {
            let made = self.made_by_init(candidate, trace, &case.signature)?;
            constants.push(made.iter().map(|tensor| (tensor.path.clone(), tensor.contents[0].clone())).collect());
            varying.extend(made.into_iter().filter(|tensor| tensor.contents[0] != tensor.contents[1]));
        }
        if varying.is_empty() {
            let stateless = candidate.oracle.data.cases.iter().all(|case| case.signature.state.is_empty());
            let rule = if stateless { Rule::None } else { Rule::StateDict };
            return Ok(Weights { rule, constants, initial: None, missing, extra });
        }
        let initial = self.initial(problem)?;
        let rule = if varying.iter().all(|tensor| is_weight(tensor, &initial)) { Rule::Value } else { Rule::Folded };
        Ok(Weights { rule, constants, initial: Some(initial), missing, extra })
    }

    /// The tensors that `__init__` makes and that reach a step of a case, each under two init seeds.
    fn made_by_init(
        &self,
        candidate: &Candidate<'_>,
        trace: &Trace,
        signature: &CaseSignature,
    ) -> Result<Vec<MadeTensor>, Stop> {
        let paths = constant_paths(trace);
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let seed = candidate.problem.init_seed;
        let made = self.stage.init(&candidate.source, signature, &[seed, seed ^ 0x5DEE_CE66])?;
        let find = |path: String| -> Result<MadeTensor, Stop> {
            let tensor = made.tensors.iter().find(|tensor| tensor.path == path).ok_or_else(|| unknown(&path))?;
            let read = |blob: &Blob| made.data.read(*blob).map_err(|_| unknown(&path));
            let contents = tensor.blobs.iter().map(read).collect::<Result<_, _>>()?;
            Ok(MadeTensor { contents, path })
        };
        paths.into_iter().map(find).collect()
    }

    /// Oracle data with the weights of the reference's own `__init__`, made once a problem.
    fn initial(&self, problem: &Problem) -> Result<Arc<OracleSet>, Stop> {
        let mut slot = problem.initial.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(initial) = &*slot {
            return Ok(Arc::clone(initial));
        }
        let made = Arc::new(self.oracle(&problem.path, WeightRule::Init { seed: problem.init_seed })?);
        *slot = Some(Arc::clone(&made));
        Ok(made)
    }
}

/// A tensor that the candidate's `__init__` made.
struct MadeTensor {
    path: String,
    /// Under each init seed.
    contents: Vec<Vec<u8>>,
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

/// Whether a tensor holds the values of one of the reference's weights, in whatever shape.
fn is_weight(tensor: &MadeTensor, initial: &OracleSet) -> bool {
    let trials = initial.data.cases.iter().filter_map(|case| case.trials.first());
    trials.flat_map(|trial| &trial.state).any(|blob| initial.bytes(*blob) == tensor.contents[0])
}

fn unknown(path: &str) -> Stop {
    let message = format!("{path} is used in forward, but __init__ did not make it when it ran for real");
    Stop::new(VerdictKind::Rejected, "hidden-state", message)
        .help("make tensors in __init__ or forward, the same way in every process")
}
