//! One attack file in one role, and what the test demands of its report.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use tilewright_cell::{Job, Layer, Layers, Outcome};
use tilewright_stage::StageLimits;

use crate::range::{Range, target, text_of};

pub(crate) const ATTACKS: [&str; 10] = [
    "channels",
    "descriptors",
    "environment",
    "files",
    "kernel",
    "loading",
    "memory",
    "poison",
    "resources",
    "signals",
];

/// The tracer without its watching, as a kind of job.
pub(crate) const UNWATCHED: &str = "unwatched";

const MARK: &str = "@@report ";

/// Where a candidate's code comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The tracer, as the file is imported.
    Import,
    /// The tracer, in `forward`.
    Forward,
    /// `__init__`, run for real.
    Init,
    /// The compiler, which runs the module of kernels: as if the screen had cut out more than kernels.
    Compiler,
}

impl Role {
    pub(crate) const ALL: [Self; 4] = [Self::Import, Self::Forward, Self::Init, Self::Compiler];

    fn place(self) -> &'static str {
        match self {
            Self::Import | Self::Compiler => "import",
            Self::Forward => "forward",
            Self::Init => "init",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Import | Self::Forward => UNWATCHED,
            Self::Init => "init",
            Self::Compiler => "ttir",
        }
    }
}

/// Modules made in the candidate itself.
const MODULES: &str = r#"
import json, sys, types

def module(name, text):
    sys.modules[name] = made = types.ModuleType(name)
    exec(text, made.__dict__)
    return made

def reported(place):
    if place == "@place@":
        tools.run(attempts.attempts, want)
        raise RuntimeError("reported")

tools = module("tools", @tools@)
attempts = module("attack", @attack@)
attempts.attack = reported
want = json.loads(@want@)
"#;

/// A layer without which some attempts get further, though to nothing that is planted.
const NEEDS: [(Layer, &[&str]); 3] = [
    (Layer::PidNamespace, &["exists!", "pidfd!", "own see others!", "own peer", "task", "root/", "cwd/"]),
    (Layer::UtsNamespace, &["own host name"]),
    (Layer::MountNamespace, &["own walk", "own files"]),
];

/// Runs an attack in a cell; what is wrong with what it could do.
pub(crate) fn run(range: &Range, name: &str, role: Role) -> Vec<String> {
    let source = candidate(range, name, role);
    let outcome = run_text(range, &source, role, |_| {});
    range.assert_silent(&outcome.output);
    if let Ok(response) = &outcome.response {
        range.assert_silent(&response.to_string());
    }
    let Some(report) = report(&outcome.output) else {
        return vec![format!("{name} in {role:?}: no report: {:?} {}", outcome.response, outcome.output)];
    };
    assert!(report.len() >= 4, "{name} in {role:?} attempts next to nothing: {report:?}");
    if name != "poison" {
        // What the survivors of that one say in its name may come first.
        assert!(outcome.response.is_ok(), "{name} in {role:?}: {:?}", outcome.response);
    }
    let wrong = report.iter().filter(|(attempt, outcome)| !is_harmless(attempt, outcome));
    let wrong = wrong.filter(|(attempt, _)| !excused(attempt, &outcome.layers));
    wrong.map(|(attempt, outcome)| format!("{name} in {role:?}: {attempt}: {outcome}")).collect()
}

/// Runs the harmless attempts of an attack as a plain program; those that did not succeed.
pub(crate) fn run_unconfined(range: &Range, name: &str) -> Vec<String> {
    let mut text = modules(range, name, Role::Import);
    text.push_str("\ntools.run(attempts.attempts, want, confined=False)\n");
    let output = Command::new(range.python()).args(["-I", "-c", &text]).current_dir(range.scratch()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let report = report(&printed).unwrap_or_else(|| panic!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
    let failed =
        report.iter().filter(|(attempt, outcome)| !outcome.starts_with("done") || is_harmless(attempt, outcome));
    failed.map(|(attempt, outcome)| format!("{name}: {attempt}: {outcome}")).collect()
}

/// Runs any text in a role.
pub(crate) fn run_text(range: &Range, source: &str, role: Role, change: impl FnOnce(&mut Job)) -> Outcome {
    let scratch = tempfile::tempdir().unwrap();
    let request = match role {
        Role::Import | Role::Forward => range.trace_request(source),
        Role::Init => json!({
            "source": source, "signature": range.signature(), "seeds": [1, 2], "data": scratch.path().join("data"),
        }),
        Role::Compiler => json!({"module": source, "spec": range.spec(), "target": target()}),
    };
    let limits = StageLimits::default();
    let mut job = Job::new(role.kind(), request, scratch.path());
    job.limits = match role {
        Role::Import | Role::Forward => limits.trace,
        Role::Init => limits.init,
        Role::Compiler => limits.ttir,
    };
    change(&mut job);
    range.zygote().run(&job).unwrap_or_else(|error| panic!("{error}"))
}

/// The attack as a candidate.
pub(crate) fn candidate(range: &Range, name: &str, role: Role) -> String {
    modules(range, name, role) + &text_of("candidate")
}

/// Modules `tools` and `attack`, made in the candidate itself.
fn modules(range: &Range, name: &str, role: Role) -> String {
    let mut want = range.want();
    want["place"] = role.place().into();
    want["processes"] = (role.kind() == UNWATCHED).into();
    let literal = |text: &str| Value::String(text.into()).to_string();
    MODULES
        .replace("@tools@", &literal(&text_of("tools")))
        .replace("@attack@", &literal(&text_of(name)))
        .replace("@want@", &literal(&want.to_string()))
        .replace("@place@", role.place())
}

fn report(printed: &str) -> Option<BTreeMap<String, String>> {
    let line = printed.lines().find_map(|line| line.strip_prefix(MARK))?;
    Some(serde_json::from_str(line).unwrap())
}

/// Refused, or allowed and without result. A mistake in the attack is neither.
fn is_harmless(attempt: &str, outcome: &str) -> bool {
    let mistakes = ["NameError", "TypeError", "AttributeError", "KeyError", "IndexError", "SyntaxError", "ImportError"];
    if mistakes.iter().any(|mistake| outcome.starts_with(mistake)) {
        return false;
    }
    if attempt.starts_with("own ") {
        !outcome.starts_with("done") || outcome == "done: []"
    } else {
        !outcome.starts_with("done")
    }
}

fn excused(attempt: &str, layers: &Layers) -> bool {
    NEEDS.iter().any(|(layer, attempts)| !layers.has(*layer) && attempts.iter().any(|part| attempt.contains(part)))
}
