//! Approximate instructions with errors like the hardware's: the exact result, rounded to what the PTX ISA promises and no
//! better, so that a kernel that needs more than that fails here too.

use std::f64::consts::{LN_2, LOG2_10, LOG2_E, LOG10_2, TAU};

/// Rounds to a number of significant bits.
fn keep(x: f64, bits: u32) -> f64 {
    if !x.is_finite() {
        return x;
    }
    let cut = 53 - bits;
    let half = 1u64 << (cut - 1);
    f64::from_bits((x.to_bits() + half) >> cut << cut)
}

/// Rounds to a multiple of a power of two.
fn step(x: f64, exponent: i32) -> f64 {
    let unit = 2f64.powi(exponent);
    (x / unit).round_ties_even() * unit
}

fn single(x: f64) -> f64 {
    f64::from(x as f32)
}

/// A relative error of 2^-22.
pub(crate) fn ex2(x: f64) -> f64 {
    keep(libm::exp2(x), 22)
}

/// An absolute error of 2^-22 between 1/2 and 2, a relative one elsewhere.
pub(crate) fn lg2(x: f64) -> f64 {
    let exact = libm::log2(x);
    if exact.abs() < 1.0 { step(exact, -21) } else { keep(exact, 22) }
}

/// The argument as a part of the circle, in single precision: far from zero few digits of it are left.
fn turns(x: f64) -> f64 {
    let turns = single(single(x) * single(1.0 / TAU));
    (turns - turns.trunc()) * TAU
}

/// An absolute error of 2^-22, and that of the argument.
pub(crate) fn sin(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { step(libm::sin(turns(x)), -21) }
}

pub(crate) fn cos(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { step(libm::cos(turns(x)), -21) }
}

/// A relative error of 2^-11.
pub(crate) fn tanh(x: f64) -> f64 {
    keep(libm::tanh(x), 11)
}

/// A relative error of 2^-23, as the following two.
pub(crate) fn sqrt(x: f64) -> f64 {
    keep(x.sqrt(), 23)
}

pub(crate) fn rsqrt(x: f64) -> f64 {
    keep(1.0 / x.sqrt(), 23)
}

pub(crate) fn rcp(x: f64) -> f64 {
    keep(1.0 / x, 23)
}

/// Two units in the last place.
pub(crate) fn div(x: f64, y: f64) -> f64 {
    // Beyond 2^126 the reciprocal is subnormal and so zero.
    if y.is_finite() && y.abs() > 2f64.powi(126) && x.is_finite() { 0.0 * x * y } else { single(x * single(rcp(y))) }
}

/// libdevice's fast functions, which are made of these instructions: by their names without `fast_` and `f`.
pub(crate) fn unary(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "exp" => |x| ex2(single(x * single(LOG2_E))),
        "exp10" => |x| ex2(single(x * single(LOG2_10))),
        "log" => |x| single(single(lg2(x)) * single(LN_2)),
        "log2" => lg2,
        "log10" => |x| single(single(lg2(x)) * single(LOG10_2)),
        "sin" => sin,
        "cos" => cos,
        "tan" => |x| div(single(sin(x)), single(cos(x))),
        "tanh" => tanh,
        _ => return None,
    })
}

pub(crate) fn binary(name: &str) -> Option<fn(f64, f64) -> f64> {
    Some(match name {
        "divide" | "fdivide" => div,
        "pow" => |x, y| ex2(single(y * single(lg2(x)))),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// No worse than documented, and not exact.
        #[test]
        fn errors_are_as_documented(x in -3.1f32..3.1, y in 1e-3f32..1e3) {
            let (x, y) = (f64::from(x), f64::from(y));
            prop_assert!((tanh(x) - libm::tanh(x)).abs() <= 2f64.powi(-11) * libm::tanh(x).abs());
            prop_assert!((ex2(x) / libm::exp2(x) - 1.0).abs() <= 2f64.powi(-22));
            prop_assert!((sin(x) - libm::sin(x)).abs() <= 2f64.powf(-20.5));
            prop_assert!((lg2(y) - libm::log2(y)).abs() <= 2f64.powi(-22) * libm::log2(y).abs().max(1.0));
            prop_assert!((rsqrt(y) * y.sqrt() - 1.0).abs() <= 2f64.powf(-22.9));
            prop_assert!((sqrt(y) / y.sqrt() - 1.0).abs() <= 2f64.powi(-23));
        }
    }

    #[test]
    fn results_have_few_digits() {
        assert_eq!(tanh(0.5), 0.462_158_203_125);
        assert_ne!(single(sin(0.3)), single(libm::sin(0.3)));
        assert_eq!(sqrt(4.0), 2.0);
        assert_eq!(ex2(10.0), 1024.0);
        assert!(rcp(0.0).is_infinite() && lg2(0.0) == f64::NEG_INFINITY && sin(f64::INFINITY).is_nan());
        assert_eq!(div(1.0, 1e38), 0.0);
    }
}
