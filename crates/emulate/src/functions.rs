//! Functions of one and two floats, in `f64`.

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
        "erf" => libm::erf,
        "erfc" => libm::erfc,
        "erfcinv" => |x| erfinv(1.0 - x),
        "erfcx" => erfcx,
        "erfinv" => erfinv,
        "exp" => libm::exp,
        "exp10" => libm::exp10,
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
        "normcdf" => |x| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        "normcdfinv" => |x| std::f64::consts::SQRT_2 * erfinv(2.0 * x - 1.0),
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
    if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) }
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

/// Reduced before multiplying by pi, so that large arguments keep their accuracy.
fn sinpi(x: f64) -> f64 {
    libm::sin(std::f64::consts::PI * libm::remainder(x, 2.0))
}

fn cospi(x: f64) -> f64 {
    libm::cos(std::f64::consts::PI * libm::remainder(x, 2.0))
}

/// `exp(x^2) erfc(x)`; beyond the range of `erfc` by its continued fraction.
fn erfcx(x: f64) -> f64 {
    if x < 20.0 {
        return libm::exp(x * x) * libm::erfc(x);
    }
    let tail = (1..=60).rev().fold(x, |tail, k| x + 0.5 * f64::from(k) / tail);
    1.0 / (tail * 1.772_453_850_905_516)
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
