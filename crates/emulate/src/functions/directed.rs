//! Arithmetic rounded towards zero, down or up, by LLVM's software floats.

use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::LaneFn;

/// A float type as raw bits.
trait Format: Copy {
    type Soft: Float;
    fn sqrt(bits: u64) -> u64;
    /// The neighbour of a positive number.
    fn next(bits: u64, up: bool) -> u64;
}

#[derive(Clone, Copy)]
struct F32;
#[derive(Clone, Copy)]
struct F64;

impl Format for F32 {
    type Soft = Single;

    fn sqrt(bits: u64) -> u64 {
        u64::from(f32::from_bits(bits as u32).sqrt().to_bits())
    }

    fn next(bits: u64, up: bool) -> u64 {
        let x = f32::from_bits(bits as u32);
        u64::from(if up { x.next_up() } else { x.next_down() }.to_bits())
    }
}

impl Format for F64 {
    type Soft = Double;

    fn sqrt(bits: u64) -> u64 {
        f64::from_bits(bits).sqrt().to_bits()
    }

    fn next(bits: u64, up: bool) -> u64 {
        let x = f64::from_bits(bits);
        if up { x.next_up() } else { x.next_down() }.to_bits()
    }
}

fn way(code: u8) -> Round {
    match code {
        0 => Round::TowardZero,
        1 => Round::TowardNegative,
        2 => Round::TowardPositive,
        _ => Round::NearestTiesToEven,
    }
}

fn soft<F: Format>(lanes: &[u64], index: usize) -> F::Soft {
    F::Soft::from_bits(u128::from(lanes.get(index).copied().unwrap_or_default()))
}

fn bits(value: impl Float) -> u64 {
    value.to_bits() as u64
}

fn add<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    bits(soft::<F>(lanes, 0).add_r(soft::<F>(lanes, 1), way(WAY)).value)
}

fn sub<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    bits(soft::<F>(lanes, 0).sub_r(soft::<F>(lanes, 1), way(WAY)).value)
}

fn mul<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    bits(soft::<F>(lanes, 0).mul_r(soft::<F>(lanes, 1), way(WAY)).value)
}

fn div<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    bits(soft::<F>(lanes, 0).div_r(soft::<F>(lanes, 1), way(WAY)).value)
}

fn fma<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    bits(soft::<F>(lanes, 0).mul_add_r(soft::<F>(lanes, 1), soft::<F>(lanes, 2), way(WAY)).value)
}

fn rcp<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    let one = F::Soft::from_u128(1).value;
    bits(one.div_r(soft::<F>(lanes, 0), way(WAY)).value)
}

/// The nearest root, moved if it lies on the wrong side: the remainder's sign survives any underflow when rounded away
/// from zero.
fn sqrt<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    let x = soft::<F>(lanes, 0);
    let nearest = F::sqrt(bits(x));
    let root = F::Soft::from_bits(u128::from(nearest));
    if !root.is_finite_non_zero() {
        return nearest;
    }
    let remainder = |round| (-root).mul_add_r(root, x, round).value;
    let above = remainder(Round::TowardPositive);
    let below = remainder(Round::TowardNegative);
    if way(WAY) == Round::TowardPositive && above.is_finite_non_zero() && !above.is_negative() {
        F::next(nearest, true)
    } else if way(WAY) != Round::TowardPositive && below.is_finite_non_zero() && below.is_negative() {
        F::next(nearest, false)
    } else {
        nearest
    }
}

fn from_signed<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    bits(F::Soft::from_i128_r(i128::from(lanes.first().copied().unwrap_or_default() as i64), way(WAY)).value)
}

fn from_unsigned<F: Format, const WAY: u8>(lanes: &[u64]) -> u64 {
    bits(F::Soft::from_u128_r(u128::from(lanes.first().copied().unwrap_or_default()), way(WAY)).value)
}

fn narrow<const WAY: u8>(lanes: &[u64]) -> u64 {
    let mut inexact = false;
    let narrow: Single = soft::<F64>(lanes, 0).convert_r(way(WAY), &mut inexact).value;
    bits(narrow)
}

/// A result of `f32` with subnormal numbers taken as zeros, as the GPU does it: before it rounds. `exact` is the exact
/// result, cut to a double.
fn flushed(result: u64, exact: Double) -> u64 {
    let least = u64::from(f32::MIN_POSITIVE.to_bits());
    let sign = result & 0x8000_0000;
    let tiny = f64::from_bits(bits(exact)).abs() < f64::from(f32::MIN_POSITIVE);
    if result & 0x7fff_ffff <= least && tiny { sign } else { result }
}

fn wide(lanes: &[u64], index: usize) -> Double {
    let x = f32::from_bits(lanes.get(index).copied().unwrap_or_default() as u32);
    Double::from_bits(u128::from(f64::from(x).to_bits()))
}

/// `fma` of libdevice for `f32`.
pub(crate) fn flushing_fma<const WAY: u8>(lanes: &[u64]) -> u64 {
    let product = wide(lanes, 0).mul_r(wide(lanes, 1), Round::TowardZero).value;
    flushed(fma::<F32, WAY>(lanes), product.add_r(wide(lanes, 2), Round::TowardZero).value)
}

/// A product of libdevice for `f32`.
pub(crate) fn flushing_mul<const WAY: u8>(lanes: &[u64]) -> u64 {
    flushed(mul::<F32, WAY>(lanes), wide(lanes, 0).mul_r(wide(lanes, 1), Round::TowardZero).value)
}

