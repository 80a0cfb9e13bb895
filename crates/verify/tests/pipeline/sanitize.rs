//! The sanitiser on candidates with planted faults, and on honest ones.

use std::path::Path;

use tilewright_contract::{Deed, HazardKind, SanitizeOutcome, SanitizeReport, VerdictKind};
use tilewright_verify::{Problem, Verifier};

use crate::bench::{root, verifier};

const PROBLEM: &str = "
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.randn(1000)]


def get_init_inputs():
    return []
";

/// What a candidate's kernel does, with `# !` behind the lines of its faults.
struct Planted {
    name: &'static str,
    kernel: &'static str,
    forward: &'static str,
    kinds: &'static [HazardKind],
}

/// Forward with one launch of `(x, out, n)` on as many programs as cover the input.
const PLAIN: &str = "
        k[(triton.cdiv(n, 256),)](x, out, n, B=256)";

const PLANTED: [Planted; 15] = [
    Planted {
        name: "no mask",
        kernel: "
    v = tl.load(x + i)  # !
    tl.store(out + i, v)  # !",
        forward: PLAIN,
        kinds: &[HazardKind::OutOfBounds, HazardKind::OutOfBounds],
    },
    Planted {
        name: "two faults, one of them in a loop",
        kernel: "
    for turn in range(3):
        tl.store(out + n + i, 0.0, mask=i < 4)  # !
    tl.store(out + tl.arange(0, B), tl.load(x + i, mask=i < n, other=0.0))  # !",
        forward: PLAIN,
        kinds: &[HazardKind::OutOfBounds, HazardKind::Race],
    },
    Planted {
        name: "pointer between two elements",
        kernel: "
    p = (x.to(tl.pointer_type(tl.int8)) + 2).to(tl.pointer_type(tl.float32))
    v = tl.load(p + i, mask=i < n - 1, other=0.0)  # !
    tl.store(out + i, v, mask=i < n)",
        forward: PLAIN,
        kinds: &[HazardKind::Misaligned],
    },
    Planted {
        name: "workspace that nothing wrote",
        kernel: "
    v = tl.load(out + i, mask=i < n, other=0.0)  # !
    tl.store(out + i, v + tl.load(x + i, mask=i < n, other=0.0), mask=i < n)",
        forward: PLAIN,
        kinds: &[HazardKind::Uninitialised],
    },
    Planted {
        name: "grid that leaves the tail out",
        kernel: "
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)",
        forward: "
        k[(n // 256,)](x, out, n, B=256)",
        kinds: &[HazardKind::UnwrittenOutput],
    },
    Planted {
        name: "write and read of one place",
        kernel: "
    v = tl.load(out + (i + 256) % n, mask=i < n, other=0.0)  # !
    tl.store(out + i, v + tl.load(x + i, mask=i < n), mask=i < n)  # !",
        forward: "
        out = torch.zeros_like(x)
        k[(triton.cdiv(n, 256),)](x, out, n, B=256)",
        kinds: &[HazardKind::Race, HazardKind::Race],
    },
    Planted {
        name: "lanes that share a place",
        kernel: "
    tl.store(out + i, 0.0, mask=i < n)
    tl.store(out + i // 2 * 2, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)  # !",
        forward: PLAIN,
        kinds: &[HazardKind::StoreConflict],
    },
    Planted {
        name: "division by zero",
        kernel: "
    d = n - 1000
    v = (i // d).to(tl.float32)  # !
    tl.store(out + i, v, mask=i < n)",
        forward: PLAIN,
        kinds: &[HazardKind::DivisionByZero],
    },
    Planted {
        name: "offset that wraps around",
        kernel: "
    far = i * 5000000  # !
    back = far - i * 4999999
    tl.store(out + i, tl.load(x + back, mask=i < n, other=0.0), mask=i < n)",
        forward: PLAIN,
        kinds: &[HazardKind::OffsetOverflow],
    },
    Planted {
        name: "lanes without a value in a sum",
        kernel: "
    j = tl.arange(0, 1024)
    s = tl.sum(tl.load(x + j, mask=j < n))
    tl.store(out + i, s, mask=i < n)",
        forward: PLAIN,
        kinds: &[HazardKind::UndefinedLanes],
    },
    Planted {
        name: "first come, first served",
        kernel: "
    turn = tl.atomic_add(count, 1)
    tl.store(out + i, turn.to(tl.float32), mask=i < n)",
        forward: "
        count = torch.zeros(1, dtype=torch.int32, device=x.device)
        k[(triton.cdiv(n, 256),)](x, out, n, B=256, count=count)",
        kinds: &[HazardKind::Nondeterministic],
    },
    Planted {
        name: "waits for nobody",
        kernel: "
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
    while tl.atomic_add(count, 0) == 0:  # !
        pass",
        forward: "
        count = torch.zeros(1, dtype=torch.int32, device=x.device)
        k[(triton.cdiv(n, 256),)](x, out, n, B=256, count=count)",
        kinds: &[HazardKind::Deadlock],
    },
    Planted {
        name: "honest: masked away",
        kernel: "
    v = tl.load(out + i, mask=i < n)
    w = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(i < 0, v, w * 2.0), mask=i < n)",
        forward: PLAIN,
        kinds: &[],
    },
    Planted {
        name: "honest: sums of atomics",
        kernel: "
    tl.atomic_add(out + i % 7, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)",
        forward: "
        out = torch.zeros_like(x)
        k[(triton.cdiv(n, 256),)](x, out, n, B=256)",
        kinds: &[],
    },
    Planted {
        name: "honest: wrong, but clean",
        kernel: "
    tl.store(out + i, tl.load(x + i, mask=i < n) * 3.0, mask=i < n)",
        forward: PLAIN,
        kinds: &[],
    },
];

impl Planted {
    fn source(&self) -> String {
        format!(
            "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x, out, n, B: tl.constexpr, \
count=None):\n    i = tl.program_id(0) * B + tl.arange(0, B){}\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, \
x):\n        n = x.numel()\n        out = torch.empty_like(x){}\n        return out\n",
            self.kernel, self.forward
        )
    }

    fn lines(&self) -> Vec<u32> {
        let source = self.source();
        let marked = source.lines().enumerate().filter(|(_, line)| line.ends_with("# !"));
        marked.map(|(at, _)| at as u32 + 1).collect()
    }

    /// What the report says otherwise than planted.
    fn difference(&self, report: &SanitizeReport) -> Option<String> {
        let kinds: Vec<_> = report.hazards.iter().map(|hazard| hazard.kind).collect();
        let lines: Vec<u32> = report.hazards.iter().filter_map(|hazard| hazard.at.map(|party| party.line)).collect();
        let outcome = if self.kinds.is_empty() { SanitizeOutcome::Clean } else { SanitizeOutcome::Hazards };
        if kinds == self.kinds && lines == self.lines() && report.outcome == outcome {
            return None;
        }
        let (hazards, stopped) = (&report.hazards, &report.stopped);
        Some(format!(
            "{}: {hazards:#?} {stopped:?} at {lines:?}, not {:?} at {:?}",
            self.name,
            self.kinds,
            self.lines()
        ))
    }
}

struct Bench {
    verifier: Verifier,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { verifier: verifier(folder.path()), _folder: folder }
    }

    fn problem(&self) -> Problem {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("problem.py");
        std::fs::write(&path, PROBLEM).unwrap();
        self.verifier.load(&path)
    }

    fn sanitize(&self, problem: &Problem, source: &str) -> SanitizeReport {
        self.verifier.sanitize(problem, Path::new("candidate.py"), source.as_bytes(), false)
    }
}

#[test]
fn every_planted_fault_is_found_on_its_line_and_no_honest_kernel_is_blamed() {
    let bench = Bench::new();
    let problem = bench.problem();
    let wrong: Vec<String> =
        PLANTED.iter().filter_map(|planted| planted.difference(&bench.sanitize(&problem, &planted.source()))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_hazard_names_both_sides_the_tensor_and_how_often() {
    let bench = Bench::new();
    let problem = bench.problem();
    let report = bench.sanitize(&problem, &PLANTED[1].source());
    let [beyond, race] = &report.hazards[..] else { panic!("{:#?}", report.hazards) };
    // Four lanes in three rounds.
    assert_eq!((beyond.count, beyond.offset), (12, Some(4000)));
    assert_eq!(beyond.tensor.as_deref(), Some("out [buffer 1 (made in forward)]"));
    assert_eq!(beyond.kernel, "k");
    let (at, other) = (race.at.unwrap(), race.other.unwrap());
    assert_eq!((at.does, at.program, other.does, other.program), (Deed::Store, [1, 0, 0], Deed::Store, [0, 0, 0]));
    assert_eq!(at.line, other.line);
    assert_eq!(beyond.executions, report.executions, "each execution shows it");
    assert!(beyond.seen.contains("case default"), "{}", beyond.seen);
    let cost = &report.costs[0];
    assert_eq!((cost.grid, cost.bytes_loaded), ([4, 1, 1], 4000));
    assert_eq!(cost.coalescing, Some(1.0));
}

#[test]
fn where_a_nan_in_the_output_is_made_is_told_on_request() {
    let bench = Bench::new();
    let problem = bench.problem();
    let born = Planted {
        name: "log of negative numbers",
        kernel: "
    v = tl.load(x + i, mask=i < n, other=1.0)
    tl.store(out + i, tl.log(v), mask=i < n)  # !",
        forward: PLAIN,
        kinds: &[],
    };
    let source = born.source();
    assert_eq!(bench.sanitize(&problem, &source).births, []);
    let report = bench.verifier.sanitize(&problem, Path::new("candidate.py"), source.as_bytes(), true);
    let births: Vec<_> = report.births.iter().map(|birth| (birth.kind, birth.line())).collect();
    assert!(births.contains(&(HazardKind::Nan, Some(born.lines()[0]))), "{births:?}");
    assert_eq!((report.outcome, report.exit_code()), (SanitizeOutcome::Clean, 0));
}

#[test]
fn what_cannot_be_run_is_not_called_clean() {
    let bench = Bench::new();
    let problem = bench.problem();
    let honest = PLANTED[14].source();
    for (source, verdict, exit) in [
        (honest.replace("* 3.0", "* nothing"), VerdictKind::CompileError, 1),
        (honest.replace("return out", "return x * 2.0"), VerdictKind::Rejected, 1),
        (honest.replace("n = x.numel()", "n = int(x[0].item())"), VerdictKind::Untraceable, 3),
    ] {
        let report = bench.sanitize(&problem, &source);
        let stopped = report.stopped.as_ref().map(|stopped| stopped.verdict);
        assert_eq!((report.outcome, stopped, report.exit_code()), (SanitizeOutcome::Stopped, Some(verdict), exit));
        assert!(report.hazards.is_empty() && report.executions == 0);
    }
}

/// A sample of the problems' own candidates: atomics, several launches, autotuning, state.
#[test]
fn honest_candidates_are_clean() {
    let bench = Bench::new();
    for name in ["softmax", "byte_histogram", "column_mean", "batchnorm_train"] {
        let folder = root().join("problems").join(name);
        let problem = bench.verifier.load(&folder.join("problem.py"));
        let source = std::fs::read(folder.join("candidate.py")).unwrap();
        let report = bench.verifier.sanitize(&problem, Path::new("candidate.py"), &source, false);
        assert_eq!(report.outcome, SanitizeOutcome::Clean, "{name}: {:#?} {:?}", report.hazards, report.stopped);
        assert!(report.executions > 1 && !report.costs.is_empty());
    }
}
