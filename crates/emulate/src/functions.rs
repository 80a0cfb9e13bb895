//! Functions of floats, in `f64`; and those of libdevice that look at bits.

pub(crate) mod approximate;
pub(crate) mod assembly;
mod directed;
mod integers;
pub(crate) mod ptx;

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LOG2_10, PI};

/// A function of one lane of each operand, as raw bits: floats by their own, signed and unsigned integers extended by
/// their sign. The result's upper bits are cut off.
pub(crate) type LaneFn = fn(&[u64]) -> u64;

/// What `__nv_NAME` computes for names with a way of rounding, of rare integer functions, and of several floats.
pub(crate) fn lanes(name: &str) -> Option<LaneFn> {
    let name = match name {
        // An unsigned operand comes extended by its sign.
        "uint2float_rz" | "uint2float_rd" | "uint2float_ru" => {
            return Some(match name {
                "uint2float_rz" => |v| unsigned("ull2float_rz", v),
                "uint2float_rd" => |v| unsigned("ull2float_rd", v),
                _ => |v| unsigned("ull2float_ru", v),
            });
        }
        "fmaf" | "fmaf_rn" => return Some(directed::flushing_fma::<3>),
        "fmaf_rz" => return Some(directed::flushing_fma::<0>),
        "fmaf_rd" => return Some(directed::flushing_fma::<1>),
        "fmaf_ru" => return Some(directed::flushing_fma::<2>),
        "fmul_rn" => return Some(directed::flushing_mul::<3>),
        "fmul_rz" => return Some(directed::flushing_mul::<0>),
        "fmul_rd" => return Some(directed::flushing_mul::<1>),
        "fmul_ru" => return Some(directed::flushing_mul::<2>),
        name if name.ends_with("_rn") => return None,
        name => name,
    };
    directed::by_name(name).or_else(|| integers::by_name(name)).or_else(|| several(name))
}

fn unsigned(name: &str, lanes: &[u64]) -> u64 {
    let wide: Vec<u64> = lanes.iter().map(|&x| x & 0xffff_ffff).collect();
    directed::by_name(name).map_or(0, |function| function(&wide))
}

fn single_bits(lanes: &[u64], index: usize) -> f32 {
    f32::from_bits(lanes.get(index).copied().unwrap_or_default() as u32)
}

/// The neighbour towards `y`, where subnormal numbers are zeros: the neighbour of zero is the least normal number.
fn next_after(x: f32, y: f32) -> f32 {
    let flush = |x: f32| if x.is_subnormal() { 0f32.copysign(x) } else { x };
    let (x, y) = (flush(x), flush(y));
    if x.is_nan() || y.is_nan() {
        f32::NAN
    } else if x == y {
        y
    } else if x == 0.0 {
        f32::MIN_POSITIVE.copysign(y)
    } else if y > x {
        x.next_up()
    } else {
        x.next_down()
    }
}

fn single(lanes: &[u64], index: usize) -> f64 {
    f64::from(f32::from_bits(lanes.get(index).copied().unwrap_or_default() as u32))
}

fn double(lanes: &[u64], index: usize) -> f64 {
    f64::from_bits(lanes.get(index).copied().unwrap_or_default())
}

fn to_single(x: f64) -> u64 {
    u64::from((x as f32).to_bits())
}

/// Functions of three and four floats, or of an integer before a float.
fn several(name: &str) -> Option<LaneFn> {
    Some(match name {
        "nextafterf" => |v| u64::from(next_after(single_bits(v, 0), single_bits(v, 1)).to_bits()),
        "norm3df" => |v| to_single(norm(&[single(v, 0), single(v, 1), single(v, 2)])),
        "norm4df" => |v| to_single(norm(&[single(v, 0), single(v, 1), single(v, 2), single(v, 3)])),
        "rnorm3df" => |v| to_single(reciprocal_norm(&[single(v, 0), single(v, 1), single(v, 2)])),
        "rnorm4df" => |v| to_single(reciprocal_norm(&[single(v, 0), single(v, 1), single(v, 2), single(v, 3)])),
        "norm3d" => |v| norm(&[double(v, 0), double(v, 1), double(v, 2)]).to_bits(),
        "norm4d" => |v| norm(&[double(v, 0), double(v, 1), double(v, 2), double(v, 3)]).to_bits(),
        "rnorm3d" => |v| (reciprocal_norm(&[double(v, 0), double(v, 1), double(v, 2)])).to_bits(),
        "rnorm4d" => |v| (reciprocal_norm(&[double(v, 0), double(v, 1), double(v, 2), double(v, 3)])).to_bits(),
        "jnf" => |v| to_single(libm::jn(order(v), single(v, 1))),
        "ynf" => |v| to_single(libm::yn(order(v), single(v, 1))),
        "jn" => |v| libm::jn(order(v), double(v, 1)).to_bits(),
        "yn" => |v| libm::yn(order(v), double(v, 1)).to_bits(),
        _ => return None,
    })
}

