//! The output contract: structure, shape, dtype and aliasing, before any value is compared.

use tilewright_contract::{
    Buffer, BufferSource, Dtype, Expected, ExpectedTensor, Number, Reason, TensorRef, Value, View, result_name,
};

/// What the candidate's output breaks of the contract; empty if nothing.
///
/// `output` is a checked plan's output and `buffers` are its buffers. Nothing is broadcast, cast or reordered: a
/// tuple is no list, `[1]` is no scalar, int32 is no int64. Strides may differ. A dict may list its keys in any order.
/// An output may share storage with an input, a parameter or a constant of the module only where the reference's
/// output is that same input or parameter; and memory with another output, or its own elements with each other
/// (`expand`), only where the reference's does so.
pub fn check_output(expected: &Expected, output: &Value, buffers: &[Buffer]) -> Vec<Reason> {
    let mut check = Check { expected, buffers, seen: Vec::new(), reasons: Vec::new() };
    check.value(String::new(), &expected.output, output);
    check.reasons
}

struct Check<'a> {
    expected: &'a Expected,
    buffers: &'a [Buffer],
    /// Outputs in fresh memory so far, none of which overlap.
    seen: Vec<(String, TensorRef)>,
    reasons: Vec<Reason>,
}

impl Check<'_> {
    fn value(&mut self, path: String, want: &Value, got: &Value) {
        let name = result_name(&path);
        match (want, got) {
            (Value::Tensor(want), Value::Tensor(got)) => self.tensor(&name, want, got),
            (Value::List { items: want }, Value::List { items: got })
            | (Value::Tuple { items: want }, Value::Tuple { items: got })
                if want.len() == got.len() =>
            {
                for (at, (want, got)) in want.iter().zip(got).enumerate() {
                    self.value(format!("{path}[{at}]"), want, got);
                }
            }
            (Value::Dict { items: want }, Value::Dict { items: got }) if same_keys(want, got) => {
                for (key, want) in want {
                    if let Some((_, got)) = got.iter().find(|(other, _)| other == key) {
                        self.value(format!("{path}[{key:?}]"), want, got);
                    }
                }
            }
            (Value::Number { value: want_number }, Value::Number { value: got_number }) => {
                if !same_number(*want_number, *got_number) {
                    self.structure(&name, want, got);
                }
            }
            (Value::Tensor(_), _) | (Value::List { .. } | Value::Tuple { .. } | Value::Dict { .. }, _) => {
                self.structure(&name, want, got);
            }
            _ if want == got => {}
            _ => self.structure(&name, want, got),
        }
    }

    fn structure(&mut self, path: &str, want: &Value, got: &Value) {
        let help = match (want, got) {
            (Value::Tuple { .. }, Value::List { .. }) => Some("return a tuple, as the reference does"),
            (Value::List { .. }, Value::Tuple { .. }) => Some("return a list, as the reference does"),
            (Value::Tuple { .. } | Value::List { .. } | Value::Dict { .. }, _) => {
                Some("return every output of the reference, in its order")
            }
            (Value::Tensor(_), Value::None) if path.starts_with("grad ") => {
                Some("make forward differentiable: a torch.autograd.Function whose backward launches kernels")
            }
            (Value::Tensor(_), Value::None) => Some("return the output tensor from forward"),
            (Value::Tensor(_), _) => Some("return the tensor itself"),
            _ => None,
        };
        self.report("wrong-structure", format!("{path}: expected {}, got {}", describe(want), describe(got)), help);
    }

    fn tensor(&mut self, path: &str, want: &TensorRef, got: &TensorRef) {
        // The oracle's own index; a broken one is caught when its data is read.
        let Some(tensor) = self.expected.tensors.get(want.buffer) else { return };
        let (dtype, shape) = (got.view.dtype, &got.view.shape);
        if dtype != tensor.dtype || *shape != tensor.shape {
            let message = format!("{path}: expected {}, got {}", kind(tensor.dtype, &tensor.shape), kind(dtype, shape));
            let (code, help) = self.mismatch(tensor, dtype, shape);
            self.report(code, message, Some(&help));
        }
        self.alias(path, tensor, got);
        // Of the expected shape, so of a size that can be looked at.
        if *shape == tensor.shape && tensor.alias.is_none() {
            self.overlap(path, got);
        }
    }

    /// Memory that outputs share, or elements of one: writing to one would change the other.
    fn overlap(&mut self, path: &str, got: &TensorRef) {
        if !self.buffers.get(got.buffer).is_some_and(|buffer| buffer.source == BufferSource::Scratch) {
            return;
        }
        let help = Some("give every output memory of its own (torch.empty_like, .contiguous())");
        if !is_dense(&got.view) && places(&got.view).windows(2).any(|pair| pair[0] == pair[1]) {
            let message =
                format!("{path}: several of its elements are one place in memory (expand?), the reference's are not");
            self.report("aliased-output", message, help);
            return;
        }
        let other = self.seen.iter().find(|(_, seen)| seen.buffer == got.buffer && meet(&seen.view, &got.view));
        if let Some((other, _)) = other {
            let message = format!("{path}: shares memory with {other}, where the reference returns separate tensors");
            self.report("aliased-output", message, help);
        }
        self.seen.push((path.into(), got.clone()));
    }

    fn mismatch(&self, want: &ExpectedTensor, dtype: Dtype, shape: &[u64]) -> (&'static str, String) {
        let numel = |shape: &[u64]| shape.iter().product::<u64>();
        if *shape == want.shape {
            return ("wrong-dtype", format!("allocate the output with dtype=torch.{}", want.dtype.name()));
        }
        let mut reversed = want.shape.clone();
        reversed.reverse();
        let help = if dtype != want.dtype {
            format!("allocate the output with shape {:?} and dtype=torch.{}", want.shape, want.dtype.name())
        } else if want.shape.is_empty() {
            "return a 0-dimensional tensor: torch.empty((), …), or .reshape(())".into()
        } else if shape == reversed && shape.len() > 1 {
            "the axes are in reverse order; return the transpose".into()
        } else if numel(shape) == numel(&want.shape) {
            format!("same number of elements; reshape to {:?}", want.shape)
        } else if shape.is_empty() {
            "nothing is broadcast: return the full tensor".into()
        } else {
            format!("allocate the output with shape {:?}", want.shape)
        };
        ("wrong-shape", help)
    }

    fn alias(&mut self, path: &str, want: &ExpectedTensor, got: &TensorRef) {
        let own = match self.buffers.get(got.buffer).map(|buffer| &buffer.source) {
            Some(BufferSource::Input { index }) => format!("input[{index}]"),
            Some(BufferSource::State { name }) => format!("state.{name}"),
            Some(BufferSource::Constant { path }) => format!("self.{path}"),
            Some(BufferSource::Scratch) | None => return,
        };
        if want.alias.as_ref() == Some(&own) {
            return;
        }
        let message = match &want.alias {
            Some(other) => format!("{path}: shares the storage of {own}, where the reference returns {other}"),
            None => format!("{path}: shares the storage of {own}, where the reference returns a new tensor"),
        };
        self.report(
            "aliased-output",
            message,
            Some("write the result to a new tensor (torch.empty_like) and return that"),
        );
    }

    fn report(&mut self, code: &str, message: String, help: Option<&str>) {
        self.reasons.push(Reason { code: code.into(), message, line: None, help: help.map(Into::into) });
    }
}

