//! What is recorded of each function.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::channel::{digest, send};
use crate::image::{self, function, named, same_function, same_image};
use crate::system::driver_function;
use crate::table::hooks;
use crate::wire::{COPY, LAUNCH, OTHER, Record, SET, TENSOR_MAP};

/// A kernel has at most this many parameters: 32,764 bytes of them.
const MOST_PARAMETERS: usize = 8192;
/// Bytes of an encoded tensor map.
const TENSOR_MAP_BYTES: usize = 128;

/// Where the bytes of a copy come from and go to; `src/record.rs` knows the same numbers.
const HOST_TO_DEVICE: u32 = 0;
const DEVICE_TO_HOST: u32 = 1;
const DEVICE_TO_DEVICE: u32 = 2;
const HOST_TO_HOST: u32 = 3;

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: usize,
    attributes: *const LaunchAttribute,
    attribute_count: u32,
}

/// `CUlaunchAttribute`.
#[repr(C)]
pub(crate) struct LaunchAttribute {
    id: u32,
    pad: u32,
    value: [u8; 64],
}

type Word = usize;

hooks! {
    launch(f: Word, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Word,
           params: *const *const c_void, extra: *const *const c_void):
        cuLaunchKernel cuLaunchKernel_ptsz;
    launch_ex(config: *const LaunchConfig, f: Word, params: *const *const c_void, extra: *const *const c_void):
        cuLaunchKernelEx cuLaunchKernelEx_ptsz;
    launch_cooperative(f: Word, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Word,
                       params: *const *const c_void):
        cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz;

    load(module: *mut Word, image: *const c_void): cuModuleLoadData cuModuleLoadFatBinary;
    load_ex(module: *mut Word, image: *const c_void, count: u32, options: Word, values: Word): cuModuleLoadDataEx;
    load_library(library: *mut Word, code: *const c_void, a: Word, b: Word, c: u32, d: Word, e: Word, g: u32):
        cuLibraryLoadData;
    load_file(module: *mut Word, path: *const c_char): cuModuleLoad;
    load_library_file(library: *mut Word, path: *const c_char, a: Word, b: Word, c: u32, d: Word, e: Word, g: u32):
        cuLibraryLoadFromFile;
    get_function(f: *mut Word, module: Word, name: *const c_char): cuModuleGetFunction cuLibraryGetKernel;
    get_kernel_function(f: *mut Word, kernel: Word): cuKernelGetFunction;
    get_library_module(module: *mut Word, library: Word): cuLibraryGetModule;

    upload(to: u64, from: *const c_void, bytes: usize): cuMemcpyHtoD_v2 cuMemcpyHtoD_v2_ptds;
    upload_async(to: u64, from: *const c_void, bytes: usize, stream: Word):
        cuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync_v2_ptsz;
    download(to: *mut c_void, from: u64, bytes: usize): cuMemcpyDtoH_v2 cuMemcpyDtoH_v2_ptds;
    download_async(to: *mut c_void, from: u64, bytes: usize, stream: Word):
        cuMemcpyDtoHAsync_v2 cuMemcpyDtoHAsync_v2_ptsz;
    copy(to: u64, from: u64, bytes: usize): cuMemcpyDtoD_v2 cuMemcpyDtoD_v2_ptds;
    copy_async(to: u64, from: u64, bytes: usize, stream: Word): cuMemcpyDtoDAsync_v2 cuMemcpyDtoDAsync_v2_ptsz;
    copy_any(to: u64, from: u64, bytes: usize): cuMemcpy cuMemcpy_ptds;
    copy_any_async(to: u64, from: u64, bytes: usize, stream: Word): cuMemcpyAsync cuMemcpyAsync_ptsz;

    set_8(to: u64, value: u8, count: usize): cuMemsetD8_v2 cuMemsetD8_v2_ptds;
    set_16(to: u64, value: u16, count: usize): cuMemsetD16_v2 cuMemsetD16_v2_ptds;
    set_32(to: u64, value: u32, count: usize): cuMemsetD32_v2 cuMemsetD32_v2_ptds;
    set_8_async(to: u64, value: u8, count: usize, stream: Word): cuMemsetD8Async cuMemsetD8Async_ptsz;
    set_16_async(to: u64, value: u16, count: usize, stream: Word): cuMemsetD16Async cuMemsetD16Async_ptsz;
    set_32_async(to: u64, value: u32, count: usize, stream: Word): cuMemsetD32Async cuMemsetD32Async_ptsz;

    encode_map(map: *mut u8, dtype: u32, rank: u32, address: u64, extents: *const u64, strides: *const u64,
               block: *const u32, steps: *const u32, interleave: u32, swizzle: u32, promotion: u32, fill: u32):
        cuTensorMapEncodeTiled;

    other(a: Word, b: Word, c: Word, d: Word, e: Word, f: Word, g: Word, h: Word, i: Word, j: Word):
        cuLaunch cuLaunchGrid cuLaunchGridAsync cuLaunchCooperativeKernelMultiDevice
        cuLaunchHostFunc cuLaunchHostFunc_ptsz cuLaunchHostFunc_v2 cuLaunchHostFunc_v2_ptsz
        cuStreamBeginCapture cuStreamBeginCapture_ptsz cuStreamBeginCapture_v2 cuStreamBeginCapture_v2_ptsz
        cuStreamBeginCaptureToGraph cuStreamBeginCaptureToGraph_ptsz
        cuGraphLaunch cuGraphLaunch_ptsz cuGraphAddKernelNode cuGraphAddKernelNode_v2 cuGraphAddNode cuGraphAddNode_v2
        cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2 cuGraphUpload cuGraphUpload_ptsz
        cuMemcpy2D_v2 cuMemcpy2D_v2_ptds cuMemcpy2DUnaligned_v2 cuMemcpy2DUnaligned_v2_ptds
        cuMemcpy2DAsync_v2 cuMemcpy2DAsync_v2_ptsz cuMemcpy3D_v2 cuMemcpy3D_v2_ptds cuMemcpy3DAsync_v2
        cuMemcpy3DAsync_v2_ptsz cuMemcpyPeer cuMemcpyPeer_ptds cuMemcpyPeerAsync cuMemcpyPeerAsync_ptsz
        cuMemcpy3DPeer cuMemcpy3DPeer_ptds cuMemcpy3DPeerAsync cuMemcpy3DPeerAsync_ptsz
        cuMemcpyBatchAsync cuMemcpyBatchAsync_ptsz cuMemcpyBatchAsync_v2 cuMemcpyBatchAsync_v2_ptsz
        cuMemcpyAtoD_v2 cuMemcpyDtoA_v2 cuMemcpyAtoH_v2 cuMemcpyHtoA_v2 cuMemcpyAtoA_v2
        cuMemsetD2D8_v2 cuMemsetD2D8_v2_ptds cuMemsetD2D16_v2 cuMemsetD2D16_v2_ptds cuMemsetD2D32_v2
        cuMemsetD2D32_v2_ptds cuMemsetD2D8Async cuMemsetD2D8Async_ptsz cuMemsetD2D16Async cuMemsetD2D16Async_ptsz
        cuMemsetD2D32Async cuMemsetD2D32Async_ptsz
        cuIpcOpenMemHandle cuIpcOpenMemHandle_v2 cuMemImportFromShareableHandle cuMemPoolImportFromShareableHandle;
}

