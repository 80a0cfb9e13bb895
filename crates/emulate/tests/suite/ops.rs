//! One operation at a time, over types and edge values, against Rust's own arithmetic and the `half` crate.

use half::{bf16, f16};
use tilewright_emulate::{Arg, Init, Kernel, Limits, Memory, launch};

const N: usize = 64;

/// Runs `op` on blocks of 64 elements: `%a`, `%b` are loaded, `%r` is stored. Types are scalar type names.
fn run(from: &str, to: &str, op: &str, a: &[u8], b: &[u8], size: usize) -> Vec<u8> {
    let tensor = |ty: &str| format!("tensor<{N}x{ty}>");
    let pointer = |name: &str, ty: &str| {
        format!(
            "%{name}s = tt.splat %{name}p : !tt.ptr<{ty}> -> tensor<{N}x!tt.ptr<{ty}>>\n\
             %{name}a = tt.addptr %{name}s, %o : tensor<{N}x!tt.ptr<{ty}>>, tensor<{N}xi32>\n"
        )
    };
    let text = format!(
        "module {{ tt.func public @k(%ap: !tt.ptr<{from}>, %bp: !tt.ptr<{from}>, %rp: !tt.ptr<{to}>) {{\n\
         %o = tt.make_range {{end = {N} : i32, start = 0 : i32}} : tensor<{N}xi32>\n{}{}{}\
         %a = tt.load %aa : tensor<{N}x!tt.ptr<{from}>>\n%b = tt.load %ba : tensor<{N}x!tt.ptr<{from}>>\n\
         {}\ntt.store %ra, %r : tensor<{N}x!tt.ptr<{to}>>\ntt.return }} }}",
        pointer("a", from),
        pointer("b", from),
        pointer("r", to),
        op.replace("FROM", &tensor(from)).replace("TO", &tensor(to)),
    );
    let module = tilewright_ttir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = Kernel::new(&module, "k").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut memory = Memory::new();
    let ids = [a.to_vec(), b.to_vec(), vec![0; N * size]].map(|bytes| memory.alloc("x", bytes, Init::Written));
    let args = ids.map(|id| Arg::Pointer(memory.address(id, 0)));
    launch(&kernel, [1; 3], &args, &mut memory, &Limits::default()).unwrap();
    memory.bytes(ids[2]).to_vec()
}

/// Integers of a width from the corners and in between, sign-extended.
fn integers(bits: u32, stride: usize) -> Vec<i64> {
    let (min, max) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
    let corners = [0, 1, -1, 2, -2, 3, 7, -7, 10, min, max, min + 1, max - 1, max / 2, min / 3, 5];
    let mix = |i: usize| (i as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64) >> (64 - bits);
    (0..N).map(|i| if i < 48 { corners[(i * stride + i / 16) % 16] } else { mix(i * stride) }).collect()
}

fn bytes_of(values: &[i64], bits: u32) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()[..bits as usize / 8].to_vec()).collect()
}

fn ints_of(bytes: &[u8], bits: u32) -> Vec<i64> {
    let signed = |chunk: &[u8]| {
        let mut raw = [0; 8];
        raw[..chunk.len()].copy_from_slice(chunk);
        i64::from_le_bytes(raw) << (64 - bits) >> (64 - bits)
    };
    bytes.chunks_exact(bits as usize / 8).map(signed).collect()
}

