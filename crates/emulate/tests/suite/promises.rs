//! What kernels promise the compiler, what a GPU can hold, and readers whom nobody waits for.

use serde_json::Value;
use tilewright_emulate::{Access, Arg, Fault, Init, Kernel, Limits, Memory, launch};

/// Runs `body` in one program on a buffer `%x` of 64 `i32` that count up, and an integer `%n`.
fn run(body: &str, n: i64) -> (Result<(), Fault>, Vec<i32>) {
    run_grid(body, n, 1)
}

fn run_grid(body: &str, n: i64, programs: u32) -> (Result<(), Fault>, Vec<i32>) {
    let text =
        format!("module {{\n  tt.func public @kernel(%x: !tt.ptr<i32>, %n: i32) {{\n{body}\n    tt.return\n  }}\n}}\n");
    let module = tilewright_ttir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = Kernel::new(&module, "kernel").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut memory = Memory::new();
    let x = memory.alloc("x", (0..64i32).flat_map(i32::to_le_bytes).collect(), Init::Written);
    let args = [Arg::Pointer(memory.address(x, 0)), Arg::Int(n)];
    let result = launch(&kernel, [programs, 1, 1], &args, &mut memory, &Limits::default());
    let numbers = memory.bytes(x).chunks_exact(4).map(|bytes| i32::from_le_bytes(bytes.try_into().unwrap()));
    (result.map(drop), numbers.collect())
}

