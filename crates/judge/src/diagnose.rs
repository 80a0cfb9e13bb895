//! What a wrong output most likely means, told from its figures.

use tilewright_contract::{Dtype, ExpectedTensor};

use crate::facts::{Facts, each};
use crate::groups::unravel;
use crate::value::{figure, integer, number};

/// Outputs up to this many elements are also searched for permutations.
const SMALL: usize = 1 << 20;

/// A failed tensor.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub expected: &'a ExpectedTensor,
    pub native: &'a [u8],
    pub float64: Option<&'a [u8]>,
    pub got: &'a [u8],
    /// The byte that every buffer was filled with before the run.
    pub poison: Option<u8>,
}

/// A likely cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Stable, in kebab case: `unwritten`, `nan`, `infinite`, `finite`, `all-zeros`, `constant`, `block-offset`, `zeros`,
    /// `scaled`, `offset`, `rows`, `precision`, `partial`, `transposed`, `permuted`, `unrelated`.
    pub code: &'static str,
    pub message: String,
    /// The next thing to try.
    pub help: String,
}

/// The likeliest cause, or `None` where the figures do not tell.
pub fn diagnose(evidence: &Evidence) -> Option<Cause> {
    let facts = Facts::of(evidence);
    unwritten(evidence, &facts)
        .or_else(|| non_finite(evidence, &facts))
        .or_else(|| finite(evidence, &facts))
        .or_else(|| flat(&facts))
        .or_else(|| steps(evidence))
        .or_else(|| factor(&facts))
        .or_else(|| rows(evidence, &facts))
        .or_else(|| precision(evidence, &facts))
        .or_else(|| partial(evidence, &facts))
        .or_else(|| zeros(&facts))
        .or_else(|| moved(evidence, &facts))
        .or_else(|| unrelated(&facts))
}

fn unwritten(evidence: &Evidence, facts: &Facts) -> Option<Cause> {
    // A single byte takes the poison's value by chance, and an integer may well be -1.
    let dtype = evidence.expected.dtype;
    let chance = (dtype.size() == 1 || !dtype.is_float()) && facts.poisoned * 10 < facts.different * 9;
    if facts.poisoned == 0 || chance {
        return None;
    }
    let what = if facts.poisoned == facts.elements {
        "nothing was written to the output".to_string()
    } else {
        format!(
            "{} of {} elements were never written, the first at {:?}",
            facts.poisoned,
            facts.elements,
            unravel(facts.first_poisoned, &evidence.expected.shape)
        )
    };
    Some(Cause {
        code: "unwritten",
        message: what,
        help: "cover every element: round the grid up with triton.cdiv and mask the last block".into(),
    })
}

fn non_finite(evidence: &Evidence, facts: &Facts) -> Option<Cause> {
    let (count, code, what) = match (facts.extra_nan, facts.extra_inf) {
        (0, 0) => return None,
        (0, inf) => (inf, "infinite", "infinite"),
        (nan, _) => (nan, "nan", "NaN"),
    };
    Some(Cause {
        code,
        message: format!(
            "{count} of {} elements are {what} where the reference is finite, the first at {:?}",
            facts.elements,
            unravel(facts.first_extra, &evidence.expected.shape)
        ),
        help: "look for an exp without the maximum subtracted, a division by zero, a sum in float16, or other=… missing on a masked load".into(),
    })
}

/// Numbers where the reference has none.
fn finite(evidence: &Evidence, facts: &Facts) -> Option<Cause> {
    (facts.missing > 0).then(|| Cause {
        code: "finite",
        message: format!(
            "{} of {} elements are numbers where the reference is NaN or infinite, the first at {:?}",
            facts.missing,
            facts.elements,
            unravel(facts.first_missing, &evidence.expected.shape)
        ),
        help: "look for a clamp, a maximum or an epsilon that the reference does not have (tl.maximum and tl.minimum drop NaN)".into(),
    })
}

