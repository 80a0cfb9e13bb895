//! What one job may use.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Upper bounds for one job. Going over one ends the job, never the zygote or another job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time from the request to the answer; enforced by killing the job.
    pub wall: Duration,
    /// Bytes of private memory on top of what the zygote already holds.
    pub memory_bytes: u64,
    /// Processor time of the job's own process, in whole seconds (rounded up).
    pub cpu: Duration,
    /// Bytes in the scratch folder.
    pub disk_bytes: u64,
    /// Processes and threads at a time. With 1, the job can neither fork nor start a program (threads aside).
    pub processes: u32,
    /// Bytes of the response; a longer one is a death of kind `too_large`.
    pub response_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            memory_bytes: 2 << 30,
            cpu: Duration::from_secs(60),
            disk_bytes: 256 << 20,
            processes: 1,
            response_bytes: 64 << 20,
        }
    }
}
