use std::fmt;
use std::str::FromStr;

use tilewright_contract::{CompiledKernel, Target};

/// Where launches run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    Cpu,
    Cuda(usize),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("unknown target {0:?}: give cpu, cuda or cuda:N")]
    Device(String),
    #[error("unknown architecture {0:?}: give one of sm_80, sm_86, sm_89, sm_90, sm_100, sm_120, gfx942")]
    Arch(String),
}

impl FromStr for Device {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let unknown = || TargetError::Device(text.into());
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => {
                let ordinal = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                ordinal.parse().map(Self::Cuda).map_err(|_| unknown())
            }
        }
    }
}

/// Limits of a device that a kernel compiles past without an error.
/// Sources: CUDA C++ programming guide, table "technical specifications per compute capability"; CDNA 3 ISA guide.
struct Limits {
    arch: &'static str,
    /// Dynamic shared memory of a block, opted in.
    shared_bytes: u32,
    threads: u32,
}

const LIMITS: [Limits; 7] = [
    Limits { arch: "80", shared_bytes: 163 << 10, threads: 1024 },
    Limits { arch: "86", shared_bytes: 99 << 10, threads: 1024 },
    Limits { arch: "89", shared_bytes: 99 << 10, threads: 1024 },
    Limits { arch: "90", shared_bytes: 227 << 10, threads: 1024 },
    Limits { arch: "100", shared_bytes: 227 << 10, threads: 1024 },
    Limits { arch: "120", shared_bytes: 99 << 10, threads: 1024 },
    Limits { arch: "gfx942", shared_bytes: 64 << 10, threads: 1024 },
];

const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// The compiler's target for `sm_90` or `gfx942`.
pub fn parse_arch(text: &str) -> Result<Target, TargetError> {
    let arch = text.strip_prefix("sm_").unwrap_or(text);
    if !LIMITS.iter().any(|limits| limits.arch == arch) {
        return Err(TargetError::Arch(text.into()));
    }
    let hip = arch.starts_with("gfx");
    Ok(Target {
        backend: if hip { "hip" } else { "cuda" }.into(),
        arch: arch.into(),
        warp_size: if hip { 64 } else { 32 },
    })
}

/// Why this launch cannot run on the target, if it cannot.
pub(crate) fn launch_limit(target: &Target, kernel: &CompiledKernel, grid: [u32; 3]) -> Option<String> {
    let limits = LIMITS.iter().find(|limits| limits.arch == target.arch)?;
    let shared = kernel.resources.shared_bytes;
    if shared > limits.shared_bytes {
        return Some(format!(
            "{shared} bytes of shared memory a program; {} has {}",
            arch_name(target),
            limits.shared_bytes
        ));
    }
    if kernel.threads > limits.threads {
        return Some(format!(
            "{} threads a program ({} warps); the limit is {}",
            kernel.threads, kernel.resources.num_warps, limits.threads
        ));
    }
    let axis = (0..3).find(|&axis| grid[axis] > MAX_GRID[axis])?;
    Some(format!("grid {grid:?}: axis {axis} may have at most {} programs", MAX_GRID[axis]))
}

/// `sm_90`, `gfx942`.
pub fn arch_name(target: &Target) -> String {
    if target.backend == "cuda" { format!("sm_{}", target.arch) } else { target.arch.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_architectures_parse_or_say_what_is_known() {
        assert_eq!("cuda:3".parse(), Ok(Device::Cuda(3)));
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        assert!("gpu".parse::<Device>().is_err());
        assert_eq!(parse_arch("sm_90").unwrap().arch, "90");
        assert_eq!(parse_arch("gfx942").unwrap().warp_size, 64);
        assert!(parse_arch("sm_42").unwrap_err().to_string().contains("sm_90"));
    }

    #[test]
    fn a_launch_past_the_limits_of_its_target_is_named() {
        let target = parse_arch("sm_90").unwrap();
        let mut kernel = CompiledKernel {
            ttir: String::new(),
            entry: "k".into(),
            binary: None,
            threads: 128,
            resources: Default::default(),
            global_scratch: (0, 1),
            profile_scratch: (0, 1),
            tensordesc_meta: Vec::new(),
        };
        assert_eq!(launch_limit(&target, &kernel, [1 << 20, 65_535, 1]), None);
        assert!(launch_limit(&target, &kernel, [1, 65_536, 1]).unwrap().contains("axis 1"));
        kernel.resources.shared_bytes = 300 << 10;
        assert!(launch_limit(&target, &kernel, [1, 1, 1]).unwrap().contains("shared memory"));
        kernel.resources.shared_bytes = 0;
        kernel.threads = 2048;
        assert!(launch_limit(&target, &kernel, [1, 1, 1]).unwrap().contains("2048 threads"));
    }
}
