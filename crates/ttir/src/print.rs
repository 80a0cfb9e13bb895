//! Prints a module in MLIR's generic form, which Triton reads as well as its own.

use std::fmt;

use crate::ir::Type;
use crate::parse::float_name;

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Int(width) => write!(f, "i{width}"),
            Type::Index => f.write_str("index"),
            Type::Float(kind) => f.write_str(float_name(*kind)),
            Type::Ptr(pointee, 1) => write!(f, "!tt.ptr<{pointee}>"),
            Type::Ptr(pointee, space) => write!(f, "!tt.ptr<{pointee}, {space}>"),
            Type::Tensor(shape, element) => {
                f.write_str("tensor<")?;
                shape.iter().try_for_each(|size| write!(f, "{size}x"))?;
                write!(f, "{element}>")
            }
            Type::TensorDesc(block) => write!(f, "!tt.tensordesc<{block}>"),
            Type::Function(inputs, results) => {
                write_types(f, inputs)?;
                f.write_str(" -> ")?;
                write_types(f, results)
            }
            Type::Other(text) => f.write_str(text),
        }
    }
}

fn write_types(f: &mut fmt::Formatter<'_>, types: &[Type]) -> fmt::Result {
    f.write_str("(")?;
    for (index, ty) in types.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{ty}")?;
    }
    f.write_str(")")
}
