//! Values at run time: flat arrays of one element type, and the loops over them.
//!
//! A block that holds one element stands for any number of equal ones: splats and what is computed from splats
//! alone cost nothing. Only operations that look at positions expand it ([`Block::expand`]).

use std::hash::{Hash, Hasher};

use crate::types::Class;

/// A tensor descriptor or a block pointer: a strided tensor in memory, and where a block of it starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct View {
    pub(crate) base: i64,
    pub(crate) shape: Vec<i64>,
    /// In elements.
    pub(crate) strides: Vec<i64>,
    /// In elements; zeros in a descriptor.
    pub(crate) offsets: Vec<i64>,
    pub(crate) pad_nan: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Block {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    View(Box<View>),
}

impl Default for Block {
    fn default() -> Self {
        Self::I8(Vec::new())
    }
}

/// Runs an expression with `$v` bound to the vector of whatever type a block holds; views give `$other`.
macro_rules! each_block {
    ($block:expr, $v:ident => $body:expr, $other:expr) => {
        match $block {
            $crate::block::Block::I8($v) => $body,
            $crate::block::Block::I16($v) => $body,
            $crate::block::Block::I32($v) => $body,
            $crate::block::Block::I64($v) => $body,
            $crate::block::Block::F32($v) => $body,
            $crate::block::Block::F64($v) => $body,
            $crate::block::Block::View(_) => $other,
        }
    };
}
/// The same over two blocks of equal type; anything else gives `$other`.
macro_rules! both_blocks {
    ($a:expr, $b:expr, $x:ident, $y:ident => $body:expr, $other:expr) => {
        match ($a, $b) {
            ($crate::block::Block::I8($x), $crate::block::Block::I8($y)) => $body,
            ($crate::block::Block::I16($x), $crate::block::Block::I16($y)) => $body,
            ($crate::block::Block::I32($x), $crate::block::Block::I32($y)) => $body,
            ($crate::block::Block::I64($x), $crate::block::Block::I64($y)) => $body,
            ($crate::block::Block::F32($x), $crate::block::Block::F32($y)) => $body,
            ($crate::block::Block::F64($x), $crate::block::Block::F64($y)) => $body,
            _ => $other,
        }
    };
}
pub(crate) use both_blocks;

impl Block {
    pub(crate) fn new(class: Class) -> Self {
        match class {
            Class::I8 => Self::I8(Vec::new()),
            Class::I16 => Self::I16(Vec::new()),
            Class::I32 => Self::I32(Vec::new()),
            Class::I64 => Self::I64(Vec::new()),
            Class::F32 => Self::F32(Vec::new()),
            Class::F64 => Self::F64(Vec::new()),
            Class::View => Self::View(Box::default()),
        }
    }

    pub(crate) fn class(&self) -> Class {
        match self {
            Self::I8(_) => Class::I8,
            Self::I16(_) => Class::I16,
            Self::I32(_) => Class::I32,
            Self::I64(_) => Class::I64,
            Self::F32(_) => Class::F32,
            Self::F64(_) => Class::F64,
            Self::View(_) => Class::View,
        }
    }

    pub(crate) fn len(&self) -> usize {
        each_block!(self, v => v.len(), 1)
    }

    /// Copies another block of the same class into this one, keeping this one's storage.
    pub(crate) fn assign(&mut self, from: &Self) {
        match (&mut *self, from) {
            (Self::I8(to), Self::I8(from)) => to.clone_from(from),
            (Self::I16(to), Self::I16(from)) => to.clone_from(from),
            (Self::I32(to), Self::I32(from)) => to.clone_from(from),
            (Self::I64(to), Self::I64(from)) => to.clone_from(from),
            (Self::F32(to), Self::F32(from)) => to.clone_from(from),
            (Self::F64(to), Self::F64(from)) => to.clone_from(from),
            _ => *self = from.clone(),
        }
    }

    /// Makes a splat hold all its `n` elements.
    pub(crate) fn expand(&mut self, n: usize) {
        each_block!(self, v => if v.len() == 1 && n > 1 { let x = v[0]; v.resize(n, x) }, ());
    }

    /// Gives the block `n` elements of any value.
    pub(crate) fn resize(&mut self, n: usize) {
        each_block!(self, v => v.resize(n, Default::default()), ());
    }

