//! Launches on several threads end as those on one do: bytes, marks, defects, reports and faults.

use proptest::prelude::*;
use serde_json::Value;
use tilewright_emulate::{AllocId, Defect, Fault, Limits, Memory, Report, launch};

/// All that a launch leaves.
#[derive(PartialEq)]
struct End {
    result: Result<Report, Fault>,
    buffers: Vec<(Vec<u8>, Vec<u8>)>,
    defects: Vec<(u8, Defect)>,
}

impl End {
    fn difference(&self, other: &Self) -> Option<String> {
        if self.result != other.result || self.defects != other.defects {
            return Some(format!("{:?} {:?}, not {:?} {:?}", other.result, other.defects, self.result, self.defects));
        }
        (self != other).then(|| "other bytes or marks".to_owned())
    }
}

fn end(result: Result<Report, Fault>, memory: &Memory, buffers: usize) -> End {
    let ids = (0..buffers as u32).map(AllocId);
    End {
        result,
        buffers: ids.map(|id| (memory.bytes(id).to_vec(), memory.shadow(id).to_vec())).collect(),
        defects: memory.defects().map(|(mark, defect)| (mark, defect.clone())).collect(),
    }
}

fn limits(threads: u32, chunk: u32, reverse: bool, bare: bool) -> Limits {
    Limits { threads, chunk, reverse, bare, ..Limits::default() }
}

fn fixture(name: &str, limits: &Limits) -> End {
    let mut case = crate::common::case(name);
    let result = launch(&case.kernel, case.grid, &case.args, &mut case.memory, limits);
    let buffers = case
        .args
        .iter()
        .filter(|arg| !matches!(arg, tilewright_emulate::Arg::Int(_) | tilewright_emulate::Arg::Float(_)));
    end(result, &case.memory, buffers.count())
}

fn planted(case: &Value, limits: &Limits) -> End {
    let crate::planted::Outcome { memory, result } = crate::planted::run_with(case, limits);
    let buffers = case["args"].as_array().unwrap().iter().filter(|arg| !arg.is_i64()).count();
    end(result, &memory, buffers)
}

/// A fault of the deadline comes when it comes.
fn timed(case: &Value) -> bool {
    case["fault"] == "endless"
}

#[test]
fn fixtures_end_alike_on_any_number_of_threads() {
    for name in crate::common::names().iter().filter(|name| *name != "spin") {
        for (reverse, bare) in [(false, false), (true, false), (false, true)] {
            let alone = fixture(name, &limits(1, 0, reverse, bare));
            for (threads, chunk) in [(2, 1), (3, 2), (2, 0)] {
                let beside = fixture(name, &limits(threads, chunk, reverse, bare));
                let difference = alone.difference(&beside);
                assert_eq!(difference, None, "{name} reverse {reverse} bare {bare} on {threads} threads by {chunk}");
            }
        }
    }
}

#[test]
fn planted_faults_end_alike_on_any_number_of_threads() {
    for case in crate::planted::planted().iter().filter(|case| !timed(case)) {
        for reverse in [false, true] {
            let alone = planted(case, &limits(1, 0, reverse, false));
            for (threads, chunk) in [(2, 1), (3, 2), (4, 3)] {
                let beside = planted(case, &limits(threads, chunk, reverse, false));
                assert_eq!(
                    alone.difference(&beside),
                    None,
                    "{} reverse {reverse} on {threads} threads by {chunk}",
                    case["name"]
                );
            }
        }
    }
}

/// Programs that each load and store a row of a buffer at offsets of the programs' own: any mixture of programs that keep
/// apart, read what others wrote, overwrite each other with equal and with other values, or stray out of bounds.
const ROWS: &str = r#"module {
  tt.func public @rows(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %one: i32) {
    %pid = tt.get_program_id x : i32
    %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %from_p = tt.addptr %q, %pid : !tt.ptr<i32>, i32
    %from = tt.load %from_p : !tt.ptr<i32>
    %n = tt.get_num_programs x : i32
    %to_p = tt.addptr %from_p, %n : !tt.ptr<i32>, i32
    %to = tt.load %to_p : !tt.ptr<i32>
    %add_p = tt.addptr %to_p, %n : !tt.ptr<i32>, i32
    %add = tt.load %add_p : !tt.ptr<i32>
    %from_s = tt.splat %from : i32 -> tensor<16xi32>
    %from_o = arith.addi %from_s, %range : tensor<16xi32>
    %base = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %from_ps = tt.addptr %base, %from_o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %x = tt.load %from_ps : tensor<16x!tt.ptr<f32>>
    %add_f = arith.sitofp %add : i32 to f32
    %add_s = tt.splat %add_f : f32 -> tensor<16xf32>
    %y = arith.addf %x, %add_s : tensor<16xf32>
    %to_s = tt.splat %to : i32 -> tensor<16xi32>
    %to_o = arith.addi %to_s, %range : tensor<16xi32>
    %to_ps = tt.addptr %base, %to_o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %to_ps, %y : tensor<16x!tt.ptr<f32>>
    tt.return
  }
}
"#;

fn rows(programs: &[(i32, i32, i32)], unwritten: bool, limits: &Limits) -> End {
    use tilewright_emulate::{Arg, Init, Kernel};
    let kernel = Kernel::new(&tilewright_ttir::parse(ROWS).unwrap(), "rows").unwrap();
    let mut memory = Memory::new();
    let init = if unwritten { Init::Uninitialised } else { Init::Written };
    let data = memory.alloc("data", (0..2600u32).flat_map(|i| ((i % 3) as f32).to_le_bytes()).collect(), init);
    let columns = [0, 1, 2].map(|column| programs.iter().map(move |&(a, b, c)| [a, b, c][column]));
    let numbers = columns.into_iter().flatten().flat_map(i32::to_le_bytes).collect();
    let numbers = memory.alloc("numbers", numbers, Init::Written);
    let args = [Arg::Pointer(memory.address(data, 0)), Arg::Pointer(memory.address(numbers, 0)), Arg::Int(1)];
    let result = launch(&kernel, [programs.len() as u32, 1, 1], &args, &mut memory, limits);
    end(result, &memory, 2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Most programs keep to their own row; some go elsewhere.
    #[test]
    fn any_mixture_of_programs_ends_alike(
        strays in prop::collection::vec((0usize..40, 0i32..2, -1i32..2600, 0i32..2), 0..4),
        count in 2usize..40,
        shift in 0i32..64,
        (threads, chunk) in (2u32..5, 1u32..9),
        (reverse, bare, unwritten) in any::<(bool, bool, bool)>(),
    ) {
        let mut programs: Vec<(i32, i32, i32)> = (0..count as i32).map(|at| (at * 16 + shift, at * 16 + shift, 1)).collect();
        for (program, which, place, add) in strays {
            let program = &mut programs[program % count];
            let place = if place > 700 { place } else { place / 8 * 8 };
            if which == 0 { program.0 = place } else { program.1 = place }
            program.2 = add;
        }
        let alone = rows(&programs, unwritten, &limits(1, 0, reverse, bare));
        let beside = rows(&programs, unwritten, &limits(threads, chunk, reverse, bare));
        prop_assert_eq!(alone.difference(&beside), None);
    }
}
