//! Runs inline assembly over blocks: packed elements into its registers and out again, as Triton's compiler does.

use std::sync::Arc;

use tilewright_ttir::FloatKind;

use super::ptx::Assembly;
use crate::block::Block;
use crate::convert;
use crate::types::Elem;

/// One result of an inline assembly.
#[derive(Debug, Clone)]
pub(crate) struct AssemblyCall {
    assembly: Arc<Assembly>,
    inputs: Vec<Elem>,
    output: Elem,
    /// Register of the result's first elements.
    first: usize,
    /// Elements at once.
    pack: usize,
    numel: usize,
}

/// Registers that `pack` elements take, and how many lie in each: narrow ones share one of 32 bits.
fn registers(elem: Elem, pack: usize) -> (usize, usize) {
    let each = (4 / elem.bytes().clamp(1, 4)).min(pack).max(1);
    (pack.div_ceil(each), each)
}

/// The bits of an element in its own type, from those of its form in a block.
fn raw(elem: Elem, bits: u64) -> u64 {
    let single = f32::from_bits(bits as u32);
    match elem {
        Elem::Float(FloatKind::F16) => u64::from(convert::F16.encode(single)),
        Elem::Float(FloatKind::Bf16) => bits >> 16,
        Elem::Float(kind) => convert::fp8_format(kind).map_or(bits, |format| u64::from(format.encode(single))),
        elem => bits & (u64::MAX >> (64 - 8 * elem.bytes().clamp(1, 8))),
    }
}

/// The other way round.
fn held(elem: Elem, bits: u64) -> u64 {
    match elem {
        Elem::I1 => bits & 1,
        Elem::Float(FloatKind::F16) => u64::from(convert::f16_to_f32(bits as u16).to_bits()),
        Elem::Float(FloatKind::Bf16) => (bits & 0xffff) << 16,
        Elem::Float(kind) => {
            convert::fp8_format(kind).map_or(bits, |format| u64::from(format.decode(bits as u32 & 255).to_bits()))
        }
        _ => bits,
    }
}

impl AssemblyCall {
    /// The `result`th of the outputs.
    ///
    /// # Errors
    /// Constraints that do not fit the operands.
    pub(crate) fn new(
        assembly: Arc<Assembly>,
        inputs: &[Elem],
        outputs: &[Elem],
        result: usize,
        pack: usize,
        numel: usize,
    ) -> Result<Self, String> {
        let count = |elems: &[Elem]| elems.iter().map(|&elem| registers(elem, pack).0).sum::<usize>();
        if pack == 0 || !numel.is_multiple_of(pack) && numel != 1 {
            return Err(format!("{pack} elements at once of {numel}"));
        }
        // An assembly that computes nothing has an output that its text does not name.
        if (count(outputs), count(inputs)) != (assembly.outputs(), assembly.inputs()) {
            return Err("constraints that do not fit its operands".to_owned());
        }
        if inputs.iter().chain(outputs).any(|elem| elem.bytes() == 0) {
            return Err("operands without bits".to_owned());
        }
        let first = count(&outputs[..result]);
        Ok(Self { assembly, inputs: inputs.to_vec(), output: outputs[result], first, pack, numel })
    }

    /// Elements that are computed together.
    pub(crate) fn pack(&self) -> usize {
        self.pack
    }

    /// None if the blocks do not fit.
    pub(crate) fn run(&self, args: &[&Block], out: &mut Block) -> Option<()> {
        out.clear(self.output.class());
        // Of splats alone one group tells all of them.
        let groups = if args.iter().all(|block| block.len() == 1) { 1 } else { self.numel / self.pack };
        let mut registers = self.assembly.registers();
        for group in 0..groups {
            registers.fill(0);
            self.load(args, group * self.pack, &mut registers)?;
            self.assembly.run(&mut registers);
            self.store(&registers, out)?;
        }
        if groups == 1 && self.numel > self.pack {
            let elements: Vec<u64> = (0..self.pack).map(|at| out.bits(at)).collect::<Option<_>>()?;
            out.clear(self.output.class());
            (0..self.numel).try_for_each(|at| out.push_bits(elements[at % self.pack]))?;
        }
        Some(())
    }

    fn load(&self, args: &[&Block], from: usize, to: &mut [u64]) -> Option<()> {
        let mut at = self.assembly.outputs();
        for (&elem, block) in self.inputs.iter().zip(args) {
            let (count, each) = registers(elem, self.pack);
            for part in 0..count {
                let mut bits = 0;
                for element in 0..each {
                    let lane = raw(elem, block.bits(from + part * each + element)?);
                    bits |= lane << (8 * elem.bytes() * element);
                }
                *to.get_mut(at)? = bits;
                at += 1;
            }
        }
        Some(())
    }

    fn store(&self, registers_after: &[u64], out: &mut Block) -> Option<()> {
        let (count, each) = registers(self.output, self.pack);
        for part in 0..count {
            let bits = *registers_after.get(self.first + part)?;
            for element in 0..each {
                out.push_bits(held(self.output, bits >> (8 * self.output.bytes() * element)))?;
            }
        }
        Some(())
    }
}