/// An operation's name and its exact result from signed and unsigned operands.
type IntCase = (&'static str, fn(i128, i128, i128, i128, u32) -> i128);

#[test]
fn integer_operations() {
    // Arguments: signed a, b; unsigned a, b; width.
    let cases: &[IntCase] = &[
        ("arith.addi", |a, b, _, _, _| a + b),
        ("arith.subi", |a, b, _, _, _| a - b),
        ("arith.muli", |a, b, _, _, _| a * b),
        ("arith.divsi", |a, b, _, _, _| if b == 0 { -1 } else { a / b }),
        ("arith.remsi", |a, b, _, _, _| if b == 0 { -1 } else { a % b }),
        ("arith.divui", |_, _, a, b, _| if b == 0 { -1 } else { a / b }),
        ("arith.remui", |_, _, a, b, _| if b == 0 { -1 } else { a % b }),
        (
            "arith.floordivsi",
            |a, b, _, _, _| if b == 0 { -1 } else { a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0) },
        ),
        ("arith.ceildivui", |_, _, a, b, _| if b == 0 { -1 } else { (a + b - 1) / b }),
        ("arith.andi", |a, b, _, _, _| a & b),
        ("arith.ori", |a, b, _, _, _| a | b),
        ("arith.xori", |a, b, _, _, _| a ^ b),
        ("arith.shli", |a, _, _, b, width| if b < i128::from(width) { a << b } else { 0 }),
        ("arith.shrsi", |a, _, _, b, width| a >> b.min(i128::from(width) - 1)),
        ("arith.shrui", |_, _, a, b, width| if b < i128::from(width) { a >> b } else { 0 }),
        ("arith.minsi", |a, b, _, _, _| a.min(b)),
        ("arith.maxsi", |a, b, _, _, _| a.max(b)),
        ("arith.minui", |_, _, a, b, _| a.min(b)),
        ("arith.maxui", |_, _, a, b, _| a.max(b)),
        ("tt.mulhiui", |_, _, a, b, width| (((a as u128) * (b as u128)) >> width) as i128),
    ];
    for bits in [8, 16, 32, 64] {
        let (a, b) = (integers(bits, 1), integers(bits, 5));
        for (name, exact) in cases {
            let ty = format!("i{bits}");
            let op = format!("%r = {name} %a, %b : FROM");
            let got = ints_of(&run(&ty, &ty, &op, &bytes_of(&a, bits), &bytes_of(&b, bits), bits as usize / 8), bits);
            let mask = u64::MAX >> (64 - bits);
            for ((&a, &b), got) in a.iter().zip(&b).zip(got) {
                if b == 0 && (name.contains("floordiv") || name.contains("ceildiv")) {
                    continue;
                }
                let unsigned = |x: i64| i128::from(x as u64 & mask);
                // By zero, a 64-bit division of small numbers is done in 32 bits; shifts take 32 bits of an amount.
                let short = bits == 64 && b == 0 && unsigned(a) >> 32 == 0;
                if short && (name.contains("div") || name.contains("rem")) {
                    assert_eq!(got, 0xffff_ffff, "{name} {ty} {a} {b}");
                    continue;
                }
                let amount = if name.contains("sh") { unsigned(b) & 0xffff_ffff } else { unsigned(b) };
                let want = exact(i128::from(a), i128::from(b), unsigned(a), amount, bits);
                let want = (want as i64) << (64 - bits) >> (64 - bits);
                assert_eq!(got, want, "{name} {ty} {a} {b}");
            }
        }
    }
}

#[test]
fn integer_comparisons() {
    type Compare = (&'static str, fn(i64, i64, u64, u64) -> bool);
    let cases: &[Compare] = &[
        ("eq", |a, b, _, _| a == b),
        ("ne", |a, b, _, _| a != b),
        ("slt", |a, b, _, _| a < b),
        ("sle", |a, b, _, _| a <= b),
        ("sgt", |a, b, _, _| a > b),
        ("sge", |a, b, _, _| a >= b),
        ("ult", |_, _, a, b| a < b),
        ("ule", |_, _, a, b| a <= b),
        ("ugt", |_, _, a, b| a > b),
        ("uge", |_, _, a, b| a >= b),
    ];
    for bits in [8, 16, 32, 64] {
        let (a, b) = (integers(bits, 3), integers(bits, 7));
        for (name, exact) in cases {
            let op = format!("%c = arith.cmpi {name}, %a, %b : FROM\n%r = arith.extui %c : tensor<{N}xi1> to TO");
            let got = run(&format!("i{bits}"), "i8", &op, &bytes_of(&a, bits), &bytes_of(&b, bits), 1);
            for ((&a, &b), got) in a.iter().zip(&b).zip(got) {
                assert_eq!(got == 1, exact(a, b, a as u64, b as u64), "{name} i{bits} {a} {b}");
            }
        }
    }
}

#[test]
fn booleans_are_minus_one_as_signed_numbers() {
    let a: Vec<i64> = (0..N as i64).map(|i| i & 1).collect();
    let b: Vec<i64> = (0..N as i64).map(|i| i >> 1 & 1).collect();
    let (a, b) = (bytes_of(&a, 8), bytes_of(&b, 8));
    let bits = "%x = arith.trunci %a : FROM to tensor<64xi1>\n%y = arith.trunci %b : FROM to tensor<64xi1>\n";
    let less = run(
        "i8",
        "i8",
        &format!("{bits}%c = arith.cmpi slt, %x, %y : tensor<64xi1>\n%r = arith.extui %c : tensor<64xi1> to TO"),
        &a,
        &b,
        1,
    );
    let wide = run("i8", "i32", &format!("{bits}%r = arith.extsi %x : tensor<64xi1> to TO"), &a, &b, 4);
    let sum = run(
        "i8",
        "i8",
        &format!("{bits}%c = arith.addi %x, %y : tensor<64xi1>\n%r = arith.extui %c : tensor<64xi1> to TO"),
        &a,
        &b,
        1,
    );
    for i in 0..N {
        assert_eq!(less[i] == 1, -i32::from(a[i]) < -i32::from(b[i]));
        assert_eq!(ints_of(&wide, 32)[i], -i64::from(a[i]));
        assert_eq!(sum[i], a[i] ^ b[i]);
    }
}

/// Floats from the corners of a format and in between, as `f64` values that the format holds.
fn floats(round: impl Fn(f64) -> f64, stride: usize) -> Vec<f64> {
    let corners = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        1e-8,
        65504.0,
        1e30,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        3.0,
        0.1,
    ];
    let mix = |i: usize| ((i * 7919) % 1000) as f64 * 0.37 - 150.0;
    (0..N).map(|i| round(if i < 32 { corners[(i * stride + i / 16) % 16] } else { mix(i * stride) })).collect()
}