type Launch = unsafe extern "C" fn(
    Word,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    Word,
    *const *const c_void,
    *const *const c_void,
) -> i32;

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
unsafe fn launch(
    _symbol: &CStr,
    driver: Launch,
    f: Word,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: u32,
    stream: Word,
    params: *const *const c_void,
    extra: *const *const c_void,
) -> i32 {
    // SAFETY: the caller's arguments, as they are; they are read as the driver reads them.
    unsafe {
        record_launch(f, [gx, gy, gz], [bx, by, bz], shared, stream, &[], params, extra);
        driver(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra)
    }
}

type LaunchEx = unsafe extern "C" fn(*const LaunchConfig, Word, *const *const c_void, *const *const c_void) -> i32;

unsafe fn launch_ex(
    _symbol: &CStr,
    driver: LaunchEx,
    config: *const LaunchConfig,
    f: Word,
    params: *const *const c_void,
    extra: *const *const c_void,
) -> i32 {
    // SAFETY: the caller's arguments, as they are; they are read as the driver reads them.
    unsafe {
        if let Some(config) = config.as_ref() {
            let attributes = match config.attribute_count {
                0 => &[],
                count => std::slice::from_raw_parts(config.attributes, count as usize),
            };
            record_launch(f, config.grid, config.block, config.shared, config.stream, attributes, params, extra);
        }
        driver(config, f, params, extra)
    }
}

