//! Thin, checked wrappers over the driver API; the only unsafe code of this crate.
#![expect(unsafe_code, reason = "the CUDA driver API is a C interface")]

use std::ffi::{CString, c_void};
use std::mem::MaybeUninit;

use cudarc::driver::sys;
use serde::{Deserialize, Serialize};
use tilewright_contract::Dtype;

use crate::program::TensorMap;
use crate::wire::Failure;

/// What the driver says about a GPU.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeviceInfo {
    pub ordinal: usize,
    pub name: String,
    /// Such as 90 for compute capability 9.0.
    pub arch: u32,
    pub memory_bytes: u64,
}

type Result<T> = std::result::Result<T, Failure>;

fn check(result: sys::CUresult, what: &str) -> Result<()> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Failure { code: format!("{result:?}"), what: what.into(), line: None })
}

fn init() -> Result<()> {
    // SAFETY: only asks the loader for libcuda.
    if !unsafe { sys::is_culib_present() } {
        let what = "no CUDA driver (libcuda.so.1) on this machine".into();
        return Err(Failure { code: "NO_DRIVER".into(), what, line: None });
    }
    // SAFETY: the library is there; cuInit may be called at any time.
    check(unsafe { sys::cuInit(0) }, "cuInit")
}

/// The GPUs of this machine; an error text if there is no usable driver.
pub fn devices() -> std::result::Result<Vec<DeviceInfo>, String> {
    fn list() -> Result<Vec<DeviceInfo>> {
        init()?;
        let mut count = 0;
        // SAFETY: writes one int.
        check(unsafe { sys::cuDeviceGetCount(&mut count) }, "cuDeviceGetCount")?;
        (0..count).map(|ordinal| info(ordinal as usize)).collect()
    }
    list().map_err(|failure| failure.what)
}

fn info(ordinal: usize) -> Result<DeviceInfo> {
    let device = device(ordinal)?;
    let mut name = [0u8; 128];
    let mut memory_bytes = 0;
    let mut capability = [0i32; 2];
    let attributes = [
        sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ];
    // SAFETY: the buffers are as long as the calls are told.
    unsafe {
        check(sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device), "cuDeviceGetName")?;
        check(sys::cuDeviceTotalMem_v2(&mut memory_bytes, device), "cuDeviceTotalMem")?;
        for (slot, attribute) in capability.iter_mut().zip(attributes) {
            check(sys::cuDeviceGetAttribute(slot, attribute, device), "cuDeviceGetAttribute")?;
        }
    }
    let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_string();
    let arch = (capability[0] * 10 + capability[1]) as u32;
    Ok(DeviceInfo { ordinal, name, arch, memory_bytes: memory_bytes as u64 })
}

fn device(ordinal: usize) -> Result<sys::CUdevice> {
    let mut device = 0;
    // SAFETY: writes one handle.
    check(unsafe { sys::cuDeviceGet(&mut device, ordinal as i32) }, "cuDeviceGet")?;
    Ok(device)
}

/// A context on one device, current on this thread until the process ends.
pub(super) struct Context(());

impl Context {
    pub(super) fn new(ordinal: usize) -> Result<Self> {
        init()?;
        let device = device(ordinal)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the primary context is retained for the life of the process.
        unsafe {
            check(sys::cuDevicePrimaryCtxRetain(&mut context, device), "cuDevicePrimaryCtxRetain")?;
            check(sys::cuCtxSetCurrent(context), "cuCtxSetCurrent")?;
        }
        Ok(Self(()))
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        // SAFETY: the context is current.
        check(unsafe { sys::cuCtxSynchronize() }, "cuCtxSynchronize")
    }

    pub(super) fn alloc(&self, bytes: u64) -> Result<Memory> {
        let mut address = 0;
        // SAFETY: writes one address.
        check(unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1) as usize) }, "cuMemAlloc")?;
        Ok(Memory { address, bytes })
    }

    pub(super) fn event(&self) -> Result<Event> {
        let mut event = std::ptr::null_mut();
        // SAFETY: writes one handle.
        check(unsafe { sys::cuEventCreate(&mut event, 0) }, "cuEventCreate")?;
        Ok(Event(event))
    }
}

