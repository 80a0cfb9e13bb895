//! Whether an encoded tensor map is the descriptor of a plan.

use tilewright_contract::Dtype;
use tilewright_replay::TensorMap as Planned;

use crate::record::TensorMap;

/// Compares everything but the address.
pub(crate) fn compare(map: &TensorMap, planned: &Planned) -> Result<(), String> {
    let view = &planned.view;
    let size = view.dtype.size();
    let extents: Vec<u64> = map.axes.iter().map(|axis| axis.extent).collect();
    let strides: Vec<u64> = map.axes.iter().take(map.axes.len().saturating_sub(1)).map(|axis| axis.stride).collect();
    let block: Vec<u32> = map.axes.iter().map(|axis| axis.block).collect();
    // The driver counts axes from the innermost, and gives no stride for that one.
    let planned_strides: Vec<u64> =
        view.strides.iter().rev().skip(1).map(|&stride| (stride as u64).saturating_mul(size)).collect();
    let pairs = [
        ("dtype", map.dtype == data_type(view.dtype)),
        ("shape", extents.iter().eq(view.shape.iter().rev())),
        ("strides", strides == planned_strides),
        ("block", block.iter().eq(planned.block.iter().rev())),
        ("steps", map.axes.iter().all(|axis| axis.step == 1)),
        ("interleave", map.interleave == 0),
        ("swizzle", map.swizzle == planned.swizzle),
        ("padding", map.fill == u32::from(planned.pad_nan)),
    ];
    match pairs.iter().find(|(_, same)| !same) {
        Some((what, _)) => Err(format!("is a tensor map with another {what} than in the plan")),
        None => Ok(()),
    }
}

/// `CUtensorMapDataType`
fn data_type(dtype: Dtype) -> u32 {
    match dtype {
        Dtype::Bool | Dtype::U8 | Dtype::I8 | Dtype::F8E4M3 | Dtype::F8E5M2 => 0,
        Dtype::U16 | Dtype::I16 => 1,
        Dtype::U32 => 2,
        Dtype::I32 => 3,
        Dtype::U64 => 4,
        Dtype::I64 => 5,
        Dtype::F16 => 6,
        Dtype::F32 => 7,
        Dtype::F64 => 8,
        Dtype::Bf16 => 9,
    }
}
