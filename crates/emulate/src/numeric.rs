//! Integer and float arithmetic with the GPU's results.

/// Two's complement integers. Nothing traps: division by zero gives what the hardware gives.
pub(crate) trait Int: Copy + Default + Ord {
    fn add(self, o: Self) -> Self;
    fn sub(self, o: Self) -> Self;
    fn mul(self, o: Self) -> Self;
    fn mul_high_s(self, o: Self) -> Self;
    fn mul_high_u(self, o: Self) -> Self;
    fn div_s(self, o: Self) -> Self;
    fn div_u(self, o: Self) -> Self;
    fn by_zero(self) -> Self;
    fn amount(self) -> u32;
    fn ceil_div_s(self, o: Self) -> Self;
    fn ceil_div_u(self, o: Self) -> Self;
    fn floor_div_s(self, o: Self) -> Self;
    fn rem_s(self, o: Self) -> Self;
    fn rem_u(self, o: Self) -> Self;
    fn and(self, o: Self) -> Self;
    fn or(self, o: Self) -> Self;
    fn xor(self, o: Self) -> Self;
    fn shl(self, o: Self) -> Self;
    fn shr_s(self, o: Self) -> Self;
    fn shr_u(self, o: Self) -> Self;
    fn min_u(self, o: Self) -> Self;
    fn max_u(self, o: Self) -> Self;
    fn lt_u(self, o: Self) -> bool;
    fn le_u(self, o: Self) -> bool;
    fn abs(self) -> Self;
    fn leading_zeros(self) -> Self;
    fn trailing_zeros(self) -> Self;
    fn population(self) -> Self;
    fn reverse(self) -> Self;
    fn first_set(self) -> Self;
}

// rustfmt takes a minute over each of these macros.
#[rustfmt::skip]
macro_rules! impl_int {
    ($t:ty, $u:ty, $wide:ty, $wide_u:ty) => {
        impl Int for $t {
            #[inline(always)]
            fn add(self, o: Self) -> Self {
                self.wrapping_add(o)
            }
            #[inline(always)]
            fn sub(self, o: Self) -> Self {
                self.wrapping_sub(o)
            }
            #[inline(always)]
            fn mul(self, o: Self) -> Self {
                self.wrapping_mul(o)
            }
            #[inline(always)]
            fn mul_high_s(self, o: Self) -> Self {
                ((<$wide>::from(self) * <$wide>::from(o)) >> <$t>::BITS) as $t
            }
            #[inline(always)]
            fn mul_high_u(self, o: Self) -> Self {
                ((<$wide_u>::from(self as $u) * <$wide_u>::from(o as $u)) >> <$t>::BITS) as $t
            }
            #[inline(always)]
            fn div_s(self, o: Self) -> Self {
                if o == 0 { Self::by_zero(self) } else { self.wrapping_div(o) }
            }
            #[inline(always)]
            fn div_u(self, o: Self) -> Self {
                (self as $u).checked_div(o as $u).map_or_else(|| Self::by_zero(self), |quotient| quotient as $t)
            }
            // Quotients and remainders by zero have all bits set; of 64-bit numbers below 2^32 only the lower half.
            #[inline(always)]
            fn by_zero(self) -> Self {
                let short = <$t>::BITS == 64 && i128::from(self) >> 32 == 0;
                if short { (1i128 << 32).wrapping_sub(1) as $t } else { -1 }
            }
            #[inline(always)]
            fn amount(self) -> u32 {
                self as $u as u32
            }
            #[inline(always)]
            fn ceil_div_s(self, o: Self) -> Self {
                let quotient = self.div_s(o);
                let inexact = o != 0 && self.rem_s(o) != 0;
                if inexact && (self < 0) == (o < 0) { quotient.wrapping_add(1) } else { quotient }
            }
            #[inline(always)]
            fn ceil_div_u(self, o: Self) -> Self {
                let quotient = self.div_u(o);
                if o != 0 && self.rem_u(o) != 0 { quotient.wrapping_add(1) } else { quotient }
            }
            #[inline(always)]
            fn floor_div_s(self, o: Self) -> Self {
                let quotient = self.div_s(o);
                let inexact = o != 0 && self.rem_s(o) != 0;
                if inexact && (self < 0) != (o < 0) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)]
            fn rem_s(self, o: Self) -> Self {
                if o == 0 { Self::by_zero(self) } else { self.wrapping_rem(o) }
            }
            #[inline(always)]
            fn rem_u(self, o: Self) -> Self {
                (self as $u).checked_rem(o as $u).map_or_else(|| Self::by_zero(self), |rest| rest as $t)
            }
            #[inline(always)]
            fn and(self, o: Self) -> Self {
                self & o
            }
            #[inline(always)]
            fn or(self, o: Self) -> Self {
                self | o
            }
            #[inline(always)]
            fn xor(self, o: Self) -> Self {
                self ^ o
            }
            // Amounts beyond the width shift everything out, as PTX clamps them; of 64 bits it takes the lower 32.
            #[inline(always)]
            fn shl(self, o: Self) -> Self {
                let by = Self::amount(o);
                if by < <$t>::BITS { self.wrapping_shl(by) } else { 0 }
            }
            #[inline(always)]
            fn shr_s(self, o: Self) -> Self {
                self.wrapping_shr(Self::amount(o).min(<$t>::BITS - 1))
            }
            #[inline(always)]
            fn shr_u(self, o: Self) -> Self {
                let by = Self::amount(o);
                if by < <$t>::BITS { (self as $u).wrapping_shr(by) as $t } else { 0 }
            }
            #[inline(always)]
            fn min_u(self, o: Self) -> Self {
                (self as $u).min(o as $u) as $t
            }
            #[inline(always)]
            fn max_u(self, o: Self) -> Self {
                (self as $u).max(o as $u) as $t
            }
            #[inline(always)]
            fn lt_u(self, o: Self) -> bool {
                (self as $u) < (o as $u)
            }
            #[inline(always)]
            fn le_u(self, o: Self) -> bool {
                (self as $u) <= (o as $u)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.wrapping_abs()
            }
            #[inline(always)]
            fn leading_zeros(self) -> Self {
                <$t>::leading_zeros(self) as $t
            }
            #[inline(always)]
            fn trailing_zeros(self) -> Self {
                <$t>::trailing_zeros(self) as $t
            }
            #[inline(always)]
            fn population(self) -> Self {
                <$t>::count_ones(self) as $t
            }
            #[inline(always)]
            fn reverse(self) -> Self {
                <$t>::reverse_bits(self)
            }
            #[inline(always)]
            fn first_set(self) -> Self {
                if self == 0 { 0 } else { <$t>::trailing_zeros(self) as $t + 1 }
            }
        }
    };
}
impl_int!(i8, u8, i16, u16);
impl_int!(i16, u16, i32, u32);
impl_int!(i32, u32, i64, u64);
impl_int!(i64, u64, i128, u128);

