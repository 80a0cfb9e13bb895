//! How fast the screen is: candidates a second on all that lie in this repository and beside it, the spread of one
//! candidate's latency, and growth with size.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilewright_screen::cut;

/// The binary's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Every candidate of `problems/`, `corpus/` and, where there is one, the labelled corpus beside the repository.
fn candidates() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("problems"), root.join("corpus"), root.join("../shared/corpus/candidates")];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "py") && !path.ends_with("problem.py") {
                files.push(path);
            }
        }
    }
    files.sort();
    files.iter().filter_map(|file| fs::read(file).ok()).collect()
}

/// A candidate of about `size` bytes: functions that launch, one after the other, each calling the one before.
fn grown(size: usize) -> String {
    let mut text = String::from(
        "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n\n\ndef f0(x):\n    return x\n",
    );
    let mut n = 0;
    while text.len() < size {
        n += 1;
        text.push_str(&format!(
            "\n\n@triton.jit\ndef kernel{n}(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    \
             i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    mask = i < n\n    \
             x = tl.load(x_ptr + i, mask=mask, other=0.0)\n    tl.store(out_ptr + i, x * {n}.0, mask=mask)\n\n\n\
             def f{n}(x):\n    x = f{m}(x).contiguous()\n    out = torch.empty_like(x)\n    size = x.numel()\n    \
             if size % {n} and type(x) is not int:\n        x = x.view(-1)\n    \
             kernel{n}[(triton.cdiv(size, 128),)](x, out, size, BLOCK=128)\n    return out\n",
            m = n - 1
        ));
    }
    text + &format!("\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return f{n}(x)\n")
}

/// Prints the spread of one candidate's latency, which Criterion does not.
fn latency(name: &str, text: &[u8]) {
    let mut times: Vec<f64> = (0..4000)
        .map(|_| {
            let start = Instant::now();
            black_box(cut(black_box(text))).ok();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "latency of {name} ({} bytes): p50 {:.3} ms, p90 {:.3} ms, p99 {:.3} ms, largest {:.3} ms",
        text.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}

fn screen(criterion: &mut Criterion) {
    let all = candidates();
    let bytes: usize = all.iter().map(Vec::len).sum();
    println!("{} candidates, {} bytes on average", all.len(), bytes / all.len().max(1));
    let mut group = criterion.benchmark_group("corpus");
    group.sample_size(20).throughput(Throughput::Elements(all.len() as u64));
    group.bench_function("all candidates", |bencher| {
        bencher.iter(|| all.iter().for_each(|text| drop(black_box(cut(text)))));
    });
    group.finish();

    if let Some(largest) = all.iter().filter(|text| text.len() <= 6500).max_by_key(|text| text.len()) {
        latency("the largest candidate up to 6.5 KB", largest);
    }
    latency("a grown candidate", grown(6 << 10).as_bytes());

    let mut group = criterion.benchmark_group("growth");
    group.sample_size(10);
    for kib in [6, 24, 96, 384, 1000] {
        let text = grown(kib << 10);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(format!("{kib} KiB")), &text, |bencher, text| {
            bencher.iter(|| cut(black_box(text.as_bytes())));
        });
    }
    group.finish();
}

criterion_group!(benches, screen);
criterion_main!(benches);
