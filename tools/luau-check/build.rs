//! Compiles the C++ half against the headers of the Luau sources inside `luau-analyze`.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

const SOURCES: [&str; 3] = ["src/check.cpp", "src/roblox.cpp", "src/tree.cpp"];
const HEADERS: [&str; 2] = ["src/roblox.h", "src/tree.h"];

fn main() {
    let luau = luau_sources();
    let mut build = cc::Build::new();
    // As in the build script of luau-analyze: headers and libraries must agree.
    build.cpp(true).std("c++17").warnings(false).define("LUAI_MAXCSTACK", "1000000").define("LUA_VECTOR_SIZE", "3");
    for part in ["Analysis", "Ast", "Common", "Config", "Compiler", "VM"] {
        build.include(luau.join(part).join("include"));
    }
    build.files(SOURCES).compile("luau_check");
    for file in SOURCES.iter().chain(&HEADERS) {
        println!("cargo:rerun-if-changed={file}");
    }
}

/// Where cargo unpacked Luau's sources. The crate says so to no build script but its own.
fn luau_sources() -> PathBuf {
    let cargo = env::var("CARGO").expect("cargo sets CARGO");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let metadata = Command::new(cargo)
        // What only other platforms need was not downloaded.
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", &target])
        .output()
        .expect("cargo metadata starts");
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata = String::from_utf8(metadata.stdout).expect("cargo writes UTF-8");
    let manifest = metadata
        .split('"')
        .find(|text| text.contains("luau-analyze-") && text.ends_with("Cargo.toml"))
        .expect("luau-analyze is a dependency");
    Path::new(manifest).parent().expect("a manifest is in a folder").join("luau")
}