/// `f32` and `f64`.
pub(crate) trait Float: Copy + Default + PartialOrd {
    fn add(self, o: Self) -> Self;
    fn sub(self, o: Self) -> Self;
    fn mul(self, o: Self) -> Self;
    fn div(self, o: Self) -> Self;
    fn rem(self, o: Self) -> Self;
    /// The other operand if one is NaN; -0 is less than +0.
    fn min_num(self, o: Self) -> Self;
    fn max_num(self, o: Self) -> Self;
    /// NaN if an operand is NaN.
    fn minimum(self, o: Self) -> Self;
    fn maximum(self, o: Self) -> Self;
    fn copy_sign(self, o: Self) -> Self;
    fn fma(self, b: Self, c: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn rsqrt(self) -> Self;
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn log(self) -> Self;
    fn log2(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    fn round(self) -> Self;
    fn round_even(self) -> Self;
    fn is_nan(self) -> bool;
}

#[rustfmt::skip]
macro_rules! impl_float {
    ($t:ty, flush: $flush:expr, exp: $exp:expr, exp2: $exp2:expr, log: $log:expr, log2: $log2:expr) => {
        impl Float for $t {
            #[inline(always)]
            fn add(self, o: Self) -> Self {
                self + o
            }
            #[inline(always)]
            fn sub(self, o: Self) -> Self {
                self - o
            }
            #[inline(always)]
            fn mul(self, o: Self) -> Self {
                self * o
            }
            #[inline(always)]
            fn div(self, o: Self) -> Self {
                self / o
            }
            #[inline(always)]
            fn rem(self, o: Self) -> Self {
                self % o
            }
            #[inline(always)]
            fn min_num(self, o: Self) -> Self {
                let equal = <$t>::from_bits(self.to_bits() | o.to_bits());
                let less = if self < o || o.is_nan() { self } else { o };
                if self == o { equal } else { less }
            }
            #[inline(always)]
            fn max_num(self, o: Self) -> Self {
                let equal = <$t>::from_bits(self.to_bits() & o.to_bits());
                let greater = if self > o || o.is_nan() { self } else { o };
                if self == o { equal } else { greater }
            }
            #[inline(always)]
            fn minimum(self, o: Self) -> Self {
                if self.is_nan() || o.is_nan() { <$t>::NAN } else { self.min_num(o) }
            }
            #[inline(always)]
            fn maximum(self, o: Self) -> Self {
                if self.is_nan() || o.is_nan() { <$t>::NAN } else { self.max_num(o) }
            }
            #[inline(always)]
            fn copy_sign(self, o: Self) -> Self {
                <$t>::copysign(self, o)
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$t>::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn rsqrt(self) -> Self {
                (1.0 / f64::from(self).sqrt()) as $t
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline(always)]
            fn exp2(self) -> Self {
                $exp2(self)
            }
            #[inline(always)]
            fn log(self) -> Self {
                $log(self)
            }
            #[inline(always)]
            fn log2(self) -> Self {
                $log2(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                <$t>::floor($flush(self))
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                <$t>::ceil($flush(self))
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                <$t>::trunc(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                <$t>::round(self)
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                <$t>::round_ties_even(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
        }
    };
}
impl_float!(f32,
    // libdevice's, which takes subnormal numbers as zeros.
    flush: |x: f32| if x.is_subnormal() { 0f32.copysign(x) } else { x },
    // As Triton does: 2 to the power of a product that is rounded.
    exp: |x: f32| exp2_f32(f64::from(x * std::f32::consts::LOG2_E)),
    exp2: |x: f32| exp2_f32(f64::from(x)),
    log: |x: f32| (log2_f64(x) * std::f64::consts::LN_2) as f32,
    log2: |x: f32| log2_f64(x) as f32);
impl_float!(f64, flush: |x: f64| x, exp: libm::exp, exp2: libm::exp2, log: libm::log, log2: libm::log2);

/// `2^x` for the exponential functions of `f32`: branch-free in `f64`, so that loops vectorise. The relative error
/// before rounding is below 2^-42, so that the result is the correctly rounded one but in one of some 10^5 cases.
#[inline(always)]
fn exp2_f32(x: f64) -> f32 {
    // Beyond these every result is infinite or zero; NaN passes through the polynomial.
    let clamped = if x > 200.0 { 200.0 } else { x };
    let clamped = if clamped < -200.0 { -200.0 } else { clamped };
    // Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let shifted = clamped + ROUND;
    let whole = shifted - ROUND;
    let t = (clamped - whole) * std::f64::consts::LN_2;
    // Taylor's series of e^t for |t| <= ln(2) / 2.
    #[rustfmt::skip] // which takes a minute over such nesting
    let series = 1.0
        + t * (1.0
            + t * (1.0 / 2.0
                + t * (1.0 / 6.0
                    + t * (1.0 / 24.0
                        + t * (1.0 / 120.0
                            + t * (1.0 / 720.0
                                + t * (1.0 / 5_040.0
                                    + t * (1.0 / 40_320.0 + t * (1.0 / 362_880.0 + t * (1.0 / 3_628_800.0))))))))));
    let scale = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
    (series * scale) as f32
}

/// `log2` of an `f32`, in `f64`: branch-free.
#[inline(always)]
fn log2_f64(x: f32) -> f64 {
    let bits = f64::from(x).to_bits();
    // Split into 2^e * m with m in [sqrt(1/2), sqrt(2)).
    let offset = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd);
    // The exponent as a float, by the same trick as above: an arithmetic shift of 64 bits does not vectorise.
    let biased = offset.wrapping_add(0x4000_0000_0000_0000) >> 52;
    let exponent = f64::from_bits(biased | 0x4330_0000_0000_0000) - 4_503_599_627_370_496.0 - 1024.0;
    let m = f64::from_bits(bits.wrapping_sub(offset & 0xfff0_0000_0000_0000));
    // ln(m) = 2 atanh((m - 1) / (m + 1))
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    #[rustfmt::skip] // which takes a minute over such nesting
    let series = 1.0
        + z * (1.0 / 3.0
            + z * (1.0 / 5.0
                + z * (1.0 / 7.0
                    + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0 + z * (1.0 / 15.0 + z * (1.0 / 17.0))))))));
    let value = exponent + 2.0 * std::f64::consts::LOG2_E * s * series;
    let special = if x == 0.0 {
        f64::NEG_INFINITY
    } else if x == f32::INFINITY {
        f64::INFINITY
    } else {
        f64::NAN
    };
    if x > 0.0 && x < f32::INFINITY { value } else { special }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Units in the last place between a float and the exact value.
    fn ulps(got: f32, exact: f64) -> f64 {
        let want = exact as f32;
        if got == want || got.is_nan() && want.is_nan() {
            return 0.0;
        }
        let unit = f64::from(f32::from_bits((want.abs().to_bits() & 0x7f80_0000).max(24 << 23) - (23 << 23)));
        (f64::from(got) - exact).abs() / unit
    }

    proptest! {
        #[test]
        fn integers_wrap_as_rust(a in any::<i32>(), b in any::<i32>(), small in 0i32..40) {
            prop_assert_eq!(Int::add(a, b), a.wrapping_add(b));
            prop_assert_eq!(Int::mul(a, b), a.wrapping_mul(b));
            prop_assert_eq!(Int::mul_high_u(a, b) as u32, ((u64::from(a as u32) * u64::from(b as u32)) >> 32) as u32);
            prop_assert_eq!(Int::mul_high_s(a, b), ((i64::from(a) * i64::from(b)) >> 32) as i32);
            prop_assert_eq!(a.div_s(b), if b == 0 { -1 } else { a.wrapping_div(b) });
            prop_assert_eq!(a.rem_s(b), if b == 0 { -1 } else { a.wrapping_rem(b) });
            prop_assert_eq!(a.div_u(b) as u32, (a as u32).checked_div(b as u32).unwrap_or(u32::MAX));
            prop_assert_eq!(a.rem_u(b) as u32, (a as u32).checked_rem(b as u32).unwrap_or(u32::MAX));
            prop_assert_eq!(Int::shl(a, small) as u32, ((u64::from(a as u32)) << small) as u32);
            prop_assert_eq!(a.shr_u(small) as u32, (u64::from(a as u32) >> small) as u32);
            prop_assert_eq!(a.shr_s(small), (i64::from(a) >> small) as i32);
            let wide = (i64::from(a), i64::from(b));
            if b != 0 {
                prop_assert_eq!(a.floor_div_s(b), (wide.0 as f64 / wide.1 as f64).floor() as i64 as i32);
                prop_assert_eq!(a.ceil_div_s(b), (wide.0 as f64 / wide.1 as f64).ceil() as i64 as i32);
            }
        }

        #[test]
        fn division_of_all_widths_never_panics(a in any::<i64>(), b in any::<i64>()) {
            for (x, y) in [(a, b), (a, 0), (i64::MIN, -1), (a, 1)] {
                let _ = (x.div_s(y), x.rem_s(y), x.floor_div_s(y), x.ceil_div_s(y), x.div_u(y), x.ceil_div_u(y));
                let (x, y) = (x as i8, y as i8);
                let _ = (x.div_s(y), x.rem_s(y), x.floor_div_s(y), x.ceil_div_s(y), x.div_u(y), x.ceil_div_u(y));
            }
        }

        #[test]
        fn exponentials_are_nearly_correctly_rounded(x in -110f32..100.0, bits in any::<u32>()) {
            for x in [x, f32::from_bits(bits)] {
                let scaled = f64::from(x * std::f32::consts::LOG2_E);
                prop_assert!(ulps(Float::exp(x), libm::exp2(scaled)) <= 0.5001, "exp {x:e}");
                prop_assert!(ulps(Float::exp2(x), libm::exp2(f64::from(x))) <= 0.5001, "exp2 {x:e}");
            }
        }

        #[test]
        fn logarithms_are_nearly_correctly_rounded(x in 0f32..4.0, bits in any::<u32>()) {
            for x in [x, 1.0 + x * 1e-4, f32::from_bits(bits)] {
                prop_assert!(ulps(Float::log(x), libm::log(f64::from(x))) <= 0.5001, "log {x:e}");
                prop_assert!(ulps(Float::log2(x), libm::log2(f64::from(x))) <= 0.5001, "log2 {x:e}");
            }
        }

        #[test]
        fn maxima_treat_nan_as_named(a in any::<f32>()) {
            prop_assert!(Float::maximum(a, f32::NAN).is_nan() && Float::minimum(f32::NAN, a).is_nan());
            prop_assert!(a.is_nan() || a.max_num(f32::NAN) == a && f32::NAN.min_num(a) == a);
        }
    }

    #[test]
    fn special_values() {
        assert_eq!(Float::exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(Float::exp(f32::NEG_INFINITY), 0.0);
        assert!(Float::exp(f32::NAN).is_nan());
        assert_eq!(Float::log(0f32), f32::NEG_INFINITY);
        assert!(Float::log(-1f32).is_nan());
        assert_eq!(Float::log2(f32::from_bits(1)), -149.0);
        assert_eq!(Float::max_num(-0.0f32, 0.0).to_bits(), 0);
        assert_eq!(Float::min_num(0.0f32, -0.0).to_bits(), 0x8000_0000);
    }
}
