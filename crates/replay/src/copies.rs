//! Copies, casts and strided fills on a GPU: which of our own kernels does one, and with which arguments.
//!
//! Axes are put into the order of the destination's memory and merged. Where two of them make even tiles, a program
//! moves tiles, coalesced on both sides also of a transposition; else each element finds its own place.

use std::collections::BTreeMap;

use serde::Serialize;
use tilewright_contract::{Constexpr, Dtype, KernelSpec, LaunchOptions, Number, Param, View};

/// Axes besides the two of a tile, and axes that elements are found along.
const OUTER: usize = 4;
const MAX_AXES: usize = OUTER + 2;
/// Elements of one launch at most: indices have 31 bits.
const MAX_ELEMENTS: u64 = 1 << 30;
/// Launches of one copy at most.
const MAX_PIECES: usize = 4096;
/// Elements of a copy in one row that are worth two launches.
const LONG: u64 = 1 << 20;
/// Programs that keep a device busy, and the fewest elements that one is worth.
const BUSY: u64 = 1024;
const SMALL: u64 = 512;
/// Elements of one program where each finds its own place.
const BLOCK: u64 = 1024;
/// Share of a tile's lanes that must have something to do.
const USED: f64 = 0.6;

/// One launch of one of our copy kernels. Serialised for the script that times them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopyLaunch {
    pub spec: KernelSpec,
    pub programs: u32,
    /// Bytes from the start of each buffer.
    pub src: u64,
    pub dst: u64,
    /// The parameters behind the two pointers, constexprs left out.
    pub values: Vec<i64>,
}

/// An axis of both views: its extent, and strides in elements.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axis {
    extent: u64,
    src: i64,
    dst: i64,
}

/// The launches that copy `src` to `dst`, two views of one shape; none where there is nothing to copy. An error says
/// what is not supported.
pub fn copy_launches(src: &View, dst: &View) -> Result<Vec<CopyLaunch>, String> {
    if src.numel() == 0 {
        return Ok(Vec::new());
    }
    let mut pieces = Vec::new();
    split(axes(src, dst), (src.offset as i64, dst.offset as i64), (src.dtype, dst.dtype), &mut pieces)?;
    let launch = |(axes, at): &(Vec<Axis>, (i64, i64))| {
        tiles(axes, *at, (src.dtype, dst.dtype)).unwrap_or_else(|| elements(axes, *at, (src.dtype, dst.dtype)))
    };
    Ok(pieces.iter().map(launch).collect())
}

/// Axes in the order of the destination's memory, outermost first: extents of 1 dropped, neighbours that lie evenly in
/// both views merged.
fn axes(src: &View, dst: &View) -> Vec<Axis> {
    let axis = |at: usize| Axis { extent: src.shape[at], src: src.strides[at], dst: dst.strides[at] };
    let mut all: Vec<Axis> = (0..src.shape.len()).map(axis).filter(|axis| axis.extent > 1).collect();
    all.sort_by_key(|axis| std::cmp::Reverse(axis.dst.abs()));
    let mut merged: Vec<Axis> = Vec::new();
    for axis in all {
        let extent = axis.extent as i64;
        match merged.last_mut() {
            Some(outer) if outer.src == axis.src * extent && outer.dst == axis.dst * extent => {
                *outer = Axis { extent: outer.extent * axis.extent, ..axis };
            }
            _ => merged.push(axis),
        }
    }
    merged
}

type Piece = (Vec<Axis>, (i64, i64));

/// Cuts a copy along its outermost axis until a launch can do each piece. Offsets are in bytes.
fn split(axes: Vec<Axis>, at: (i64, i64), dtypes: (Dtype, Dtype), pieces: &mut Vec<Piece>) -> Result<(), String> {
    let numel: u64 = axes.iter().map(|axis| axis.extent).product();
    // A tail that is not even would keep the compiler from moving 16 bytes at once.
    if let [Axis { extent, src: 1, dst: 1 }] = axes[..]
        && extent > LONG
        && extent % 16 != 0
    {
        let even = extent / 16 * 16;
        let part = |extent| vec![Axis { extent, src: 1, dst: 1 }].into_iter().filter(|axis| axis.extent > 1).collect();
        let behind = |at: i64, dtype: Dtype| at + even as i64 * dtype.size() as i64;
        split(part(even), at, dtypes, pieces)?;
        return split(part(extent - even), (behind(at.0, dtypes.0), behind(at.1, dtypes.1)), dtypes, pieces);
    }
    let Some((&first, rest)) = axes.split_first().filter(|_| axes.len() > MAX_AXES || numel > MAX_ELEMENTS) else {
        pieces.push((axes, at));
        return if pieces.len() <= MAX_PIECES { Ok(()) } else { Err(format!("a copy in over {MAX_PIECES} pieces")) };
    };
    let step = |index: u64| {
        let bytes = |at: i64, stride: i64, dtype: Dtype| at + stride * index as i64 * dtype.size() as i64;
        (bytes(at.0, first.src, dtypes.0), bytes(at.1, first.dst, dtypes.1))
    };
    if axes.len() > MAX_AXES {
        return (0..first.extent).try_for_each(|index| split(rest.to_vec(), step(index), dtypes, pieces));
    }
    let half = first.extent / 2;
    for (start, extent) in [(0, half), (half, first.extent - half)] {
        let mut axes = axes.clone();
        axes[0].extent = extent;
        axes.retain(|axis| axis.extent > 1);
        split(axes, step(start), dtypes, pieces)?;
    }
    Ok(())
}