fn flat(facts: &Facts) -> Option<Cause> {
    if facts.zeros == facts.elements && facts.nonzero_golden > 0 {
        return Some(Cause {
            code: "all-zeros",
            message: if facts.elements == 1 { "it is 0" } else { "every element is 0" }.into(),
            help: "check that the kernel stores its result to the tensor that forward returns".into(),
        });
    }
    if facts.elements > 1 && facts.low == facts.high && facts.golden_varies {
        return Some(Cause {
            code: "constant",
            message: format!("every element is {}", number(facts.low)),
            help: "check that each program reads and writes its own block (program_id in the offsets)".into(),
        });
    }
    None
}

/// Integers that are all off by multiples of one number.
fn steps(evidence: &Evidence) -> Option<Cause> {
    let (dtype, size) = (evidence.expected.dtype, evidence.expected.dtype.size() as usize);
    let pairs =
        evidence.native.chunks_exact(size).zip(evidence.got.chunks_exact(size)).filter(|(want, got)| want != got);
    let (mut step, mut count) = (0u128, 0);
    for (want, got) in pairs {
        step = gcd(step, integer(dtype, want)?.abs_diff(integer(dtype, got)?));
        count += 1;
    }
    (count >= 3 && step >= 4).then(|| Cause {
        code: "block-offset",
        message: format!("every difference is a multiple of {step}"),
        help: "an index counts from the start of its block or chunk: add the block's own offset".into(),
    })
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Zeros for values that are not small.
fn zeros(facts: &Facts) -> Option<Cause> {
    (facts.lost * 20 >= facts.elements && facts.lost > 1).then(|| Cause {
        code: "zeros",
        message: format!("{} of {} elements are 0 where the reference is not", facts.lost, facts.elements),
        help: "look for a sum that overflows to infinity before a division (accumulate in tl.float32), a mask that is too narrow, or a step that is left out".into(),
    })
}

/// Values of the right size that have little to do with the right ones.
fn unrelated(facts: &Facts) -> Option<Cause> {
    let size = (facts.cc / facts.gg.max(f64::MIN_POSITIVE)).sqrt();
    let likeness = facts.gc / (facts.gg * facts.cc).sqrt().max(f64::MIN_POSITIVE);
    let most = facts.gross * 2 > facts.elements && facts.finite >= 16 && facts.golden_varies;
    (most && (0.3..3.0).contains(&size) && likeness < 0.7).then(|| Cause {
        code: "unrelated",
        message: format!("the values have the right size, but little to do with the right ones (correlation {likeness:.2})"),
        help: "data is read or written at wrong addresses: check every stride (an input may be transposed or sliced) and the row pitch".into(),
    })
}

/// The whole output multiplied by, or shifted by, one number.
fn factor(facts: &Facts) -> Option<Cause> {
    if facts.finite < 8 || facts.gg == 0.0 || facts.error() < 1e-3 {
        return None;
    }
    let factor = facts.gc / facts.gg;
    let rest = (facts.cc - factor * facts.gc).max(0.0) / facts.gg;
    if facts.golden_varies && factor.abs() > 1e-6 && rest.sqrt() < 1e-4 * factor.abs() {
        return Some(Cause {
            code: "scaled",
            message: format!("every element is {} times what it should be", number((factor * 1e6).round() / 1e6)),
            help: "look for a scale that is missing, applied twice, or inverted".into(),
        });
    }
    let count = facts.finite as f64;
    let mean = facts.d / count;
    let spread = (facts.dd / count - mean * mean).max(0.0).sqrt();
    if facts.golden_varies && spread < 1e-4 * mean.abs() {
        return Some(Cause {
            code: "offset",
            message: format!("every element is off by {}", figure(mean)),
            help: "look for a bias or a constant that is missing or added twice".into(),
        });
    }
    None
}

/// Sums over one row of the last axis.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    count: f64,
    g: f64,
    gg: f64,
    d: f64,
    gd: f64,
    dd: f64,
}

impl Row {
    fn add(&mut self, golden: f64, difference: f64) {
        self.count += 1.0;
        self.g += golden;
        self.gg += golden * golden;
        self.d += difference;
        self.gd += golden * difference;
        self.dd += difference * difference;
    }

    /// Slope of `d = slope g + offset` by least squares, and the squares that are left over.
    fn fit(&self) -> (f64, f64) {
        let spread = (self.gg - self.g * self.g / self.count).max(0.0);
        let joint = self.gd - self.g * self.d / self.count;
        let own = (self.dd - self.d * self.d / self.count).max(0.0);
        if spread <= 1e-12 * self.gg { (0.0, own) } else { (joint / spread, (own - joint * joint / spread).max(0.0)) }
    }
}

