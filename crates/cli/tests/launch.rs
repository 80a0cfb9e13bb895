//! `tilewright run` through the real binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use tilewright_contract::{Constexpr, Dtype, HazardKind, LaunchReport, Number, SanitizeOutcome, VerdictKind};

const KERNELS: &str = "\
import triton
import triton.language as tl

raise RuntimeError('nothing but kernels is taken from this file')


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def faulty(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)  # 17
    w = tl.log(v - 1.0)  # 18
    tl.store(out + i // 2, w)  # 19


@triton.autotune(configs=[triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 32})], key=['n'])
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr, value: tl.constexpr = 3):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(x + i % n, value)


@triton.heuristics({'EVEN': lambda args: args['n'] % 2 == 0})
@triton.jit
def guided(x, n, EVEN: tl.constexpr):
    tl.store(x, n)


@triton.jit
def halves(a, b, c, d, flag, out, T: tl.constexpr):
    i = tl.arange(0, 4)
    s = tl.load(a + i).to(tl.float32) + tl.load(b + i).to(tl.float32) + tl.load(c + i) + tl.load(d + i)
    tl.store(out + i, tl.where(flag, s, 0.0).to(T))
";

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        fs::write(bench.0.path().join("kernels.py"), KERNELS).unwrap();
        bench
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::cargo_bin("tilewright").unwrap();
        command.current_dir(self.0.path()).arg("run").args(arguments.split_whitespace());
        command
    }

    /// Without Python: nothing of the kind may be needed to refuse arguments.
    fn refused(&self, arguments: &str) -> String {
        let output = self.command(arguments).env_clear().output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    }

    fn run(&self, arguments: &str) -> Output {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let mut command = self.command(arguments);
        if std::env::var_os("TILEWRIGHT_PYTHON").is_none() {
            command.env("TILEWRIGHT_PYTHON", root.join(".venv/bin/python"));
        }
        command.env("TILEWRIGHT_CACHE", self.0.path().join("cache")).output().unwrap()
    }

    fn report(&self, arguments: &str) -> (Option<i32>, LaunchReport) {
        let output = self.run(&format!("{arguments} --json"));
        let report = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code(), report)
    }
}

fn number(value: i64) -> Constexpr {
    Constexpr::Number { value: Number::Int(value) }
}

#[test]
fn a_clean_launch_tells_what_it_left_and_writes_it() {
    let bench = Bench::new();
    let (code, report) = bench.report(
        "kernels.py::add --grid cdiv(n,BLOCK) --args x=f32[n]:arange y=f32[n]:2.5 out=f32[n] n=1000 BLOCK=256 \
         --save out=out.npy",
    );
    assert_eq!((code, report.outcome, report.grid), (Some(0), SanitizeOutcome::Clean, [4, 1, 1]));
    let [x, _, out] = &report.tensors[..] else { panic!("{:?}", report.tensors) };
    assert_eq!((x.changed, out.changed, out.unwritten, out.nans), (0, 1000, 0, 0));
    assert_eq!((out.min, out.max, out.mean), (Some(2.5), Some(1001.5), Some(502.0)));
    assert_eq!(out.first, ["2.5", "3.5", "4.5", "5.5", "6.5", "7.5", "8.5", "9.5"]);
    let cost = report.cost.unwrap();
    assert_eq!((cost.bytes_loaded, cost.bytes_stored, cost.coalescing), (8000, 4000, Some(1.0)));
    // What was written is read, and converted; a thousand is a multiple of 8 alone.
    let (code, again) = bench.report(
        "kernels.py::add --grid 1 --args x=bf16@out.npy y=@out.npy out=f64[1000] n=4 BLOCK=4 --out out --head 5",
    );
    assert_eq!(code, Some(1), "996 elements of out are not written");
    assert_eq!(again.hazards[0].kind, HazardKind::UnwrittenOutput);
    assert_eq!((again.hazards[0].count, again.tensors[0].dtype), (996, Dtype::Bf16));
    assert_eq!(again.tensors[2].first, ["5", "7", "9", "11", "?"]);
}

