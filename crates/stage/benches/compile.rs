//! How long each step of compiling a kernel takes, by the clock and on a processor.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tilewright_cell::{CellError, Job, Outcome, Zygote, ZygoteOptions, find_python};
use tilewright_contract::{Constexpr, KernelSpec, LaunchOptions, Number, Param, Target};
use tilewright_stage::{Cache, Runner, Stage, StageError, StageOptions};

/// Kernels of each measurement.
const KERNELS: u32 = 20;

const MODULE: &str = "\
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * 2, mask=offsets < n)
";

/// Adds up the processor time of jobs.
struct Measured {
    zygote: Zygote,
    cpu_microseconds: AtomicUsize,
    max_rss_kb: AtomicUsize,
}

impl Runner for Measured {
    fn run(&self, job: &Job) -> Result<Outcome, CellError> {
        let outcome = self.zygote.run(job)?;
        self.cpu_microseconds.fetch_add((outcome.cpu_seconds * 1e6) as usize, Ordering::Relaxed);
        self.max_rss_kb.fetch_max(outcome.max_rss_kb as usize, Ordering::Relaxed);
        Ok(outcome)
    }

    fn versions(&self) -> (String, String) {
        Runner::versions(&self.zygote)
    }
}

/// The `i`th kernel: each has other stages, and a block of its own length.
fn spec(i: u32) -> KernelSpec {
    let param = |name: &str, ty: &str| Param { name: name.into(), ty: ty.into() };
    KernelSpec {
        function: "double".into(),
        params: vec![param("x_ptr", "*fp32"), param("y_ptr", "*fp32"), param("n", "i32"), param("BLOCK", "constexpr")],
        constexprs: BTreeMap::from([("3".into(), Constexpr::Number { value: Number::Int(1 << (5 + i % 6)) })]),
        attrs: BTreeMap::from([("0".into(), vec![("tt.divisibility".into(), 16)])]),
        options: LaunchOptions { num_stages: i + 1, ..LaunchOptions::default() },
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let zygote = Zygote::start(ZygoteOptions::new(find_python(None)?))?;
    let jobs = Arc::new(Measured { zygote, cpu_microseconds: AtomicUsize::new(0), max_rss_kb: AtomicUsize::new(0) });
    let stage = Stage::new(jobs.clone(), Cache::open(folder.path())?, StageOptions::default());
    let target = Target { backend: "cuda".into(), arch: "90".into(), warp_size: 32 };
    let specs: Vec<_> = (0..KERNELS).map(spec).collect();
    let moved = MODULE.replace("x * 2", "x * 3");
    let all = |module: &str, threads| -> Result<(), StageError> {
        stage.compile_all(module, &specs, &target, threads).into_iter().try_for_each(|compiled| compiled.map(drop))
    };
    let time = |what: &str, run: &dyn Fn() -> Result<(), StageError>| -> Result<(), StageError> {
        let (start, before) = (Instant::now(), jobs.cpu_microseconds.load(Ordering::Relaxed));
        run()?;
        let wall = start.elapsed().as_secs_f64() * 1e3 / f64::from(KERNELS);
        let cpu = (jobs.cpu_microseconds.load(Ordering::Relaxed) - before) as f64 / 1e3 / f64::from(KERNELS);
        println!("{what:<22} {wall:6.1} ms a kernel, of which {cpu:6.1} ms on a processor");
        Ok(())
    };
    // The first job pays for what stays.
    stage.compile(&MODULE.replace("x * 2", "x * 4"), &spec(0), &target)?;
    time("TTIR", &|| specs.iter().try_for_each(|spec| stage.ttir(MODULE, spec, &target).map(drop)))?;
    time("binary, TTIR cached", &|| all(MODULE, 1))?;
    time("both cached", &|| all(MODULE, 1))?;
    time("both, two at a time", &|| all(&moved, 2))?;
    println!("largest process: {} MiB", jobs.max_rss_kb.load(Ordering::Relaxed) >> 10);
    Ok(())
}
