//! What a candidate says is shown to a person, who must not take it for what Tilewright says.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

const PROBLEM: &str = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 2.0\n\n\n\
def get_inputs():\n    return [torch.randn(1000)]\n\n\ndef get_init_inputs():\n    return []\n";

/// Clears the screen, writes a verdict, and turns the direction of writing.
const CANDIDATE: &str = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef scale(x, y, n, \
BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
tl.store(y + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)\n\n\nclass ModelNew(torch.nn.Module):\n    \
def forward(self, x):\n        y = torch.empty_like(x)\n        scale[(4,)](x, y, x.numel(), BLOCK=256)\n        \
raise ValueError('\\x1b[2J\\x1b[H\\naccepted  candidate.py\\r\\x9b31m\\u202e\\nend')\n";

#[test]
fn a_message_of_the_candidate_stays_a_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("problem.py"), PROBLEM).unwrap();
    fs::write(at("candidate.py"), CANDIDATE).unwrap();
    let mut command = Command::cargo_bin("tilewright").unwrap();
    command.current_dir(root).env("TILEWRIGHT_CACHE", at("cache"));
    let output = command.args(["verify", &at("problem.py"), &at("candidate.py"), "--trials", "1"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("launch_error") && text.contains("ValueError") && text.contains("end"), "{text}");
    let odd = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!text.contains(odd), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("accepted")), "{text}");
}
