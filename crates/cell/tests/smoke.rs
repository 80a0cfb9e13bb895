use serde_json::json;
use std::path::PathBuf;
use tilewright_cell::*;
#[test]
fn smoke() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut o = ZygoteOptions::new(root.join(".venv/bin/python"));
    o.test_kinds.push(("probe".into(), root.join("crates/cell/tests/probe.py")));
    let t = std::time::Instant::now();
    let z = match Zygote::start(o) {
        Ok(z) => z,
        Err(e) => panic!("{e}"),
    };
    println!("start {:?} {:?}", t.elapsed(), z.versions());
    for req in [
        json!({"do":"echo","value":1}),
        json!({"do":"echo","value":1}),
        json!({"do":"environment"}),
        json!({"do":"torch"}),
        json!({"do":"torch"}),
        json!({"do":"processes","zygote":z.pid()}),
        json!({"do":"descriptors"}),
        json!({"do":"calls"}),
        json!({"do":"files"}),
    ] {
        let d = tempfile::tempdir().unwrap();
        let t = std::time::Instant::now();
        let mut j = Job::new("probe", req.clone(), d.path());
        j.limits.wall = std::time::Duration::from_secs(5);
        match z.run(&j) {
            Ok(r) => println!("{req} {:?} {:?}", t.elapsed(), r),
            Err(e) => println!("{req} {:?} {e}", t.elapsed()),
        }
    }
}
#[test]
fn doctor() { println!("{}", serde_json::to_string_pretty(&inspect(None)).unwrap()); }
