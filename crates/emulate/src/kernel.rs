//! Kernels and their launches.

use tilewright_ttir::{FloatKind, Module};

use crate::block::{Block, View};
use crate::code::Program;
use crate::convert;
use crate::fault::{Fault, Limits, Report, Unsupported};
use crate::memory::Memory;
use crate::types::{Class, Elem, ValueType};
use crate::{exec, lower};

/// A kernel ready to run. Immutable: share it between threads.
#[derive(Debug, Clone)]
pub struct Kernel {
    program: Program,
    params: Vec<ValueType>,
}

/// A run-time argument, one for each parameter of the function in Triton IR. A descriptor there is followed by
/// integer parameters for its shape and strides, which are arguments of their own.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// An address: see [`Memory::address`]. 0 is the null pointer.
    Pointer(u64),
    /// Any integer type; truncated to the parameter's width.
    Int(i64),
    /// Rounded to the parameter's type.
    Float(f64),
    /// A tensor descriptor made by the host.
    Descriptor {
        /// Address of the tensor's first element.
        base: u64,
        shape: Vec<i64>,
        /// In elements.
        strides: Vec<i64>,
        /// Elements outside of the tensor are NaN instead of zero.
        pad_nan: bool,
    },
}

impl Kernel {
    /// Lowers the function `entry` of a module.
    ///
    /// # Errors
    /// The first operation, with its line, that makes no sense or that the emulator does not execute.
    pub fn new(module: &Module, entry: &str) -> Result<Self, Unsupported> {
        tilewright_ttir::verify(module).map_err(|error| Unsupported {
            op: error.op.unwrap_or_else(|| format!("@{}", error.function)),
            line: error.position.map_or(0, |(_, line, _)| line),
            why: error.message,
        })?;
        let lowered = lower::lower(module, entry)?;
        Ok(Self { program: lowered.program, params: lowered.params })
    }

    /// Arguments as initial registers.
    fn bind(&self, args: &[Arg]) -> Result<Vec<Block>, Fault> {
        if args.len() != self.params.len() {
            return Err(Fault::Arguments { given: args.len(), wanted: self.params.len() });
        }
        let blocks = self.params.iter().zip(args).enumerate().map(|(index, (ty, arg))| {
            argument(ty, arg).ok_or_else(|| Fault::Argument { index, wanted: format!("{:?}", ty.elem) })
        });
        blocks.collect()
    }
}

/// An argument in the form of its parameter.
fn argument(ty: &ValueType, arg: &Arg) -> Option<Block> {
    let Arg::Descriptor { base, shape, strides, pad_nan } = arg else { return scalar(ty, arg) };
    let rank = ty.block.len();
    (ty.elem == Elem::View && shape.len() == rank && strides.len() == rank).then(|| {
        Block::View(Box::new(View {
            base: *base as i64,
            shape: shape.clone(),
            strides: strides.clone(),
            offsets: vec![0; rank],
            pad_nan: *pad_nan,
        }))
    })
}

/// A scalar argument in the form of its parameter.
fn scalar(ty: &ValueType, arg: &Arg) -> Option<Block> {
    if !ty.shape.is_empty() {
        return None;
    }
    Some(match (arg, ty.elem) {
        (Arg::Pointer(address), Elem::Ptr) => Block::I64(vec![*address as i64]),
        (Arg::Int(value), Elem::Float(_)) => return scalar(ty, &Arg::Float(*value as f64)),
        (Arg::Int(value), elem) if elem.is_int() => match elem.class() {
            Class::I8 if elem == Elem::I1 => Block::I8(vec![i8::from(*value != 0)]),
            Class::I8 => Block::I8(vec![*value as i8]),
            Class::I16 => Block::I16(vec![*value as i16]),
            Class::I32 => Block::I32(vec![*value as i32]),
            _ => Block::I64(vec![*value]),
        },
        (Arg::Float(value), Elem::Float(FloatKind::F64)) => Block::F64(vec![*value]),
        (Arg::Float(value), Elem::Float(FloatKind::F32)) => Block::F32(vec![*value as f32]),
        (Arg::Float(value), Elem::Float(kind)) => {
            let mut rounded = vec![convert::to_f32_odd(*value)];
            convert::round_all(kind, &mut rounded);
            Block::F32(rounded)
        }
        _ => return None,
    })
}

/// Runs every program of a grid, x fastest, on the memory.
///
/// # Errors
/// The first [`Fault`]; programs before it have run, the one that faults has run up to there.
pub fn launch(
    kernel: &Kernel,
    grid: [u32; 3],
    args: &[Arg],
    memory: &mut Memory,
    limits: &Limits,
) -> Result<Report, Fault> {
    let params = kernel.bind(args)?;
    exec::run(&kernel.program, grid, &params, memory, limits)
}
