//! The sandbox with fewer rights than root's: which layers are left, and that what is left holds.
#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod common;

use std::time::Duration;

use common::{Probe, answer, assert_refused, options, probe, python, script};
use serde_json::{Value, json};
use tilewright_cell::{CellError, Death, Layer, Outcome, Zygote};

/// Shell that gives up every capability for good, but the one without which root cannot map itself.
const DROP: &str = "exec setpriv --bounding-set=-all,+setfcap --inh-caps=-all --ambient-caps=-all";

struct Cell {
    zygote: Zygote,
    _script: common::Script,
}

impl Cell {
    /// A zygote whose interpreter is started by `before`.
    fn start(before: &str) -> Self {
        let script = script(&before.replace("PYTHON", &python().display().to_string()));
        let zygote = Zygote::start(options(script.path.clone())).unwrap_or_else(|error| panic!("{error}"));
        Self { zygote, _script: script }
    }

    fn run(&self, probe: &Probe) -> Outcome {
        self.zygote.run(&probe.job).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(&self, request: Value) {
        assert_refused(&answer(&self.run(&probe(request))));
    }
}

/// What must hold with whatever layers.
fn hostile_code_is_held(cell: &Cell) {
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("x"), "42").unwrap();
    let manifest = common::repository().join("Cargo.toml");
    cell.refused(json!({"do": "read", "paths": ["/etc/shadow", secret.path().join("x"), manifest]}));
    cell.refused(json!({"do": "write", "paths": [secret.path().join("y"), "/tmp/y"]}));
    cell.refused(json!({"do": "attributes", "path": secret.path().join("x")}));
    cell.refused(json!({"do": "socket"}));
    cell.refused(json!({"do": "calls"}));
    cell.refused(json!({"do": "shared_files", "other": cell.zygote.pid()}));
    cell.refused(json!({"do": "schedule", "other": cell.zygote.pid()}));

    let pid = cell.zygote.pid();
    let mut seen = answer(&cell.run(&probe(json!({"do": "processes", "zygote": pid}))));
    // Finding a process is no harm; touching it would be.
    for harmless in ["seen", "pidfd_open"] {
        seen.as_object_mut().unwrap().remove(harmless);
    }
    assert_refused(&seen);
    cell.run(&probe(json!({"do": "kill"})));
    assert_eq!(cell.zygote.pid(), pid);

    let job = probe(json!({"do": "memory", "bytes": 1_u64 << 30})).with(|job| job.limits.memory_bytes = 100 << 20);
    assert_eq!(cell.run(&job).response.unwrap_err(), Death::OutOfMemory);
    let job = probe(json!({"do": "sleep"})).with(|job| job.limits.wall = Duration::from_millis(500));
    assert_eq!(cell.run(&job).response.unwrap_err(), Death::Timeout);
    let job = probe(json!({"do": "fork", "children": 200})).with(|job| job.limits.processes = 1);
    assert_eq!(answer(&cell.run(&job))["made"], 0);
    let job =
        probe(json!({"do": "disk", "bytes": 400 << 20, "files": 20})).with(|job| job.limits.disk_bytes = 20 << 20);
    let outcome = cell.run(&job);
    match &outcome.response {
        Ok(_) => assert!(answer(&outcome)["written"].as_u64().unwrap() <= 20 << 20),
        Err(death) => assert_eq!(*death, Death::DiskFull),
    }
    let job = probe(json!({"do": "files"}));
    cell.run(&job);
    assert_eq!(std::fs::read(job.scratch.path().join("a/b/data")).unwrap(), b"hello");
    assert!(answer(&cell.run(&probe(json!({"do": "torch"})))).as_f64().is_some());
}

#[test]
fn user_namespaces_stand_in_for_privileges() {
    let drop = if nix::unistd::geteuid().is_root() { DROP } else { "exec" };
    let cell = Cell::start(&format!("{drop} PYTHON \"$@\""));
    let outcome = cell.run(&probe(json!({"do": "echo", "value": 1})).with(|job| job.strict = true));
    let layers = outcome.layers;
    for layer in Layer::ALL {
        assert!(layers.has(layer) || layer == Layer::ControlGroup, "{layer:?}: {:?}", layers.missing);
    }
    hostile_code_is_held(&cell);

    let forks = probe(json!({"do": "fork", "children": 200})).with(|job| job.limits.processes = 8);
    let forks = answer(&cell.run(&forks));
    assert!(forks["made"].as_u64().unwrap() < 64, "{forks}");
}

#[test]
fn without_namespaces_the_rest_holds_and_strict_refuses() {
    let inner = format!("echo 0 > /proc/sys/user/max_user_namespaces; {DROP} PYTHON \\\"\\$@\\\"");
    let cell = Cell::start(&format!("exec unshare --user --map-root-user sh -c \"{inner}\" python \"$@\""));
    let outcome = cell.run(&probe(json!({"do": "echo", "value": 1})));
    let layers = outcome.layers;
    for layer in [Layer::PidNamespace, Layer::MountNamespace, Layer::NetworkNamespace, Layer::Identity] {
        assert!(!layers.has(layer), "{layer:?}");
    }
    for layer in [Layer::NoNewPrivileges, Layer::Landlock, Layer::Seccomp, Layer::ResourceLimits] {
        assert!(layers.has(layer), "{layer:?}: {:?}", layers.missing);
    }
    hostile_code_is_held(&cell);

    let strict = probe(json!({"do": "echo", "value": 1})).with(|job| job.strict = true);
    let error = cell.zygote.run(&strict.job).unwrap_err();
    assert!(matches!(&error, CellError::Refused { why, .. } if why.contains("Namespace")), "{error}");

    // Descendants die with their job even so: they cannot leave its process group.
    let forks = probe(json!({"do": "fork", "children": 3})).with(|job| job.limits.processes = 8);
    assert_eq!(answer(&cell.run(&forks))["made"], 3);
    assert!(common::eventually(Duration::from_secs(30), || common::descendants_of_group(cell.zygote.pid()).is_empty()));
}