type LaunchCooperative =
    unsafe extern "C" fn(Word, u32, u32, u32, u32, u32, u32, u32, Word, *const *const c_void) -> i32;

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
unsafe fn launch_cooperative(
    _symbol: &CStr,
    driver: LaunchCooperative,
    f: Word,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    shared: u32,
    stream: Word,
    params: *const *const c_void,
) -> i32 {
    let mut cooperative = LaunchAttribute { id: 2, pad: 0, value: [0; 64] };
    cooperative.value[0] = 1;
    // SAFETY: the caller's arguments, as they are; they are read as the driver reads them.
    unsafe {
        record_launch(f, [gx, gy, gz], [bx, by, bz], shared, stream, &[cooperative], params, std::ptr::null());
        driver(f, gx, gy, gz, bx, by, bz, shared, stream, params)
    }
}

#[expect(clippy::too_many_arguments, reason = "what a launch consists of")]
unsafe fn record_launch(
    handle: Word,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: Word,
    attributes: &[LaunchAttribute],
    params: *const *const c_void,
    extra: *const *const c_void,
) {
    let function = function(handle);
    let mut record = Record::new(LAUNCH).u32(function.image).bytes(&function.name);
    for extent in grid.into_iter().chain(block) {
        record = record.u32(extent);
    }
    record = record.u32(shared).u64(stream as u64).u32(attributes.len() as u32);
    for attribute in attributes {
        record = record.u32(attribute.id).bytes(&attribute.value);
    }
    // Parameters of other kernels than a candidate's mean nothing to anybody.
    // SAFETY: the launch has the parameters of the function.
    let values = if function.cubin { unsafe { parameters(handle, params) } } else { Some(Vec::new()) };
    // Parameters in one buffer are not how Triton launches: they count as unreadable.
    let readable = values.is_some() && extra.is_null();
    record = record.u32(u32::from(readable));
    let values = values.unwrap_or_default();
    record = record.u32(values.len() as u32);
    for value in &values {
        record = record.bytes(value);
    }
    send(record);
}

/// The bytes of each parameter of a launch. None where the driver does not tell how long they are.
unsafe fn parameters(handle: Word, params: *const *const c_void) -> Option<Vec<Vec<u8>>> {
    static ASK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let mut address = ASK.load(Ordering::Acquire);
    if address.is_null() {
        address = driver_function(c"cuFuncGetParamInfo");
        ASK.store(address, Ordering::Release);
    }
    if address.is_null() {
        return None;
    }
    // SAFETY: CUresult cuFuncGetParamInfo(CUfunction, size_t index, size_t *offset, size_t *size).
    let ask: unsafe extern "C" fn(Word, usize, *mut usize, *mut usize) -> i32 = unsafe { std::mem::transmute(address) };
    let mut values = Vec::new();
    for index in 0..MOST_PARAMETERS {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: writes two numbers.
        if unsafe { ask(handle, index, &mut offset, &mut size) } != 0 {
            break;
        }
        if params.is_null() {
            return None;
        }
        // SAFETY: the launch gives an address for each parameter of the function, of its size.
        let bytes = unsafe { std::slice::from_raw_parts((*params.add(index)).cast::<u8>(), size) };
        values.push(bytes.to_vec());
    }
    Some(values)
}

