//! Verdicts of small candidates: weights, limits of a launch, undefined lanes, empty cases, neighbours.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tilewright_contract::VerdictKind;
use tilewright_judge::DEFAULT_PROFILE;
use tilewright_verify::Group;

use crate::bench::{explain, verifier, verifier_with};

const SCALED: &str = r#"
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return x * self.scale * 2.0


def get_inputs():
    return [torch.randn(16, 40)]


def get_init_inputs():
    return [40]
"#;

/// `ModelNew` that keeps its weights as `init` says, in `self.NAME`, and multiplies by `factor`.
fn scaled(init: &str, name: &str, factor: &str) -> String {
    format!(
        r#"
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_rows(x, s, y, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    m = c < cols
    row = tl.program_id(0) * cols
    tl.store(y + row + c, tl.load(x + row + c, mask=m) * tl.load(s + c, mask=m) * {factor}, mask=m)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        {init}

    def forward(self, x):
        y = torch.empty_like(x)
        scale_rows[(x.shape[0],)](x, self.{name}, y, x.shape[1], BLOCK=64)
        return y
"#
    )
}

#[test]
fn weights_are_matched_by_name_by_value_or_as_folded() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, SCALED).unwrap();
    let problem = verifier.load(&problem);
    for (init, name, factor, rule, kind) in [
        ("self.scale = nn.Parameter(torch.rand(features))", "scale", "2.0", "state_dict", VerdictKind::Accepted),
        ("self.gain = nn.Parameter(torch.rand(features))", "gain", "2.0", "value", VerdictKind::Accepted),
        ("self.register_buffer('gain', torch.rand(features) * 2)", "gain", "1.0", "folded", VerdictKind::Accepted),
        // The names say that the weights cannot arrive.
        ("self.gain = nn.Parameter(torch.ones(features))", "gain", "2.0", "state_dict", VerdictKind::Incorrect),
        // Drawn at another place of the generator's stream.
        (
            "torch.rand(3); self.gain = nn.Parameter(torch.rand(features))",
            "gain",
            "2.0",
            "folded",
            VerdictKind::Incorrect,
        ),
    ] {
        let source = scaled(init, name, factor);
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), source.as_bytes());
        assert_eq!(verdict.verdict, kind, "{init}: {}", explain(&verdict));
        assert_eq!(verdict.weights.as_deref(), Some(rule), "{init}");
        if kind == VerdictKind::Incorrect {
            let named = verdict.reasons.iter().find(|reason| reason.code == "weights").unwrap();
            assert!(named.message.contains("lacks scale") && named.message.contains("gain"), "{}", named.message);
        }
    }
}

/// What a device cannot launch is told on a CPU too, and what the kernels take is in the verdict.
#[test]
fn a_launch_past_the_targets_limits_is_refused_on_a_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, SCALED).unwrap();
    let problem = verifier.load(&problem);
    let weights = "self.scale = nn.Parameter(torch.rand(features))";
    let source = scaled(weights, "scale", "2.0").replace("[(x.shape[0],)]", "[(x.shape[0], 70000)]");
    let verdict = verifier.verify(&problem, Path::new("candidate.py"), source.as_bytes());
    assert_eq!(verdict.verdict, VerdictKind::LaunchError, "{}", explain(&verdict));
    assert_eq!(verdict.reasons[0].code, "target-limit");
    assert_eq!(verdict.reasons[0].line, Some(23));
    assert!(verdict.resources.values().all(|resources| resources.registers.is_some()));
}

const WIDE: &str = r#"
import torch


class Model(torch.nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x, n):
        return x * float(n % 1000) + float(self.k % 1000), torch.full_like(x, 2**63)


def get_inputs():
    return [torch.randn(1000), 2**63 + 5]


def get_init_inputs():
    return [2**63 + 17]
"#;

/// `MORE` is added to a constant of the kernel, which takes it away again.
const WIDE_NEW: &str = r#"
import torch
import triton
import triton.language as tl


@triton.jit
def affine(x, y, n, factor, K: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scaled = tl.load(x + i, mask=i < n) * (factor % 1000).to(tl.float32)
    tl.store(y + i, scaled + (K - (MORE)) % 1000, mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x, n):
        y = torch.empty_like(x)
        affine[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), n, K=self.k + (MORE), BLOCK=256)
        return y, torch.full_like(x, 2**63)
"#;

/// Above 2^63 in arguments and fills, and of any size as a constant of a kernel: Triton computes with the whole of it.
#[test]
fn an_integer_of_any_size_stays_the_number_that_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, WIDE).unwrap();
    let problem = verifier.load(&problem);
    for more in ["0", "2**64", "-(2**100)"] {
        let source = WIDE_NEW.replace("MORE", more);
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), source.as_bytes());
        assert_eq!(verdict.verdict, VerdictKind::Accepted, "{more}: {}", explain(&verdict));
    }
}

