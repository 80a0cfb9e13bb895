//! Text that is not what it should be: clear errors, no panics, no deep recursion.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use tilewright_ttir::{MAX_NESTING, parse, verify};

fn parse_error(text: &str) -> String {
    parse(text).expect_err("this should not parse").to_string()
}

/// A function `@f(%x: f32, %n: i32, %p: !tt.ptr<f32>, %v: tensor<8xf32>)` with this body.
fn function(body: &str) -> String {
    format!("module {{ tt.func public @f(%x: f32, %n: i32, %p: !tt.ptr<f32>, %v: tensor<8xf32>) {{\n{body}\n}} }}")
}

fn body_error(body: &str) -> String {
    parse_error(&function(body))
}

fn verify_error(body: &str) -> String {
    let module = parse(&function(body)).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).expect_err("this should not verify").to_string()
}

#[test]
fn parse_errors_say_where_and_what() {
    let errors = [
        parse_error(""),
        parse_error("module {"),
        parse_error("module { tt.func @f(%x: f33) { tt.return } }"),
        parse_error("module { tt.func @f(%x: tensor<4xf32) { tt.return } }"),
        parse_error("module { } trailing"),
        parse_error("#loc1 = loc(#loc2)\nmodule { }"),
        parse_error("#a = #x.y<b = #c>\nmodule { }"),
        parse_error("#a = #x.y\n#a = #x.z\nmodule { }"),
        body_error("%y = arith.addf %x, %z : f32\ntt.return"),
        body_error("%y = arith.addf %x, %n : f32\ntt.return"),
        body_error("%y = tt.frobnicate %x : f32"),
        body_error("%y = gpu.thread_id x"),
        body_error("%y = arith.cmpi less, %n, %n : i32"),
        body_error("%y = tt.load %x : f32"),
        body_error("%x = arith.constant 1.0 : f32"),
        body_error("%y:2 = arith.addf %x, %x : f32"),
        body_error("%y = arith.constant dense<[1, 2]> : tensor<4xi32>"),
        body_error("%y = arith.constant 300 : i8"),
        body_error("%y = arith.constant \"text\""),
        body_error("cf.br ^bb7"),
        body_error("tt.assert %x, \"no end"),
        body_error("%y = tt.reduce %v"),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    1:1: expected `module`, found the end of the text
    1:9: expected `tt.func`, found the end of the text
    1:25: expected a type, found `f33`
    1:37: expected `>`, found `)`
    1:12: expected the end of the text, found `trailing`
    1:14: `#loc2` is not defined
    1:16: `#c` is not defined
    2:2: `#a` is defined twice
    2:21: `%z` is not defined
    2:21: `%n` has type i32, but is used as f32
    2:6: unknown operation `tt.frobnicate`
    2:6: unknown operation `gpu.thread_id`: threads and blocks of a GPU appear only after the passes; `gpu.barrier` alone is written by the front end
    2:17: expected one of eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge, found `less`
    2:22: expected a pointer type, found f32
    2:6: `%x` is defined twice
    2:8: `arith.addf` has 1 results, not 2
    2:27: these elements do not have the shape of their type
    2:21: `300` is not a value of type i8
    2:21: expected a constant with a type
    2:7: this block is not defined
    2:15: this string has no end
    2:6: `tt.reduce` is only known in generic form, `"tt.reduce"(…)`
    "#);
}

#[test]
fn verify_errors_say_where_and_what() {
    let errors = [
        verify_error("%y = arith.addf %x, %x : f32"),
        verify_error("tt.return\ntt.return"),
        verify_error("tt.return %x : f32"),
        verify_error("%y = arith.addi %x, %x : f32\ntt.return"),
        verify_error("%y = arith.extf %x : f32 to f16\ntt.return"),
        verify_error("%y = tt.splat %x : f32 -> tensor<8xi32>\ntt.return"),
        verify_error("%y = tt.splat %x : f32 -> tensor<3xf32>\ntt.return"),
        verify_error("%y = tt.broadcast %v : tensor<8xf32> -> tensor<16xf32>\ntt.return"),
        verify_error("%y = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<16xi32>\ntt.return"),
        verify_error("%y = tt.dot %v, %v, %v : tensor<8xf32> * tensor<8xf32> -> tensor<8xf32>\ntt.return"),
        verify_error("%y = tt.expand_dims %v : tensor<8xf32> -> tensor<8x1xf32>\ntt.return"),
        verify_error("tt.call @g(%x) : (f32) -> ()\ntt.return"),
        verify_error("tt.call @f(%x, %n, %p, %v) : (f32, i32, !tt.ptr<f32>, tensor<8xf32>) -> ()\ntt.return"),
        verify_error("%c = arith.cmpi slt, %n, %n : i32\nscf.if %c { tt.return }\ntt.return"),
        verify_error(
            "%c = arith.cmpi slt, %n, %n : i32\ncf.cond_br %c, ^bb1, ^bb2\n^bb1:\n%y = arith.addf %x, %x : f32\n\
             cf.br ^bb2\n^bb2:\n%z = arith.addf %y, %x : f32\ntt.return",
        ),
        verify_error("%y = \"arith.addf\"(%x) : (f32) -> f32\ntt.return"),
        verify_error(
            "%y = \"tt.load\"(%p) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tt.ptr<f32>) -> f32\ntt.return",
        ),
        verify_error("%y = \"tt.get_program_id\"() <{axis = 7 : i32}> : () -> i32\ntt.return"),
        verify_error(
            "%y = arith.addf %x, %x : f32 loc(\"kernel.py\":12:4)\ntt.return %y : f32 loc(\"kernel.py\":13:2)",
        ),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    in @f: `arith.addf`: expected the terminator `tt.return` here
    in @f: `tt.return`: a terminator before the end of its block
    in @f: `tt.return`: what it returns must have types (), found (f32)
    in @f: `arith.addi`: it does not compute on f32
    in @f: `arith.extf`: it does not turn f32 into f16
    in @f: `tt.splat`: the value must have type i32, found f32
    in @f: the elements of tensor<3xf32> are no power of two up to 1048576
    in @f: `tt.broadcast`: tensor<8xf32> does not broadcast to tensor<16xf32>
    in @f: `tt.make_range`: the result must have type tensor<8xi32>, found tensor<16xi32>
    in @f: `tt.dot`: expected a matrix or a batch of them, found tensor<8xf32>
    in @f: `tt.expand_dims`: attribute `axis` is missing
    in @f: `tt.call`: @g is not a function of this module
    in @f: its calls form a circle
    in @f: `tt.return`: a terminator before the end of its block
    in @f: `arith.addf`: `%y` is used before it is defined
    in @f: `arith.addf`: expected 2 operands and 1 results, found 1 and 1
    in @f: `tt.load`: expected 2 operands and 1 results, found 1 and 1
    in @f: `tt.get_program_id`: attribute `axis` cannot be 7 : i32
    kernel.py:13:2: in @f: `tt.return`: what it returns must have types (), found (f32)
    "#);
}

/// Each alias doubles the one before.
#[test]
fn aliases_do_not_explode() {
    let doubling: String = (1..60).map(|at| format!("#a{at} = #x.y<#a{0}, #a{0}>\n", at - 1)).collect();
    let error = parse_error(&format!("#a0 = #x.y\n{doubling}module {{ }}"));
    assert!(error.contains("an attribute of more than"), "{error}");
}

/// Far deeper than the limit, in every construct that nests.
#[test]
fn nesting_is_limited() {
    let deep = 100_000;
    let nest = |open: &str, middle: &str, close: &str| format!("{}{middle}{}", open.repeat(deep), close.repeat(deep));
    let texts = [
        function(&nest("scf.if %c { ", "", " }")),
        function(&nest("\"a\"() ({ ", "", " }) : () -> ()")),
        function(&format!("\"a\"() {{x = {}}} : () -> ()", nest("[", "", "]"))),
        function(&format!("\"a\"() {{x = {}}} : () -> ()", nest("{x = ", "1", "}"))),
        function(&format!("%y = arith.constant dense<{}> : tensor<1xi32>", nest("[", "1", "]"))),
        function(&format!("%y = ub.poison : {}", nest("!tt.ptr<", "f32", ">"))),
        function(&format!("%y = ub.poison : {}", nest("() -> (", "", ")"))),
        function(&format!("%y = ub.poison : f32 loc({})", nest("\"a\"(", "unknown", ")"))),
        function(&format!("%y = ub.poison : f32 loc({})", nest("fused[", "unknown", "]"))),
    ];
    for text in texts {
        let error = parse_error(&text);
        assert!(error.contains(&format!("more than {MAX_NESTING} levels")), "{error}");
    }
    let chain: String = (1..deep).map(|at| format!("#loc{at} = loc(\"a\"(#loc{}))\n", at - 1)).collect();
    assert!(parse(&format!("#loc0 = loc(unknown)\n{chain}module {{ }} loc(#loc{})", deep - 1)).is_err());
    assert!(
        parse("#loc1 = loc(fused[#loc2, #loc2])\n#loc2 = loc(fused[#loc1, #loc1])\nmodule { } loc(#loc1)").is_err()
    );
}

/// As deep as allowed: whoever walks the module recursively must manage that on a test's stack.
#[test]
fn deepest_module_is_usable() {
    let depth = MAX_NESTING - 1;
    let body =
        format!("%c = arith.cmpi slt, %n, %n : i32\n{}{}\ntt.return", "scf.if %c { ".repeat(depth), " }".repeat(depth));
    let module = parse(&function(&body)).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(parse(&module.to_string()).map(|again| again.to_string()), Ok(module.to_string()));
}

static FIXTURES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let paths = fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("a file").path());
    paths.map(|path| fs::read(path).expect("text")).filter(|text| text.len() < 6000).collect()
});

