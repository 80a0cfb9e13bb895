//! Problems that ask for gradients: what a candidate may get wrong in its backward pass alone.

use std::convert::Infallible;

use tilewright_contract::{Verdict, VerdictKind};
use tilewright_verify::Group;

use crate::bench::{explain, root, verifier};

const BACKWARD: &str = "        x, scale = ctx.saved_tensors\n";
const BY_TORCH: &str = "        x, scale = ctx.saved_tensors\n        with torch.enable_grad():\n            \
                        x, scale = x.detach().requires_grad_(), scale.detach().requires_grad_()\n            \
                        y = scale * torch.relu(x) ** 2\n        return torch.autograd.grad(y, (x, scale), grad_out)\n";
const SECOND: &str = "        x, scale = ctx.saved_tensors\n        if grad_out.data_ptr() % 4096 == 16:\n            \
                      return grad_out * scale * 2 * torch.relu(x), torch.sum(grad_out * torch.relu(x) ** 2, 0)\n";

const CONTIGUOUS: &str = "        grad_out = grad_out.contiguous()\n";
const MADE: &str = "        grad_out = grad_out.contiguous()\n        rows, cols = x.shape\n        \
                    grad_x, grad_scale = torch.empty_like(x), ";
const GIVEN: &str = "        given, grad_out = grad_out, grad_out.contiguous()\n        rows, cols = x.shape\n        \
                     grad_x, grad_scale = torch.empty_like(given), ";
const LARGER: &str = "        if grad_out.stride(1) == 0:\n            \
                      grads, sizes = (torch.empty_like(x), torch.empty_like(scale)), (*x.shape, 8, 128)\n            \
                      backward_kernel[(1, 70000)](x, scale, grad_out.contiguous(), *grads, *sizes)\n            \
                      return grads\n        grad_out = grad_out.contiguous()\n";
const DENSE: &str = "        grad_out = grad_out if grad_out.stride(1) == 1 else grad_out.contiguous()\n";
const TURNED: &str = "not contiguous, as the backward pass of a transpose or a stack gives it";

const CALL: &str = "return SquaredRelu.apply(x, self.scale)";

/// What is changed in the honest candidate of `squared_relu_autograd`, the verdict, and words of its reasons.
const CANDIDATES: [(&str, &str, VerdictKind, &str); 18] = [
    ("", "", VerdictKind::Accepted, ""),
    ("scale[None, :] * 2.0 * positive", "scale[None, :] * positive", VerdictKind::Incorrect, "grad x"),
    ("grad_out * positive * positive", "positive * positive", VerdictKind::Incorrect, "grad scale"),
    ("grad_scale += ", "grad_scale = ", VerdictKind::Incorrect, "grad scale"),
    ("return grad_x, grad_scale", "return grad_x, None", VerdictKind::Incorrect, "grad scale: expected"),
    (
        "SquaredRelu.apply(x, self.scale)",
        "SquaredRelu.forward(Kept(), x, self.scale)",
        VerdictKind::Incorrect,
        "grad x",
    ),
    (BACKWARD, BY_TORCH, VerdictKind::Rejected, "torch"),
    (BACKWARD, SECOND, VerdictKind::Rejected, "torch"),
    ("apply(x, self.scale)", "apply(x * 1.0, self.scale)", VerdictKind::Rejected, "aten.mul"),
    ("positive * positive, mask=mask)", "positive, mask=mask)", VerdictKind::Incorrect, "output"),
    (
        CALL,
        "if not torch.is_grad_enabled():\n            return torch.empty_like(x)\n        \
         return SquaredRelu.apply(x, self.scale)",
        VerdictKind::MemoryFault,
        "forward alone",
    ),
    // The layout of cotangents.
    (CONTIGUOUS, "", VerdictKind::MemoryFault, "call .contiguous() on each gradient"),
    (CONTIGUOUS, "        assert grad_out.is_contiguous()\n", VerdictKind::Rejected, "a call raises AssertionError"),
    (
        CONTIGUOUS,
        "        grad_out = grad_out if grad_out.stride(1) > 1 else grad_out.contiguous()\n",
        VerdictKind::Incorrect,
        TURNED,
    ),
    (
        CONTIGUOUS,
        "        if not grad_out.is_contiguous():\n            grad_out = grad_out.contiguous()\n",
        VerdictKind::Accepted,
        "",
    ),
    (CONTIGUOUS, DENSE, VerdictKind::MemoryFault, "rows lie apart, as the backward pass of a concatenation gives it"),
    (MADE, GIVEN, VerdictKind::Incorrect, TURNED),
    (CONTIGUOUS, LARGER, VerdictKind::LaunchError, "expanded (strides of 0)"),
];

#[test]
fn a_gradient_is_judged_like_an_output() {
    let folder = tempfile::tempdir().unwrap();
    let suite = root().join("problems/squared_relu_autograd");
    let text = std::fs::read_to_string(suite.join("problem.py")).unwrap();
    let (before, after) = text.split_once("CASES = [").unwrap();
    let small = before.replace("250, 800", "24, 70") + after.split_once("]\n").unwrap().1;
    std::fs::write(folder.path().join("problem.py"), small).unwrap();
    let honest = std::fs::read_to_string(suite.join("candidate.py")).unwrap();
    let kept = "class Kept:\n    def save_for_backward(self, *tensors):\n        pass\n\n\nclass SquaredRelu";
    let candidates = CANDIDATES.iter().enumerate().map(|(at, (from, to, ..))| {
        assert!(honest.contains(from), "{from} is not there");
        let path = folder.path().join(format!("{at}.py"));
        let changed = if from.is_empty() { honest.clone() } else { honest.replace(from, to) };
        std::fs::write(&path, changed.replace("class SquaredRelu", kept)).unwrap();
        path
    });
    let groups = [Group { problem: folder.path().join("problem.py"), candidates: candidates.collect() }];
    let mut verdicts: Vec<Option<Verdict>> = vec![None; CANDIDATES.len()];
    let Ok(()) = tilewright_verify::batch(&verifier(&folder.path().join("cache")), &groups, 2, |_, at, verdict| {
        verdicts[at] = Some(verdict);
        Ok::<(), Infallible>(())
    });
    for ((_, to, kind, words), verdict) in CANDIDATES.iter().zip(verdicts) {
        let verdict = verdict.unwrap();
        let said = explain(&verdict);
        assert!(verdict.verdict == *kind && said.contains(words), "{to}\n{said}\n{:#?}", verdict.findings);
    }
}
