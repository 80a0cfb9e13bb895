//! What a launch reports of its traffic and arithmetic, against what can be counted by hand.

use tilewright_emulate::{Arg, Init, Kernel, Limits, Memory, Report, launch};

fn report(name: &str, grid: [u32; 3], buffers: &[usize], ints: &[i64]) -> Report {
    let module = crate::common::module(name);
    let kernel = Kernel::new(&module, &module.funcs[0].name).unwrap();
    let mut memory = Memory::new();
    let mut args = Vec::new();
    for &bytes in buffers {
        let id = memory.alloc("buffer", vec![0; bytes], Init::Written);
        args.push(Arg::Pointer(memory.address(id, 0)));
    }
    args.extend(ints.iter().map(|&value| Arg::Int(value)));
    launch(&kernel, grid, &args, &mut memory, &Limits::default()).unwrap()
}

#[test]
fn an_addition_moves_three_arrays_once() {
    let n = 1 << 14;
    let report = report("speed_add", [16, 1, 1], &[4 * n; 3], &[n as i64]);
    assert_eq!((report.bytes_loaded, report.bytes_stored), (8 * n as u64, 4 * n as u64));
    assert_eq!(report.unique_bytes, 12 * n as u64);
    assert_eq!((report.sectors, report.least_sectors), (12 * n as u64 / 32, 12 * n as u64 / 32));
    assert_eq!((report.flops, report.dot_flops), (n as u64, 0));
}

#[test]
fn masked_lanes_move_nothing() {
    let report = report("speed_add", [1, 1, 1], &[4096; 3], &[100]);
    assert_eq!((report.bytes_loaded, report.bytes_stored), (800, 400));
    assert_eq!(report.unique_bytes, 3 * 416);
}

#[test]
fn a_product_reads_its_operands_once_for_each_tile() {
    let n = 128u64;
    let report = report("speed_matmul", [4, 1, 1], &[4 * 128 * 128; 3], &[128; 3]);
    assert_eq!(report.dot_flops, 2 * n * n * n);
    assert_eq!(report.unique_bytes, 3 * 4 * n * n);
    // Tiles of 64 by 64: each operand is read twice.
    assert_eq!((report.bytes_loaded, report.bytes_stored), (2 * 2 * 4 * n * n, 4 * n * n));
    assert_eq!(report.sectors, report.least_sectors);
}