/// First bytes of a view's elements, in order.
fn places(view: &View) -> Vec<usize> {
    let mut places: Vec<usize> = view.offsets().collect();
    places.sort_unstable();
    places
}

/// Whether two views of one buffer have a byte in common.
fn meet(first: &View, second: &View) -> bool {
    let (a, b) = (places(first), places(second));
    let (size_a, size_b) = (first.dtype.size() as usize, second.dtype.size() as usize);
    let (mut at, mut other) = (0, 0);
    while at < a.len() && other < b.len() {
        if a[at] + size_a <= b[other] {
            at += 1;
        } else if b[other] + size_b <= a[at] {
            other += 1;
        } else {
            return true;
        }
    }
    false
}

/// Whether a view is its memory in some order of the axes, so that no two elements are one place.
fn is_dense(view: &View) -> bool {
    let mut axes: Vec<(i64, u64)> = view.strides.iter().copied().zip(view.shape.iter().copied()).collect();
    axes.retain(|(_, extent)| *extent != 1);
    axes.sort_unstable();
    let mut next = 1;
    axes.iter().all(|(stride, extent)| {
        let fits = *stride >= next;
        next = stride.saturating_mul(*extent as i64);
        fits
    })
}

fn same_keys(want: &[(String, Value)], got: &[(String, Value)]) -> bool {
    want.len() == got.len() && want.iter().all(|(key, _)| got.iter().any(|(other, _)| other == key))
}