type Load = unsafe extern "C" fn(*mut Word, *const c_void) -> i32;

unsafe fn load(_symbol: &CStr, driver: Load, module: *mut Word, data: *const c_void) -> i32 {
    // SAFETY: the caller's arguments, as they are.
    unsafe { note_image(driver(module, data), module, data) }
}

type LoadEx = unsafe extern "C" fn(*mut Word, *const c_void, u32, Word, Word) -> i32;

unsafe fn load_ex(
    _symbol: &CStr,
    driver: LoadEx,
    module: *mut Word,
    data: *const c_void,
    count: u32,
    options: Word,
    values: Word,
) -> i32 {
    // SAFETY: the caller's arguments, as they are.
    unsafe { note_image(driver(module, data, count, options, values), module, data) }
}

type LoadLibrary = unsafe extern "C" fn(*mut Word, *const c_void, Word, Word, u32, Word, Word, u32) -> i32;

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
unsafe fn load_library(
    _symbol: &CStr,
    driver: LoadLibrary,
    library: *mut Word,
    code: *const c_void,
    a: Word,
    b: Word,
    c: u32,
    d: Word,
    e: Word,
    g: u32,
) -> i32 {
    // SAFETY: the caller's arguments, as they are.
    unsafe { note_image(driver(library, code, a, b, c, d, e, g), library, code) }
}

type LoadFile = unsafe extern "C" fn(*mut Word, *const c_char) -> i32;

unsafe fn load_file(_symbol: &CStr, driver: LoadFile, module: *mut Word, path: *const c_char) -> i32 {
    // SAFETY: the caller's arguments, as they are.
    unsafe { note_image(driver(module, path), module, std::ptr::null()) }
}

type LoadLibraryFile = unsafe extern "C" fn(*mut Word, *const c_char, Word, Word, u32, Word, Word, u32) -> i32;

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
unsafe fn load_library_file(
    _symbol: &CStr,
    driver: LoadLibraryFile,
    library: *mut Word,
    path: *const c_char,
    a: Word,
    b: Word,
    c: u32,
    d: Word,
    e: Word,
    g: u32,
) -> i32 {
    // SAFETY: the caller's arguments, as they are.
    unsafe { note_image(driver(library, path, a, b, c, d, e, g), library, std::ptr::null()) }
}

unsafe fn note_image(result: i32, handle: *const Word, data: *const c_void) -> i32 {
    if result == 0 && !handle.is_null() {
        // SAFETY: the driver has written the handle.
        image::loaded(unsafe { *handle }, data);
    }
    result
}

type GetFunction = unsafe extern "C" fn(*mut Word, Word, *const c_char) -> i32;

unsafe fn get_function(_symbol: &CStr, driver: GetFunction, f: *mut Word, module: Word, name: *const c_char) -> i32 {
    // SAFETY: the caller's arguments, as they are; after success the handle is written.
    unsafe {
        let result = driver(f, module, name);
        if result == 0 {
            named(*f, module, name);
        }
        result
    }
}

type GetOther = unsafe extern "C" fn(*mut Word, Word) -> i32;

unsafe fn get_kernel_function(_symbol: &CStr, driver: GetOther, f: *mut Word, kernel: Word) -> i32 {
    // SAFETY: the caller's arguments, as they are; after success the handle is written.
    unsafe {
        let result = driver(f, kernel);
        if result == 0 {
            same_function(kernel, *f);
        }
        result
    }
}

unsafe fn get_library_module(_symbol: &CStr, driver: GetOther, module: *mut Word, library: Word) -> i32 {
    // SAFETY: the caller's arguments, as they are; after success the handle is written.
    unsafe {
        let result = driver(module, library);
        if result == 0 {
            same_image(library, *module);
        }
        result
    }
}