/// CUDA's Bessel functions of a negative order are NaN. The work grows with the order.
fn order(lanes: &[u64]) -> i32 {
    (lanes.first().copied().unwrap_or_default() as i32).clamp(-1, 100_000)
}

/// The length of a vector to its last digit: the sum of squares in two parts, scaled so that nothing overflows.
fn norm(values: &[f64]) -> f64 {
    let Some((scale, high, low)) = squares(values) else { return length_of_special(values) };
    let root = high.sqrt();
    (root + ((-root).mul_add(root, high) + low) / (2.0 * root)) * scale
}

fn reciprocal_norm(values: &[f64]) -> f64 {
    let Some((scale, high, low)) = squares(values) else { return 1.0 / length_of_special(values) };
    let guess = 1.0 / high.sqrt();
    let error = (-high * guess).mul_add(guess, 1.0) - low * guess * guess;
    // The rounding of `high * guess` counts as well.
    let rounding = high.mul_add(guess, -(high * guess)) * guess;
    guess.mul_add(0.5 * (error - rounding), guess) / scale
}

fn length_of_special(values: &[f64]) -> f64 {
    if values.iter().any(|x| x.is_infinite()) { f64::INFINITY } else { values.iter().sum() }
}

/// A scale, and the sum of the squares of the scaled values in two parts. None if a value is not finite or all are zero.
fn squares(values: &[f64]) -> Option<(f64, f64, f64)> {
    let largest = values.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    if largest == 0.0 || values.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let scale = libm::scalbn(1.0, libm::ilogb(largest).clamp(-1000, 1000));
    let (mut high, mut low) = (0.0, 0.0);
    for x in values.iter().map(|x| x / scale) {
        let square = x * x;
        let sum: f64 = high + square;
        let part = sum - high;
        low += x.mul_add(x, -square) + ((high - (sum - part)) + (square - part));
        high = sum;
    }
    Some((scale, high, low))
}

/// A function by its libm name.
pub(crate) fn unary(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "acos" => libm::acos,
        "acosh" => libm::acosh,
        "asin" => libm::asin,
        "asinh" => libm::asinh,
        "atan" => libm::atan,
        "atanh" => libm::atanh,
        "cbrt" => libm::cbrt,
        "cos" => libm::cos,
        "cosh" => libm::cosh,
        "cospi" => cospi,
        "cyl_bessel_i0" => |x| modified_bessel(0, x),
        "cyl_bessel_i1" => |x| modified_bessel(1, x),
        "erf" => libm::erf,
        "erfc" => libm::erfc,
        "erfcinv" => erfcinv,
        "erfcx" => erfcx,
        "erfinv" => erfinv,
        "exp" => libm::exp,
        "exp10" => exp10,
        "exp2" => libm::exp2,
        "expm1" => libm::expm1,
        "j0" => libm::j0,
        "j1" => libm::j1,
        "lgamma" => libm::lgamma,
        "log" => libm::log,
        "log10" => libm::log10,
        "log1p" => libm::log1p,
        "log2" => libm::log2,
        "logb" => logb,
        "normcdf" => normcdf,
        "normcdfinv" => |x| -std::f64::consts::SQRT_2 * erfcinv(2.0 * x),
        "rcbrt" => |x| 1.0 / libm::cbrt(x),
        "sin" => libm::sin,
        "sinh" => libm::sinh,
        "sinpi" => sinpi,
        "tan" => libm::tan,
        "tanh" => libm::tanh,
        "tgamma" => libm::tgamma,
        "y0" => libm::y0,
        "y1" => libm::y1,
        _ => return None,
    })
}

pub(crate) fn binary(name: &str) -> Option<fn(f64, f64) -> f64> {
    Some(match name {
        "atan2" => libm::atan2,
        "fdim" => libm::fdim,
        "hypot" => libm::hypot,
        "nextafter" => libm::nextafter,
        "pow" => libm::pow,
        "remainder" => libm::remainder,
        "rhypot" => |x, y| 1.0 / libm::hypot(x, y),
        _ => return None,
    })
}

