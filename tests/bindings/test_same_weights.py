"""The same small training run in C, C++, Python, Rust and Fortran: on the host target all five print the
same hash of the weights."""
import re
import sys

import pytest


@pytest.fixture(scope="module")
def weights(build, run):
    """weights(command): the last line of the example, run on the host target."""
    def weights_of(*command) -> str:
        said = run(*command, env={"MPCORE_DIR": str(build), "LD_LIBRARY_PATH": str(build),
                                  "PYTHONPATH": "bindings/python", "CARGO_TARGET_DIR": str(build / "cargo")})
        last = said.splitlines()[-1]
        assert re.fullmatch("weights [0-9a-f]{16}", last), said
        return last
    return weights_of


@pytest.fixture(scope="module")
def reference(weights, build) -> str:
    return weights(build / "examples/train", "--device", "host")


def test_c_again(weights, reference, build):
    assert weights(build / "examples/train", "--device", "host") == reference


def test_cpp(weights, reference, build):
    assert weights(build / "examples/train_cpp", "--device", "host") == reference


def test_python(weights, reference):
    assert weights(sys.executable, "-B", "examples/python/train.py", "host") == reference


def test_rust(weights, reference, need):
    need("cargo", "the training run in Rust")
    assert weights("cargo", "run", "--quiet", "--offline", "--manifest-path", "bindings/rust/Cargo.toml", "--example",
                   "train", "--", "host") == reference


def test_fortran(weights, reference, run, build, need, tmp_path):
    need("gfortran", "the training run in Fortran")
    run("gfortran", "-O1", f"-J{tmp_path}", "bindings/fortran/mpcore_c.f90", "bindings/fortran/mpcore.f90",
        "examples/fortran/train.f90", "-o", tmp_path / "train", f"-L{build}", "-lmpcore")
    assert weights(tmp_path / "train", "host") == reference