fn record_copy(kind: u32, to: u64, from: u64, bytes: usize) {
    // What comes from the host is told apart by its contents.
    // SAFETY: the driver reads the same bytes.
    let content = match kind {
        HOST_TO_DEVICE if bytes > 0 => digest(unsafe { std::slice::from_raw_parts(from as *const u8, bytes) }),
        _ => 0,
    };
    send(Record::new(COPY).u32(kind).u64(to).u64(from).u64(bytes as u64).u64(content));
}

type Upload = unsafe extern "C" fn(u64, *const c_void, usize) -> i32;
type UploadAsync = unsafe extern "C" fn(u64, *const c_void, usize, Word) -> i32;
type Download = unsafe extern "C" fn(*mut c_void, u64, usize) -> i32;
type DownloadAsync = unsafe extern "C" fn(*mut c_void, u64, usize, Word) -> i32;
type Copy = unsafe extern "C" fn(u64, u64, usize) -> i32;
type CopyAsync = unsafe extern "C" fn(u64, u64, usize, Word) -> i32;

unsafe fn upload(_symbol: &CStr, driver: Upload, to: u64, from: *const c_void, bytes: usize) -> i32 {
    record_copy(HOST_TO_DEVICE, to, from as u64, bytes);
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(to, from, bytes) }
}

unsafe fn upload_async(
    _symbol: &CStr,
    driver: UploadAsync,
    to: u64,
    from: *const c_void,
    bytes: usize,
    stream: Word,
) -> i32 {
    record_copy(HOST_TO_DEVICE, to, from as u64, bytes);
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(to, from, bytes, stream) }
}

unsafe fn download(_symbol: &CStr, driver: Download, to: *mut c_void, from: u64, bytes: usize) -> i32 {
    record_copy(DEVICE_TO_HOST, to as u64, from, bytes);
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(to, from, bytes) }
}

unsafe fn download_async(
    _symbol: &CStr,
    driver: DownloadAsync,
    to: *mut c_void,
    from: u64,
    bytes: usize,
    stream: Word,
) -> i32 {
    record_copy(DEVICE_TO_HOST, to as u64, from, bytes);
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(to, from, bytes, stream) }
}

unsafe fn copy(_symbol: &CStr, driver: Copy, to: u64, from: u64, bytes: usize) -> i32 {
    record_copy(DEVICE_TO_DEVICE, to, from, bytes);
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(to, from, bytes) }
}

unsafe fn copy_async(_symbol: &CStr, driver: CopyAsync, to: u64, from: u64, bytes: usize, stream: Word) -> i32 {
    record_copy(DEVICE_TO_DEVICE, to, from, bytes);
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(to, from, bytes, stream) }
}

unsafe fn copy_any(_symbol: &CStr, driver: Copy, to: u64, from: u64, bytes: usize) -> i32 {
    record_copy(direction(to, from), to, from, bytes);
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(to, from, bytes) }
}

unsafe fn copy_any_async(_symbol: &CStr, driver: CopyAsync, to: u64, from: u64, bytes: usize, stream: Word) -> i32 {
    record_copy(direction(to, from), to, from, bytes);
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(to, from, bytes, stream) }
}

/// Which way a copy goes whose caller leaves that to the driver.
fn direction(to: u64, from: u64) -> u32 {
    match (on_device(to), on_device(from)) {
        (true, true) => DEVICE_TO_DEVICE,
        (true, false) => HOST_TO_DEVICE,
        (false, true) => DEVICE_TO_HOST,
        (false, false) => HOST_TO_HOST,
    }
}