#[test]
fn every_fault_of_a_launch_is_listed_with_its_line() {
    let bench = Bench::new();
    let launch = "kernels.py::faulty --grid 4 --args x=f32[n]:randn out=f32[n]:zeros n=100 BLOCK=32 --nan";
    let (code, report) = bench.report(launch);
    let found: Vec<_> = report.hazards.iter().map(|hazard| (hazard.kind, hazard.line().unwrap())).collect();
    assert_eq!(found, [(HazardKind::OutOfBounds, 17), (HazardKind::StoreConflict, 19)]);
    assert_eq!((code, report.hazards[0].count, report.hazards[0].tensor.as_deref()), (Some(1), 28, Some("x")));
    let born: Vec<_> = report.births.iter().map(|birth| (birth.kind, birth.line().unwrap())).collect();
    assert!(born.contains(&(HazardKind::Nan, 18)), "{born:?}");
    let output = bench.run(launch);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["out-of-bounds in faulty", "v = tl.load(x + i)", "program (3, 0, 0)", "2 hazards  faulty(BLOCK=32)"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_is_not_given_comes_from_the_first_configuration_and_defaults() {
    let bench = Bench::new();
    let (code, report) = bench.report("kernels.py::tuned --grid 2 --args x=i32[n]:zeros n=100");
    assert_eq!((code, report.kernel.options.num_warps), (Some(0), 2));
    assert_eq!((report.kernel.constexprs["2"].clone(), report.kernel.constexprs["3"].clone()), (number(64), number(3)));
    assert_eq!((report.tensors[0].min, report.tensors[0].max), (Some(3.0), Some(6.0)));
    let (_, given) =
        bench.report("kernels.py::tuned --grid 1 --args x=i32[n]:zeros n=100 BLOCK=16 --num-warps 8 --reverse");
    assert_eq!((given.kernel.options.num_warps, given.tensors[0].changed), (8, 16));
}

#[test]
fn types_of_tensors_and_numbers_reach_the_kernel() {
    let bench = Bench::new();
    let (code, report) = bench.report(
        "kernels.py::halves --grid 1 --args a=fp8e4m3fn[4]:arange(1,1) b=fp8e5m2[4]:arange(0,2) c=f16[4]:0.5 d=u8[4]:7 \
         flag=true out=bf16[4] T=tl.bfloat16",
    );
    assert_eq!(code, Some(0), "{:?}", report.stopped);
    assert_eq!(report.tensors[4].first, ["8.5", "11.5", "14.5", "17.5"]);
    let types: Vec<&str> = report.kernel.params.iter().map(|param| param.ty.as_str()).collect();
    assert_eq!(types, ["*fp8e4nv", "*fp8e5", "*fp16", "*u8", "u1", "*bf16", "constexpr"]);
    assert_eq!(report.kernel.attrs["0"], [("tt.divisibility".to_owned(), 16)]);
}

#[test]
fn a_kernel_that_does_not_compile_is_the_files_fault() {
    let bench = Bench::new();
    let (code, report) = bench.report("kernels.py::faulty --grid 1 --args x=f16[64]:randn out=f16[64] n=64 BLOCK=64");
    let stopped = report.stopped.unwrap();
    assert_eq!((code, report.outcome, stopped.verdict), (Some(1), SanitizeOutcome::Stopped, VerdictKind::CompileError));
    assert_eq!(stopped.reasons[0].line, Some(18));
}

#[test]
fn bad_input_is_answered_with_what_where_and_what_to_do() {
    let bench = Bench::new();
    let args = "--grid 1 --args x=f32[4]:zeros y=f32[4]:zeros out=f32[4] n=4 BLOCK=4";
    let cases = [
        "kernels.py --grid 1".to_owned(),
        "missing.py::add --grid 1".to_owned(),
        "kernels.py::sub --grid 1".to_owned(),
        "kernels.py::add --grid 1 --args x=f32[4]".to_owned(),
        "kernels.py::guided --grid 1 --args x=i32[1] n=4".to_owned(),
        format!("kernels.py::add {args} z=3"),
        format!("kernels.py::add {args} n=5"),
        "kernels.py::add --grid 1 --args x=f32[4] y=f32[4] out=f32[4] n=4 BLOCK=f32[4]".to_owned(),
        "kernels.py::add --grid 1 --args x=f32[4] y=f32[4] out=f32[4] n=four BLOCK=4".to_owned(),
        "kernels.py::add --grid 1 --args x=f32[4] y=f32[4] out=f32[4] n=300:i8 BLOCK=4".to_owned(),
        "kernels.py::add --grid m --args x=f32[4] y=f32[4] out=f32[4] n=4 BLOCK=4".to_owned(),
        format!("kernels.py::add {}", args.replace("--grid 1", "--grid cdiv(n,0)")),
        format!("kernels.py::add {}", args.replace("--grid 1", "--grid 1,2,3,4")),
        format!("kernels.py::add {}", args.replace("n=4", "n=18446744073709551616")),
        "kernels.py::add --grid 0 --args x=f32[4] y=f32[4] out=f32[4] n=4 BLOCK=4".to_owned(),
        "kernels.py::add --grid 1 --args x=f32[n,n] n=1000000".to_owned(),
        "kernels.py::add --grid 1 --args x=f32[k]".to_owned(),
        "kernels.py::add --grid 1 --args x=@none.npy".to_owned(),
        format!("kernels.py::add {args} --out z"),
        format!("kernels.py::add {args} --save out"),
        format!("kernels.py::add {args} --arch sm_1"),
        format!("kernels.py::add {args} --target cuda:0"),
    ];
    let told: String = cases.iter().map(|case| format!("$ run {case}\n{}", bench.refused(case))).collect();
    insta::assert_snapshot!("bad_input", told);
}