#[derive(Debug, Clone)]
enum Mutation {
    Replace(Index, u8),
    Remove(Index, usize),
    Copy(Index, Index, usize),
    Truncate(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let byte = prop_oneof![any::<u8>(), proptest::sample::select(b"%<>(){}[]:,0123456789x\"#^@ifb".to_vec())];
    prop_oneof![
        4 => (any::<Index>(), byte).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        2 => (any::<Index>(), 1..40usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        2 => (any::<Index>(), any::<Index>(), 1..80usize).prop_map(|(from, to, length)| Mutation::Copy(from, to, length)),
        1 => any::<Index>().prop_map(Mutation::Truncate),
    ]
}

fn mutate(text: &mut Vec<u8>, mutation: &Mutation) {
    if text.is_empty() {
        return;
    }
    let length = text.len();
    match mutation {
        Mutation::Replace(at, byte) => text[at.index(length)] = *byte,
        Mutation::Remove(at, count) => {
            let at = at.index(length);
            text.drain(at..length.min(at + count));
        }
        Mutation::Copy(from, to, count) => {
            let from = from.index(length);
            let part = text[from..length.min(from + count)].to_vec();
            let to = to.index(length);
            text.splice(to..to, part);
        }
        Mutation::Truncate(at) => text.truncate(at.index(length)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn damaged_text_never_panics(which in any::<Index>(), mutations in prop::collection::vec(mutation(), 1..4)) {
        let mut text = FIXTURES[which.index(FIXTURES.len())].clone();
        mutations.iter().for_each(|mutation| mutate(&mut text, mutation));
        let text = String::from_utf8_lossy(&text);
        if let Ok(module) = parse(&text) {
            // What was read can be verified, printed and read again, whatever it means.
            let _ = verify(&module);
            let printed = module.to_string();
            prop_assert_eq!(parse(&printed).map(|again| again.to_string()), Ok(printed));
        }
    }
}
