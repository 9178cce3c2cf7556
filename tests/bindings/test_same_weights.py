"""A small training in C, C++, Python, Rust and Fortran: all print the same hash of the weights,
which differs between targets."""
import re
import sys

import pytest


@pytest.fixture(scope="module")
def weights(run, build, library_path):
    """weights(command): the last line of the example, run on the target under test."""
    def weights_of(*command, **env) -> str:
        output = run(*command, env={"LD_LIBRARY_PATH": library_path(build)} | env)
        last = output.splitlines()[-1]
        assert re.fullmatch("weights [0-9a-f]{16}", last), output
        return last
    return weights_of


@pytest.fixture(scope="module")
def reference(weights, build, device) -> str:
    of_target = weights(build / "examples/train", "--device", device)
    if device != "host":
        assert of_target != weights(build / "examples/train", "--device", "host"), "the target has no effect"
    return of_target


def test_c_is_deterministic(weights, reference, build, device):
    assert weights(build / "examples/train", "--device", device) == reference


def test_cpp(weights, reference, build, target):
    assert weights(build / "examples/train_cpp", target) == reference


def test_python(weights, reference, target):
    assert weights(sys.executable, "-B", "examples/python/train.py", target, PYTHONPATH="bindings/python") == reference


def test_rust(weights, reference, build, target, need):
    need("cargo", "the training run in Rust")
    assert weights("cargo", "run", "--quiet", "--offline", "--manifest-path", "bindings/rust/Cargo.toml", "--example",
                   "train", "--", target, MPCORE_DIR=str(build), CARGO_TARGET_DIR=str(build / "cargo")) == reference


def test_fortran(weights, reference, run, build, target, need, tmp_path):
    need("gfortran", "the training run in Fortran")
    run("gfortran", "-O1", f"-J{tmp_path}", "bindings/fortran/mpcore_c.f90", "bindings/fortran/mpcore.f90",
        "bindings/fortran/mpcore_training.f90", "examples/fortran/train.f90", "-o", tmp_path / "train", f"-L{build}", "-lmpcore")
    assert weights(tmp_path / "train", target) == reference
