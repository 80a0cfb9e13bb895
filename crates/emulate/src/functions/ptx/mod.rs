//! Inline assembly: straight-line PTX without memory, branches and special registers, which is what kernels use it for
//! (conversions, bit tricks, approximate instructions, packed arithmetic).
//!
//! A text is read once ([`Assembly::new`]) into instructions over numbered registers of 64 raw bits, and run for every
//! group of packed elements.

mod arithmetic;
mod convert;
mod kinds;
mod parse;

use kinds::Kind;

/// One instruction: what it computes, its operands and where they come from.
#[derive(Debug, Clone)]
struct Instruction {
    run: Run,
    kind: Kind,
    /// Of the second type: the source of a conversion.
    from: Kind,
    flags: Flags,
    args: Vec<Source>,
    outs: Vec<usize>,
    /// Arithmetic that does not round to the nearest.
    directed: Option<super::LaneFn>,
    /// Runs only where this predicate register is true, or false.
    guard: Option<(usize, bool)>,
}

/// Operands' raw bits to results' raw bits.
type Run = fn(&Instruction, &[u64], &mut [u64; 4]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Register(usize),
    Constant(u64),
}

/// Modifiers that change what is computed.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    flush: bool,
    saturate: bool,
    propagate_nan: bool,
    relu: bool,
    approximate: bool,
    rounding: Rounding,
    /// `.hi`, `.lo`, `.wide`
    part: Part,
    /// Of a comparison, and what it is combined with.
    comparison: u8,
    /// Width of the pieces of a packed or unpacked register.
    piece: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Rounding {
    #[default]
    Nearest,
    NearestAway,
    Zero,
    Down,
    Up,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Low,
    High,
    Wide,
}

/// A text that was read.
#[derive(Debug, Clone)]
pub(crate) struct Assembly {
    instructions: Vec<Instruction>,
    registers: usize,
    /// Registers of the outputs, then of the inputs.
    outputs: usize,
    inputs: usize,
}

