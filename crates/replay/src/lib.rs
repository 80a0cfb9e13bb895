//! Executes a plan. One executor over two devices: the CPU runs each launch's TTIR in the emulator, a GPU runs its
//! cubin through the CUDA driver API in a process of its own. No device ever holds an expected output.

mod convert;
mod copies;
mod cpu;
pub mod cuda;
mod host;
mod program;
mod run;
mod survey;
mod wire;

pub use copies::{CopyLaunch, copy_launches};
pub use cpu::CpuDevice;
pub use program::{Executable, STEP_MODULE, Slot, TensorMap, clock_kernels, launch_slots, pointer_type, step_kernels};
pub use run::{Contents, Defective, Fault, FaultKind, Run, RunResult, SharedRun, Source, initial_contents, writer};
pub use survey::Survey;
pub use wire::{Call, Loan};
