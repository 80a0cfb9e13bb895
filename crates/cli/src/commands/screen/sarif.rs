//! Findings as a SARIF 2.1.0 log, which code hosts show beside the code.

use std::collections::BTreeMap;

use serde_json::json;
use serde_sarif::sarif::{
    ArtifactLocation, Invocation, Location, Message, MultiformatMessageString, Notification, PhysicalLocation, Region,
    ReportingConfiguration, ReportingDescriptor, Result as SarifResult, ResultLevel, Run, Sarif, Tool, ToolComponent,
};
use tilewright_contract::{Finding, ScreenedFile, Screening, Tier};
use tilewright_screen::{Manual, manual};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(super) fn log(screening: &Screening) -> Sarif {
    let rules = manual();
    let index: BTreeMap<&str, i64> = rules.iter().map(|rule| rule.id).zip(0..).collect();
    let results = screening.files.iter().flat_map(|file| {
        file.findings.iter().map(|finding| result(file, finding, index.get(finding.rule.as_str()).copied()))
    });
    let driver = ToolComponent::builder()
        .name("tilewright")
        .version(env!("CARGO_PKG_VERSION"))
        .rules(rules.iter().map(descriptor).collect::<Vec<_>>())
        .build();
    let run = Run::builder()
        .tool(Tool::builder().driver(driver).build())
        .column_kind(json!("unicodeCodePoints"))
        .invocations(vec![invocation(screening)])
        .results(results.collect::<Vec<_>>())
        .build();
    Sarif::builder().version(json!("2.1.0")).schema(SCHEMA).runs(vec![run]).build()
}

/// Files that could not be read are troubles of the run, not findings.
fn invocation(screening: &Screening) -> Invocation {
    let troubles: Vec<Notification> = screening
        .files
        .iter()
        .filter_map(|file| file.error.as_ref())
        .map(|error| Notification::builder().message(text(error)).level(json!("error")).build())
        .collect();
    Invocation::builder().execution_successful(troubles.is_empty()).tool_execution_notifications(troubles).build()
}

fn descriptor(rule: &Manual) -> ReportingDescriptor {
    let plain = |text: String| MultiformatMessageString::builder().text(text).build();
    ReportingDescriptor::builder()
        .id(rule.id)
        .short_description(plain(rule.summary()))
        .help(MultiformatMessageString::builder().text(rule.text.clone()).markdown(rule.text.clone()).build())
        .default_configuration(ReportingConfiguration::builder().level(json!(level(rule.tier))).build())
        .build()
}

fn result(file: &ScreenedFile, finding: &Finding, index: Option<i64>) -> SarifResult {
    let artifact = ArtifactLocation::builder().uri(uri(&file.candidate.path)).build();
    let mut place = PhysicalLocation::builder().artifact_location(artifact).build();
    if finding.line > 0 {
        let column = i64::from(finding.column.max(1));
        place.region = Some(Region::builder().start_line(i64::from(finding.line)).start_column(column).build());
    }
    let location = Location::builder().physical_location(place).build();
    let message = match &finding.help {
        Some(help) => format!("{}. Instead: {help}.", finding.message),
        None => finding.message.clone(),
    };
    let mut result = SarifResult::builder()
        .rule_id(finding.rule.clone())
        .level(level(finding.tier))
        .message(text(&message))
        .locations(vec![location])
        .build();
    result.rule_index = index;
    result
}

fn text(message: &str) -> Message {
    Message::builder().text(message).build()
}

fn level(tier: Tier) -> ResultLevel {
    match tier {
        Tier::Proof => ResultLevel::Error,
        Tier::Evidence | Tier::Untraceable | Tier::Unsupported => ResultLevel::Warning,
        Tier::Advice => ResultLevel::Note,
    }
}

/// A path as a URI reference: forward slashes, other bytes than the unreserved ones escaped.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(byte.into()),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}
