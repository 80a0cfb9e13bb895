//! How long launches take, with the whole sanitiser and with bounds alone.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tilewright_emulate::{Arg, Init, Kernel, Limits, Memory, launch};

const MIB: usize = 1 << 20;

/// A kernel of `tests/fixtures`, the sizes of its buffers in bytes, and the integers after them.
struct Case {
    name: &'static str,
    file: &'static str,
    grid: [u32; 3],
    buffers: &'static [usize],
    ints: &'static [i64],
}

const CASES: &[Case] = &[
    Case { name: "add/2^20", file: "speed_add", grid: [1024, 1, 1], buffers: &[4 * MIB; 3], ints: &[1 << 20] },
    Case {
        name: "softmax/4096x1024",
        file: "speed_softmax",
        grid: [4096, 1, 1],
        buffers: &[16 * MIB; 2],
        ints: &[1024],
    },
    Case {
        name: "softmax/4096x1000",
        file: "speed_softmax",
        grid: [4096, 1, 1],
        buffers: &[16 * MIB; 2],
        ints: &[1000],
    },
    Case { name: "matmul/1024^3", file: "speed_matmul", grid: [256, 1, 1], buffers: &[4 * MIB; 3], ints: &[1024; 3] },
    Case {
        name: "matmul f16/1024^3",
        file: "speed_matmul_f16",
        grid: [256, 1, 1],
        buffers: &[4 * MIB; 3],
        ints: &[1024; 3],
    },
    Case {
        name: "conv/8x16x32x32 by 32x3x3",
        file: "speed_conv",
        grid: [128, 1, 1],
        buffers: &[4 * 8 * 16 * 1024, 4 * 32 * 16 * 9, 4 * 8 * 32 * 1024],
        ints: &[8, 16, 32, 32, 32],
    },
];

fn launches(criterion: &mut Criterion) {
    for case in CASES {
        let path = format!("{}/tests/fixtures/{}.ttir", env!("CARGO_MANIFEST_DIR"), case.file);
        let text = std::fs::read_to_string(path).expect("a fixture");
        let module = tilewright_ttir::parse(&text).expect("Triton IR");
        let kernel = Kernel::new(&module, &module.funcs[0].name).expect("a supported kernel");
        let mut memory = Memory::new();
        let mut args = Vec::new();
        for (index, &bytes) in case.buffers.iter().enumerate() {
            let data = (0..bytes / 4).flat_map(|i| ((i * 7919 % 1000) as f32 * 1e-3).to_le_bytes()).collect();
            let id = memory.alloc(&format!("buffer {index}"), data, Init::Written);
            args.push(Arg::Pointer(memory.address(id, 0)));
        }
        args.extend(case.ints.iter().map(|&value| Arg::Int(value)));
        let mut group = criterion.benchmark_group(case.name);
        group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
        for (name, bare, threads) in [
            ("sanitised", false, 0),
            ("bare", true, 0),
            ("sanitised, one thread", false, 1),
            ("bare, one thread", true, 1),
        ] {
            let limits = Limits { bare, threads, ..Limits::default() };
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter(|| black_box(launch(&kernel, case.grid, &args, &mut memory, &limits).expect("no fault")));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, launches);
criterion_main!(benches);