/// How a side lies within a tile, as the kernel takes it.
mod side {
    /// By its strides.
    pub(super) const STRIDED: i64 = 0;
    /// Columns are neighbours.
    pub(super) const COLUMNS: i64 = 1;
    /// Rows are neighbours.
    pub(super) const ROWS: i64 = 2;
    /// One element for the whole copy.
    pub(super) const ONE: i64 = 3;
}

/// The copy in tiles, unless too much of them would lie idle.
fn tiles(axes: &[Axis], at: (i64, i64), dtypes: (Dtype, Dtype)) -> Option<CopyLaunch> {
    const NONE: Axis = Axis { extent: 1, src: 0, dst: 0 };
    let mut outer = axes.to_vec();
    let col = outer.pop().unwrap_or(NONE);
    // Where the source's neighbours lie along another axis, that one makes the rows.
    let across = outer.iter().rposition(|axis| axis.src == 1).filter(|_| col.src.abs() > 1);
    let row = match across {
        Some(across) => outer.remove(across),
        None => outer.pop().unwrap_or(NONE),
    };
    if outer.len() > OUTER {
        return None;
    }
    let mut total = match dtypes.0.size().max(dtypes.1.size()) {
        1 | 2 => 4096,
        4 => 2048,
        _ => 1024,
    };
    let numel: u64 = axes.iter().map(|axis| axis.extent).product();
    while total > SMALL && numel / total < BUSY {
        total /= 2;
    }
    let (rows, cols) = if across.is_some() {
        let side = if total >= 4096 { 64 } else { 32 };
        let cols = side.min(col.extent.next_power_of_two());
        let rows = (total / cols).min(row.extent.next_power_of_two());
        (rows, (total / rows).min(col.extent.next_power_of_two()))
    } else {
        let cols = best_width(col.extent, total);
        ((total / cols).min(row.extent.next_power_of_two()), cols)
    };
    let (row_tiles, col_tiles) = (row.extent.div_ceil(rows), col.extent.div_ceil(cols));
    let used = (row.extent * col.extent) as f64 / (row_tiles * rows * col_tiles * cols) as f64;
    if used < USED {
        return None;
    }
    let src_side = match (col.src, across) {
        _ if axes.iter().all(|axis| axis.src == 0) => side::ONE,
        (1, _) => side::COLUMNS,
        (_, Some(_)) => side::ROWS,
        _ => side::STRIDED,
    };
    let dst_side = if col.dst == 1 { side::COLUMNS } else { side::STRIDED };
    let mut padded = vec![NONE; OUTER - outer.len()];
    padded.extend(&outer);
    let mut call = Arguments::new(at, dtypes);
    call.add("rows", "i32", row.extent as i64);
    call.add("cols", "i32", col.extent as i64);
    call.add("row_tiles", "i32", row_tiles as i64);
    call.add("col_tiles", "i32", col_tiles as i64);
    call.add("s_row", "i64", row.src);
    call.add("t_row", "i64", row.dst);
    call.add("s_col", "i64", col.src);
    call.add("t_col", "i64", col.dst);
    call.outer(&padded);
    call.align(if across.is_some() { &["rows", "cols"] } else { &["cols"] });
    call.constants(&[
        ("SRC", src_side),
        ("DST", dst_side),
        ("OUTER", outer.len() as i64),
        ("ROWS", rows as i64),
        ("COLS", cols as i64),
    ]);
    let programs = outer.iter().map(|axis| axis.extent).product::<u64>() * row_tiles * col_tiles;
    Some(call.launch("copy_tiles", programs))
}