struct Format {
    name: &'static str,
    size: usize,
    /// To the nearest value of the format.
    round: fn(f64) -> f64,
    encode: fn(f64) -> Vec<u8>,
}

/// Rounds once from `f64`: through `f32` rounded to odd.
fn narrow(x: f64) -> f32 {
    let near = x as f32;
    if x.is_nan() || f64::from(near) == x || !near.is_finite() && !x.is_finite() {
        return near;
    }
    let toward_zero = if f64::from(near).abs() > x.abs() { near.to_bits() - 1 } else { near.to_bits() };
    f32::from_bits(toward_zero | 1)
}

const FORMATS: &[Format] = &[
    Format {
        name: "f16",
        size: 2,
        round: |x| f16::from_f32(narrow(x)).to_f64(),
        encode: |x| f16::from_f32(narrow(x)).to_le_bytes().to_vec(),
    },
    Format {
        name: "bf16",
        size: 2,
        round: |x| bf16::from_f32(narrow(x)).to_f64(),
        encode: |x| bf16::from_f32(narrow(x)).to_le_bytes().to_vec(),
    },
    Format { name: "f32", size: 4, round: |x| f64::from(x as f32), encode: |x| (x as f32).to_le_bytes().to_vec() },
    Format { name: "f64", size: 8, round: |x| x, encode: |x| x.to_le_bytes().to_vec() },
];

fn dtype(name: &str) -> &'static str {
    match name {
        "f16" => "fp16",
        "bf16" => "bf16",
        "f32" => "fp32",
        _ => "fp64",
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn float_operations_round_once() {
    type FloatCase = (&'static str, fn(f64, f64) -> f64);
    // For all formats but f64 a sum, product or quotient in f64 is exact enough to be rounded once more.
    let cases: &[FloatCase] = &[
        ("arith.addf", |a, b| a + b),
        ("arith.subf", |a, b| a - b),
        ("arith.mulf", |a, b| a * b),
        ("arith.divf", |a, b| a / b),
        ("arith.maxnumf", |a, b| if a.is_nan() || b > a { b } else { a }),
        ("arith.minnumf", |a, b| if a.is_nan() || b < a { b } else { a }),
        ("arith.maximumf", |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }),
        ("arith.minimumf", |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }),
    ];
    for format in FORMATS {
        let (a, b) = (floats(format.round, 1), floats(format.round, 3));
        let bytes = |values: &[f64]| values.iter().flat_map(|&x| (format.encode)(x)).collect::<Vec<u8>>();
        for (name, exact) in cases {
            let op = format!("%r = {name} %a, %b : FROM");
            let got = run(format.name, format.name, &op, &bytes(&a), &bytes(&b), format.size);
            for ((&a, &b), got) in a.iter().zip(&b).zip(crate::common::numbers(dtype(format.name), &got)) {
                // Through f32 where the format is narrower: one rounding there, one at the end, as documented.
                let exact = exact(a, b);
                let want = (format.round)(if format.size == 2 { f64::from(exact as f32) } else { exact });
                let zeros = got == 0.0 && want == 0.0 && name.contains("num");
                assert!(same(got, want) || zeros, "{name} {} {a} {b}: {got}, not {want}", format.name);
            }
        }
    }
}