impl Assembly {
    /// Reads a text with these constraints.
    ///
    /// # Errors
    /// What in it is not known here.
    pub(crate) fn new(text: &str, constraints: &str) -> Result<Self, String> {
        parse::assembly(text, constraints)
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Fresh registers for [`Assembly::run`].
    pub(crate) fn registers(&self) -> Vec<u64> {
        vec![0; self.registers]
    }

    /// Runs on inputs that were put behind the outputs in `registers`.
    pub(crate) fn run(&self, registers: &mut [u64]) {
        let mut args = [0; 8];
        for instruction in &self.instructions {
            if let Some((register, wanted)) = instruction.guard
                && (registers[register] != 0) != wanted
            {
                continue;
            }
            for (arg, source) in args.iter_mut().zip(&instruction.args) {
                *arg = match *source {
                    Source::Register(register) => registers[register],
                    Source::Constant(value) => value,
                };
            }
            let mut results = [0; 4];
            (instruction.run)(instruction, &args[..instruction.args.len()], &mut results);
            for (&out, result) in instruction.outs.iter().zip(results) {
                registers[out] = result;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, constraints: &str, inputs: &[u64]) -> Vec<u64> {
        let assembly = Assembly::new(text, constraints).unwrap_or_else(|why| panic!("{text}: {why}"));
        let mut registers = assembly.registers();
        registers[assembly.outputs()..][..inputs.len()].copy_from_slice(inputs);
        assembly.run(&mut registers);
        registers[..assembly.outputs()].to_vec()
    }

    fn one(text: &str, inputs: &[u32]) -> u32 {
        let constraints = format!("=r{}", ",r".repeat(inputs.len()));
        run(text, &constraints, &inputs.iter().map(|&x| u64::from(x)).collect::<Vec<_>>())[0] as u32
    }

    #[test]
    fn integers() {
        assert_eq!(one("add.s32 $0, $1, $2;", &[u32::MAX, 3]), 2);
        assert_eq!(one("mul.hi.u32 $0, $1, $2;", &[1 << 31, 6]), 3);
        assert_eq!(one("mad.lo.s32 $0, $1, -3, $2;", &[5, 1]), (-14i32) as u32);
        assert_eq!(one("lop3.b32 $0, $1, $2, $3, 0xea;", &[0b1100, 0b1010, 1]), 0b1001);
        assert_eq!(one("prmt.b32 $0, $1, $2, 0x5410;", &[0x1111_2222, 0x3333_4444]), 0x4444_2222);
        assert_eq!(one("bfe.s32 $0, $1, 8, 8;", &[0x0000_8000]), 0xffff_ff80);
        assert_eq!(one("bfe.u32 $0, $1, 28, 9;", &[0xf000_0000]), 15);
        assert_eq!(one("bfi.b32 $0, $1, $2, 4, 8;", &[0xff, 0]), 0xff0);
        assert_eq!(one("shl.b32 $0, $1, 32;", &[1]), 0);
        assert_eq!(one("shr.s32 $0, $1, 99;", &[1 << 31]), u32::MAX);
        assert_eq!(one("shf.r.clamp.b32 $0, $1, $2, 40;", &[1, 7]), 7);
        assert_eq!(one("fns.b32 $0, $1, 0, $2;", &[0b1_0110, 3]), 4);
        assert_eq!(one("fns.b32 $0, $1, 3, -2;", &[0b1_0110]), 1);
        assert_eq!(one("fns.b32 $0, $1, 0, 9;", &[0b1_0110]), u32::MAX);
        assert_eq!(one("popc.b32 $0, $1;", &[0xff]), 8);
        assert_eq!(one("bfind.u32 $0, $1;", &[0x100]), 8);
        assert_eq!(one("dp4a.s32.s32 $0, $1, $2, 10;", &[0xff01_0101, 0x0101_0101]), 12);
        assert_eq!(one("cvt.sat.s8.s32 $0, $1;", &[1000]), 127);
    }

    #[test]
    fn registers_predicates_and_vectors() {
        let text = "{ .reg .pred p, q<2>; .reg .b16 h<2>; setp.lt.s32 p, $1, 0; // negative\n @p mov.b32 $0, 1;
            @!p mov.b32 $0, 2; mov.b32 {h0, h1}, $2; mov.b32 $0, {h1, h0}; selp.b32 $0, $0, $1, p; }";
        assert_eq!(one(text, &[u32::MAX, 0x1234_5678]), 0x5678_1234);
        assert_eq!(one(text, &[5, 0x1234_5678]), 5);
    }

    #[test]
    fn floats() {
        let x = 1.5f32.to_bits();
        assert_eq!(one("fma.rn.f32 $0, $1, 0f40000000, $1;", &[x]), 4.5f32.to_bits());
        assert_eq!(one("add.f16x2 $0, $1, $1;", &[0x3c00_4000]), 0x4000_4400);
        assert_eq!(one("cvt.rn.f16x2.f32 $0, $1, $2;", &[1f32.to_bits(), 2f32.to_bits()]), 0x3c00_4000);
        assert_eq!(one("cvt.rzi.s32.f32 $0, $1;", &[(-2.7f32).to_bits()]), (-2i32) as u32);
        assert_eq!(one("ex2.approx.ftz.f32 $0, $1;", &[3f32.to_bits()]), 8f32.to_bits());
        assert_eq!(one("max.ftz.f32 $0, $1, $2;", &[f32::NAN.to_bits(), x]), x);
        assert_eq!(one("cvt.rn.bf16x2.f32 $0, $1, $2;", &[1f32.to_bits(), 2f32.to_bits()]), 0x3f80_4000);
        let text = "{ .reg .b16 t; cvt.rn.satfinite.e4m3x2.f32 t, $2, $1; cvt.rn.f16x2.e4m3x2 $0, t; }";
        assert_eq!(one(text, &[1000f32.to_bits(), 1.0f32.to_bits()]), 0x3c00_5f00);
    }

    #[test]
    fn what_is_refused_is_named() {
        let why = |text: &str| Assembly::new(text, "=r,r").expect_err("this should be refused");
        assert!(why("mov.u32 $0, %smid;").contains("%smid"));
        assert!(why("ld.global.u32 $0, [$1];").contains("ld.global.u32"));
        assert!(why("L: bra L;").contains("L"));
        assert!(why("add.s32 $0, $1, t;").contains("t"));
        assert!(why("mov.b32 $0, $7;").contains("$7"));
        assert!(why("frob.b32 $0, $1;").contains("frob"));
    }
}