/// Rows scaled or shifted by an amount of their own each.
fn rows(evidence: &Evidence, facts: &Facts) -> Option<Cause> {
    let columns = *evidence.expected.shape.last()? as usize;
    if columns < 8 || facts.elements / columns < 2 || facts.finite < facts.elements || facts.dd == 0.0 {
        return None;
    }
    let typical = facts.dd / facts.elements as f64 * columns as f64;
    let (mut row, mut touched) = (Row::default(), 0);
    let (mut left, mut low, mut high) = (0.0, f64::INFINITY, f64::NEG_INFINITY);
    each(evidence, |at, golden, _, got| {
        row.add(golden, got - golden);
        if at % columns == columns - 1 {
            touched += usize::from(row.dd > 0.01 * typical);
            let (slope, rest) = std::mem::take(&mut row).fit();
            left += rest;
            low = low.min(1.0 + slope);
            high = high.max(1.0 + slope);
        }
    });
    let many = touched * 4 >= facts.elements / columns;
    // A factor of 0 is no statistic: values are lost.
    (many && left < 0.05 * facts.dd && low.abs() > 1e-3).then(|| {
        let digits = |factor: f64| (factor * 1e4).round() / 1e4;
        Cause {
            code: "rows",
            message: format!(
                "every row is scaled or shifted by an amount of its own (factors {} to {})",
                digits(low),
                digits(high)
            ),
            help: "look at what the kernel computes once for a row: its mean, variance, eps, maximum or sum, and how many elements it counts".into(),
        }
    })
}

fn precision(evidence: &Evidence, facts: &Facts) -> Option<Cause> {
    if facts.gross > 0 || facts.finite == 0 {
        return None;
    }
    let dtype = evidence.expected.dtype;
    let whole = |count: usize| facts.finite >= 16 && count == facts.finite && facts.golden_varies;
    let through = match dtype {
        Dtype::F32 | Dtype::F64 | Dtype::F16 if whole(facts.bf16) => Some("bfloat16"),
        Dtype::F32 | Dtype::F64 if whole(facts.f16) => Some("float16"),
        _ => None,
    };
    if let Some(through) = through {
        return Some(Cause {
            code: "precision",
            message: format!("every value is a {through} number: the result was rounded to {through} on its way"),
            help: format!("keep {} from load to store; cast nothing to tl.{through}", dtype.name()),
        });
    }
    // Rounding is everywhere; a few elements that are far off are something else.
    let (typical, mut spread) = ((facts.dd / facts.finite as f64).sqrt(), 0);
    each(evidence, |_, golden, _, got| spread += usize::from((got - golden).abs() > 0.1 * typical));
    if spread * 5 < facts.finite {
        return None;
    }
    let (message, help) = precision_hint(dtype, facts.error())?;
    Some(Cause { code: "precision", message, help })
}

/// What an error of this size, relative to the reference's rms, means for an output of this dtype: message and help.
/// `None` where it is too small or too large to be rounding.
pub fn precision_hint(dtype: Dtype, error: f64) -> Option<(String, String)> {
    // Upper bounds of each level; rounding both operands of a product to p bits gives about 0.4 x 2^-p in the rms.
    let levels: &[(f64, &str, &str)] = match dtype {
        Dtype::F64 => &[
            (1e-12, "another order of summation", "sum in float64, pairwise or by blocks"),
            (1e-5, "float32 computing", "keep float64 throughout; write constants as tl.full(…, tl.float64)"),
            (1e-2, "tf32 or half-precision computing", "keep float64 throughout"),
        ],
        Dtype::F32 => &[
            (
                2e-5,
                "float32 sums of poor order, or approximate functions",
                "sum by blocks (tl.sum over a tile) instead of one by one; avoid fast-math approximations",
            ),
            (
                2e-3,
                "tf32 or float16 computing",
                "if it comes from tl.dot, pass input_precision=\"ieee\" (the default for float32 is tf32); accumulate in tl.float32",
            ),
            (2e-2, "bfloat16 computing, or sums in float16", "load as float32 and keep it; accumulate in tl.float32"),
        ],
        Dtype::F16 => &[
            (
                1.5e-3,
                "float16 rounding between steps",
                "keep intermediate values in tl.float32 and round once, at the store",
            ),
            (
                1e-2,
                "bfloat16 computing, or sums in float16",
                "accumulate in tl.float32 and keep intermediates in float32 until the store",
            ),
        ],
        Dtype::Bf16 => &[
            (
                1.2e-2,
                "bfloat16 rounding between steps",
                "keep intermediate values in tl.float32 and round once, at the store",
            ),
            (1e-1, "fp8 computing, or sums in bfloat16", "accumulate in tl.float32; do not cast operands to float8"),
        ],
        _ => &[],
    };
    let (_, cause, help) = levels.iter().find(|(most, ..)| error <= *most)?;
    let relative = figure(error);
    Some((format!("the error, {relative} of the reference's rms, is typical of {cause}"), (*help).into()))
}

