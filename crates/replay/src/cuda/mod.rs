//! The CUDA side: a process per GPU that runs programs ([`executor`]), and its client.

mod client;
mod driver;
mod executor;

pub use client::CudaDevice;
pub use driver::{DeviceInfo, devices};
pub use executor::serve;
