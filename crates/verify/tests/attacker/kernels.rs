//! Kernels whose compilation is the attack: Triton runs the names and calls in a kernel's body as Python.

use tilewright_contract::VerdictKind;

use crate::attack::{Role, run_text};
use crate::range::{HONEST, RANGE, explain};

const FIRST_LINE: &str = "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n";

/// A statement at the start of the kernel, and definitions before it.
const BODIES: &[(&str, &str)] = &[
    ("", "tl.static_print(tl.core.inspect.os.environ)"),
    ("", "tl.static_print(tl.core.inspect.sys.modules)"),
    ("", "tl.static_print(tl.core.builtins.open('@problem@').read())"),
    ("", "tl.core.builtins.print(tl.core.builtins.open('@problem@').read())"),
    ("", "tl.static_assert(tl.core.inspect.os.system('true') == 0)"),
    ("", "tl.static_assert(tl.core.inspect.sys.modules['os'].getpid() == 0)"),
    ("", "tl.static_assert(getattr(getattr(tl, 'co' + 're'), 'builtins').exec('import os') is None)"),
    ("", "tl.static_assert(getattr(tl.core.inspect.os, 'environ') == 0)"),
    ("@triton.constexpr_function\ndef leak():\n    return open('@problem@').read()\n\n\n", "tl.static_print(leak())"),
    (
        "@triton.constexpr_function\ndef leak():\n    import os\n    return os.getppid()\n\n\n",
        "tl.static_print(leak())",
    ),
    ("LEAK = open('@problem@').read()\n\n\n", "tl.static_print(LEAK)"),
    ("", "t = tl.inline_asm_elementwise('mov.u64 $0, %clock64;', '=l', [], dtype=tl.int64, is_pure=False, pack=1)"),
    ("", "t = tl.inline_asm_elementwise('mov.u32 $0, %smid;', '=r', [], dtype=tl.int32, is_pure=False, pack=1)"),
    ("", "t = tl.inline_asm_elementwise('ld.global.u64 $0, [4096];', '=l', [], dtype=tl.int64, is_pure=False, pack=1)"),
    (
        "",
        "t = tl.inline_asm_elementwise('} .visible .entry other() {', '=l', [], dtype=tl.int64, is_pure=False, pack=1)",
    ),
    ("", "tl.store(y + i, tl.load((x.to(tl.int64) + 4096).to(tl.pointer_type(tl.int64)) + i))"),
    ("", "tl.store(y + i, tl.load((tl.program_id(0).to(tl.int64) + 4096).to(tl.pointer_type(tl.int64)) + i))"),
    ("", "tl.store(y + i, tl.load(x + i - 64))"),
    ("", "tl.store(y + i, tl.load(y + i))\n    return"),
];

fn with(definitions: &str, statement: &str) -> String {
    let text = HONEST.replace(FIRST_LINE, &format!("{FIRST_LINE}    {statement}\n"));
    let text = text.replace("@triton.jit\n", &format!("{definitions}@triton.jit\n"));
    text.replace("@problem@", RANGE.problem_path().to_str().unwrap())
}

#[test]
fn a_kernel_that_acts_while_it_is_compiled_is_not_accepted() {
    for (definitions, statement) in BODIES {
        let verdict = RANGE.verdict(&with(definitions, statement));
        assert!(
            !matches!(verdict.verdict, VerdictKind::Accepted | VerdictKind::Infrastructure),
            "{definitions}{statement}: {}",
            explain(&verdict)
        );
        RANGE.assert_silent(&serde_json::to_string(&verdict).unwrap());
    }
}

/// The same past the screen: the compiler's job reaches nothing.
#[test]
fn what_a_kernel_does_in_the_compiler_reaches_nothing() {
    for (definitions, statement) in BODIES {
        let outcome = run_text(&RANGE, &with(definitions, statement), Role::Compiler, |_| {});
        RANGE.assert_silent(&outcome.output);
        // A crash of the compiler is as good as an error.
        if let Ok(response) = outcome.response {
            RANGE.assert_silent(&response.to_string());
        }
    }
}
