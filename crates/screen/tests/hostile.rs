//! Input that wants to break the screen.

use proptest::prelude::*;
use tilewright_contract::Tier;
use tilewright_screen::{ScreenError, cut};

const PIECES: [&str; 40] = [
    "import triton\n",
    "import triton.language as tl\n",
    "from triton import jit as j\n",
    "@triton.jit\n",
    "@j\n",
    "def f(x, n: tl.constexpr = A):\n",
    "    tl.store(x, A)\n",
    "    return f\n",
    "A = 1\n",
    "A = A\n",
    "B = A = (A, B)\n",
    "f = triton.jit(f)\n",
    "class C:\n",
    "    @triton.jit\n",
    "    def g(x): pass\n",
    "if A:\n",
    "try:\n",
    "except: pass\n",
    "    import torch\n",
    "for A in (1, 2):\n",
    "    global A\n",
    "lambda: (yield)\n",
    "A: tl.constexpr = A\n",
    "    from triton import *\n",
    "x = [A for A in A if (A := A)]\n",
    "del A\n",
    "@A\n",
    "async def h(): await A\n",
    "with A as A:\n",
    "match A:\n",
    "    case {'a': A, **B}: pass\n",
    "A = getattr(A, 'A' + A)\n",
    "A.__dict__['A'] = A\n",
    "setattr(A, A, A)\n",
    "f\"{A!r:{A}}\"\n",
    "type A[T] = A\n",
    "\u{c}",
    "# coding\r",
    "\u{2028}",
    "\\\n",
];

fn corpus_like() -> impl Strategy<Value = String> {
    proptest::collection::vec((0usize..4, proptest::sample::select(&PIECES[..])), 0..30)
        .prop_map(|lines| lines.into_iter().map(|(indent, text)| "    ".repeat(indent) + text).collect())
}

/// A whole candidate, to be damaged.
const CANDIDATES: [&str; 4] = [
    include_str!("cut/constants.py"),
    include_str!("cut/aliases.py"),
    include_str!("cut/nested.py"),
    include_str!("cut/refused.py"),
];

/// It may refuse anything, but it neither panics nor writes a module that is not Python.
fn survives(text: &[u8]) -> Result<(), TestCaseError> {
    match cut(text) {
        Ok(cut) => {
            let broken = cut.findings.iter().find(|finding| finding.tier == Tier::Unsupported);
            prop_assert!(broken.is_none(), "{broken:?}");
        }
        Err(error) => prop_assert!(!matches!(error, ScreenError::Thread(_)), "{error}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes)?;
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survives(text.as_bytes())?;
    }

    #[test]
    fn lines_in_any_order(text in corpus_like()) {
        survives(text.as_bytes())?;
    }

    #[test]
    fn candidates_with_lines_lost_doubled_and_swapped(
        which in 0usize..4,
        edits in proptest::collection::vec((0usize..4, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
    ) {
        let mut lines: Vec<&str> = CANDIDATES[which].lines().collect();
        for (edit, a, b) in edits {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            match edit {
                0 if lines.len() > 1 => { lines.remove(a); }
                1 => lines.insert(a, lines[b]),
                2 => lines.swap(a, b),
                _ => lines[a] = lines[a].trim_start(),
            }
        }
        survives(lines.join("\n").as_bytes())?;
    }
}

#[test]
fn each_kind_of_bad_file_has_its_own_error() {
    let error = |bytes: &[u8]| cut(bytes).unwrap_err().to_string();
    assert_eq!(error(b""), "the file holds no code");
    assert_eq!(error(b"# only a comment\n"), "the file holds no code");
    assert_eq!(error(&vec![b'a'; 2 << 20]), "the file has 2097152 bytes; a candidate may have 1048576 at most");
    assert_eq!(error(b"\x7fELF\x02\x01\x01\0\0"), "line 1: the file is not text: it holds a NUL byte");
    assert_eq!(error(b"a = 1\nb = \xe9\n"), "line 2: the file is not UTF-8 (byte 10)");
    assert_eq!(error(b"# coding: utf-7\n"), "line 1: the file declares the encoding `utf-7`; only UTF-8 is read");
    assert!(error(b"a = 1\ndef f(:\n").starts_with("line 2, column 7: "));
    assert!(error("(".repeat(1000).as_bytes()).starts_with("the code is nested too deeply"));
}

/// None of these may take more than linear work; a screen that does would not come to an end here.
#[test]
fn long_chains_and_webs_come_to_an_end() {
    let n = 8_000;
    let chain: String = (1..n).map(|i| format!("a{i} = a{}\n", i - 1)).collect();
    let backwards: String = (1..n).rev().map(|i| format!("a{i} = a{}\n", i - 1)).collect();
    let forks: String = (0..n).map(|i| format!("a = a.b{i} or a\n")).collect();
    let kernel = "import triton\n@triton.jit\ndef k(x):\n    a7999\n    a\na0 = 1\n";
    let web: String =
        (0..n).map(|i| format!("@triton.jit\ndef k{i}(x):\n    k{}(x); k{}(x)\n", i + 1, i + 2)).collect();
    let model = "class ModelNew:\n    def forward(self, x):\n        return f0(x)\n";
    let calls: String = (0..n).map(|i| format!("def f{i}(x): return f{}(f{}(x))\n", i + 1, (i * 7) % n)).collect();
    let partials: String = (0..n).map(|i| format!("p = functools.partial(p, p, {i})\n")).collect();
    let lists: String = (0..n).map(|i| format!("l.append(l); l = [l, {i}, *l]\n")).collect();
    let classes: String = (1..n).map(|i| format!("class C{i}(C{}): pass\n", i - 1)).collect();
    for text in [
        format!("import triton\n{web}def k8000(x): pass\n"),
        format!("import triton\n{web}"),
        format!("{kernel}{chain}"),
        format!("{kernel}{backwards}"),
        format!("{kernel}{forks}"),
        format!("{calls}{model}"),
        format!("import functools\np = len\n{partials}def f0(x): return p(x)\n{model}"),
        format!("l = []\n{lists}def f0(x): return l[0](x)\n{model}"),
        format!("class C0: pass\n{classes}class ModelNew(C7999):\n    def forward(self, x): return self.y(x)\n"),
    ] {
        survives(text.as_bytes()).unwrap();
    }
}

/// A list of what only a trace can clear has a bound; what does not fit is not cleared by that.
#[test]
fn nothing_hides_behind_a_thousand_open_calls() {
    let mut text =
        "import torch, triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x):\n    tl.store(x, 0)\n\n\
class ModelNew(torch.nn.Module):\n    def forward(self, x, f):\n        if f(x):\n"
            .to_owned();
    text.extend((0..1500).map(|i| format!("            f(x, {i})\n")));
    text.push_str("            return torch.softmax(x, 0)\n        k[(1,)](x)\n        return x\n");
    let calls = cut(text.as_bytes()).unwrap().calls;
    assert!(calls.len() > 1000 && calls.len() < 1010, "{}", calls.len());
    assert!(calls.iter().any(|call| call.certain));
}
