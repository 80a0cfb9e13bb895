//! What a process handed to the driver, one record after the other.

use serde::{Deserialize, Serialize};

/// A call to the driver, or a mark between calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A phase of the run begins.
    Mark {
        phase: Phase,
    },
    /// A module or library was loaded; images are numbered from 0. `bytes` is empty unless it is an ELF file (a cubin).
    Image {
        number: u32,
        bytes: Vec<u8>,
    },
    Launch(Launch),
    Copy(Copy),
    /// `count` repetitions of a value of `width` bytes.
    Set {
        to: u64,
        value: u32,
        width: u32,
        count: u64,
    },
    /// A call of which only the name matters: graphs, captures, host functions, unusual copies.
    Other {
        name: String,
    },
    TensorMap(TensorMap),
}

/// What the recorded process is about to do. Each phase comes once, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Work of torch that is known beforehand, so that a recorder which sees nothing shows.
    Probe,
    /// The candidate's file is executed and its module made.
    File,
    /// Weights are uploaded, in the order of the signature's state.
    State,
    /// A first call, in which autotuners try their configurations.
    Warm,
    /// Inputs are uploaded anew, in the order of the signature's buffers.
    Inputs,
    /// The call that is compared with the plan.
    Forward,
    /// The storage of each output is downloaded.
    Outputs,
    /// Nothing more is to come.
    Done,
}

impl Phase {
    pub const ALL: [Self; 8] =
        [Self::Probe, Self::File, Self::State, Self::Warm, Self::Inputs, Self::Forward, Self::Outputs, Self::Done];

    /// The phase of a mark; `confirm.py` counts in the same order.
    pub(crate) fn of(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }

    /// What happens in it, as a clause.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Probe => "before the file is loaded",
            Self::File => "while the file is loaded",
            Self::State => "while weights are uploaded",
            Self::Warm => "in the first call",
            Self::Inputs => "while inputs are uploaded",
            Self::Forward => "in forward",
            Self::Outputs => "while outputs are read",
            Self::Done => "at the end",
        }
    }
}

/// A kernel was launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Number of its image, if that was seen.
    pub image: Option<u32>,
    pub name: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    pub stream: u64,
    pub attributes: Vec<Attribute>,
    /// The bytes of each parameter, for kernels of a cubin; none where they could not be read.
    pub params: Option<Vec<Vec<u8>>>,
}

/// A `CUlaunchAttribute`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    pub id: u32,
    pub value: Vec<u8>,
}

/// Bytes were copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    pub direction: Direction,
    pub to: u64,
    pub from: u64,
    pub bytes: u64,
    /// Of what came from the host: its digest under the recording's key.
    pub content: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    HostToHost,
}

impl Direction {
    /// By the shim's number.
    pub(crate) fn of(code: u32) -> Option<Self> {
        [Self::HostToDevice, Self::DeviceToHost, Self::DeviceToDevice, Self::HostToHost].get(code as usize).copied()
    }
}

/// A tensor map was encoded; kernels get its 128 bytes as a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMap {
    pub encoded: Vec<u8>,
    /// `CUtensorMapDataType`
    pub dtype: u32,
    pub address: u64,
    /// `CUtensorMapInterleave`
    pub interleave: u32,
    /// `CUtensorMapSwizzle`
    pub swizzle: u32,
    /// `CUtensorMapFloatOOBfill`
    pub fill: u32,
    /// Innermost first.
    pub axes: Vec<Axis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    pub extent: u64,
    /// Bytes to the next element of the next axis; 0 for the last one, which has none.
    pub stride: u64,
    pub block: u32,
    pub step: u32,
}