fn on_device(address: u64) -> bool {
    /// CU_POINTER_ATTRIBUTE_MEMORY_TYPE, and CU_MEMORYTYPE_DEVICE as its value
    const MEMORY_TYPE: u32 = 2;
    const DEVICE: u32 = 2;
    let function = driver_function(c"cuPointerGetAttribute");
    if function.is_null() {
        return true;
    }
    // SAFETY: CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr).
    let ask: unsafe extern "C" fn(*mut u32, u32, u64) -> i32 = unsafe { std::mem::transmute(function) };
    let mut kind = 0;
    // SAFETY: writes one number; any address may be asked about, and plain memory of the host is an error.
    unsafe { ask(&mut kind, MEMORY_TYPE, address) == 0 && kind == DEVICE }
}

fn record_set(to: u64, value: u32, width: u32, count: usize) {
    send(Record::new(SET).u64(to).u32(value).u32(width).u64(count as u64));
}

macro_rules! sets {
    ($($name:ident $name_async:ident $ty:ty;)*) => {$(
        unsafe fn $name(
            _symbol: &CStr, driver: unsafe extern "C" fn(u64, $ty, usize) -> i32, to: u64, value: $ty, count: usize,
        ) -> i32 {
            record_set(to, u32::from(value), size_of::<$ty>() as u32, count);
            // SAFETY: the caller's arguments, as they are.
            unsafe { driver(to, value, count) }
        }

        unsafe fn $name_async(
            _symbol: &CStr, driver: unsafe extern "C" fn(u64, $ty, usize, Word) -> i32, to: u64, value: $ty,
            count: usize, stream: Word,
        ) -> i32 {
            record_set(to, u32::from(value), size_of::<$ty>() as u32, count);
            // SAFETY: the caller's arguments, as they are.
            unsafe { driver(to, value, count, stream) }
        }
    )*};
}

sets! {
    set_8 set_8_async u8;
    set_16 set_16_async u16;
    set_32 set_32_async u32;
}

type EncodeMap = unsafe extern "C" fn(
    *mut u8,
    u32,
    u32,
    u64,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    u32,
    u32,
    u32,
    u32,
) -> i32;

#[expect(clippy::too_many_arguments, reason = "the driver's signature")]
unsafe fn encode_map(
    _symbol: &CStr,
    driver: EncodeMap,
    map: *mut u8,
    dtype: u32,
    rank: u32,
    address: u64,
    extents: *const u64,
    strides: *const u64,
    block: *const u32,
    steps: *const u32,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
) -> i32 {
    // SAFETY: the caller's arguments, as they are; after success the map is written, and the arrays have the rank
    // that is given (one less for the strides).
    unsafe {
        let result =
            driver(map, dtype, rank, address, extents, strides, block, steps, interleave, swizzle, promotion, fill);
        if result == 0 && (1..=5).contains(&rank) {
            let mut record = Record::new(TENSOR_MAP).bytes(std::slice::from_raw_parts(map, TENSOR_MAP_BYTES));
            record = record.u32(dtype).u32(rank).u64(address).u32(interleave).u32(swizzle).u32(fill);
            for axis in 0..rank as usize {
                let stride = if axis + 1 < rank as usize { *strides.add(axis) } else { 0 };
                record = record.u64(*extents.add(axis)).u64(stride).u32(*block.add(axis)).u32(*steps.add(axis));
            }
            send(record);
        }
        result
    }
}

type Other = unsafe extern "C" fn(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word) -> i32;

/// A function of which only the call matters. Some have fewer arguments; what is in the places of the rest is passed on
/// too, and not looked at.
#[expect(clippy::too_many_arguments, reason = "the longest of the signatures")]
unsafe fn other(
    symbol: &CStr,
    driver: Other,
    a: Word,
    b: Word,
    c: Word,
    d: Word,
    e: Word,
    f: Word,
    g: Word,
    h: Word,
    i: Word,
    j: Word,
) -> i32 {
    send(Record::new(OTHER).bytes(symbol.to_bytes()));
    // SAFETY: the caller's arguments, as they are.
    unsafe { driver(a, b, c, d, e, f, g, h, i, j) }
}
