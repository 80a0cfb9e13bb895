//! What the IR of a kernel may not hold, however its file is written: one list on a CPU and on a GPU.

use tilewright_contract::VerdictKind;

use crate::draft::Stop;

const ASSEMBLY: &str = "tt.elementwise_inline_asm \"";

/// Triton's own words for launches that overlap. They order memory and compute nothing.
const DEPENDENT_LAUNCH: [&str; 2] = ["griddepcontrol.wait;", "griddepcontrol.launch_dependents;"];

/// Refuses IR that looks at the machine it runs on: clocks, processor ids, memory by raw address.
pub(crate) fn check(entry: &str, ttir: &str) -> Result<(), Stop> {
    if let Some(what) = assembly(ttir).find_map(forbidden) {
        let message = format!("`{what}` in the assembly of {entry} does more than compute");
        return Err(Stop::new(VerdictKind::Rejected, "inline-asm", message)
            .help("use triton.language, libdevice, or assembly that only computes with its operands"));
    }
    if ttir.contains("tt.ptr_to_int") {
        let message = format!("{entry} computes with an address as a number, which differs from run to run");
        return Err(Stop::new(VerdictKind::Rejected, "address-as-number", message)
            .help("compute with offsets; pass what the kernel needs to know as an argument"));
    }
    Ok(())
}

/// The texts of inline assembly. Triton prints quotes inside of them as `\\22`.
fn assembly(ttir: &str) -> impl Iterator<Item = &str> {
    ttir.split(ASSEMBLY).skip(1).filter_map(|rest| rest.split_once('"')).map(|(text, _)| text)
}

fn forbidden(text: &str) -> Option<String> {
    let instruction = text.split("//").next().unwrap_or_default().trim();
    if DEPENDENT_LAUNCH.contains(&instruction) { None } else { tilewright_screen::forbidden_assembly(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(operation: &str) -> Option<String> {
        let ttir = format!("tt.func public @k(%x: i32) {{\n  %y = {operation} : i32\n  tt.return\n}}\n");
        check("k", &ttir).err().map(|stop| stop.reasons[0].code.clone())
    }

    #[test]
    fn clocks_processor_ids_memory_and_addresses_are_refused() {
        let assembly = |text: &str| code(&format!("tt.elementwise_inline_asm \"{text}\" {{pure = true}} %x"));
        for text in ["mov.u64 $0, %clock64;", "mov.u32 $0, %smid;", "st.global.u32 [$1], 0; mov.u32 $0, 0;", "exit;"] {
            assert_eq!(assembly(text).as_deref(), Some("inline-asm"), "{text}");
        }
        for text in ["ex2.approx.ftz.f32 $0, $1;", "griddepcontrol.wait; // dummy $0", "shf.l.wrap.b32 $0, $1, $1, 5;"]
        {
            assert_eq!(assembly(text), None, "{text}");
        }
        assert_eq!(code("tt.ptr_to_int %p").as_deref(), Some("address-as-number"));
        assert_eq!(code("arith.addi %x, %x"), None);
    }
}
