//! Sums over a failed output, from which its likely cause is told.

use tilewright_contract::Dtype;

use crate::diagnose::Evidence;
use crate::groups::{Groups, unravel};
use crate::value::{decode, round_to};

/// An element is called wrong here, and not merely imprecise, beyond this share of its own size plus the output's rms.
fn gross(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F16 => 0.06,
        Dtype::Bf16 => 0.4,
        Dtype::F8E4M3 | Dtype::F8E5M2 => 1.0,
        _ => 0.03,
    }
}

/// Sums over one pass.
pub(crate) struct Facts {
    pub(crate) elements: usize,
    pub(crate) poisoned: usize,
    pub(crate) first_poisoned: usize,
    /// Elements that are not equal.
    pub(crate) different: usize,
    pub(crate) extra_nan: usize,
    pub(crate) extra_inf: usize,
    pub(crate) first_extra: usize,
    /// Finite, or another infinity, where the reference is NaN or infinite.
    pub(crate) missing: usize,
    pub(crate) first_missing: usize,
    /// Over elements where both are finite.
    pub(crate) finite: usize,
    pub(crate) zeros: usize,
    pub(crate) nonzero_golden: usize,
    /// Zeros where the golden is not small.
    pub(crate) lost: usize,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) golden_varies: bool,
    pub(crate) gg: f64,
    pub(crate) gc: f64,
    pub(crate) cc: f64,
    pub(crate) dd: f64,
    pub(crate) d: f64,
    pub(crate) gross: usize,
    /// For each axis, how many gross errors there are at each index.
    pub(crate) axes: Vec<Vec<usize>>,
    /// Elements of `got` that are numbers of float16, and of bfloat16.
    pub(crate) f16: usize,
    pub(crate) bf16: usize,
}

impl Facts {
    pub(crate) fn of(evidence: &Evidence) -> Self {
        let shape = &evidence.expected.shape;
        let (rms, gross) = (rms(evidence), gross(evidence.expected.dtype));
        let mut facts = Self {
            elements: 0,
            poisoned: 0,
            first_poisoned: 0,
            different: 0,
            extra_nan: 0,
            extra_inf: 0,
            first_extra: 0,
            missing: 0,
            first_missing: 0,
            finite: 0,
            zeros: 0,
            nonzero_golden: 0,
            lost: 0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            golden_varies: false,
            gg: 0.0,
            gc: 0.0,
            cc: 0.0,
            dd: 0.0,
            d: 0.0,
            gross: 0,
            axes: shape.iter().map(|&extent| vec![0; extent as usize]).collect(),
            f16: 0,
            bf16: 0,
        };
        let size = evidence.expected.dtype.size() as usize;
        let mut first_golden = None;
        each(evidence, |at, golden, native, got| {
            facts.elements += 1;
            facts.different += usize::from(!same(native, got));
            let raw = &evidence.got[at * size..(at + 1) * size];
            if evidence.poison.is_some_and(|poison| raw.iter().all(|&b| b == poison)) && !same(native, got) {
                facts.poisoned += 1;
                if facts.poisoned == 1 {
                    facts.first_poisoned = at;
                }
            }
            facts.zeros += usize::from(got == 0.0);
            facts.nonzero_golden += usize::from(golden != 0.0);
            facts.lost += usize::from(got == 0.0 && golden.abs() > 0.1 * rms);
            facts.low = facts.low.min(got);
            facts.high = facts.high.max(got);
            let reference = *first_golden.get_or_insert(golden);
            facts.golden_varies |= (golden - reference).abs() > 1e-3 * rms;
            let odd = !got.is_finite() && native.is_finite();
            if odd {
                facts.extra_nan += usize::from(got.is_nan());
                facts.extra_inf += usize::from(got.is_infinite());
                if facts.extra_nan + facts.extra_inf == 1 {
                    facts.first_extra = at;
                }
            }
            if !native.is_finite() && !got.is_nan() && !same(native, got) {
                facts.missing += 1;
                if facts.missing == 1 {
                    facts.first_missing = at;
                }
            }
            let both = golden.is_finite() && got.is_finite();
            if both {
                facts.sum(golden, got);
            }
            if odd || (both && (got - golden).abs() > gross * (golden.abs() + rms)) {
                facts.gross += 1;
                for (axis, index) in unravel(at, shape).into_iter().enumerate() {
                    facts.axes[axis][index as usize] += 1;
                }
            }
        });
        facts
    }

    fn sum(&mut self, golden: f64, got: f64) {
        let difference = got - golden;
        self.finite += 1;
        self.gg += golden * golden;
        self.gc += golden * got;
        self.cc += got * got;
        self.dd += difference * difference;
        self.d += difference;
        self.f16 += usize::from(round_to(Dtype::F16, got) == got);
        self.bf16 += usize::from(round_to(Dtype::Bf16, got) == got);
    }

    /// `rms(d) / rms(g)` over finite elements.
    pub(crate) fn error(&self) -> f64 {
        if self.dd == 0.0 { 0.0 } else { (self.dd / self.gg.max(f64::MIN_POSITIVE)).sqrt() }
    }
}

fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// Calls `visit` with index, golden, native and got of every element in order.
pub(crate) fn each(evidence: &Evidence, mut visit: impl FnMut(usize, f64, f64, f64)) {
    let (dtype, size) = (evidence.expected.dtype, evidence.expected.dtype.size() as usize);
    let groups = Groups::new(&evidence.expected.shape);
    let (mut native, mut wide, mut got) = (Vec::new(), Vec::new(), Vec::new());
    for group in 0..groups.len() {
        let range = groups.range(group);
        native.clear();
        wide.clear();
        got.clear();
        decode(dtype, &evidence.native[range.start * size..range.end * size], &mut native);
        decode(dtype, &evidence.got[range.start * size..range.end * size], &mut got);
        if let Some(bytes) = evidence.float64 {
            decode(Dtype::F64, &bytes[range.start * 8..range.end * 8], &mut wide);
        }
        for (at, (&n, &c)) in native.iter().zip(&got).enumerate() {
            visit(range.start + at, wide.get(at).copied().unwrap_or(n), n, c);
        }
    }
}

fn rms(evidence: &Evidence) -> f64 {
    let (mut sum, mut count) = (0.0, 0usize);
    each(evidence, |_, golden, _, _| {
        if golden.is_finite() {
            sum += golden * golden;
            count += 1;
        }
    });
    (sum / count.max(1) as f64).sqrt()
}
