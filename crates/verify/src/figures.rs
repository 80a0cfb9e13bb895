//! The kernels that the oracle's process on a GPU compares results with, compiled for a problem's outputs.

use std::collections::BTreeMap;

use tilewright_contract::{
    Constexpr, Dtype, Golden, KernelSpec, LaunchOptions, Number, OracleData, Param, Profile, Rule,
};
use tilewright_stage::{Equipment, Resident};

use crate::build::{Built, compile};
use crate::pipeline::Verifier;

/// See there. A package that holds another text has other kernels by these names: both come from one build.
const MODULE: &str = include_str!("../../../python/tilewright/cell/figures.py");
/// Words and elements that a program looks at together: as in `fused.py`.
const WORDS: i64 = 2048;
const BLOCK: i64 = 256;

impl Verifier {
    /// Has what most problems need compiled, once for all that are loaded at a time.
    pub(crate) fn compile_figures(&self) {
        self.figures.get_or_init(|| {
            let profiles = &self.options.profiles;
            let kinds = [Dtype::F32, Dtype::F16, Dtype::Bf16].map(|dtype| profiles.iter().map(move |one| (dtype, one)));
            let likely = kinds.into_iter().flatten().filter_map(|(dtype, profile)| figures(dtype, true, profile));
            let specs: Vec<KernelSpec> = likely.map(|(_, spec)| spec).chain([differ()]).collect();
            if let Err(stop) = compile(self, MODULE, &specs) {
                tracing::warn!(why = ?stop.reasons.first(), "kernels of our own do not compile");
            }
        });
    }

    /// The kernels for a problem's data, compiled unless the cache has them.
    pub(crate) fn figures(&self, data: &OracleData) -> Vec<Equipment> {
        let (names, specs): (Vec<String>, Vec<KernelSpec>) = specs(data, &self.options.profiles).into_iter().unzip();
        match compile(self, MODULE, &specs) {
            Ok(built) => names.into_iter().zip(&built).map(|(name, built)| kernel(name, built)).collect(),
            Err(stop) => {
                tracing::warn!(why = ?stop.reasons.first(), "kernels of our own do not compile");
                Vec::new()
            }
        }
    }
}

/// Hands kernels over, not during a turn. A process without them compares by torch.
pub(crate) fn equip(resident: &Resident, kernels: &[Equipment]) {
    if let Err(error) = resident.equip(kernels) {
        tracing::warn!(%error, "results are compared without kernels of our own");
    }
}

fn kernel(name: String, built: &Built) -> Equipment {
    Equipment {
        name,
        image: built.binary.iter().map(|byte| format!("{byte:02x}")).collect(),
        entry: built.kernel.entry.clone(),
        threads: built.kernel.threads,
        shared: built.kernel.resources.shared_bytes,
    }
}

/// By the names that `fused.py` knows them by.
fn specs(data: &OracleData, profiles: &[Profile]) -> BTreeMap<String, KernelSpec> {
    let trials = data.cases.iter().flat_map(|case| &case.trials);
    let tensors = trials.flat_map(|trial| &trial.calls).flat_map(|call| &call.expected.tensors);
    let mut specs = BTreeMap::from([("differ".to_owned(), differ())]);
    for tensor in tensors {
        let exact = tensor.float64.is_some();
        specs.extend(profiles.iter().filter_map(|profile| figures(tensor.dtype, exact, profile)));
    }
    specs
}

/// The kernel for outputs of a dtype under a profile, with or without float64 results; none for dtypes that are left to torch.
fn figures(dtype: Dtype, exact: bool, profile: &Profile) -> Option<(String, KernelSpec)> {
    let kind = match dtype {
        Dtype::F16 => "*fp16",
        Dtype::Bf16 => "*bf16",
        Dtype::F32 => "*fp32",
        _ => return None,
    };
    let wide = exact && profile.golden == Golden::Float64;
    let rule = match profile.rule {
        Rule::Elementwise | Rule::ThreeWay | Rule::MeanAndShare => 0,
        Rule::MereMare => 1,
        Rule::MereMareTruncated => 2,
        Rule::ScaledRms => 3,
    };
    let types = [
        ("table", "*i64"),
        ("limits", "*fp64"),
        ("kind", kind),
        ("wide", if wide { "*fp64" } else { kind }),
        ("out", "*fp64"),
        ("row", "i64"),
        ("parts", "i64"),
        ("count", "i64"),
        ("per", "i64"),
        ("RULE", "constexpr"),
        ("BLOCK", "constexpr"),
    ];
    let name = format!("figures {} {} {rule}", dtype.name(), if wide { "wide" } else { "own" });
    Some((name, spec("figures", &types, &[(9, rule), (10, BLOCK)])))
}

fn differ() -> KernelSpec {
    spec("differ", &[("table", "*i64"), ("out", "*i32"), ("BLOCK", "constexpr")], &[(2, WORDS)])
}

fn spec(function: &str, types: &[(&str, &str)], constants: &[(usize, i64)]) -> KernelSpec {
    let number = |&(at, value): &(usize, i64)| (at.to_string(), Constexpr::Number { value: Number::Int(value) });
    KernelSpec {
        function: function.into(),
        params: types.iter().map(|&(name, ty)| Param { name: name.into(), ty: ty.into() }).collect(),
        constexprs: constants.iter().map(number).collect(),
        attrs: BTreeMap::new(),
        // Figures should not depend on which products are added in one step.
        options: LaunchOptions { enable_fp_fusion: false, ..LaunchOptions::default() },
    }
}
