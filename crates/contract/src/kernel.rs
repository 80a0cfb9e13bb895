use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Number;

/// What a kernel is compiled for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// `cuda` or `hip`.
    pub backend: String,
    /// `"80"`, `"90"`, `"100"`; `"gfx942"`.
    pub arch: String,
    pub warp_size: u32,
}

/// One specialisation of a kernel of the kernel-only module: everything Triton's `ASTSource` needs.
/// It names code; it holds none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSpec {
    /// Name of the jit function in the kernel-only module.
    pub function: String,
    /// All parameters of the function in order, constexprs included.
    pub params: Vec<Param>,
    /// Compile-time values by parameter path: `"3"`, or `"3.1"` inside a tuple.
    pub constexprs: BTreeMap<String, Constexpr>,
    /// Triton's attributes by parameter path, such as `[["tt.divisibility", 16]]`.
    pub attrs: BTreeMap<String, Vec<(String, i64)>>,
    pub options: LaunchOptions,
}

/// A kernel parameter with its type in Triton's signature notation: `*fp32`, `i32`, `fp32`, `constexpr`,
/// `tensordesc<fp16[64, 32]>`. A tuple is flattened into params named `name.0`, `name.1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Param {
    pub name: String,
    pub ty: String,
}

/// A compile-time constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Constexpr {
    None,
    Number {
        value: Number,
    },
    /// An integer that 64 bits do not hold, as Python writes one: Triton computes with the whole of it.
    Integer {
        value: String,
    },
    Str {
        value: String,
    },
    /// A Triton dtype by Triton's name: `fp32`, `bf16`, `int64`, `*fp32`.
    Dtype {
        value: String,
    },
    /// Another jit function of the kernel-only module.
    Function {
        value: String,
    },
    Tuple {
        items: Vec<Constexpr>,
    },
}

/// The launch options a candidate may set; anything else that Triton accepts is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchOptions {
    pub num_warps: u32,
    pub num_stages: u32,
    pub num_ctas: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxnreg: Option<u32>,
    pub enable_fp_fusion: bool,
    #[serde(default)]
    pub launch_cooperative_grid: bool,
    #[serde(default)]
    pub launch_pdl: bool,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            num_warps: 4,
            num_stages: 3,
            num_ctas: 1,
            maxnreg: None,
            enable_fp_fusion: true,
            launch_cooperative_grid: false,
            launch_pdl: false,
        }
    }
}

/// What the compiler made of a [`KernelSpec`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompiledKernel {
    /// The Triton IR as text, with source locations: what the CPU executes.
    pub ttir: String,
    /// Name of the entry point in the TTIR and in the binary.
    pub entry: String,
    /// Digest of the binary; the bytes lie in the cache under it. None if only TTIR was asked for.
    pub binary: Option<String>,
    pub threads: u32,
    pub resources: Resources,
    /// Bytes of global scratch memory per program, and their alignment.
    pub global_scratch: (u64, u64),
    /// Bytes of profile scratch memory per program, and their alignment.
    pub profile_scratch: (u64, u64),
    /// Triton's `tensordesc_meta`, one per descriptor argument.
    #[serde(default)]
    pub tensordesc_meta: Vec<serde_json::Value>,
}

/// What one program of a compiled kernel takes of the device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Bytes spilled to local memory by a thread (stores plus loads).
    pub spill_bytes: Option<u32>,
    /// Bytes of shared memory of a program.
    pub shared_bytes: u32,
    /// Machine instructions in the binary.
    pub instructions: Option<u32>,
    pub num_warps: u32,
    pub num_stages: u32,
    pub num_ctas: u32,
}
