//! Compiles the library that stands in front of the CUDA driver. It has no dependencies, so that one call of the
//! compiler makes it and the program can carry it inside.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name by which the library needs the real driver; a link of this name lies beside it at run time.
const DRIVER: &str = "libtilewright-driver.so.1";

fn main() {
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let target = out.join("libcuda.so.1");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        // There is no driver to stand in front of.
        std::fs::write(&target, "").unwrap_or_else(|error| panic!("failed to write {}: {error}", target.display()));
        return;
    }
    // An empty library to link against: it leaves the name of the real driver behind.
    let empty = out.join("empty.rs");
    std::fs::write(&empty, "#![no_std]\n#[panic_handler] fn p(_: &core::panic::PanicInfo) -> ! { loop {} }\n")
        .unwrap_or_else(|error| panic!("failed to write {}: {error}", empty.display()));
    let stub = out.join(DRIVER);
    compile(&empty, &stub, &[format!("-Clink-arg=-Wl,-soname,{DRIVER}")]);
    compile(
        Path::new("shim/lib.rs"),
        &target,
        &[
            "-Clink-arg=-Wl,-soname,libcuda.so.1".into(),
            "-Clink-arg=-Wl,-rpath,$ORIGIN".into(),
            format!("-Clink-arg=-Wl,--no-as-needed,{}", stub.display()),
        ],
    );
}

fn compile(source: &Path, target: &Path, more: &[String]) {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--crate-type=cdylib", "--crate-name=shim", "--edition=2024", "-Copt-level=2", "-Cpanic=abort"]);
    command.args(["-Cstrip=symbols", "--cap-lints=allow"]);
    if let Ok(triple) = env::var("TARGET") {
        command.arg(format!("--target={triple}"));
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("-Clinker=");
        option.push(linker);
        command.arg(option);
    }
    command.args(more).arg(source).arg("-o").arg(target);
    let status = command.status().unwrap_or_else(|error| panic!("failed to run the compiler: {error}"));
    assert!(status.success(), "failed to compile {}", source.display());
}
