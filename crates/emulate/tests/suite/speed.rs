//! How long kernels take; run with `--release --ignored --nocapture`. Processor time, since CI machines are shared.

use tilewright_emulate::{Arg, Init, Kernel, Limits, Memory, launch};

/// Processor time of this thread in milliseconds.
fn processor_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1e-6
}

/// Launches a kernel with buffers of the given bytes before its integer arguments; best of three, in milliseconds.
fn time(name: &str, entry: &str, grid: [u32; 3], buffers: &[usize], ints: &[i64]) -> f64 {
    let kernel = Kernel::new(&crate::common::module(name), entry).unwrap();
    let mut memory = Memory::new();
    let mut args = Vec::new();
    for (index, &bytes) in buffers.iter().enumerate() {
        let data = (0..bytes / 4).flat_map(|i| ((i * 7919 % 1000) as f32 * 1e-3).to_le_bytes()).collect();
        let id = memory.alloc(&format!("buffer {index}"), data, Init::Written);
        args.push(Arg::Pointer(memory.address(id, 0)));
    }
    args.extend(ints.iter().map(|&value| Arg::Int(value)));
    let one = || {
        let start = processor_ms();
        launch(&kernel, grid, &args, &mut memory, &Limits::default()).unwrap();
        processor_ms() - start
    };
    let best = std::iter::repeat_with(one).take(3).fold(f64::INFINITY, f64::min);
    println!("{name}: {best:.1} ms");
    best
}

#[test]
#[ignore = "measures time"]
fn speed() {
    let (million, mib) = (1 << 20, 4 << 20);
    time("speed_add", "add", [1024, 1, 1], &[mib; 3], &[million]);
    time("speed_softmax", "softmax", [4096, 1, 1], &[4 * mib; 2], &[1024]);
    time("speed_softmax", "softmax", [4096, 1, 1], &[4 * mib; 2], &[1000]);
    time("speed_matmul", "matmul", [256, 1, 1], &[mib; 3], &[1024; 3]);
    time("speed_matmul_f16", "matmul", [256, 1, 1], &[mib; 3], &[1024; 3]);
    time(
        "speed_conv",
        "conv",
        [128, 1, 1],
        &[4 * 8 * 16 * 1024, 4 * 32 * 16 * 9, 4 * 8 * 32 * 1024],
        &[8, 16, 32, 32, 32],
    );
}
