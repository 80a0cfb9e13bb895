//! The steps that are no launches, executed on bytes.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Normal};
use tilewright_contract::{Distribution, Dtype, Number, Step, TensorRef, View};

use crate::convert::{Element, read, write};
use crate::run::{Fault, FaultKind};

/// What a step writes: the elements of `dst` in logical order, as bytes of its dtype.
pub(crate) struct Written<'a> {
    pub(crate) dst: &'a TensorRef,
    pub(crate) bytes: Vec<u8>,
}

/// Computes what a step other than a launch writes. `source` gives the bytes of a buffer.
pub(crate) fn evaluate<'a, 's>(
    step: &'a Step,
    number: usize,
    seed: u64,
    source: impl Fn(usize) -> &'s [u8],
) -> Result<Option<Written<'a>>, Fault> {
    Ok(match step {
        Step::Launch { .. } => None,
        Step::Copy { src, dst, .. } => {
            Some(Written { dst, bytes: converted(&src.view, source(src.buffer), &dst.view) })
        }
        Step::Fill { dst, value, .. } => Some(filled(dst, std::iter::repeat(Element::from(*value)))),
        Step::Iota { dst, start, step, .. } => Some(filled(dst, iota(*start, *step))),
        Step::Literal { dst, values, .. } => Some(filled(dst, values.iter().map(|&value| Element::from(value)))),
        Step::Random { dst, distribution, .. } => Some(random(dst, distribution, number, seed)?),
    })
}

/// Draws a seed that the file draws with `torch.randint`.
pub(crate) fn draw_seed(seed: u64, index: usize, low: i64, high: i64) -> i64 {
    stream(seed, u64::MAX - index as u64).random_range(low..high)
}

fn converted(src: &View, bytes: &[u8], dst: &View) -> Vec<u8> {
    if src.dtype == dst.dtype {
        return src.gather(bytes);
    }
    let size = src.dtype.size() as usize;
    elements(dst, src.offsets().map(|at| read(src.dtype, &bytes[at..at + size])))
}

/// The first element that a copy changes as it makes an integer or a bool of it, before and after: torch then truncates,
/// tests for zero or takes a remainder, which is arithmetic. Rounding to another float is not. `counts` says of which
/// offsets of the source.
pub(crate) fn changed(
    src: &View,
    bytes: &[u8],
    dst: &View,
    counts: impl Fn(usize) -> bool,
) -> Option<(String, String)> {
    if src.dtype == dst.dtype || dst.dtype.is_float() || src.dtype == Dtype::Bool {
        return None;
    }
    let mut slot = [0; 8];
    let slot = &mut slot[..dst.dtype.size() as usize];
    src.offsets().filter(|&at| counts(at)).find_map(|at| {
        let before = read(src.dtype, &bytes[at..at + src.dtype.size() as usize]);
        write(dst.dtype, before, slot);
        let after = read(dst.dtype, slot);
        (!before.equals(after)).then(|| (before.to_string(), after.to_string()))
    })
}

fn filled(dst: &TensorRef, values: impl Iterator<Item = Element>) -> Written<'_> {
    Written { dst, bytes: elements(&dst.view, values) }
}

fn elements(view: &View, values: impl Iterator<Item = Element>) -> Vec<u8> {
    let size = view.dtype.size() as usize;
    let mut out = vec![0; view.numel() as usize * size];
    for (slot, value) in out.chunks_exact_mut(size).zip(values) {
        write(view.dtype, value, slot);
    }
    out
}

fn iota(start: Number, step: Number) -> impl Iterator<Item = Element> {
    (0i64..).map(move |i| match (start, step) {
        (Number::Float(_), _) | (_, Number::Float(_)) => Element::Float(start.as_f64() + i as f64 * step.as_f64()),
        _ => {
            let (start, step) = (start.as_i64().unwrap_or_default(), step.as_i64().unwrap_or_default());
            Element::Int(start.wrapping_add(i.wrapping_mul(step)))
        }
    })
}

fn random<'a>(dst: &'a TensorRef, distribution: &Distribution, number: usize, seed: u64) -> Result<Written<'a>, Fault> {
    let mut rng = stream(seed, number as u64);
    Ok(match *distribution {
        Distribution::Uniform { low, high } => {
            filled(dst, std::iter::from_fn(|| Some(Element::Float(low + (high - low) * rng.random::<f64>()))))
        }
        Distribution::Normal { mean, std } => {
            let normal = Normal::new(mean, std)
                .map_err(|error| Fault::new(FaultKind::Launch, format!("normal({mean}, {std}): {error}")))?;
            filled(dst, std::iter::from_fn(|| Some(Element::Float(normal.sample(&mut rng)))))
        }
        Distribution::Randint { low, high } => {
            filled(dst, std::iter::from_fn(|| Some(Element::Int(rng.random_range(low..high)))))
        }
        Distribution::Bernoulli { p } => {
            filled(dst, std::iter::from_fn(|| Some(Element::Int(i64::from(rng.random::<f64>() < p)))))
        }
    })
}

