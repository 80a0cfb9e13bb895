use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Call, Kernel, Kernels};

/// # What it does
/// Refuses inline assembly with anything but arithmetic on its operands: memory, control flow, barriers, and special
/// registers such as `%clock64`, `%globaltimer` and `%smid`; and the functions of `libdevice`'s module that read such
/// registers. Reports assembly whose text cannot be read off the file.
///
/// # Why is this bad?
/// A clock or the number of a multiprocessor tells how a kernel is run; a store in assembly is seen by nobody.
///
/// # Example
/// ```python
/// tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l,r", [x], dtype=tl.int64, is_pure=False, pack=1)
/// ```
///
/// # Use instead
/// `triton.language` and `libdevice`; assembly for single arithmetic instructions only.
pub(crate) const RULE: Rule = Rule {
    id: "inline-asm",
    tier: Tier::Proof,
    help: "use triton.language, libdevice, or assembly that only computes with its operands",
};

/// Instructions that compute a value from their operands, without type suffixes.
const ARITHMETIC: &str = " abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos cvt div dp2a dp4a ex2 fma fns \
    lg2 lop3 mad mad24 madc max min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin \
    slct sqrt sub subc szext tanh testp vabsdiff2 vabsdiff4 vadd2 vadd4 vmax4 vmin4 vsub4 xor ";

const REGISTERS: [&str; 2] = ["extra.cuda.globaltimer", "extra.cuda.smid"];

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    for Call { name, call, .. } in &kernel.calls {
        if REGISTERS.contains(&name.as_str()) {
            kernels.report(&RULE, call.start(), format!("`tl.{name}` tells how the kernel is run"));
        }
        if name != "inline_asm_elementwise" {
            continue;
        }
        let Some(text) = call.arguments.find_argument_value("asm", 0) else { continue };
        match kernels.names.string(text, kernel.scope) {
            Some(text) => {
                if let Some(what) = forbidden(&text) {
                    kernels.report(&RULE, call.start(), format!("`{what}` in assembly does more than compute"));
                }
            }
            None => {
                let message = "the assembly cannot be read off the file";
                kernels.report_as(&RULE, Tier::Evidence, call.start(), message);
            }
        }
    }
}

/// The first part of some PTX that is not arithmetic on registers of its own.
pub fn forbidden(text: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // `%%name` and `%name` are registers of the machine; the operands are `$0`, `$1`.
    if let Some((_, name)) = text.split_once('%') {
        let name = name.trim_start_matches('%');
        let end = name.find(|c| !is_word(c)).unwrap_or(name.len());
        return Some(format!("%{}", &name[..end]));
    }
    if text.contains("/*") || text.contains("//") || text.contains('[') {
        return text.contains('[').then(|| "[…]".to_owned()).or_else(|| Some("a comment".to_owned()));
    }
    text.split([';', '{', '}', '\n']).map(str::trim).find_map(|line| {
        // A predicate before an instruction: `@p add…`.
        let line = line.strip_prefix('@').map_or(line, |rest| rest.split_once(' ').map_or("", |(_, rest)| rest.trim()));
        let word = line.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
        let base = word.split('.').next().unwrap_or_default();
        let harmless = word.is_empty() || word == ".reg" || ARITHMETIC.contains(&format!(" {base} "));
        (!harmless).then(|| word.to_owned())
    })
}