#[test]
fn float_conversions_round_once() {
    for from in FORMATS {
        let values = floats(from.round, 1);
        let bytes: Vec<u8> = values.iter().flat_map(|&x| (from.encode)(x)).collect();
        for to in FORMATS.iter().filter(|to| to.size != from.size) {
            let name = if to.size > from.size { "arith.extf" } else { "arith.truncf" };
            let got = run(from.name, to.name, &format!("%r = {name} %a : FROM to TO"), &bytes, &bytes, to.size);
            for (&x, got) in values.iter().zip(crate::common::numbers(dtype(to.name), &got)) {
                assert!(same(got, (to.round)(x)), "{} to {} {x}: {got}", from.name, to.name);
            }
        }
    }
}

#[test]
fn conversions_between_integers_and_floats() {
    for format in FORMATS {
        for bits in [8, 16, 32, 64] {
            let ints = integers(bits, 1);
            let ty = format!("i{bits}");
            let (bytes, mask) = (bytes_of(&ints, bits), u64::MAX >> (64 - bits));
            for (name, exact) in [
                ("arith.sitofp", (|x, _| i128::from(x)) as fn(i64, u64) -> i128),
                ("arith.uitofp", |x, mask| i128::from(x as u64 & mask)),
            ] {
                let got = run(&ty, format.name, &format!("%r = {name} %a : FROM to TO"), &bytes, &bytes, format.size);
                for (&x, got) in ints.iter().zip(crate::common::numbers(dtype(format.name), &got)) {
                    let exact = exact(x, mask);
                    // Wide integers are inexact in f64 already; there the float must be within half a unit.
                    let want =
                        if format.name == "f32" { f64::from(exact as f32) } else { (format.round)(exact as f64) };
                    assert!(got == want, "{name} {ty} {} {exact}: {got}, not {want}", format.name);
                }
            }
            if format.size < 4 || bits < 32 {
                continue;
            }
            let values = floats(format.round, 1);
            let bytes: Vec<u8> = values.iter().flat_map(|&x| (format.encode)(x)).collect();
            let got = run(format.name, &ty, "%r = arith.fptosi %a : FROM to TO", &bytes, &bytes, bits as usize / 8);
            for (&x, got) in values.iter().zip(ints_of(&got, bits)) {
                let nan = if bits == 64 || format.size == 8 { i64::MIN >> (64 - bits) } else { 0 };
                let want = (x as i64).clamp(i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
                assert_eq!(got, if x.is_nan() { nan } else { want }, "fptosi {} {ty} {x}", format.name);
            }
        }
    }
}

#[test]
fn atomics_of_all_kinds() {
    type Update = (&'static str, fn(i64, i64) -> i64);
    let cases: &[Update] = &[
        ("add", i64::wrapping_add),
        ("max", |a, b| a.max(b)),
        ("min", |a, b| a.min(b)),
        ("and", |a, b| a & b),
        ("or", |a, b| a | b),
        ("xor", |a, b| a ^ b),
        ("exch", |_, b| b),
        ("umax", |a, b| (a as u64).max(b as u64) as i64),
        ("umin", |a, b| (a as u64).min(b as u64) as i64),
    ];
    for bits in [32, 64] {
        let (a, b) = (integers(bits, 1), integers(bits, 5));
        for (name, exact) in cases {
            // The old values are returned, and the sum of old and new shows both.
            let op = format!(
                "%old = tt.atomic_rmw {name}, acq_rel, gpu, %aa, %b : (tensor<{N}x!tt.ptr<i{bits}>>, FROM) -> FROM\n\
                 %new = tt.load %aa : tensor<{N}x!tt.ptr<i{bits}>>\n%x = arith.muli %old, %new : FROM\n\
                 %r = arith.addi %x, %old : FROM"
            );
            let ty = format!("i{bits}");
            let got = run(&ty, &ty, &op, &bytes_of(&a, bits), &bytes_of(&b, bits), bits as usize / 8);
            for ((&a, &b), got) in a.iter().zip(&b).zip(ints_of(&got, bits)) {
                let new = exact(a, b) << (64 - bits) >> (64 - bits);
                let want = a.wrapping_mul(new).wrapping_add(a) << (64 - bits) >> (64 - bits);
                assert_eq!(got, want, "{name} {ty} {a} {b}");
            }
        }
    }
}
