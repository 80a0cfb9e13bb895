//! The CUDA side: a process per GPU that runs and times programs ([`executor`]), and its client.

mod arena;
mod batch;
mod client;
mod clock;
mod driver;
mod executor;
mod kernels;
mod state;

pub use client::{Block, CudaDevice, Loans, Prepared, Results};
pub use driver::{DeviceInfo, devices};
pub use executor::serve;