/// Device memory, freed on drop.
pub(super) struct Memory {
    pub(super) address: u64,
    bytes: u64,
}

impl Memory {
    fn span(&self, offset: u64, bytes: u64) -> Result<u64> {
        if offset.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            return Ok(self.address + offset);
        }
        let what = format!("{bytes} bytes at {offset} of an allocation of {}", self.bytes);
        Err(Failure { code: "OUT_OF_RANGE".into(), what, line: None })
    }

    pub(super) fn upload(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let to = self.span(offset, bytes.len() as u64)?;
        // SAFETY: both ranges were checked.
        check(unsafe { sys::cuMemcpyHtoD_v2(to, bytes.as_ptr().cast(), bytes.len()) }, "cuMemcpyHtoD")
    }

    pub(super) fn download(&self, offset: u64, bytes: u64) -> Result<Vec<u8>> {
        let from = self.span(offset, bytes)?;
        let mut out = vec![0u8; bytes as usize];
        // SAFETY: both ranges were checked.
        check(unsafe { sys::cuMemcpyDtoH_v2(out.as_mut_ptr().cast(), from, out.len()) }, "cuMemcpyDtoH")?;
        Ok(out)
    }

    /// Repeats a pattern of `width` (1, 2 or 4) bytes.
    pub(super) fn set(&self, offset: u64, pattern: u32, width: u32, count: u64) -> Result<()> {
        let to = self.span(offset, count.saturating_mul(u64::from(width)))?;
        let count = count as usize;
        // SAFETY: the range was checked, and its start is aligned to the element by the plan's view.
        let result = unsafe {
            match width {
                1 => sys::cuMemsetD8_v2(to, pattern as u8, count),
                2 => sys::cuMemsetD16_v2(to, pattern as u16, count),
                _ => sys::cuMemsetD32_v2(to, pattern, count),
            }
        };
        check(result, "cuMemset")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by cuMemAlloc and freed once. After a fault the context is dead and so is this memory.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// A loaded cubin and its entry point.
pub(super) struct Function {
    module: sys::CUmodule,
    function: sys::CUfunction,
}

impl Function {
    pub(super) fn load(image: &[u8], entry: &str, shared: u32) -> Result<Self> {
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
        }
        Ok(Self { module, function })
    }

    pub(super) fn launch(&self, shape: &Shape, params: &[Vec<u8>]) -> Result<()> {
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
            hStream: std::ptr::null_mut(),
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
pub(super) fn tensor_map(address: u64, map: &TensorMap) -> Result<Vec<u8>> {
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
pub(super) struct Shape {
    pub(super) grid: [u32; 3],
    pub(super) threads: u32,
    pub(super) shared: u32,
    pub(super) ctas: u32,
    pub(super) cooperative: bool,
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
        }
        if self.cooperative {
            add(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &|value| value.cooperative = 1);
        }
        attributes
    }
}

pub(super) struct Event(sys::CUevent);

impl Event {
    pub(super) fn record(&self) -> Result<()> {
        // SAFETY: the handle lives as long as self.
        check(unsafe { sys::cuEventRecord(self.0, std::ptr::null_mut()) }, "cuEventRecord")
    }

    /// Microseconds from `start` to this event, once both have happened.
    pub(super) fn since(&self, start: &Event) -> Result<f64> {
        let mut ms = 0f32;
        // SAFETY: both handles are alive.
        unsafe {
            check(sys::cuEventSynchronize(self.0), "cuEventSynchronize")?;
            check(sys::cuEventElapsedTime_v2(&mut ms, start.0, self.0), "cuEventElapsedTime")?;
        }
        Ok(f64::from(ms) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by cuEventCreate and destroyed once.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}