fn promise(result: Result<(), Fault>) -> Option<String> {
    match result {
        Ok(()) => None,
        Err(Fault::Promise { what, .. }) => Some(what),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn assumptions_must_hold() {
    let body = "%c = arith.constant 100 : i32\n%b = arith.cmpi sgt, %n, %c : i32\nllvm.intr.assume %b : i1";
    assert_eq!(promise(run(body, 101).0), None);
    assert_eq!(promise(run(body, 100).0).as_deref(), Some("what tl.assume says is false"));
}

/// `(program * 16 + range + shift) * scale % n` with a hint.
fn hinted(shift: i64, scale: i64, n: i64, program: u32) -> Option<String> {
    let body = format!(
        "%p = tt.get_program_id x : i32
         %c16 = arith.constant 16 : i32
         %first = arith.muli %p, %c16 : i32
         %r = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32>
         %firsts = tt.splat %first : i32 -> tensor<16xi32>
         %i = arith.addi %firsts, %r : tensor<16xi32>
         %shift = arith.constant dense<{shift}> : tensor<16xi32>
         %scale = arith.constant dense<{scale}> : tensor<16xi32>
         %j = arith.addi %i, %shift : tensor<16xi32>
         %k = arith.muli %j, %scale : tensor<16xi32>
         %ns = tt.splat %n : i32 -> tensor<16xi32>
         %m = arith.remsi %k, %ns {{tt.contiguity = dense<16> : tensor<1xi32>, tt.divisibility = dense<16> : tensor<1xi32>}} : tensor<16xi32>"
    );
    promise(run_grid(&body, n, program + 1).0)
}

#[test]
fn hints_must_be_true_but_runs_may_end_early() {
    // Honest: whole blocks, and a last block that starts again at the beginning, wherever it ends.
    assert_eq!(hinted(0, 1, 64, 3), None);
    for n in 49..64 {
        assert_eq!(hinted(0, 1, n, 3), None, "{n}");
    }
    assert_eq!(hinted(0, 1, 1, 0), None);
    assert_eq!(hinted(1, 1, 64, 0).as_deref(), Some("a number said to be a multiple of 16 is 1"));
    assert_eq!(
        hinted(0, 3, 1000, 0).as_deref(),
        Some("of numbers said to follow each other, 16 at a time, 3 follows 0")
    );
    assert_eq!(
        hinted(0, -1, 1000, 0).as_deref(),
        Some("of numbers said to follow each other, 16 at a time, -2 follows -1")
    );
    // The shortest runs that start again.
    assert_eq!(hinted(0, 1, 2, 0), None);
}

#[test]
fn descriptors_made_in_a_kernel_are_aligned() {
    let body = |offset: i64, stride: i64| {
        format!(
            "%o = arith.constant {offset} : i32
             %p = tt.addptr %x, %o : !tt.ptr<i32>, i32
             %rows = arith.constant 4 : i32
             %cols = arith.constant 4 : i32
             %stride = arith.constant {stride} : i64
             %one = arith.constant 1 : i64
             %d = tt.make_tensor_descriptor %p, [%rows, %cols], [%stride, %one] : <i32>, <tensor<4x4xi32>>"
        )
    };
    assert_eq!(promise(run(&body(4, 8), 0).0), None);
    assert_eq!(
        promise(run(&body(1, 8), 0).0).as_deref(),
        Some("the base of a tensor descriptor is no multiple of 16 bytes")
    );
    assert_eq!(
        promise(run(&body(0, 9), 0).0).as_deref(),
        Some("a stride of a tensor descriptor is 36 bytes, which is no multiple of 16")
    );
}

#[test]
fn histograms_look_at_low_bits_as_a_warp_does() {
    let body = "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
         %three = arith.constant dense<3> : tensor<64xi32>
         %v = arith.muli %r, %three : tensor<64xi32>
         %h = tt.histogram %v : tensor<64xi32> -> tensor<16xi32>
         %b = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
         %xs = tt.splat %x : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
         %ps = tt.addptr %xs, %b : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
         tt.store %ps, %h : tensor<16x!tt.ptr<i32>>";
    let (result, counts) = run(body, 0);
    result.unwrap();
    let mut wanted = [0; 32];
    (0..64).for_each(|i| wanted[i * 3 % 32] += 1);
    assert_eq!(counts[..16], wanted[..16]);
}

fn planted(name: &str) -> (Value, String) {
    let case = crate::planted::planted().into_iter().find(|case| case["name"] == name).unwrap();
    let path = crate::common::folder().join(format!("planted/{name}.ttir"));
    (case, std::fs::read_to_string(path).unwrap())
}

#[test]
fn atomics_within_a_program_order_nothing_between_programs() {
    let (case, text) = planted("last_program_by_release_and_acquire");
    let limits = Limits::default();
    assert!(crate::planted::run_text(&case, &text, &limits).result.is_ok());
    let narrow = text.replace("release, gpu", "release, cta").replace("acquire, gpu", "acquire, cta");
    assert_ne!(narrow, text);
    let result = crate::planted::run_text(&case, &narrow, &limits).result;
    assert!(matches!(result, Err(Fault::Race { .. })), "{result:?}");
}

#[test]
fn programs_that_cannot_all_be_held_wait_for_ever() {
    let (case, text) = planted("grid_barrier_twice");
    for (resident, ends) in [(0, true), (4, true), (3, false), (1, false)] {
        let result = crate::planted::run_text(&case, &text, &Limits { resident, ..Limits::default() }).result;
        assert_eq!(result.is_ok(), ends, "{resident} at once: {result:?}");
        assert!(ends || matches!(result, Err(Fault::Deadlock { .. })), "{resident} at once: {result:?}");
    }
}

/// Programs 0 to 2 read; 1 and 2 release; 3 acquires from these and writes: 0 is in no order with it, however many
/// have read since.
#[test]
fn a_reader_in_no_order_is_remembered_behind_others() {
    let body = "%p = tt.get_program_id x : i32
         %zero = arith.constant 0 : i32
         %one = arith.constant 1 : i32
         %three = arith.constant 3 : i32
         %true = arith.constant true
         %v = tt.load %x : !tt.ptr<i32>
         %flag = tt.addptr %x, %three : !tt.ptr<i32>, i32
         %later = arith.cmpi ne, %p, %zero : i32
         scf.if %later {
           %old = tt.atomic_rmw add, acq_rel, gpu, %flag, %one, %true : (!tt.ptr<i32>, i32, i1) -> i32
           scf.yield
         }
         %last = arith.cmpi eq, %p, %n : i32
         scf.if %last {
           tt.store %x, %three : !tt.ptr<i32>
           scf.yield
         }";
    for readers in [2, 4, 9] {
        match run_grid(body, readers, readers as u32 + 1).0 {
            Err(Fault::Race { first, second, .. }) => {
                assert_eq!((first.0, first.1.program), (Access::Load, [0, 0, 0]));
                assert_eq!((second.0, second.1.program), (Access::Store, [readers as u32, 0, 0]));
            }
            other => panic!("{other:?}"),
        }
    }
}
