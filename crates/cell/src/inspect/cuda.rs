//! The CUDA driver, asked through its own library, which is loaded only if it is there.

use std::ffi::{CStr, c_char, c_int, c_uint};

use libloading::{Library, Symbol};
use serde::Serialize;

use super::Finding;

/// The CUDA driver and its devices.
#[derive(Clone, Debug, Serialize)]
pub struct Cuda {
    /// The CUDA version that the driver supports, as `major.minor`.
    pub driver: String,
    /// Devices in the driver's order.
    pub gpus: Vec<Gpu>,
}

/// One device.
#[derive(Clone, Debug, Serialize)]
pub struct Gpu {
    /// The index N of the target `cuda:N`.
    pub index: u32,
    /// The vendor's name.
    pub name: String,
    /// Compute capability, such as `sm_90`.
    pub arch: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

const LIBRARY: &str = "libcuda.so.1";
const NO_DEVICE: c_int = 100;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

/// Asks the driver. Initialises it in this process, but makes no context.
pub(super) fn look() -> Finding<Cuda> {
    let missing = |why: String, hint: &str| Finding::Missing { why, hint: hint.into() };
    let driver = match Driver::load() {
        Ok(driver) => driver,
        Err(error) => {
            return missing(
                format!("no CUDA driver: {error}"),
                "fine: `--target cpu` needs no GPU; for `--target cuda:N` install NVIDIA's driver",
            );
        }
    };
    match driver.devices() {
        Ok(cuda) => Finding::Found(cuda),
        Err(NO_DEVICE) => missing("the CUDA driver sees no device".into(), "check nvidia-smi and CUDA_VISIBLE_DEVICES"),
        Err(code) => {
            missing(format!("the CUDA driver fails with error {code}"), "check nvidia-smi and the kernel's log")
        }
    }
}

struct Driver {
    library: Library,
}

impl Driver {
    #[expect(unsafe_code, reason = "loading a library runs its initialisers")]
    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: this is the vendor's driver, which every CUDA program loads.
        unsafe { Library::new(LIBRARY) }.map(|library| Self { library })
    }

    #[expect(unsafe_code, reason = "the driver is C; the signatures are those of cuda.h")]
    fn devices(&self) -> Result<Cuda, c_int> {
        type Init = unsafe extern "C" fn(c_uint) -> c_int;
        type GetInt = unsafe extern "C" fn(*mut c_int) -> c_int;
        type DeviceGet = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
        type Name = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        type TotalMemory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;

        // SAFETY: each function is called with live pointers of the types that cuda.h declares.
        unsafe {
            let init: Symbol<'_, Init> = self.function(c"cuInit")?;
            let version: Symbol<'_, GetInt> = self.function(c"cuDriverGetVersion")?;
            let count: Symbol<'_, GetInt> = self.function(c"cuDeviceGetCount")?;
            let get: Symbol<'_, DeviceGet> = self.function(c"cuDeviceGet")?;
            let get_name: Symbol<'_, Name> = self.function(c"cuDeviceGetName")?;
            let attribute: Symbol<'_, Attribute> = self.function(c"cuDeviceGetAttribute")?;
            let memory: Symbol<'_, TotalMemory> = self.function(c"cuDeviceTotalMem_v2")?;
            check(init(0))?;
            let (mut driver, mut devices) = (0, 0);
            check(version(&raw mut driver))?;
            check(count(&raw mut devices))?;
            let mut gpus = Vec::new();
            for index in 0..devices {
                let (mut device, mut major, mut minor, mut bytes) = (0, 0, 0, 0);
                let mut name = [0 as c_char; 256];
                check(get(&raw mut device, index))?;
                check(get_name(name.as_mut_ptr(), 255, device))?;
                check(attribute(&raw mut major, CAPABILITY_MAJOR, device))?;
                check(attribute(&raw mut minor, CAPABILITY_MINOR, device))?;
                check(memory(&raw mut bytes, device))?;
                gpus.push(Gpu {
                    index: index.unsigned_abs(),
                    name: CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned(),
                    arch: format!("sm_{major}{minor}"),
                    memory_bytes: bytes as u64,
                });
            }
            Ok(Cuda { driver: format!("{}.{}", driver / 1000, driver % 1000 / 10), gpus })
        }
    }

    /// A function of the library. A driver too old to have it counts as broken (-1).
    #[expect(unsafe_code, reason = "the caller gives the function's type")]
    unsafe fn function<T>(&self, name: &CStr) -> Result<Symbol<'_, T>, c_int> {
        // SAFETY: the caller vouches for the type.
        unsafe { self.library.get(name.to_bytes_with_nul()) }.map_err(|_| -1)
    }
}

fn check(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}
