//! Intermediate documents on disk, for inspection.

use std::fs;
use std::path::Path;

use tilewright_stage::Trace;

use crate::build::{Build, kernel_name};
use crate::draft::Stop;
use crate::oracle::OracleSet;
use crate::pipeline::{Candidate, Verifier};

/// Writes the kernel-only module, plans, TTIR, binaries and oracle data under the folder that was asked for.
pub(crate) fn write(
    verifier: &Verifier,
    candidate: &Candidate<'_>,
    traces: &[Trace],
    build: &Build,
    oracle: &OracleSet,
) -> Result<(), Stop> {
    let Some(folder) = &verifier.options.keep else { return Ok(()) };
    let write = || -> std::io::Result<()> {
        put(folder, "kernels.py", candidate.cut.module.as_bytes())?;
        put(folder, "oracle.json", &serde_json::to_vec_pretty(&oracle.data)?)?;
        oracle.write(&folder.join("oracle.bin"))?;
        for (case, trace) in oracle.data.cases.iter().zip(traces) {
            for (number, plan) in trace.plans.iter().enumerate() {
                let name = format!("plan-{}-{number}.json", file_name(&case.signature.case));
                put(folder, &name, &serde_json::to_vec_pretty(plan)?)?;
            }
        }
        for built in &build.plans {
            for (spec, built) in built.plan.kernels.iter().zip(&built.kernels) {
                let name = file_name(&kernel_name(spec));
                put(folder, &format!("{name}.ttir"), built.kernel.ttir.as_bytes())?;
                put(folder, &format!("{name}.asm"), &built.assembly)?;
                put(folder, &format!("{name}.bin"), &built.binary)?;
            }
        }
        Ok(())
    };
    write().map_err(|error| Stop::infrastructure(format!("failed to write to {}: {error}", folder.display())))
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(name), bytes)
}

/// A name that is safe as a file's: labels come from problem files and candidates.
fn file_name(label: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._=,()-".contains(c) { c } else { '_' };
    label.chars().map(safe).take(120).collect()
}
