//! Finds libmpcore.so: in MPCORE_DIR or its lib/, else through pkg-config, else where the linker looks.

use std::env;
use std::path::Path;
use std::process::Command;

/// The folder of the library, if anybody says.
fn folder() -> Option<String> {
    if let Ok(dir) = env::var("MPCORE_DIR") {
        for candidate in [format!("{dir}/lib"), dir.clone()] {
            if Path::new(&candidate).join("libmpcore.so").exists() {
                return Some(candidate);
            }
        }
        panic!("MPCORE_DIR = {dir}: no libmpcore.so there, nor in its lib/");
    }
    let answer = Command::new("pkg-config").args(["--variable=libdir", "mpcore"]).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let libdir = text.trim();
    if answer.status.success() && !libdir.is_empty() {
        return Some(libdir.to_string());
    }
    let answer = Command::new("pkg-config").args(["--libs-only-L", "mpcore"]).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    text.trim().strip_prefix("-L").map(str::to_string)
}

fn main() {
    println!("cargo:rerun-if-env-changed=MPCORE_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rustc-link-lib=dylib=mpcore");
    if let Some(folder) = folder() {
        println!("cargo:rustc-link-search=native={folder}");
        // For the tests and examples of this crate; programs that use it decide for themselves.
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
        println!("cargo:folder={folder}"); // DEP_MPCORE_FOLDER in their build scripts
    }
}