/// A function of a float and an integer.
pub(crate) fn with_int(name: &str) -> Option<fn(f64, i32) -> f64> {
    Some(match name {
        "ldexp" | "scalbn" => libm::scalbn,
        "powi" => |x, n| libm::pow(x, f64::from(n)),
        _ => return None,
    })
}

pub(crate) fn saturate(x: f64) -> f64 {
    // Plus zero, so that there is no negative one.
    if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) + 0.0 }
}

pub(crate) fn reciprocal(x: f64) -> f64 {
    1.0 / x
}

pub(crate) fn is_nan(x: f64) -> bool {
    x.is_nan()
}

pub(crate) fn is_infinite(x: f64) -> bool {
    x.is_infinite()
}

pub(crate) fn is_finite(x: f64) -> bool {
    x.is_finite()
}

pub(crate) fn is_negative(x: f64) -> bool {
    x.is_sign_negative()
}

/// As libdevice's, which says the same of all subnormal numbers.
pub(crate) fn logb_32(x: f64) -> f64 {
    if (x as f32).is_subnormal() { -150.0 } else { logb(x) }
}

/// As a whole number NaN gives what zero gives.
pub(crate) fn ilogb(x: f64) -> f64 {
    if x.is_nan() { f64::NEG_INFINITY } else { logb(x) }
}

pub(crate) fn logb(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if x.is_infinite() {
        f64::INFINITY
    } else if x.is_nan() {
        x
    } else {
        f64::from(libm::ilogb(x))
    }
}

/// Reduced exactly to an eighth of the circle, so that the product with pi costs no digits.
fn sinpi(x: f64) -> f64 {
    let turn = libm::remainder(x, 2.0);
    let folded = if turn.abs() > 0.5 { 1f64.copysign(turn) - turn } else { turn };
    if folded.abs() <= 0.25 { libm::sin(PI * folded) } else { libm::cos(PI * (0.5 - folded.abs())).copysign(folded) }
}

fn cospi(x: f64) -> f64 {
    let turn = libm::remainder(x, 2.0).abs();
    let folded = if turn > 0.5 { 1.0 - turn } else { turn };
    let value = if folded <= 0.25 { libm::cos(PI * folded) } else { libm::sin(PI * (0.5 - folded)) };
    if turn > 0.5 { -value } else { value }
}

/// `10^x` by way of `2^y`, with the rounding error of `y` made good.
fn exp10(x: f64) -> f64 {
    const LOW: f64 = 1.661_617_516_973_592e-16; // of log2(10), beside `LOG2_10`
    let y = x * LOG2_10;
    let error = x.mul_add(LOG2_10, -y) + x * LOW;
    let power = libm::exp2(y);
    if power.is_finite() && power > 0.0 { power.mul_add(error * LN_2, power) } else { power }
}

/// `exp(x^2) erfc(x)`; far out by its continued fraction.
fn erfcx(x: f64) -> f64 {
    if x < 8.0 {
        let square = x * x;
        let error = x.mul_add(x, -square);
        let power = libm::exp(square);
        return if power.is_finite() { power.mul_add(error, power) * libm::erfc(x) } else { power * libm::erfc(x) };
    }
    let tail = (1..=80).rev().fold(x, |tail, k| x + 0.5 * f64::from(k) / tail);
    1.0 / (tail * 1.772_453_850_905_516)
}

/// The normal distribution: its argument's rounding error is made good, which the tails magnify.
fn normcdf(x: f64) -> f64 {
    const LOW: f64 = -4.833_646_656_726_457e-17; // of 1 / sqrt(2), beside the constant
    let z = -x * FRAC_1_SQRT_2;
    let error = (-x).mul_add(FRAC_1_SQRT_2, -z) - x * LOW;
    let tail = libm::erfc(z);
    let slope = if error.is_finite() { FRAC_2_SQRT_PI * libm::exp(-z * z) * error } else { 0.0 };
    0.5 * (tail - slope)
}