    /// The block with all its `n` elements; a copy only of a splat.
    pub(crate) fn expanded(&self, n: usize) -> std::borrow::Cow<'_, Self> {
        if self.len() == n {
            return std::borrow::Cow::Borrowed(self);
        }
        let mut copy = self.clone();
        copy.expand(n);
        std::borrow::Cow::Owned(copy)
    }

    /// Copies `count` slices of `inner` elements along an axis of extent `n`, of `outer` such axes:
    /// those at `start`, `start + step`, …
    pub(crate) fn slices(&self, [outer, n, inner]: [usize; 3], start: usize, step: usize, count: usize, to: &mut Self) {
        fn copy<T: Copy>(
            from: &[T],
            [outer, n, inner]: [usize; 3],
            (start, step, count): (usize, usize, usize),
            to: &mut Vec<T>,
        ) {
            to.clear();
            to.reserve(outer * count * inner);
            for row in from.chunks_exact((n * inner).max(1)).take(outer) {
                if step == 1 {
                    to.extend_from_slice(&row[start * inner..(start + count) * inner]);
                } else if inner == 1 {
                    to.extend(row[start..].iter().step_by(step).take(count));
                } else {
                    for slice in row.chunks_exact(inner).skip(start).step_by(step).take(count) {
                        to.extend_from_slice(slice);
                    }
                }
            }
        }
        both_blocks!(self, to, from, to => copy(from, [outer, n, inner], (start, step, count), to), ());
    }

    /// Overwrites the slices from `start` on along an axis: see [`Block::slices`].
    pub(crate) fn set_slices(&mut self, [outer, n, inner]: [usize; 3], start: usize, count: usize, from: &Self) {
        both_blocks!(self, from, to, from => {
            for (row, part) in
                to.chunks_exact_mut((n * inner).max(1)).take(outer).zip(from.chunks_exact((count * inner).max(1)))
            {
                row[start * inner..(start + count) * inner].copy_from_slice(part);
            }
        }, ());
    }

    /// The elements at the given positions.
    pub(crate) fn take(&self, positions: impl Iterator<Item = usize> + Clone, to: &mut Self) {
        both_blocks!(self, to, from, to => {
            to.clear();
            to.extend(positions.map(|position| from[position]));
        }, ());
    }

    /// Feeds the bits of all elements to a hash.
    pub(crate) fn hash(&self, state: &mut impl Hasher) {
        match self {
            Self::I8(v) => v.hash(state),
            Self::I16(v) => v.hash(state),
            Self::I32(v) => v.hash(state),
            Self::I64(v) => v.hash(state),
            Self::F32(v) => v.iter().for_each(|x| x.to_bits().hash(state)),
            Self::F64(v) => v.iter().for_each(|x| x.to_bits().hash(state)),
            Self::View(view) => (view.base, &view.shape, &view.strides, &view.offsets).hash(state),
        }
    }

    /// The raw bits of an element, or of the only one; integers extended by their sign.
    pub(crate) fn bits(&self, at: usize) -> Option<u64> {
        fn of<T: Copy>(v: &[T], at: usize) -> Option<T> {
            v.get(if v.len() == 1 { 0 } else { at }).copied()
        }
        Some(match self {
            Self::I8(v) => i64::from(of(v, at)?) as u64,
            Self::I16(v) => i64::from(of(v, at)?) as u64,
            Self::I32(v) => i64::from(of(v, at)?) as u64,
            Self::I64(v) => of(v, at)? as u64,
            Self::F32(v) => u64::from(of(v, at)?.to_bits()),
            Self::F64(v) => of(v, at)?.to_bits(),
            Self::View(_) => return None,
        })
    }

    /// Makes it an empty block of a class.
    pub(crate) fn clear(&mut self, class: Class) {
        if self.class() == class {
            each_block!(self, v => v.clear(), ());
        } else {
            *self = Self::new(class);
        }
    }

    /// Appends an element by its raw bits, cut to its width.
    pub(crate) fn push_bits(&mut self, bits: u64) -> Option<()> {
        match self {
            Self::I8(v) => v.push(bits as i8),
            Self::I16(v) => v.push(bits as i16),
            Self::I32(v) => v.push(bits as i32),
            Self::I64(v) => v.push(bits as i64),
            Self::F32(v) => v.push(f32::from_bits(bits as u32)),
            Self::F64(v) => v.push(f64::from_bits(bits)),
            Self::View(_) => return None,
        }
        Some(())
    }

    /// The only (or first) element as an integer.
    pub(crate) fn scalar(&self) -> Option<i64> {
        Some(match self {
            Self::I8(v) => i64::from(*v.first()?),
            Self::I16(v) => i64::from(*v.first()?),
            Self::I32(v) => i64::from(*v.first()?),
            Self::I64(v) => *v.first()?,
            _ => return None,
        })
    }
}

