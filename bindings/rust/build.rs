//! Finds libmpcore.so: in MPCORE_DIR or its lib/, through pkg-config, or where the linker looks.

use std::env;
use std::path::Path;
use std::process::{exit, Command};

/// The folder of the library; None if the linker finds it without one.
fn find() -> Result<Option<String>, String> {
    if let Ok(dir) = env::var("MPCORE_DIR") {
        let candidates = [format!("{dir}/lib"), dir.clone()];
        let has_library = |folder: &String| Path::new(folder).join("libmpcore.so").exists();
        return match candidates.into_iter().find(has_library) {
            Some(folder) => Ok(Some(folder)),
            None => {
                Err(format!("MPCORE_DIR = {dir}: must contain libmpcore.so or lib/libmpcore.so"))
            }
        };
    }
    if let Some(libdir) = output("pkg-config", &["--variable=libdir", "mpcore"]) {
        return Ok(Some(libdir));
    }
    if let Some(flag) = output("pkg-config", &["--libs-only-L", "mpcore"]) {
        return Ok(flag.strip_prefix("-L").map(str::to_string));
    }
    // A compiler prints the path of a library that it finds, else the name alone.
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_string());
    match output(&compiler, &["-print-file-name=libmpcore.so"]) {
        Some(path) if Path::new(&path).is_absolute() => Ok(None),
        _ => Err("libmpcore.so is not found; set MPCORE_DIR to the build or installation \
                  folder, or PKG_CONFIG_PATH to the folder of mpcore.pc"
            .to_string()),
    }
}

/// Returns the output of a program, if it succeeds and prints something.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    Some(text).filter(|text| output.status.success() && !text.is_empty())
}

fn main() {
    for variable in ["MPCORE_DIR", "PKG_CONFIG_PATH", "LIBRARY_PATH", "CC"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rustc-link-lib=dylib=mpcore");
    match find() {
        Ok(None) => {}
        Ok(Some(folder)) => {
            println!("cargo:rustc-link-search=native={folder}");
            // For the tests and examples of this crate; programs that use it decide for themselves.
            println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
            println!("cargo:folder={folder}"); // DEP_MPCORE_FOLDER in their build scripts
        }
        // docs.rs makes the manual, which needs no library.
        Err(_) if env::var_os("DOCS_RS").is_some() => {}
        Err(sentence) => {
            eprintln!("mpcore: {sentence}");
            exit(1);
        }
    }
}
