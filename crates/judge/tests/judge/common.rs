//! Tensors for tests, and a naive comparison to hold the real one against.

use tilewright_contract::{Blob, Dtype, ExpectedTensor, Profile};
use tilewright_judge::{profile, round_to};

pub(crate) fn shipped(name: &str) -> Profile {
    profile(name).unwrap().unwrap()
}

pub(crate) fn expected(dtype: Dtype, shape: &[u64]) -> ExpectedTensor {
    let blob = Blob { offset: 0, nbytes: 0 };
    ExpectedTensor {
        path: "output".into(),
        dtype,
        shape: shape.to_vec(),
        native: blob,
        float64: None,
        alias: None,
        copy_only: false,
    }
}

/// Bytes of `values` in a floating dtype, each rounded once.
pub(crate) fn encode(dtype: Dtype, values: &[f64]) -> Vec<u8> {
    let raw = |v: f64| match dtype {
        Dtype::F64 => v.to_le_bytes().to_vec(),
        Dtype::F32 => (v as f32).to_le_bytes().to_vec(),
        Dtype::F16 => half::f16::from_f64(round_to(dtype, v)).to_le_bytes().to_vec(),
        Dtype::Bf16 => half::bf16::from_f64(round_to(dtype, v)).to_le_bytes().to_vec(),
        other => panic!("{other:?}"),
    };
    values.iter().flat_map(|&v| raw(v)).collect()
}

pub(crate) fn ints(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A reproducible stream of standard normals.
pub(crate) struct Normals(u64);

impl Normals {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn next(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.next()).collect()
    }
}
