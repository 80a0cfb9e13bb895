//! The trust rule from the attacker's side: candidates that try to reach expected outputs, seeds, the clock, other
//! candidates and the result channel. What they would find is planted, and known.
//!
//! Each file of `tests/attacks` runs in every role that a candidate's code has, past the screen and with the tracer's own
//! watching switched off, so that the sandbox alone is tested; then as a candidate, through the whole pipeline. What does
//! no harm runs outside of a cell too, where it must succeed: an attack that cannot work proves nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod attack;
mod kernels;
mod range;

use attack::{ATTACKS, Role};
use range::{HONEST, RANGE, explain};
use tilewright_contract::VerdictKind;

#[test]
fn nothing_is_reached_and_nobody_is_touched() {
    let range = &*RANGE;
    let honest = range.verdict(HONEST);
    assert_eq!(honest.verdict, VerdictKind::Accepted, "{}", explain(&honest));
    let before = range.planted_files();
    let wrong = range.beside_a_victim(|| {
        let mut wrong = Vec::new();
        for name in ATTACKS {
            for role in Role::ALL {
                wrong.extend(attack::run(range, name, role));
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(range.planted_files(), before, "planted files were changed");
    let after = range.verdict(HONEST);
    assert_eq!(after.verdict, VerdictKind::Accepted, "{}", explain(&after));
    assert_eq!(after.profiles, honest.profiles, "an honest candidate is judged as before the attacks");
}

/// Without a cell, each attack does what it sets out to do.
#[test]
fn the_attacks_work_where_there_is_no_cell() {
    let mut harmless = Vec::new();
    for name in ATTACKS {
        harmless.extend(attack::run_unconfined(&RANGE, name));
    }
    assert!(harmless.is_empty(), "{}", harmless.join("\n"));
}

/// The same files as candidates: refused, and nothing of what is planted shows in a verdict.
#[test]
fn the_pipeline_accepts_no_attacker() {
    let range = &*RANGE;
    for name in ATTACKS {
        for role in [Role::Import, Role::Forward, Role::Init] {
            let verdict = range.verdict(&attack::candidate(range, name, role));
            assert_ne!(verdict.verdict, VerdictKind::Accepted, "{name} in {role:?}");
            assert_ne!(verdict.verdict, VerdictKind::Infrastructure, "{name} in {role:?}: {}", explain(&verdict));
            range.assert_silent(&serde_json::to_string(&verdict).unwrap());
        }
    }
}
