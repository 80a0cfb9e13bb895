//! When two candidates do the same: the same steps over the same buffers, with kernels of the same Triton IR.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::{Value, json};
use tilewright_stage::strip_locations;

use crate::build::{Build, Built, BuiltPlan};
use crate::coverage;
use crate::draft::{Draft, Stop, stop_at};
use crate::pipeline::Verifier;
use crate::problem::{Problem, digest, identify};

impl Verifier {
    /// A digest that is equal for candidates that do the same on every case, whatever their host code and names. None for a
    /// candidate that is stopped before its kernels are compiled, or where that finds a bug of ours: its verdict will say so.
    pub fn twin(&self, problem: &Problem, file: &Path, source: &[u8]) -> Option<String> {
        catch_unwind(AssertUnwindSafe(|| self.what_it_does(problem, file, source))).ok()?.ok()
    }

    fn what_it_does(&self, problem: &Problem, file: &Path, source: &[u8]) -> Result<String, Stop> {
        let mut draft = Draft::new(&self.options, problem.id.clone(), identify(file, source));
        let candidate = self.screened(problem, source, &mut draft)?;
        let traces = self.traced(&candidate, &mut draft)?;
        stop_at(&coverage::unproven(&candidate.cut.calls, &traces))?;
        let build = Build::new(self, &candidate, &traces, &mut draft)?;
        let plans: Vec<Value> = build.plans.iter().map(plan).collect();
        let names: Vec<_> = traces.iter().map(|trace| (&trace.missing, &trace.extra)).collect();
        Ok(digest(json!([plans, names]).to_string().as_bytes()))
    }
}

fn plan(built: &BuiltPlan) -> Value {
    let plan = &built.plan;
    let kernels: Vec<Value> =
        plan.kernels.iter().zip(&built.kernels).map(|(spec, built)| json!([spec.options, code(built)])).collect();
    let choices: Vec<_> = plan.choices.iter().map(|choice| (choice.is_circumstance(), &choice.config)).collect();
    let mut steps = json!(plan.steps);
    without_lines(&mut steps);
    json!([built.case, built.main, plan.buffers, kernels, steps, plan.output, choices])
}

/// The kernel's Triton IR without the names that its author chose.
fn code(built: &Built) -> String {
    strip_locations(&built.kernel.ttir).text.replace(&format!("@{}(", built.kernel.entry), "@kernel(")
}

fn without_lines(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("line");
            object.values_mut().for_each(without_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(without_lines),
        _ => {}
    }
}