/// Errors confined to a part of an axis.
fn partial(evidence: &Evidence, facts: &Facts) -> Option<Cause> {
    if facts.gross == 0 || facts.gross == facts.elements {
        return None;
    }
    let shape = &evidence.expected.shape;
    let confined = |axis: usize| {
        let hit = |count: &usize| *count > 0;
        let counts = &facts.axes[axis];
        let (first, last) = (counts.iter().position(hit)?, counts.iter().rposition(hit)?);
        let share = (last - first + 1) as f64 / counts.len() as f64;
        (share <= 0.9).then_some((share, axis, first, last))
    };
    let (_, axis, first, last) = (0..shape.len()).filter_map(confined).min_by(|a, b| a.0.total_cmp(&b.0))?;
    let extent = shape[axis] as usize;
    let place = if shape.len() == 1 { String::new() } else { format!(" on axis {axis}") };
    let (message, help) = if last + 1 == extent && first > 0 {
        let left = extent - first;
        (
            format!("only the first {first} of {extent}{place} are right; the last {left} are wrong"),
            "look at the last block: its mask, the rounding of the grid, or a carry that is lost between blocks",
        )
    } else if first == last {
        (
            format!("only index {first} of {extent}{place} is wrong"),
            "look at what is special at that index: a boundary or a first block",
        )
    } else if first == 0 {
        (
            format!("only indices 0 to {last} of {extent}{place} are wrong"),
            "look at the first block and at what initialises it",
        )
    } else {
        (
            format!("only indices {first} to {last} of {extent}{place} are wrong"),
            "look at the block that covers these indices",
        )
    };
    Some(Cause { code: "partial", message, help: help.into() })
}

/// Right values in wrong places.
fn moved(evidence: &Evidence, facts: &Facts) -> Option<Cause> {
    if facts.elements > SMALL || facts.elements < 4 || facts.finite < facts.elements || !facts.golden_varies {
        return None;
    }
    let (mut want, mut got) = (Vec::with_capacity(facts.elements), Vec::with_capacity(facts.elements));
    each(evidence, |_, golden, _, c| {
        want.push(golden);
        got.push(c);
    });
    let scale = (facts.gg / facts.finite as f64).sqrt();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-3 * (b.abs() + scale * 1e-2);
    if let [.., rows, columns] = evidence.expected.shape[..] {
        let (rows, columns) = (rows as usize, columns as usize);
        let place = |at: usize| {
            let (matrix, within) = (at / (rows * columns), at % (rows * columns));
            matrix * rows * columns + within % columns * rows + within / columns
        };
        if rows > 1 && columns > 1 && (0..want.len()).all(|at| close(got[place(at)], want[at])) {
            return Some(Cause {
                code: "transposed",
                message: "the values are right, but the last two axes are swapped in memory".into(),
                help: "swap the two offsets or the two strides in the store".into(),
            });
        }
    }
    want.sort_by(f64::total_cmp);
    got.sort_by(f64::total_cmp);
    want.iter().zip(&got).all(|(w, g)| close(*g, *w)).then(|| Cause {
        code: "permuted",
        message: "the values are right, but in another order".into(),
        help: "check the offsets of the load or of the store against the strides".into(),
    })
}