/// The function for each way of rounding.
macro_rules! ways {
    ($suffix:expr, $function:ident $(, $format:ty)?) => {
        match $suffix {
            "rz" => Some($function::<$($format,)? 0> as LaneFn),
            "rd" => Some($function::<$($format,)? 1> as LaneFn),
            "ru" => Some($function::<$($format,)? 2> as LaneFn),
            "rn" => Some($function::<$($format,)? 3> as LaneFn),
            _ => None,
        }
    };
}

/// A function of libdevice with a way of rounding in its name, without `__nv_`: `fadd_rz`, `fma_ru`, `ll2float_rd`.
/// Signed 32-bit integers come sign-extended, as all signed lanes do.
pub(crate) fn by_name(name: &str) -> Option<LaneFn> {
    let (operation, suffix) = name.rsplit_once('_')?;
    match operation {
        "fadd" => ways!(suffix, add, F32),
        "fsub" => ways!(suffix, sub, F32),
        "fmul" => ways!(suffix, mul, F32),
        "fdiv" => ways!(suffix, div, F32),
        "fmaf" => ways!(suffix, fma, F32),
        "frcp" => ways!(suffix, rcp, F32),
        "fsqrt" => ways!(suffix, sqrt, F32),
        "dadd" => ways!(suffix, add, F64),
        "dsub" => ways!(suffix, sub, F64),
        "dmul" => ways!(suffix, mul, F64),
        "ddiv" => ways!(suffix, div, F64),
        "fma" => ways!(suffix, fma, F64),
        "drcp" => ways!(suffix, rcp, F64),
        "dsqrt" => ways!(suffix, sqrt, F64),
        "int2float" | "ll2float" => ways!(suffix, from_signed, F32),
        "uint2float" | "ull2float" => ways!(suffix, from_unsigned, F32),
        "ll2double" => ways!(suffix, from_signed, F64),
        "ull2double" => ways!(suffix, from_unsigned, F64),
        "double2float" => ways!(suffix, narrow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn f32_of(name: &str, args: &[f32]) -> f32 {
        let lanes: Vec<u64> = args.iter().map(|x| u64::from(x.to_bits())).collect();
        f32::from_bits(by_name(name).expect("a name")(&lanes) as u32)
    }

    proptest! {
        /// Down and up enclose the exact value and are neighbours unless it is one of them; zero is the nearer to it.
        #[test]
        fn ways_enclose(a in any::<f32>(), b in any::<f32>()) {
            let (x, y) = (f64::from(a), f64::from(b));
            let cases = [("fmul", vec![a, b], x * y), ("fsqrt", vec![a.abs()], x.abs().sqrt())];
            for (name, args, exact) in cases {
                let [zero, down, up] = ["rz", "rd", "ru"].map(|way| f32_of(&format!("{name}_{way}"), &args));
                if exact.is_nan() {
                    prop_assert!(zero.is_nan() && down.is_nan() && up.is_nan());
                    continue;
                }
                prop_assert!(f64::from(down) <= exact && exact <= f64::from(up), "{name} {args:?} {down:e} {up:e}");
                prop_assert!(down == up || down.next_up() == up, "{name} {args:?} {down:e} {up:e}");
                prop_assert_eq!(zero, if exact < 0.0 { up } else { down });
            }
        }

        #[test]
        fn nearest_is_the_machines(a in any::<f32>(), b in any::<f32>(), c in any::<f32>(), d in any::<f64>()) {
            let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
            prop_assert!(same(f32_of("fadd_rn", &[a, b]), a + b));
            prop_assert!(same(f32_of("fdiv_rn", &[a, b]), a / b));
            prop_assert!(same(f32_of("fmaf_rn", &[a, b, c]), a.mul_add(b, c)));
            let narrowed = f32::from_bits(by_name("double2float_rn").expect("a name")(&[d.to_bits()]) as u32);
            prop_assert!(same(narrowed, d as f32));
        }

        #[test]
        fn integers_round_as_named(x in any::<i64>()) {
            let [zero, down, up] =
                ["rz", "rd", "ru"].map(|way| f32::from_bits(by_name(&format!("ll2float_{way}")).expect("a name")(&[x as u64]) as u32));
            prop_assert!(down as i128 <= i128::from(x) && i128::from(x) <= up as i128);
            prop_assert_eq!(zero, if x < 0 { up } else { down });
        }
    }

    #[test]
    fn subnormal_results_are_zeros_before_rounding() {
        let lanes = |values: &[f32]| values.iter().map(|x| u64::from(x.to_bits())).collect::<Vec<_>>();
        let least = f32::MIN_POSITIVE;
        assert_eq!(flushing_mul::<1>(&lanes(&[least, -0.999_999_94])), 0x8000_0000);
        assert_eq!(flushing_fma::<3>(&lanes(&[-5.960_464e-8, least, least])), 0);
        assert_eq!(flushing_mul::<3>(&lanes(&[least, 1.0])), u64::from(least.to_bits()));
    }

    #[test]
    fn roots_of_tiny_numbers() {
        let lanes = [f64::from_bits(3).to_bits()];
        let [down, up] =
            ["rd", "ru"].map(|way| f64::from_bits(by_name(&format!("dsqrt_{way}")).expect("a name")(&lanes)));
        assert_eq!(down.next_up(), up);
        assert_eq!(f32_of("fsqrt_ru", &[4.0]), 2.0);
        assert_eq!(f32_of("fadd_rd", &[1.0, -1.0]).to_bits(), 0x8000_0000);
    }
}