/// The width of tiles, a power of two, that leaves the fewest lanes idle; of equal ones the widest.
fn best_width(extent: u64, most: u64) -> u64 {
    let widest = extent.next_power_of_two().min(most);
    let idle = |width: u64| extent.div_ceil(width) * width - extent;
    let mut width = widest;
    // Narrower than a warp's transaction is no gain.
    while width > 64 && idle(width) * 8 > extent && idle(width / 2) < idle(width) {
        width /= 2;
    }
    width
}

/// The copy element by element.
fn elements(axes: &[Axis], at: (i64, i64), dtypes: (Dtype, Dtype)) -> CopyLaunch {
    let numel: u64 = axes.iter().map(|axis| axis.extent).product();
    let mut padded = vec![Axis { extent: 1, src: 0, dst: 0 }; MAX_AXES - axes.len()];
    padded.extend(axes);
    let mut call = Arguments::new(at, dtypes);
    call.add("n", "i32", numel as i64);
    for (number, axis) in padded.iter().enumerate().skip(1) {
        let (factor, shift) = reciprocal(axis.extent);
        call.add(&format!("d{number}"), "u32", axis.extent as i64);
        call.add(&format!("m{number}"), "u32", i64::from(factor));
        call.add(&format!("h{number}"), "u32", i64::from(shift));
    }
    call.strides(&padded);
    call.constants(&[("FIRST", (MAX_AXES - axes.len()) as i64), ("BLOCK", BLOCK as i64)]);
    call.launch("copy_elements", numel.div_ceil(BLOCK))
}

/// A factor and a shift that divide: `n / divisor == (high half of n * factor + n) >> shift` for `n` below 2^31
/// (Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994).
fn reciprocal(divisor: u64) -> (u32, u32) {
    let shift = divisor.next_power_of_two().trailing_zeros();
    let factor = (1u64 << 32) * ((1u64 << shift) - divisor) / divisor + 1;
    (factor as u32, shift)
}

/// A call of a kernel in the making.
struct Arguments {
    params: Vec<Param>,
    values: Vec<i64>,
    constexprs: BTreeMap<String, Constexpr>,
    attrs: BTreeMap<String, Vec<(String, i64)>>,
    at: (i64, i64),
}

impl Arguments {
    fn new(at: (i64, i64), dtypes: (Dtype, Dtype)) -> Self {
        // What is not converted is moved as bits.
        let bits = |dtype: Dtype| match dtype.size() {
            1 => Dtype::U8,
            2 => Dtype::I16,
            4 => Dtype::I32,
            _ => Dtype::I64,
        };
        let (src, dst) = if dtypes.0 == dtypes.1 { (bits(dtypes.0), bits(dtypes.1)) } else { dtypes };
        let param = |name: &str, dtype| Param { name: name.into(), ty: crate::program::pointer_type(dtype) };
        let params = vec![param("src", src), param("dst", dst)];
        Self { params, values: Vec::new(), constexprs: BTreeMap::new(), attrs: BTreeMap::new(), at }
    }

    fn add(&mut self, name: &str, ty: &str, value: i64) {
        self.params.push(Param { name: name.into(), ty: ty.into() });
        self.values.push(value);
    }

    fn outer(&mut self, axes: &[Axis]) {
        for (number, axis) in axes.iter().enumerate().skip(1) {
            self.add(&format!("d{number}"), "i32", axis.extent as i64);
        }
        self.strides(axes);
    }

    fn strides(&mut self, axes: &[Axis]) {
        for (number, axis) in axes.iter().enumerate() {
            self.add(&format!("s{number}"), "i64", axis.src);
        }
        for (number, axis) in axes.iter().enumerate() {
            self.add(&format!("t{number}"), "i64", axis.dst);
        }
    }

    /// Tells the compiler which addresses, strides and `extents` are multiples of 16: it then moves 16 bytes at once.
    fn align(&mut self, extents: &[&str]) {
        let values = [self.at.0, self.at.1].into_iter().chain(self.values.iter().copied());
        for (number, (param, value)) in self.params.iter().zip(values).enumerate() {
            let told = param.ty.starts_with('*') || param.ty == "i64" || extents.contains(&param.name.as_str());
            if told && value % 16 == 0 {
                self.attrs.insert(number.to_string(), vec![("tt.divisibility".into(), 16)]);
            }
        }
    }

    fn constants(&mut self, values: &[(&str, i64)]) {
        for &(name, value) in values {
            let value = Constexpr::Number { value: Number::Int(value) };
            self.constexprs.insert(self.params.len().to_string(), value);
            self.params.push(Param { name: name.into(), ty: "constexpr".into() });
        }
    }

