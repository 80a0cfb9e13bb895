//! Thin, checked wrappers over the driver API; the only unsafe code of this crate.
#![expect(unsafe_code, reason = "the CUDA driver API is a C interface")]

mod gate;
mod graph;
mod ipc;
mod launch;

use cudarc::driver::sys;
use serde::{Deserialize, Serialize};

use crate::wire::Failure;

pub(super) use gate::Gate;
pub(super) use graph::{Event, Graph};
pub(super) use ipc::REFUSED;
pub(super) use launch::{Function, Shape, tensor_map};

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

/// A GPU's address on the bus, such as `0000:3b:00.0`. Makes no context.
pub(super) fn bus(ordinal: usize) -> Result<String> {
    init()?;
    let mut text = [0u8; 32];
    // SAFETY: the buffer is as long as the call is told.
    let result = unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr().cast(), text.len() as i32, device(ordinal)?) };
    check(result, "cuDeviceGetPCIBusId")?;
    Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_string())
}

fn device(ordinal: usize) -> Result<sys::CUdevice> {
    let mut device = 0;
    // SAFETY: writes one handle.
    check(unsafe { sys::cuDeviceGet(&mut device, ordinal as i32) }, "cuDeviceGet")?;
    Ok(device)
}

/// A context on one device, current on this thread until the process ends, and the stream that all work goes to.
///
/// The stream waits for the legacy default stream and the other way round, so that plain copies keep their order.
pub(super) struct Context {
    device: sys::CUdevice,
    stream: sys::CUstream,
}

impl Context {
    pub(super) fn new(ordinal: usize) -> Result<Self> {
        init()?;
        let device = device(ordinal)?;
        let (mut context, mut stream) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the primary context is retained for the life of the process, and so is the stream.
        unsafe {
            check(sys::cuDevicePrimaryCtxRetain(&mut context, device), "cuDevicePrimaryCtxRetain")?;
            check(sys::cuCtxSetCurrent(context), "cuCtxSetCurrent")?;
            check(sys::cuStreamCreate(&mut stream, 0), "cuStreamCreate")?;
        }
        Ok(Self { device, stream })
    }

    /// Bytes of the second-level cache.
    pub(super) fn cache_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
        // SAFETY: writes one int.
        check(unsafe { sys::cuDeviceGetAttribute(&mut bytes, attribute, self.device) }, "cuDeviceGetAttribute")?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Bytes of device memory that are free.
    pub(super) fn free_bytes(&self) -> Result<u64> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers.
        check(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }, "cuMemGetInfo")?;
        Ok(free as u64)
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        // SAFETY: the context is current.
        check(unsafe { sys::cuCtxSynchronize() }, "cuCtxSynchronize")
    }

    pub(super) fn alloc(&self, bytes: u64) -> Result<Memory> {
        let mut address = 0;
        // SAFETY: writes one address.
        check(unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1) as usize) }, "cuMemAlloc")?;
        Ok(Memory { address, bytes, origin: Origin::Own })
    }
}

/// Device memory. Our own is wiped and freed on drop: whoever strays out of the memory that comes after finds no results of
/// another. What is mapped is unmapped.
pub(super) struct Memory {
    pub(super) address: u64,
    bytes: u64,
    origin: Origin,
}

enum Origin {
    Own,
    /// It belongs to another process.
    Mapped,
}

impl Memory {
    pub(super) fn size(&self) -> u64 {
        self.bytes
    }

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

    /// Repeats a pattern of `width` (1, 2 or 4) bytes, in the order of the context's stream.
    pub(super) fn set(&self, context: &Context, offset: u64, pattern: u32, width: u32, count: u64) -> Result<()> {
        let to = self.span(offset, count.saturating_mul(u64::from(width)))?;
        let count = count as usize;
        // SAFETY: the range was checked, and its start is aligned to the element by the plan's view.
        let result = unsafe {
            match width {
                1 => sys::cuMemsetD8Async(to, pattern as u8, count, context.stream),
                2 => sys::cuMemsetD16Async(to, pattern as u16, count, context.stream),
                _ => sys::cuMemsetD32Async(to, pattern, count, context.stream),
            }
        };
        check(result, "cuMemsetAsync")
    }

    /// Copies `bytes` from another allocation, in the order of the context's stream.
    pub(super) fn copy(&self, context: &Context, offset: u64, from: &Memory, at: u64, bytes: u64) -> Result<()> {
        let (to, from) = (self.span(offset, bytes)?, from.span(at, bytes)?);
        // SAFETY: both ranges were checked.
        let result = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes as usize, context.stream) };
        check(result, "cuMemcpyDtoDAsync")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by cuMemAlloc with this size or mapped by cuIpcOpenMemHandle, and given back once. After a fault
        // the context is dead and so is this memory.
        unsafe {
            match self.origin {
                Origin::Own => {
                    let _ = sys::cuMemsetD8_v2(self.address, 0, self.bytes as usize);
                    let _ = sys::cuMemFree_v2(self.address);
                }
                Origin::Mapped => {
                    let _ = sys::cuIpcCloseMemHandle(self.address);
                }
            }
        }
    }
}
