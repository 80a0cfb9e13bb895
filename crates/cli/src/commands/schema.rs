use std::process::ExitCode;

use schemars::schema_for;
use tilewright_audit::Audit;
use tilewright_bench::{Comparison, Line, Report};
use tilewright_contract::{Certificate, LaunchReport, Plan, Profile, SanitizeReport, Screening, Verdict};

use crate::args::{Document, SchemaArgs};
use crate::output;

pub(crate) fn run(args: &SchemaArgs) -> anyhow::Result<ExitCode> {
    let schema = match args.document {
        Document::Plan => schema_for!(Plan),
        Document::Verdict => schema_for!(Verdict),
        Document::Profile => schema_for!(Profile),
        Document::Run => schema_for!(LaunchReport),
        Document::Sanitize => schema_for!(SanitizeReport),
        Document::Screen => schema_for!(Screening),
        Document::Report => schema_for!(tilewright_search::Report),
        Document::Audit => schema_for!(Audit),
        Document::BenchRun => schema_for!(Line),
        Document::BenchReport => schema_for!(Report),
        Document::BenchCompare => schema_for!(Comparison),
        Document::Controls => schema_for!(Certificate),
    };
    output::json(&schema)?;
    Ok(ExitCode::SUCCESS)
}
