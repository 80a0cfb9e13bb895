use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Dtype, Number, OUTPUT};

/// How a tensor lies in its buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct View {
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// In elements of `dtype`; 0 repeats an element (`expand`).
    pub strides: Vec<i64>,
    /// Bytes from the start of the buffer to element zero.
    pub offset: u64,
}

impl View {
    pub fn contiguous(dtype: Dtype, shape: &[u64]) -> Self {
        let mut strides = vec![1i64; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1) as i64;
        }
        Self { dtype, shape: shape.to_vec(), strides, offset: 0 }
    }

    pub fn numel(&self) -> u64 {
        self.shape.iter().fold(1u64, |count, &extent| count.saturating_mul(extent))
    }

    /// Byte offsets of every element in logical (row-major) order.
    ///
    /// Call only on a view that [`View::fits`] its buffer.
    pub fn offsets(&self) -> impl Iterator<Item = usize> + '_ {
        let size = self.dtype.size() as i64;
        let mut index = vec![0u64; self.shape.len()];
        let mut at = self.offset as i64;
        (0..self.numel()).map(move |_| {
            let here = at as usize;
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                at += self.strides[axis] * size;
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.strides[axis] * size * self.shape[axis] as i64;
                index[axis] = 0;
            }
            here
        })
    }

    /// Whether every element lies inside a buffer of `nbytes`. Checked arithmetic: views come from hostile claims.
    pub fn fits(&self, nbytes: u64) -> bool {
        if self.shape.len() != self.strides.len() {
            return false;
        }
        let Some(numel) = self.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)) else { return false };
        if numel == 0 {
            return true;
        }
        let size = self.dtype.size() as i128;
        let (mut low, mut high) = (i128::from(self.offset), i128::from(self.offset));
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = i128::from(extent - 1) * i128::from(stride) * size;
            if reach < 0 { low += reach } else { high += reach }
        }
        low >= 0 && high + size <= i128::from(nbytes)
    }

    /// Copies the viewed elements out of `buffer`, in logical order.
    pub fn gather(&self, buffer: &[u8]) -> Vec<u8> {
        let size = self.dtype.size() as usize;
        let total = self.numel() as usize * size;
        if *self == (Self { offset: self.offset, ..Self::contiguous(self.dtype, &self.shape) }) {
            let start = self.offset as usize;
            return buffer[start..start + total].to_vec();
        }
        let mut out = Vec::with_capacity(total);
        for at in self.offsets() {
            out.extend_from_slice(&buffer[at..at + size]);
        }
        out
    }
}

/// A tensor: a view of one of the plan's (or the signature's) buffers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TensorRef {
    /// Index into the document's `buffers`.
    pub buffer: usize,
    #[serde(flatten)]
    pub view: View,
}

/// A Python value with tensors in it: an argument, or what `forward` returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Value {
    None,
    Tensor(TensorRef),
    Number {
        value: Number,
    },
    Str {
        value: String,
    },
    /// A `torch.dtype` or `torch.device`, by its printed name.
    Torch {
        value: String,
    },
    List {
        items: Vec<Value>,
    },
    Tuple {
        items: Vec<Value>,
    },
    Dict {
        items: Vec<(String, Value)>,
    },
}

impl Value {
    /// Every tensor in it with its path: `""` for the value itself, then `[0]`, `["key"]`.
    pub fn tensors(&self) -> Vec<(String, &TensorRef)> {
        let mut found = Vec::new();
        self.collect(String::new(), &mut found);
        found
    }

    /// Every tensor of a call's result with its name: `output`, `output[0]`, `grad x`, as [`crate::ExpectedTensor`] has it.
    pub fn results(&self) -> Vec<(String, &TensorRef)> {
        let mut found = Vec::new();
        self.collect(String::new(), &mut found);
        found.into_iter().map(|(path, tensor)| (result_name(&path), tensor)).collect()
    }

    fn collect<'a>(&'a self, path: String, found: &mut Vec<(String, &'a TensorRef)>) {
        match self {
            Self::Tensor(tensor) => found.push((path, tensor)),
            Self::List { items } | Self::Tuple { items } => {
                for (i, item) in items.iter().enumerate() {
                    item.collect(format!("{path}[{i}]"), found);
                }
            }
            Self::Dict { items } => {
                for (key, item) in items {
                    item.collect(format!("{path}[{key:?}]"), found);
                }
            }
            Self::None | Self::Number { .. } | Self::Str { .. } | Self::Torch { .. } => {}
        }
    }
}

/// What a place in a call's result is called: `output[0]`; where the call gives gradients too, `output[0]` and `grad NAME`.
pub fn result_name(path: &str) -> String {
    if let Some(key) = path.strip_prefix("[\"grad ").and_then(|rest| rest.strip_suffix("\"]")) {
        // Of a tensor, so that nothing follows.
        return format!("grad {}", key.replace("\\\"", "\"").replace("\\\\", "\\"));
    }
    format!("output{}", path.strip_prefix(&format!("[{OUTPUT:?}]")).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_have_names_of_their_own_beside_the_output() {
        let tensor = |buffer| Value::Tensor(TensorRef { buffer, view: View::contiguous(Dtype::F32, &[2]) });
        let pair = Value::Dict { items: vec![("a".into(), tensor(0)), ("grad b".into(), tensor(1))] };
        let items = vec![(OUTPUT.to_owned(), pair.clone()), ("grad x[\"k\"]".to_owned(), tensor(2))];
        let names = |value: &Value| value.results().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&Value::Dict { items }), ["output[\"a\"]", "output[\"grad b\"]", "grad x[\"k\"]"]);
        assert_eq!(names(&tensor(0)), ["output"]);
    }

    #[test]
    fn a_transposed_view_gathers_in_logical_order() {
        let view = View { dtype: Dtype::U8, shape: vec![3, 2], strides: vec![1, 3], offset: 1 };
        assert_eq!(view.gather(&[9, 1, 2, 3, 4, 5, 6]), vec![1, 4, 2, 5, 3, 6]);
    }

    #[test]
    fn a_view_past_its_buffer_or_with_absurd_sizes_does_not_fit() {
        let fits =
            |shape: Vec<u64>, strides: Vec<i64>, offset| View { dtype: Dtype::F32, shape, strides, offset }.fits(64);
        assert!(fits(vec![4, 4], vec![4, 1], 0));
        assert!(fits(vec![16], vec![-1], 60));
        assert!(!fits(vec![16], vec![-1], 56));
        assert!(!fits(vec![4, 4], vec![4, 1], 4));
        assert!(!fits(vec![u64::MAX, u64::MAX], vec![i64::MAX, i64::MAX], 0));
        assert!(!fits(vec![4], vec![], 0));
    }

    #[test]
    fn claims_of_endless_extents_neither_wrap_nor_fit() {
        let view = View { dtype: Dtype::F32, shape: vec![1 << 40, 1 << 40], strides: vec![0, 0], offset: 0 };
        assert_eq!(view.numel(), u64::MAX);
        assert!(!view.fits(u64::MAX));
        let empty = View { shape: vec![1 << 40, 1 << 40, 0], strides: vec![0, 0, 0], ..view };
        assert_eq!(empty.numel(), 0);
    }
}