/// Runs a loop compiled for the widest vector instructions of this machine.
///
/// No fused multiply-add is ever formed from separate operations, so results do not depend on the machine.
#[inline(always)]
pub(crate) fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    struct Loop<F>(F);
    impl<R, F: FnOnce() -> R> pulp::NullaryFnOnce for Loop<F> {
        type Output = R;
        #[inline(always)]
        fn call(self) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Loop(f))
}

/// How loops over an element type are compiled. Twice the code for twice the width pays for the types that kernels
/// compute with.
pub(crate) trait Lanes: Copy {
    fn run<R>(f: impl FnOnce() -> R) -> R;
}

macro_rules! impl_lanes {
    ($run:ident: $($t:ty),*) => {$(
        impl Lanes for $t {
            #[inline(always)]
            fn run<R>(f: impl FnOnce() -> R) -> R {
                $run(f)
            }
        }
    )*};
}
impl_lanes!(vectorised: i32, i64, f32);
impl_lanes!(plain: i8, i16, f64);

#[inline(always)]
fn plain<R>(f: impl FnOnce() -> R) -> R {
    f()
}

#[inline(always)]
fn resize<R: Copy + Default>(out: &mut Vec<R>, n: usize) {
    if out.len() != n {
        out.clear();
        out.resize(n, R::default());
    }
}

#[inline(always)]
pub(crate) fn map1<A: Lanes, R: Copy + Default>(a: &[A], out: &mut Vec<R>, f: impl Fn(A) -> R) {
    resize(out, a.len());
    A::run(|| {
        for (o, &x) in out.iter_mut().zip(a) {
            *o = f(x);
        }
    });
}

/// Elementwise over two blocks, either of which may be a splat.
#[inline(always)]
pub(crate) fn map2<A: Lanes, B: Copy, R: Copy + Default>(a: &[A], b: &[B], out: &mut Vec<R>, f: impl Fn(A, B) -> R) {
    resize(out, a.len().max(b.len()));
    A::run(|| match (a, b) {
        (_, &[y]) => {
            for (o, &x) in out.iter_mut().zip(a) {
                *o = f(x, y);
            }
        }
        (&[x], _) => {
            for (o, &y) in out.iter_mut().zip(b) {
                *o = f(x, y);
            }
        }
        _ => {
            for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
                *o = f(x, y);
            }
        }
    });
}

/// Elementwise over three blocks, any of which may be a splat.
#[inline(always)]
pub(crate) fn map3<A: Copy, B: Copy, C: Copy, R: Copy + Default>(
    a: &[A],
    b: &[B],
    c: &[C],
    out: &mut Vec<R>,
    f: impl Fn(A, B, C) -> R,
) {
    let n = a.len().max(b.len()).max(c.len());
    resize(out, n);
    let steps = [a.len(), b.len(), c.len()].map(|len| usize::from(len > 1));
    if steps == [1, 1, 1] || n == 1 {
        for (((o, &x), &y), &z) in out.iter_mut().zip(a).zip(b).zip(c) {
            *o = f(x, y, z);
        }
    } else if let ([1, 1, 0], &[z, ..]) = (steps, c) {
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *o = f(x, y, z);
        }
    } else if let ([1, 0, 1], &[y, ..]) = (steps, b) {
        for ((o, &x), &z) in out.iter_mut().zip(a).zip(c) {
            *o = f(x, y, z);
        }
    } else if a.is_empty() || b.is_empty() || c.is_empty() {
        out.clear();
    } else {
        for (i, o) in out.iter_mut().enumerate() {
            *o = f(
                a[(i * steps[0]).min(a.len() - 1)],
                b[(i * steps[1]).min(b.len() - 1)],
                c[(i * steps[2]).min(c.len() - 1)],
            );
        }
    }
}
