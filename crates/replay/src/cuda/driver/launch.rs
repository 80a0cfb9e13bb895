//! Loaded kernels and their launches.

use std::ffi::{CString, c_void};
use std::mem::MaybeUninit;

use cudarc::driver::sys;
use tilewright_contract::Dtype;

use super::{Context, Result, check};
use crate::program::TensorMap;
use crate::wire::Failure;

/// Thread blocks in a cluster that every device with clusters can launch.
const PORTABLE_CLUSTER: u32 = 8;

/// A loaded cubin and its entry point.
pub(in crate::cuda) struct Function {
    module: sys::CUmodule,
    function: sys::CUfunction,
}

impl Function {
    /// With `ctas` thread blocks in a cluster.
    pub(in crate::cuda) fn load(image: &[u8], entry: &str, shared: u32, ctas: u32) -> Result<Self> {
        let name = CString::new(entry).map_err(|_| Failure {
            code: "NAME".into(),
            what: "a kernel name with a NUL".into(),
            line: None,
        })?;
        let mut module = std::ptr::null_mut();
        let mut function = std::ptr::null_mut();
        // SAFETY: a cubin is an ELF image that carries its own length; the driver copies it.
        unsafe {
            check(sys::cuModuleLoadData(&mut module, image.as_ptr().cast()), "cuModuleLoadData")?;
            check(sys::cuModuleGetFunction(&mut function, module, name.as_ptr()), "cuModuleGetFunction")?;
            let opt_in = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            if shared > 48 * 1024 {
                check(sys::cuFuncSetAttribute(function, opt_in, shared as i32), "cuFuncSetAttribute")?;
            }
            if ctas > PORTABLE_CLUSTER {
                let allowed = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
                check(sys::cuFuncSetAttribute(function, allowed, 1), "cuFuncSetAttribute")?;
            }
        }
        Ok(Self { module, function })
    }

    pub(in crate::cuda) fn launch(&self, context: &Context, shape: &Shape, params: &[Vec<u8>]) -> Result<()> {
        let mut pointers: Vec<*mut c_void> = params.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
        let mut attributes = shape.attributes();
        let config = sys::CUlaunchConfig {
            gridDimX: shape.grid[0],
            gridDimY: shape.grid[1],
            gridDimZ: shape.grid[2],
            blockDimX: shape.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shape.shared,
            hStream: context.stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: each parameter has the size of the kernel's own (checked against its signature when lowered);
        // the driver copies them before it returns.
        let result =
            unsafe { sys::cuLaunchKernelEx(&config, self.function, pointers.as_mut_ptr(), std::ptr::null_mut()) };
        check(result, "cuLaunchKernelEx")
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // SAFETY: loaded by cuModuleLoadData and unloaded once.
        let _ = unsafe { sys::cuModuleUnload(self.module) };
    }
}

/// The bytes of a kernel parameter that describes a tensor at `address` to the tensor memory accelerator.
pub(in crate::cuda) fn tensor_map(address: u64, map: &TensorMap) -> Result<Vec<u8>> {
    let size = map.view.dtype.size();
    // The driver counts dimensions from the innermost, and gives no stride for that one.
    let extents: Vec<u64> = map.view.shape.iter().rev().copied().collect();
    let strides: Vec<u64> = map.view.strides.iter().rev().skip(1).map(|&stride| stride as u64 * size).collect();
    let block: Vec<u32> = map.block.iter().rev().copied().collect();
    let steps = vec![1u32; extents.len()];
    let mut encoded = sys::CUtensorMap { opaque: [0; 16] };
    // SAFETY: the arrays have the rank that is given; a rank of one reads no stride.
    let result = unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut encoded,
            map_dtype(map.view.dtype),
            extents.len() as u32,
            address as *mut c_void,
            extents.as_ptr(),
            strides.as_ptr(),
            block.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            match map.swizzle {
                0 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
                1 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
                2 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
                _ => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            },
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            if map.pad_nan {
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
            } else {
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
            },
        )
    };
    check(result, "cuTensorMapEncodeTiled")?;
    Ok(encoded.opaque.iter().flat_map(|word| word.to_le_bytes()).collect())
}

fn map_dtype(dtype: Dtype) -> sys::CUtensorMapDataType {
    use sys::CUtensorMapDataType as T;
    match dtype {
        Dtype::Bool | Dtype::U8 | Dtype::I8 | Dtype::F8E4M3 | Dtype::F8E5M2 => T::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        Dtype::U16 | Dtype::I16 => T::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        Dtype::U32 => T::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        Dtype::I32 => T::CU_TENSOR_MAP_DATA_TYPE_INT32,
        Dtype::U64 => T::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        Dtype::I64 => T::CU_TENSOR_MAP_DATA_TYPE_INT64,
        Dtype::F16 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        Dtype::Bf16 => T::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        Dtype::F32 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        Dtype::F64 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    }
}

/// The shape of a launch.
pub(in crate::cuda) struct Shape {
    pub(in crate::cuda) grid: [u32; 3],
    pub(in crate::cuda) threads: u32,
    pub(in crate::cuda) shared: u32,
    pub(in crate::cuda) ctas: u32,
    pub(in crate::cuda) cooperative: bool,
    /// It may start before the launch before it has ended: the kernel waits where it must.
    pub(in crate::cuda) dependent: bool,
}

impl Shape {
    fn attributes(&self) -> Vec<sys::CUlaunchAttribute> {
        let mut attributes = Vec::new();
        let mut add = |id, set: &dyn Fn(&mut sys::CUlaunchAttributeValue)| {
            // SAFETY: both are plain C structures for which all zeros is valid.
            let mut attribute: sys::CUlaunchAttribute = unsafe { MaybeUninit::zeroed().assume_init() };
            attribute.id = id;
            set(&mut attribute.value);
            attributes.push(attribute);
        };
        if self.ctas > 1 {
            add(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &|value| {
                value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: self.ctas, y: 1, z: 1 };
            });
            add(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &|value| {
                value.clusterSchedulingPolicyPreference =
                    sys::CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
            });
        }
        if self.dependent {
            add(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, &|value| {
                value.programmaticStreamSerializationAllowed = 1;
            });
        }
        if self.cooperative {
            add(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &|value| value.cooperative = 1);
        }
        attributes
    }
}