/// The inverse of `erfc`, whose small arguments keep their digits.
fn erfcinv(y: f64) -> f64 {
    if !(0.0..=2.0).contains(&y) {
        return f64::NAN;
    }
    if y == 0.0 || y == 2.0 {
        return if y == 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    if (0.5..=1.5).contains(&y) {
        return erfinv(1.0 - y);
    }
    let small = if y < 1.0 { y } else { 2.0 - y };
    // `erfc(x)` is about `exp(-x^2) / (x sqrt(pi))`: solved by iteration, then by Newton's steps on the logarithm.
    let mut x = libm::sqrt(-libm::log(small));
    for _ in 0..4 {
        x = libm::sqrt((-libm::log(small * x.max(0.5) * 1.772_453_850_905_516)).max(0.05));
    }
    for _ in 0..8 {
        let value = libm::erfc(x);
        let step = (value - small) / (FRAC_2_SQRT_PI * libm::exp(-x * x));
        let halley = step / (1.0 + x * step);
        x += halley;
        if halley.abs() <= f64::EPSILON * x.abs() * 0.25 {
            break;
        }
    }
    if y < 1.0 { x } else { -x }
}

/// `I0` and `I1`: their power series, whose terms are all positive; from 40 on their asymptotic series.
fn modified_bessel(order: u32, x: f64) -> f64 {
    let n = f64::from(order);
    let size = x.abs();
    if !x.is_finite() {
        return if x.is_nan() { x } else { x.abs().copysign(if order == 1 { x } else { 1.0 }) };
    }
    let value = if size < 40.0 {
        let quarter = 0.25 * size * size;
        let (mut term, mut sum, mut error) = (if order == 1 { 0.5 * size } else { 1.0 }, 0.0, 0.0);
        for k in 1..200 {
            // Compensated, so that a hundred additions cost no digits.
            let next = sum + (term + error);
            error = (term + error) - (next - sum);
            sum = next;
            term *= quarter / (f64::from(k) * (f64::from(k) + n));
        }
        sum
    } else {
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..30 {
            let odd = f64::from(2 * k - 1);
            term *= -(4.0 * n * n - odd * odd) / (f64::from(k) * 8.0 * size);
            sum += term;
        }
        // In two halves: the exponential overflows before the product does.
        let half = libm::exp(0.5 * size);
        half * (sum / libm::sqrt(2.0 * std::f64::consts::PI * size)) * half
    };
    if order == 1 { value.copysign(x) } else { value }
}

/// The remainder of Triton's `%` on floats: the quotient truncated, then one fused step, as LLVM's NVIDIA back end does.
pub(crate) fn remainder_32(x: f64, y: f64) -> f64 {
    let (x, y) = (x as f32, y as f32);
    f64::from(if y.is_infinite() && x.is_finite() { x } else { (-(x / y).trunc()).mul_add(y, x) })
}

pub(crate) fn remainder_64(x: f64, y: f64) -> f64 {
    if y.is_infinite() && x.is_finite() { x } else { (-(x / y).trunc()).mul_add(y, x) }
}

/// The inverse of `erf`: Winitzki's approximation, made exact by Newton steps.
fn erfinv(y: f64) -> f64 {
    if y.is_nan() || y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return y * f64::INFINITY;
    }
    const A: f64 = 0.147;
    let log = libm::log1p(-y * y);
    let half = 2.0 / (std::f64::consts::PI * A) + log / 2.0;
    let mut x = libm::sqrt(libm::sqrt(half * half - log / A) - half);
    let y_abs = y.abs();
    for _ in 0..4 {
        // Near 1 the complement keeps the digits that `erf` would lose.
        let error = if y_abs < 0.5 { libm::erf(x) - y_abs } else { (1.0 - y_abs) - libm::erfc(x) };
        let slope = 2.0 * std::f64::consts::FRAC_2_SQRT_PI / 2.0 * libm::exp(-x * x);
        if slope == 0.0 {
            break;
        }
        let newton = error / slope;
        x -= newton / (1.0 + x * newton);
    }
    x.copysign(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs().max(1e-300)
    }

    #[test]
    fn inverse_error_function() {
        for i in 1..400 {
            let x = f64::from(i) * 0.01;
            let y = libm::erf(x);
            if y < 1.0 {
                // Near 1 a unit in the last place of y moves x by more.
                let slack = f64::EPSILON / (1.0 - y) * 10.0;
                assert!((erfinv(y) - x).abs() <= 1e-12 + slack * x, "{x}");
                assert_eq!(erfinv(-y), -erfinv(y));
            }
        }
        assert_eq!(erfinv(0.0), 0.0);
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert!(erfinv(1.5).is_nan());
    }

    #[test]
    fn scaled_complement_is_continuous() {
        assert!(near(erfcx(1.0), 0.427_583_576_155_807));
        assert!(near(erfcx(19.999_999), erfcx(20.0)) || (erfcx(19.999_999) / erfcx(20.0) - 1.0).abs() < 1e-7);
        assert!(near(erfcx(30.0), 0.018_795_888_861_416_75));
    }

    #[test]
    fn pi_functions_are_exact_at_halves() {
        assert!(near(sinpi(1e9 + 0.5), 1.0));
        assert!(near(cospi(1e9 + 1.0), -1.0));
    }
}
