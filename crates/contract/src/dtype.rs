use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Element type of a tensor, under torch's name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Dtype {
    #[serde(rename = "bool")]
    Bool,
    #[serde(rename = "uint8")]
    U8,
    #[serde(rename = "uint16")]
    U16,
    #[serde(rename = "uint32")]
    U32,
    #[serde(rename = "uint64")]
    U64,
    #[serde(rename = "int8")]
    I8,
    #[serde(rename = "int16")]
    I16,
    #[serde(rename = "int32")]
    I32,
    #[serde(rename = "int64")]
    I64,
    #[serde(rename = "float8_e4m3fn")]
    F8E4M3,
    #[serde(rename = "float8_e5m2")]
    F8E5M2,
    #[serde(rename = "float16")]
    F16,
    #[serde(rename = "bfloat16")]
    Bf16,
    #[serde(rename = "float32")]
    F32,
    #[serde(rename = "float64")]
    F64,
}

impl Dtype {
    /// Bytes of one element.
    pub fn size(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 | Self::F8E4M3 | Self::F8E5M2 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Self::F8E4M3 | Self::F8E5M2 | Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// torch's name, as in the JSON documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F8E4M3 => "float8_e4m3fn",
            Self::F8E5M2 => "float8_e5m2",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }
}