fn same_number(want: Number, got: Number) -> bool {
    match (want, got) {
        (Number::Float(a), Number::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
        _ => want == got,
    }
}

fn kind(dtype: Dtype, shape: &[u64]) -> String {
    format!("{} of shape {shape:?}", dtype.name())
}

/// A value in words: `a tuple of 3`, `a dict with keys "loss", "z"`.
fn describe(value: &Value) -> String {
    match value {
        Value::None => "None".into(),
        Value::Tensor(_) => "a tensor".into(),
        Value::Number { value: Number::Bool(b) } => if *b { "True" } else { "False" }.into(),
        Value::Number { value: Number::Float(f) } => format!("the number {f:?}"),
        Value::Number { value } => format!("the number {value}"),
        Value::Str { value } => format!("the string {value:?}"),
        Value::Torch { value } => value.clone(),
        Value::List { items } => format!("a list of {}", items.len()),
        Value::Tuple { items } => format!("a tuple of {}", items.len()),
        Value::Dict { items } => {
            let keys: Vec<String> = items.iter().map(|(key, _)| format!("{key:?}")).collect();
            format!("a dict with keys {}", keys.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use tilewright_contract::Blob;

    fn tensor(buffer: usize, dtype: Dtype, shape: &[u64]) -> Value {
        Value::Tensor(TensorRef { buffer, view: View::contiguous(dtype, shape) })
    }

    fn reference(tensors: &[(Dtype, &[u64], Option<&str>)]) -> Expected {
        let blob = Blob { offset: 0, nbytes: 0 };
        let items: Vec<Value> = tensors.iter().enumerate().map(|(at, (d, s, _))| tensor(at, *d, s)).collect();
        let output = match &items[..] {
            [one] => one.clone(),
            _ => Value::Tuple { items },
        };
        let tensors = tensors
            .iter()
            .enumerate()
            .map(|(at, (dtype, shape, alias))| ExpectedTensor {
                path: format!("output[{at}]"),
                dtype: *dtype,
                shape: shape.to_vec(),
                native: blob,
                float64: None,
                alias: alias.map(Into::into),
                copy_only: false,
            })
            .collect();
        Expected { output, tensors }
    }

    fn buffers() -> Vec<Buffer> {
        let source = [
            BufferSource::Scratch,
            BufferSource::Input { index: 0 },
            BufferSource::State { name: "running".into() },
            BufferSource::Constant { path: "table".into() },
            BufferSource::Scratch,
        ];
        source.into_iter().map(|source| Buffer { nbytes: 1 << 20, source }).collect()
    }

    fn said(expected: &Expected, output: &Value) -> String {
        let reasons = check_output(expected, output, &buffers());
        let line = |r: Reason| format!("{} | {} | {}", r.code, r.message, r.help.unwrap_or_default());
        reasons.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_fits_is_silent_whatever_its_strides() {
        let expected = reference(&[(Dtype::F32, &[4, 3], None), (Dtype::I64, &[4], None)]);
        let mut items = vec![tensor(0, Dtype::F32, &[4, 3]), tensor(4, Dtype::I64, &[4])];
        if let Value::Tensor(t) = &mut items[0] {
            t.view.strides = vec![1, 4];
        }
        assert_eq!(said(&expected, &Value::Tuple { items }), "");
    }

    #[test]
    fn dtype_and_shape_are_named() {
        let index = reference(&[(Dtype::F32, &[21, 5], None), (Dtype::I64, &[21], None)]);
        let pair = |a, b| Value::Tuple { items: vec![a, b] };
        assert_snapshot!(said(&index, &pair(tensor(0, Dtype::F32, &[21, 5]), tensor(4, Dtype::I32, &[21]))), @r"wrong-dtype | output[1]: expected int64 of shape [21], got int32 of shape [21] | allocate the output with dtype=torch.int64");
        assert_snapshot!(said(&index, &pair(tensor(0, Dtype::F16, &[5, 21]), tensor(0, Dtype::I64, &[21, 1]))), @r"
        wrong-shape | output[0]: expected float32 of shape [21, 5], got float16 of shape [5, 21] | allocate the output with shape [21, 5] and dtype=torch.float32
        wrong-shape | output[1]: expected int64 of shape [21], got int64 of shape [21, 1] | same number of elements; reshape to [21]
        ");
        let loss = reference(&[(Dtype::F32, &[], None)]);
        assert_snapshot!(said(&loss, &tensor(0, Dtype::F32, &[1])), @r"wrong-shape | output: expected float32 of shape [], got float32 of shape [1] | return a 0-dimensional tensor: torch.empty((), …), or .reshape(())");
        let full = reference(&[(Dtype::F32, &[8, 5], None)]);
        assert_snapshot!(said(&full, &tensor(0, Dtype::F32, &[])), @r"wrong-shape | output: expected float32 of shape [8, 5], got float32 of shape [] | nothing is broadcast: return the full tensor");
        assert_snapshot!(said(&full, &tensor(0, Dtype::F32, &[5, 8])), @r"wrong-shape | output: expected float32 of shape [8, 5], got float32 of shape [5, 8] | the axes are in reverse order; return the transpose");
        assert_snapshot!(said(&full, &tensor(0, Dtype::F32, &[8, 4])), @r"wrong-shape | output: expected float32 of shape [8, 5], got float32 of shape [8, 4] | allocate the output with shape [8, 5]");
    }

    #[test]
    fn structure_is_named() {
        let pair = reference(&[(Dtype::F32, &[2], None), (Dtype::F32, &[2], None)]);
        let part = || tensor(0, Dtype::F32, &[2]);
        assert_snapshot!(said(&pair, &part()), @r"wrong-structure | output: expected a tuple of 2, got a tensor | return every output of the reference, in its order");
        assert_snapshot!(said(&pair, &Value::List { items: vec![part(), part()] }), @r"wrong-structure | output: expected a tuple of 2, got a list of 2 | return a tuple, as the reference does");
        assert_snapshot!(said(&pair, &Value::Tuple { items: vec![part(); 3] }), @r"wrong-structure | output: expected a tuple of 2, got a tuple of 3 | return every output of the reference, in its order");
        assert_snapshot!(said(&reference(&[(Dtype::F32, &[2], None)]), &Value::None), @r"wrong-structure | output: expected a tensor, got None | return the output tensor from forward");
        let dict = |keys: &[&str]| Value::Dict { items: keys.iter().map(|k| ((*k).into(), part())).collect() };
        let mut expected = pair.clone();
        expected.output = dict(&["loss", "z"]);
        let apart = vec![("z".into(), part()), ("loss".into(), tensor(4, Dtype::F32, &[2]))];
        assert_eq!(said(&expected, &Value::Dict { items: apart }), "");
        assert_snapshot!(said(&expected, &dict(&["loss", "y"])), @r#"wrong-structure | output: expected a dict with keys "loss", "z", got a dict with keys "loss", "y" | return every output of the reference, in its order"#);
        expected.output = Value::Tuple { items: vec![part(), Value::Number { value: Number::Int(3) }] };
        let other = Value::Tuple { items: vec![part(), Value::Number { value: Number::Float(3.0) }] };
        assert_snapshot!(said(&expected, &other), @r"wrong-structure | output[1]: expected the number 3, got the number 3.0 | ");
    }

    #[test]
    fn only_what_the_reference_aliases_may_be_aliased() {
        let fresh = reference(&[(Dtype::F32, &[2], None)]);
        assert_snapshot!(said(&fresh, &tensor(1, Dtype::F32, &[2])), @r"aliased-output | output: shares the storage of input[0], where the reference returns a new tensor | write the result to a new tensor (torch.empty_like) and return that");
        assert_snapshot!(said(&fresh, &tensor(3, Dtype::F32, &[2])), @r"aliased-output | output: shares the storage of self.table, where the reference returns a new tensor | write the result to a new tensor (torch.empty_like) and return that");
        let inplace = reference(&[(Dtype::F32, &[2], Some("input[0]"))]);
        assert_eq!(said(&inplace, &tensor(1, Dtype::F32, &[2])), "");
        assert_eq!(said(&inplace, &tensor(0, Dtype::F32, &[2])), "");
        assert_snapshot!(said(&inplace, &tensor(2, Dtype::F32, &[2])), @r"aliased-output | output: shares the storage of state.running, where the reference returns input[0] | write the result to a new tensor (torch.empty_like) and return that");
    }
    #[test]
    fn outputs_overlap_only_where_the_references_do() {
        let view = |buffer, offset, shape: &[u64], strides: &[i64]| {
            let view = View { offset, strides: strides.to_vec(), ..View::contiguous(Dtype::F32, shape) };
            Value::Tensor(TensorRef { buffer, view })
        };
        let one = reference(&[(Dtype::F32, &[4, 3], None)]);
        assert_eq!(said(&one, &view(0, 0, &[4, 3], &[1, 4])), "");
        assert_eq!(said(&one, &view(0, 0, &[4, 3], &[8, 2])), "");
        assert_snapshot!(said(&one, &view(0, 0, &[4, 3], &[0, 1])), @r"aliased-output | output: several of its elements are one place in memory (expand?), the reference's are not | give every output memory of its own (torch.empty_like, .contiguous())");
        assert!(said(&one, &view(0, 0, &[4, 3], &[1, 1])).contains("one place"));
        assert_eq!(said(&reference(&[(Dtype::F32, &[4, 3], Some("output"))]), &view(0, 0, &[4, 3], &[0, 1])), "");
        let pair = |first, second| Value::Tuple { items: vec![first, second] };
        let two = reference(&[(Dtype::F32, &[4, 3], None), (Dtype::F32, &[4, 3], None)]);
        // Halves of one allocation, side by side and interleaved.
        assert_eq!(said(&two, &pair(view(0, 0, &[4, 3], &[3, 1]), view(0, 48, &[4, 3], &[3, 1]))), "");
        assert_eq!(said(&two, &pair(view(0, 0, &[4, 3], &[6, 1]), view(0, 12, &[4, 3], &[6, 1]))), "");
        let same = pair(view(0, 0, &[4, 3], &[3, 1]), view(0, 0, &[4, 3], &[3, 1]));
        assert_snapshot!(said(&two, &same), @r"aliased-output | output[1]: shares memory with output[0], where the reference returns separate tensors | give every output memory of its own (torch.empty_like, .contiguous())");
        assert!(
            said(&two, &pair(view(0, 0, &[4, 3], &[3, 1]), view(0, 44, &[4, 3], &[3, 1]))).contains("shares memory")
        );
        let twice = reference(&[(Dtype::F32, &[4, 3], None), (Dtype::F32, &[4, 3], Some("output[0]"))]);
        assert_eq!(said(&twice, &same), "");
    }
}
