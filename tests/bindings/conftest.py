"""The programs of examples/ in each language."""
import sys

import pytest

MODULES = ("_c", "", "_training", "_autocast", "_described", "_network")


@pytest.fixture(scope="session")
def example(build, run, need, library_path, tmp_path_factory):
    """example(name, language): builds an example and returns run(argument...), which returns its
    output."""
    def example_of(name: str, language: str):
        env = {"LD_LIBRARY_PATH": library_path(build), "MP_AUTOCAST": "", "PYTHONPATH": "bindings/python",
               "CARGO_TARGET_DIR": str(build / "cargo")}
        if language == "python":
            command = [sys.executable, "-B", f"examples/python/{name}.py"]
        elif language == "rust":
            need("cargo", f"{name} in Rust")
            run("cargo", "build", "--quiet", "--offline", "--manifest-path", "bindings/rust/Cargo.toml",
                "--example", name, env=env | {"MPCORE_DIR": str(build)})
            command = [build / "cargo/debug/examples" / name]
        elif language == "fortran":
            need("gfortran", f"{name} in Fortran")
            out = tmp_path_factory.mktemp(name)
            run("gfortran", "-O1", "-fcheck=all", f"-J{out}",
                *[f"bindings/fortran/mpcore{module}.f90" for module in MODULES],
                f"examples/fortran/{name}.f90", "-o", out / name, f"-L{build}", "-lmpcore")
            command = [out / name]
        else:
            command = [build / "examples" / (name + {"c": "", "cpp": "_cpp"}[language])]
        return lambda *arguments: run(*command, *arguments, env=env)
    return example_of
