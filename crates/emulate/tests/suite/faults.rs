//! What a launch reports when a kernel goes wrong.

use tilewright_emulate::{Access, Arg, DefectKind, Fault, Init, Kernel, Limits, Memory, launch, shadow};

fn kernel(name: &str) -> Kernel {
    let module = crate::common::module(name);
    let entry = module.funcs[0].name.clone();
    Kernel::new(&module, &entry).unwrap()
}

/// `copy_beyond` copies 32 floats whatever `n` says.
fn copy(from: usize, to: usize, offset: u64) -> (Memory, Result<tilewright_emulate::Report, Fault>) {
    let mut memory = Memory::new();
    let x = memory.alloc("input 0", vec![0; from], Init::Written);
    let out = memory.alloc("output", vec![0; to], Init::Uninitialised);
    let args = [Arg::Pointer(memory.address(x, offset)), Arg::Pointer(memory.address(out, 0)), Arg::Int(16)];
    let result = launch(&kernel("copy_beyond"), [1, 1, 1], &args, &mut memory, &Limits::default());
    (memory, result)
}

#[test]
fn a_load_past_the_end_names_everything() {
    let (_, result) = copy(64, 128, 0);
    let Err(Fault::OutOfBounds { access, allocation, offset, bytes, size, site }) = result else {
        panic!("{result:?}");
    };
    assert_eq!((access, allocation.as_str(), offset, bytes, size), (Access::Load, "input 0", 64, 4, 64));
    assert_eq!(site.program, [0, 0, 0]);
    assert!(site.line > 0);
}

#[test]
fn a_store_past_the_end_names_the_line() {
    let (_, result) = copy(128, 100, 0);
    let fault = result.unwrap_err();
    assert!(matches!(&fault, Fault::OutOfBounds { access: Access::Store, offset: 100, .. }));
    let text = fault.to_string();
    assert!(text.starts_with("out-of-bounds store of 4 bytes at byte offset 100 of output (100 bytes)"), "{text}");
    assert!(text.contains(" at line "), "{text}");
}

#[test]
fn an_access_before_the_start_is_attributed() {
    let (_, result) = copy(128, 128, (-8i64) as u64);
    assert!(matches!(result, Err(Fault::OutOfBounds { ref allocation, offset: -8, .. }) if allocation == "input 0"));
}

#[test]
fn misalignment_and_null_are_faults() {
    let (_, result) = copy(256, 128, 2);
    assert!(matches!(result, Err(Fault::Misaligned { offset: 2, .. })), "{result:?}");
    let mut memory = Memory::new();
    let out = memory.alloc("output", vec![0; 128], Init::Written);
    let args = [Arg::Pointer(0), Arg::Pointer(memory.address(out, 0)), Arg::Int(1)];
    let result = launch(&kernel("copy_beyond"), [1; 3], &args, &mut memory, &Limits::default());
    assert!(matches!(result, Err(Fault::BadAddress { address: 0, .. })), "{result:?}");
}

#[test]
fn the_shadow_tells_who_wrote() {
    let (mut memory, result) = copy(128, 256, 0);
    let report = result.unwrap();
    assert_eq!((report.bytes_loaded, report.bytes_stored), (128, 128));
    let (out, _) = memory.resolve(memory.address(tilewright_emulate::AllocId(1), 0)).unwrap();
    assert!(memory.shadow(out)[..128].iter().all(|&state| state == shadow::COPIED));
    assert!(memory.shadow(out)[128..].iter().all(|&state| state == shadow::UNWRITTEN));
    memory.write(out, 200, &[1, 2]);
    assert_eq!(memory.shadow(out)[199..203], [0, 1, 1, 0]);
}

#[test]
fn unwritten_memory_is_followed_to_where_it_is_stored() {
    let mut memory = Memory::new();
    let x = memory.alloc("scratch", vec![0xff; 128], Init::Uninitialised);
    let out = memory.alloc("output", vec![0; 128], Init::Uninitialised);
    memory.write(x, 0, &[0; 68]);
    let args = [Arg::Pointer(memory.address(x, 0)), Arg::Pointer(memory.address(out, 0)), Arg::Int(16)];
    launch(&kernel("copy_beyond"), [1; 3], &args, &mut memory, &Limits::default()).unwrap();
    let found: Vec<_> = memory.defects().collect();
    let [(mark, defect)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((defect.kind, defect.allocation.as_str(), defect.offset), (DefectKind::Uninitialised, "scratch", 68));
    assert!(defect.site.line > 0 && defect.stored.is_some() && defect.used.is_none());
    assert!(memory.shadow(out)[..68].iter().all(|&state| state == shadow::COPIED));
    assert!(memory.shadow(out)[68..].iter().all(|state| state == mark));
}

#[test]
fn what_an_earlier_call_left_is_followed_too() {
    let mut memory = Memory::new();
    let x = memory.alloc("workspace", vec![1; 128], Init::Written);
    let out = memory.alloc("output", vec![0; 128], Init::Uninitialised);
    memory.mark(x, 8..12, shadow::LEFT_OVER);
    let args = [Arg::Pointer(memory.address(x, 0)), Arg::Pointer(memory.address(out, 0)), Arg::Int(16)];
    launch(&kernel("copy_beyond"), [1; 3], &args, &mut memory, &Limits::default()).unwrap();
    let found: Vec<_> = memory.defects().collect();
    let [(mark, defect)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((defect.kind, defect.offset, defect.stored.is_some()), (DefectKind::LeftOver, 8, true));
    let marked: Vec<usize> = (0..128).filter(|&at| memory.shadow(out)[at] == *mark).collect();
    assert_eq!(marked, [8, 9, 10, 11]);
}

#[test]
fn masked_lanes_without_other_read_the_poison() {
    let results = [0u8, 0x7f].map(|poison| {
        let mut memory = Memory::new();
        let floats: Vec<u8> = [1.0f32; 64].iter().flat_map(|x| x.to_le_bytes()).collect();
        let x = memory.alloc("x", floats.clone(), Init::Written);
        let y = memory.alloc("y", floats, Init::Written);
        let out = memory.alloc("out", vec![0; 256], Init::Written);
        let pointer = |id| Arg::Pointer(memory.address(id, 0));
        let args = [pointer(x), pointer(y), pointer(out), Arg::Int(40)];
        let limits = Limits { poison, ..Limits::default() };
        launch(&kernel("add"), [1; 3], &args, &mut memory, &limits).unwrap();
        memory.bytes(out).to_vec()
    });
    // The kernel masks its store as well, so an honest result does not depend on the poison.
    assert_eq!(results[0], results[1]);
    assert!(results[0][160..].iter().all(|&byte| byte == 0));
}

#[test]
fn arguments_are_checked() {
    let mut memory = Memory::new();
    let few = launch(&kernel("spin"), [1; 3], &[], &mut memory, &Limits::default());
    assert_eq!(few, Err(Fault::Arguments { given: 0, wanted: 1 }));
    let wrong = launch(&kernel("spin"), [1; 3], &[Arg::Float(1.0)], &mut memory, &Limits::default());
    assert!(matches!(wrong, Err(Fault::Argument { index: 0, .. })), "{wrong:?}");
}

#[test]
fn an_unknown_entry_is_unsupported() {
    let module = crate::common::module("add");
    assert!(Kernel::new(&module, "nothing").is_err_and(|error| error.to_string().contains("nothing")));
}

#[test]
fn kernels_and_memories_go_to_other_threads() {
    fn check<T: Send + Sync>() {}
    check::<Kernel>();
    check::<Memory>();
}
