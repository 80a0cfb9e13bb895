//! Kernels compiled by Triton, run on inputs whose results torch computed: see `fixtures/kernels.py`.

use tilewright_emulate::Defect;

#[test]
fn kernels_compute_what_torch_says() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for name in crate::common::names() {
        let mut case = crate::common::case(&name);
        if case.wanted.is_empty() {
            continue;
        }
        match case.run() {
            Err(fault) => wrong.push(format!("{name}: {fault}")),
            Ok(report) => {
                checked += case.wanted.len();
                let used = |defect: &Defect| defect.used.is_some() || defect.stored.is_some();
                let defects = case.memory.defects().filter(|(_, defect)| used(defect));
                wrong.extend(defects.map(|(_, defect)| format!("{name}: {defect}")));
                if report.benign_races > 0 {
                    wrong.push(format!("{name}: {report:?}"));
                }
                wrong.extend(case.difference().map(|difference| format!("{name}: {difference}")));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(checked >= 55, "only {checked} buffers were compared");
}

#[test]
fn a_wrong_result_is_seen() {
    let mut case = crate::common::case("add");
    case.run().unwrap();
    let wanted = &mut case.wanted[0];
    wanted.bytes[2] ^= 0x10;
    assert!(case.difference().unwrap().starts_with("argument 2 element 0:"));
}