    fn launch(self, function: &str, programs: u64) -> CopyLaunch {
        let Self { params, values, constexprs, attrs, at } = self;
        let spec =
            KernelSpec { function: function.into(), params, constexprs, attrs, options: LaunchOptions::default() };
        CopyLaunch { spec, programs: programs as u32, src: at.0 as u64, dst: at.1 as u64, values }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A call of a kernel, its parameters and constants by name.
    fn named(launch: &CopyLaunch) -> BTreeMap<String, i64> {
        let mut values = launch.values.iter();
        let value = |(number, param): (usize, &Param)| match launch.spec.constexprs.get(&(number + 2).to_string()) {
            Some(Constexpr::Number { value: Number::Int(value) }) => (param.name.clone(), *value),
            _ => (param.name.clone(), *values.next().unwrap()),
        };
        launch.spec.params[2..].iter().enumerate().map(value).collect()
    }

    /// Byte offsets that a launch reads and writes, as `steps.py` computes them.
    fn moves(launch: &CopyLaunch, (src, dst): (Dtype, Dtype)) -> Vec<(usize, usize)> {
        let names = named(launch);
        let get = |name: &str| names[name];
        let mut found = Vec::new();
        let mut push = |at: i64, to: i64| {
            let (at, to) = (at * src.size() as i64, to * dst.size() as i64);
            found.push(((launch.src as i64 + at) as usize, (launch.dst as i64 + to) as usize));
        };
        for program in 0..i64::from(launch.programs) {
            if launch.spec.function == "copy_elements" {
                for i in program * get("BLOCK")..((program + 1) * get("BLOCK")).min(get("n")) {
                    let (mut rest, mut at, mut to) = (i as u32, 0, 0);
                    for axis in (get("FIRST")..6).rev() {
                        let value = |letter: &str| names.get(&format!("{letter}{axis}")).copied();
                        let c = match value("d").filter(|_| axis > 0) {
                            None => rest,
                            Some(d) => {
                                let (m, h) = (value("m").unwrap() as u64, value("h").unwrap());
                                let high = ((u64::from(rest) * m) >> 32) as u32;
                                let quotient = (high + rest) >> h;
                                let c = rest - quotient * d as u32;
                                rest = quotient;
                                c
                            }
                        };
                        at += i64::from(c) * value("s").unwrap();
                        to += i64::from(c) * value("t").unwrap();
                    }
                    push(at, to);
                }
                continue;
            }
            let (col_tile, rest) = (program % get("col_tiles"), program / get("col_tiles"));
            let (row_tile, mut rest) = (rest % get("row_tiles"), rest / get("row_tiles"));
            let (mut at, mut to) = (0, 0);
            for axis in (4 - get("OUTER")..4).rev() {
                let extent = if axis > 4 - get("OUTER") { get(&format!("d{axis}")) } else { i64::MAX };
                at += rest % extent * get(&format!("s{axis}"));
                to += rest % extent * get(&format!("t{axis}"));
                rest /= extent;
            }
            for row in row_tile * get("ROWS")..((row_tile + 1) * get("ROWS")).min(get("rows")) {
                for col in col_tile * get("COLS")..((col_tile + 1) * get("COLS")).min(get("cols")) {
                    let from = match get("SRC") {
                        side::STRIDED => row * get("s_row") + col * get("s_col"),
                        side::COLUMNS => row * get("s_row") + col,
                        side::ROWS => row + col * get("s_col"),
                        _ => 0,
                    };
                    let into = row * get("t_row") + if get("DST") == 1 { col } else { col * get("t_col") };
                    push(at + from, to + into);
                }
            }
        }
        found
    }

    fn check(src: &View, dst: &View) {
        let launches = copy_launches(src, dst).unwrap();
        let mut found: Vec<_> = launches.iter().flat_map(|launch| moves(launch, (src.dtype, dst.dtype))).collect();
        let mut wanted: Vec<_> = src.offsets().zip(dst.offsets()).collect();
        found.sort_unstable();
        wanted.sort_unstable();
        assert!(found == wanted, "{src:?} {dst:?} {launches:?}");
        for launch in &launches {
            let names = named(launch);
            for (number, param) in launch.spec.params.iter().enumerate() {
                if launch.spec.attrs.contains_key(&number.to_string()) {
                    let value = match number {
                        0 => launch.src as i64,
                        1 => launch.dst as i64,
                        _ => names[&param.name],
                    };
                    assert_eq!(value % 16, 0, "{}", param.name);
                }
            }
        }
    }

    /// A view of random axes in a random order, some of them broadcast, some with gaps.
    fn view(dtype: Dtype, shape: &[u64], order: &[usize], gap: u64, broadcast: Option<usize>) -> View {
        let mut strides = vec![0; shape.len()];
        let mut step = 1 + gap;
        for &axis in order.iter().rev() {
            strides[axis] = step as i64;
            step *= shape[axis] + gap;
        }
        if let Some(axis) = broadcast.filter(|&axis| axis < shape.len()) {
            strides[axis] = 0;
        }
        View { dtype, shape: shape.to_vec(), strides, offset: gap * dtype.size() }
    }

    fn shapes() -> impl Strategy<Value = (Vec<u64>, Vec<usize>, Vec<usize>)> {
        prop::collection::vec(prop_oneof![1u64..6, Just(16), Just(33), Just(64)], 0..5).prop_flat_map(|shape| {
            let order: Vec<usize> = (0..shape.len()).collect();
            (Just(shape), Just(order.clone()).prop_shuffle(), Just(order).prop_shuffle())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Each element is moved once, from its place to its place, and what the compiler is told is so.
        #[test]
        fn every_element_finds_its_place(
            (shape, from, to) in shapes().prop_filter("small", |(shape, ..)| shape.iter().product::<u64>() < 20_000),
            gaps in (0u64..2, 0u64..2),
            broadcast in prop::option::of(0usize..5),
        ) {
            let src = view(Dtype::F32, &shape, &from, gaps.0, broadcast);
            let dst = view(Dtype::F16, &shape, &to, gaps.1, None);
            check(&src, &dst);
        }

        #[test]
        fn multiplication_divides(n in 0u32..1 << 31, d in 1u64..1 << 31) {
            let (factor, shift) = reciprocal(d);
            let high = ((u64::from(n) * u64::from(factor)) >> 32) as u32;
            prop_assert_eq!(u64::from((high + n) >> shift), u64::from(n) / d);
        }
    }

    #[test]
    fn many_axes_are_cut() {
        let shape = vec![3, 2, 3, 2, 3, 2, 3, 2];
        let order: Vec<usize> = (0..8).rev().collect();
        let dst = View::contiguous(Dtype::F32, &shape);
        check(&view(Dtype::F32, &shape, &order, 0, None), &dst);
        assert_eq!(copy_launches(&view(Dtype::F32, &shape, &order, 0, None), &dst).unwrap().len(), 6);
    }

    #[test]
    fn an_uneven_tail_is_copied_by_itself() {
        let view = View::contiguous(Dtype::F16, &[LONG + 19]);
        let launches = copy_launches(&view, &view).unwrap();
        let extents: Vec<i64> = launches.iter().map(|launch| launch.values[1]).collect();
        assert_eq!(extents, [i64::try_from(LONG + 16).unwrap(), 3]);
        assert_eq!((launches[1].src, launches[1].dst), (2 * (LONG + 16), 2 * (LONG + 16)));
        assert!(launches[0].spec.attrs.len() > launches[1].spec.attrs.len());
    }

    #[test]
    fn large_copies_are_cut() {
        let view = View::contiguous(Dtype::U8, &[5 << 30]);
        let launches = copy_launches(&view, &view).unwrap();
        assert_eq!(launches.len(), 8);
        let elements: u64 = launches.iter().map(|launch| launch.values[1] as u64).sum();
        assert_eq!(elements, 5 << 30);
        assert_eq!(launches[7].src, launches[7].dst);
    }

    #[test]
    fn transposed_and_contiguous_copies_go_by_tiles_and_aligned() {
        let dst = View::contiguous(Dtype::F32, &[1024, 1024]);
        let transposed = View { strides: vec![1, 1024], ..dst.clone() };
        for (src, side) in [(&dst, side::COLUMNS), (&transposed, side::ROWS)] {
            let launches = copy_launches(src, &dst).unwrap();
            assert_eq!((launches.len(), launches[0].spec.function.as_str()), (1, "copy_tiles"));
            assert_eq!(named(&launches[0])["SRC"], side);
            let even = launches[0].spec.attrs.len();
            assert!(even > 10, "{even}");
        }
        let ragged = View { shape: vec![5, 3, 7, 3, 5], strides: vec![1, 5, 15, 105, 315], ..dst.clone() };
        let launches = copy_launches(&ragged, &View::contiguous(Dtype::F32, &ragged.shape)).unwrap();
        assert_eq!(launches[0].spec.function, "copy_elements");
    }
}
