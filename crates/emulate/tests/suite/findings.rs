//! Launches that go on from faults, and places where NaN and infinities are made.

use std::mem::discriminant;

use tilewright_emulate::{Arg, Fault, Init, Kernel, Limits, Memory, launch};

/// What ends a launch is the first thing that one which goes on notes, and that one ends well.
#[test]
fn going_on_notes_first_what_ends_a_launch_otherwise() {
    let mut faults = 0;
    for case in crate::planted::planted() {
        for reverse in [false, true] {
            let run = |go_on| {
                let deadline = Some(crate::planted::deadline(&case));
                crate::planted::run_with(&case, &Limits { reverse, go_on, deadline, ..Limits::default() })
            };
            let Err(fault) = run(false).result else { continue };
            let on = run(true);
            if matches!(fault, Fault::Deadlock { .. } | Fault::Deadline { .. }) {
                assert_eq!(
                    on.result.map_err(|fault| discriminant(&fault)),
                    Err(discriminant(&fault)),
                    "{}",
                    case["name"]
                );
                continue;
            }
            faults += 1;
            let first = on.memory.faults().next().map(|(fault, _)| fault);
            assert_eq!(first, Some(&fault), "{} reverse {reverse}", case["name"]);
            assert!(on.result.is_ok(), "{}: {:?}", case["name"], on.result);
        }
    }
    assert!(faults >= 40, "only {faults} faults");
}

/// Copies 8 floats.
const COPY: &str = r#"module {
  tt.func public @copy(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %x_p = tt.addptr %xs, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %v = tt.load %x_p : tensor<8x!tt.ptr<f32>> loc("k.py":3:0)
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %y_p = tt.addptr %ys, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    tt.store %y_p, %v : tensor<8x!tt.ptr<f32>> loc("k.py":4:0)
    tt.return
  }
}
"#;

#[test]
fn lanes_out_of_bounds_are_left_out_and_counted() {
    let kernel = Kernel::new(&tilewright_ttir::parse(COPY).unwrap(), "copy").unwrap();
    let mut memory = Memory::new();
    let floats = |n: u8| (1..=n).flat_map(|i| f32::from(i).to_le_bytes()).collect::<Vec<u8>>();
    let x = memory.alloc("x", floats(6), Init::Written);
    let y = memory.alloc("y", vec![0; 28], Init::Written);
    let args = [Arg::Pointer(memory.address(x, 0)), Arg::Pointer(memory.address(y, 0))];
    let limits = Limits { go_on: true, poison: 0x7f, ..Limits::default() };
    launch(&kernel, [1, 1, 1], &args, &mut memory, &limits).unwrap();
    let found: Vec<(u32, i64, u64)> = memory
        .faults()
        .map(|(fault, count)| match fault {
            Fault::OutOfBounds { site, offset, .. } => (site.line, *offset, *count),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(found, [(3, 24, 2), (4, 28, 1)]);
    let mut wanted = floats(6);
    wanted.extend([0x7f; 4]);
    assert_eq!(memory.bytes(y), wanted);
}

/// 0 / 0 in lane 0 and 1 / 0 in lane 1, then arithmetic on what is no number any more.
const BIRTHS: &str = r#"module {
  tt.func public @births(%x: !tt.ptr<f32>) {
    %range = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %zero = arith.constant dense<0.0> : tensor<4xf32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %x_p = tt.addptr %xs, %range : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %v = tt.load %x_p : tensor<4x!tt.ptr<f32>>
    %i = arith.sitofp %range : tensor<4xi32> to tensor<4xf32>
    %q = arith.divf %i, %v : tensor<4xf32> loc("k.py":5:0)
    %d = arith.addf %q, %q : tensor<4xf32> loc("k.py":6:0)
    %s = arith.subf %q, %d : tensor<4xf32> loc("k.py":7:0)
    tt.store %x_p, %s : tensor<4x!tt.ptr<f32>>
    tt.return
  }
}
"#;

#[test]
fn births_are_where_operands_were_still_numbers() {
    let kernel = Kernel::new(&tilewright_ttir::parse(BIRTHS).unwrap(), "births").unwrap();
    let mut memory = Memory::new();
    // Lane 3 holds a NaN that the host wrote: nothing is born there.
    let x =
        memory.alloc("x", [0.0, 0.0, 2.0, f32::NAN].into_iter().flat_map(f32::to_le_bytes).collect(), Init::Written);
    let args = [Arg::Pointer(memory.address(x, 0))];
    launch(&kernel, [1, 1, 1], &args, &mut memory, &Limits { births: true, ..Limits::default() }).unwrap();
    let found: Vec<_> = memory
        .births()
        .map(|(birth, count)| (birth.operation, birth.infinite, birth.lane, birth.site.line, *count))
        .collect();
    // Infinity minus infinity is a NaN made of none.
    let wanted = [("a division", false, 0, 5, 1), ("a division", true, 1, 5, 1), ("a subtraction", false, 1, 7, 1)];
    assert_eq!(found, wanted);
}

#[test]
fn kernels_that_compute_numbers_bear_none() {
    for name in ["add", "matmul", "matmul_f16", "layer_norm", "softmax"] {
        let mut case = crate::common::case(name);
        let limits = Limits { births: true, ..Limits::default() };
        launch(&case.kernel, case.grid, &case.args, &mut case.memory, &limits).unwrap();
        let births: Vec<_> = case.memory.births().collect();
        assert!(births.is_empty(), "{name}: {births:?}");
        assert_eq!(case.difference(), None);
    }
}
