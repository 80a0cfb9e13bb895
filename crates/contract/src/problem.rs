use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Dtype, TensorRef, Value, View};

/// What a candidate's process may know of one case: shapes and layouts, never data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseSignature {
    /// `default`, or the label of an entry of the problem's `CASES`.
    pub case: String,
    /// Arguments of `ModelNew(…)`.
    pub init_args: Vec<Value>,
    pub init_kwargs: Vec<(String, Value)>,
    /// Arguments of `forward`; tensors refer to `buffers`.
    pub args: Vec<Value>,
    /// Bytes of each input storage.
    pub buffers: Vec<u64>,
    /// The reference's `state_dict` in order; views are contiguous.
    pub state: Vec<NamedTensor>,
    /// Names of `state` that are parameters (the others are buffers).
    pub parameters: Vec<String>,
    /// Whether `forward` runs in training mode (`module.training`).
    pub training: bool,
    /// Where a call is `forward` and its backward pass: `args` then end with a list of cotangents, and what the call
    /// gives is a dict of what `forward` returns, under [`OUTPUT`], and `grad NAME` for each gradient.
    #[serde(default)]
    pub gradients: Option<Gradients>,
}

/// The key of what `forward` returns, in the result of a call that gives gradients too.
pub const OUTPUT: &str = "output of forward";

/// What a vector-Jacobian product is asked for, in the order of its results: inputs, then parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gradients {
    /// Name, and index among the tensors of `forward`'s arguments.
    pub inputs: Vec<(String, usize)>,
    /// Names, as in `state`.
    pub parameters: Vec<String>,
    /// Indices, among the tensors of what `forward` returns (of a dict by sorted keys), of those that have a cotangent.
    pub outputs: Vec<usize>,
    /// For each cotangent the dimensions along which it is constant in the trial `expanded-cotangents`; none where there is
    /// no such trial.
    #[serde(default)]
    pub expanded: Option<Vec<Vec<usize>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedTensor {
    pub name: String,
    #[serde(flatten)]
    pub view: View,
}

/// Bytes in the oracle's data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blob {
    pub offset: u64,
    pub nbytes: u64,
}

/// Everything the oracle made for one problem. Holds references to secret data: it never reaches a candidate's process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OracleData {
    /// `tilewright.oracle/1`
    pub schema: String,
    /// Why expected outputs were not also computed in float64, if they were not.
    pub no_float64: Option<String>,
    /// Whether the reference draws random numbers: outputs are judged in distribution. Each trial then has many calls
    /// with the same input blobs under different forward seeds, and no float64 results: its outputs are samples.
    pub stochastic: bool,
    /// Set when the problem itself is unusable (verdict `problem_defect`).
    pub defect: Option<String>,
    pub cases: Vec<OracleCase>,
    /// Remarks for the verdict, such as a case left out because it does not fit.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OracleCase {
    pub signature: CaseSignature,
    pub trials: Vec<Trial>,
    /// Weights that the reference's constructor writes as fixed numbers: a digest, and whether it is a parameter.
    #[serde(default)]
    pub fixed: Vec<(String, bool)>,
    /// Where the weights are those of the constructor: whether fixed ones were changed while it ran.
    #[serde(default)]
    pub changed: bool,
}

/// One set of weights, and calls on the same module one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// `seed`, or the value regime: `scaled-1e-3`, `scaled-1e3`, `negative`, `constant-rows`, `large`,
    /// `mixed-rows`, `expanded-cotangents`.
    pub regime: String,
    pub seed: u64,
    /// Contents of each entry of the signature's `state`, in order, before the first call.
    pub state: Vec<Blob>,
    pub calls: Vec<CallData>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallData {
    /// Contents of each input buffer before the call, in the order of the signature's `buffers`.
    pub inputs: Vec<Blob>,
    pub expected: Expected,
}

/// What the reference did with the inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// Structure of the output; each tensor's `buffer` is an index into `tensors`.
    pub output: Value,
    /// Output tensors first, then each input storage and state entry that the reference modified.
    pub tensors: Vec<ExpectedTensor>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedTensor {
    /// `output…`, `input[i]` (a whole input storage, as its dtype), `state.NAME`.
    pub path: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// The reference's own result, contiguous.
    pub native: Blob,
    /// The result in float64, contiguous; only for floating dtypes.
    pub float64: Option<Blob>,
    /// For an output that is an input or a state entry itself: its path. For one that shares storage with an earlier
    /// output, the path of that; for one of whose elements several are one place in memory, its own.
    pub alias: Option<String>,
    /// Whether the reference only moves data here (a view or a copy), so no launch has to write it.
    pub copy_only: bool,
}

/// A tensor of the signature, for callers that want the type alone.
impl From<&TensorRef> for View {
    fn from(tensor: &TensorRef) -> Self {
        tensor.view.clone()
    }
}