fn stream(seed: u64, number: u64) -> impl Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dtype: Dtype, shape: &[u64]) -> TensorRef {
        TensorRef { buffer: 0, view: View::contiguous(dtype, shape) }
    }

    #[test]
    fn making_an_integer_of_a_number_that_is_none_changes_it() {
        let floats: Vec<u8> = [2.0f32, -3.0, 0.25].iter().flat_map(|f| f.to_le_bytes()).collect();
        let (src, all) = (View::contiguous(Dtype::F32, &[3]), |_| true);
        let to = |dtype| changed(&src, &floats, &View::contiguous(dtype, &[3]), all);
        assert_eq!(to(Dtype::I32), Some(("0.25".into(), "0".into())));
        assert_eq!(to(Dtype::U8), Some(("-3".into(), "253".into())));
        assert_eq!(to(Dtype::Bool), Some(("2".into(), "1".into())));
        assert_eq!((to(Dtype::F16), to(Dtype::F64)), (None, None));
        let whole = View::contiguous(Dtype::F32, &[2]);
        assert_eq!(changed(&whole, &floats, &View::contiguous(Dtype::I64, &[2]), all), None);
        // What nothing wrote does not count.
        assert_eq!(changed(&src, &floats, &View::contiguous(Dtype::I32, &[3]), |at| at < 8), None);
        let ints: Vec<u8> = [7i64, 256].iter().flat_map(|i| i.to_le_bytes()).collect();
        let src = View::contiguous(Dtype::I64, &[2]);
        let to = |dtype| changed(&src, &ints, &View::contiguous(dtype, &[2]), all).map(|pair| pair.1);
        assert_eq!((to(Dtype::I32), to(Dtype::U8), to(Dtype::F16)), (None, Some("0".into()), None));
    }

    fn bytes_of(step: &Step, source: &[u8]) -> Vec<u8> {
        evaluate(step, 0, 7, |_| source).unwrap().unwrap().bytes
    }

    #[test]
    fn a_broadcast_copy_with_a_cast_repeats_and_converts() {
        let src = TensorRef {
            buffer: 0,
            view: View { dtype: Dtype::F32, shape: vec![2, 2], strides: vec![0, 1], offset: 0 },
        };
        let step = Step::Copy { src, dst: tensor(Dtype::I64, &[2, 2]), line: 1 };
        let source: Vec<u8> = [1.5f32, -2.5].iter().flat_map(|v| v.to_le_bytes()).collect();
        let wanted: Vec<u8> = [1i64, -2, 1, -2].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(bytes_of(&step, &source), wanted);
    }

    #[test]
    fn a_fill_with_an_unsigned_word_is_that_number_in_every_dtype() {
        let fill = |dtype| {
            let values = vec![Number::Unsigned(1 << 63), Number::Unsigned(u64::MAX)];
            bytes_of(&Step::Literal { dst: tensor(dtype, &[2]), values, line: 1 }, &[])
        };
        assert_eq!(fill(Dtype::U64), [1u64 << 63, u64::MAX].map(u64::to_le_bytes).concat());
        assert_eq!(fill(Dtype::F64), [2f64.powi(63), 2f64.powi(64)].map(f64::to_le_bytes).concat());
        assert_eq!(fill(Dtype::F32), [2f32.powi(63), 2f32.powi(64)].map(f32::to_le_bytes).concat());
    }

    #[test]
    fn iota_counts_in_integers_and_in_floats() {
        let integers =
            Step::Iota { dst: tensor(Dtype::I32, &[3]), start: Number::Int(5), step: Number::Int(-2), line: 1 };
        let wanted: Vec<u8> = [5i32, 3, 1].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(bytes_of(&integers, &[]), wanted);
        let floats =
            Step::Iota { dst: tensor(Dtype::F32, &[2]), start: Number::Float(0.5), step: Number::Float(0.25), line: 1 };
        let wanted: Vec<u8> = [0.5f32, 0.75].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(bytes_of(&floats, &[]), wanted);
    }

    #[test]
    fn seeds_differ_by_index_and_repeat_by_seed() {
        let draw = |seed, index| draw_seed(seed, index, 0, 1 << 31);
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
    }
}
