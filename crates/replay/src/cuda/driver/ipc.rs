//! Memory that another process holds, and our own for it to map.

use std::ffi::c_char;

use cudarc::driver::sys;

use super::{Memory, Origin, Result, check};
use crate::wire::Failure;

/// Code of a failure to map or to give out memory: a container may forbid it.
pub(in crate::cuda) const REFUSED: &str = "IPC_REFUSED";

impl Memory {
    /// Maps an allocation of another process, until this is dropped.
    pub(in crate::cuda) fn map(handle: &[u8]) -> Result<Self> {
        let mut named = sys::CUipcMemHandle { reserved: [0; 64] };
        if handle.len() != named.reserved.len() {
            return Err(refused("a name of memory of another length".into()));
        }
        for (to, from) in named.reserved.iter_mut().zip(handle) {
            *to = *from as c_char;
        }
        let lazily = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let (mut address, mut base, mut bytes) = (0, 0, 0);
        // SAFETY: writes one address; a name that means nothing is an error.
        check(unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, named, lazily) }, "cuIpcOpenMemHandle")
            .map_err(|failure| refused(format!("{}: {}", failure.what, failure.code)))?;
        let mut memory = Self { address, bytes: 0, origin: Origin::Mapped };
        // SAFETY: writes an address and a size.
        check(unsafe { sys::cuMemGetAddressRange_v2(&mut base, &mut bytes, address) }, "cuMemGetAddressRange")?;
        memory.bytes = bytes as u64;
        Ok(memory)
    }

    /// What another process maps this allocation by.
    pub(in crate::cuda) fn handle(&self) -> Result<Vec<u8>> {
        let mut named = sys::CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: writes one handle.
        check(unsafe { sys::cuIpcGetMemHandle(&mut named, self.address) }, "cuIpcGetMemHandle")
            .map_err(|failure| refused(format!("{}: {}", failure.what, failure.code)))?;
        Ok(named.reserved.iter().map(|&byte| byte as u8).collect())
    }
}

fn refused(what: String) -> Failure {
    Failure { code: REFUSED.into(), what, line: None }
}