/// On a GPU such lanes hold whatever was in the register: zeros by luck.
#[test]
fn a_sum_over_undefined_lanes_is_a_memory_fault() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, SCALED.replace("x * self.scale * 2.0", "x.sum(1) + self.scale[:1]")).unwrap();
    let problem = verifier.load(&problem);
    let weights = "self.scale = nn.Parameter(torch.rand(features))";
    let summed = |load: &str| {
        scaled(weights, "scale", "2.0").replace("torch.empty_like(x)", "x.new_empty(x.shape[0])").replace(
            "tl.store(y + row + c, tl.load(x + row + c, mask=m) * tl.load(s + c, mask=m) * 2.0, mask=m)",
            &format!("tl.store(y + tl.program_id(0), tl.sum({load}, 0) + tl.load(s))"),
        )
    };
    for (load, kind) in [
        ("tl.load(x + row + c, mask=m)", VerdictKind::MemoryFault),
        ("tl.load(x + row + c, mask=m, other=0.0)", VerdictKind::Accepted),
        ("tl.where(m, tl.load(x + row + c, mask=m), 0.0)", VerdictKind::Accepted),
    ] {
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), summed(load).as_bytes());
        assert_eq!(verdict.verdict, kind, "{load}: {}", explain(&verdict));
        if kind == VerdictKind::MemoryFault {
            assert_eq!(verdict.reasons[0].code, "undefined-lanes");
        }
    }
}

#[test]
fn a_case_without_elements_needs_no_launch() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    let cases = SCALED.replace("torch.randn(16, 40)", "torch.randn(ROWS, 40)");
    std::fs::write(&problem, format!("{cases}\n\nROWS = 16\nCASES = [{{\"ROWS\": 0}}]\n")).unwrap();
    let problem = verifier.load(&problem);
    let weights = "self.scale = nn.Parameter(torch.rand(features))";
    let plain = scaled(weights, "scale", "2.0");
    let guarded = plain.replace("        scale_rows[", "        if x.numel():\n            scale_rows[");
    for source in [plain, guarded] {
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), source.as_bytes());
        assert_eq!(verdict.verdict, VerdictKind::Accepted, "{}", explain(&verdict));
    }
}

/// A neighbour in the batch that never ends must not take the time of an honest candidate.
#[test]
fn an_endless_neighbour_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier_with(&folder.path().join("cache"), &[DEFAULT_PROFILE], Duration::from_secs(15));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, SCALED).unwrap();
    let weights = "self.scale = nn.Parameter(torch.rand(features))";
    let honest = scaled(weights, "scale", "2.0");
    let endless = honest.replace("[(x.shape[0],)]", "[(x.shape[0], 65535, 65535)]");
    let files: Vec<PathBuf> = [("a.py", &endless), ("b.py", &honest), ("c.py", &honest)]
        .into_iter()
        .map(|(name, source)| {
            let path = folder.path().join(name);
            std::fs::write(&path, source).unwrap();
            path
        })
        .collect();
    let mut got = Vec::new();
    let groups = [Group { problem, candidates: files }];
    tilewright_verify::batch(&verifier, &groups, 2, |_, _, verdict| -> Result<(), std::convert::Infallible> {
        got.push((Path::new(&verdict.candidate.path).file_stem().unwrap().to_owned(), verdict.verdict));
        Ok(())
    })
    .unwrap();
    got.sort();
    let kinds: Vec<VerdictKind> = got.into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, [VerdictKind::Timeout, VerdictKind::Accepted, VerdictKind::Accepted]);
}

/// Of 100 configurations 64 are executed and 41 are right, so that chance alone cannot decide this.
#[test]
fn a_wrong_configuration_cannot_hide_among_many() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let path = folder.path().join("problem.py");
    std::fs::write(&path, SCALED).unwrap();
    let problem = verifier.load(&path);
    let tuned = |wrong: &str| {
        let configurations = format!(
            "[triton.Config({{'BLOCK': 64, 'TWO': {wrong} if stages > 41 else 2}}, num_stages=stages) for stages in range(1, 101)]"
        );
        scaled("self.scale = nn.Parameter(torch.rand(features))", "scale", "TWO")
            .replace("@triton.jit", &format!("@triton.autotune({configurations}, key=['cols'])\n@triton.jit"))
            .replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, TWO: tl.constexpr")
            .replace(", BLOCK=64)", ")")
    };
    for (wrong, kind) in [("2", VerdictKind::Accepted), ("3", VerdictKind::Incorrect)] {
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), tuned(wrong).as_bytes());
        assert_eq!(verdict.verdict, kind, "{}", explain(&verdict));
        let said = "64 of 100 autotune configurations are executed, chosen by chance";
        assert!(verdict.notes.iter().any(|note| note == said), "{:?}", verdict.notes);
    }
}
