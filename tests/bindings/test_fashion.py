"""The perceptron of examples/*/fashion.* in each language: for each type all print the same loss,
on generated images."""
import math
import re
import sys

import pytest

STEPS = 60
IMAGES, PIXELS, CLASSES, USED = 60000, 784, 10, STEPS * 100
TYPES = ("fp32", "fp16", "bf16")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files like those of Fashion-MNIST: noisy patterns of each class; unused images are black."""
    numpy = pytest.importorskip("numpy", reason="Fashion-MNIST in five languages (no numpy for this Python)")
    random = numpy.random.default_rng(1)
    patterns = random.integers(0, 256, (CLASSES, PIXELS))
    labels = random.integers(0, CLASSES, IMAGES, dtype=numpy.uint8)
    images = numpy.zeros((IMAGES, PIXELS), numpy.uint8)
    images[:USED] = (patterns[labels[:USED]] + random.integers(0, 512, (USED, PIXELS))) // 3
    path = tmp_path_factory.mktemp("fashion")
    head = numpy.array([0x803, IMAGES, 28, 28], ">i4").tobytes()
    (path / "train-images-idx3-ubyte").write_bytes(head + images.tobytes())
    (path / "train-labels-idx1-ubyte").write_bytes(numpy.array([0x801, IMAGES], ">i4").tobytes() + labels.tobytes())
    return path


@pytest.fixture(scope="module")
def losses(run, build, library_path, folder):
    """losses(command): the output of the example for each type."""
    def losses_of(*command, **env) -> list:
        env |= {"LD_LIBRARY_PATH": library_path(build), "MPCORE_DIR": str(build), "MP_AUTOCAST": ""}
        output = [run(*command, folder, low, STEPS, env=env) for low in TYPES]
        for low, line in zip(TYPES, output):
            match = re.fullmatch(rf"{low}: loss (\d\.\d{{4}})\n", line)
            assert match and float(match[1]) < math.log(CLASSES), line
        return output
    return losses_of


@pytest.fixture(scope="module")
def reference(losses, build) -> list:
    return losses(build / "examples/fashion")


def test_types_differ(reference):
    """Checks that the types have an effect: otherwise the comparisons show nothing."""
    assert len({line.split()[-1] for line in reference}) > 1, reference


def test_cpp(losses, reference, build):
    assert losses(build / "examples/fashion_cpp") == reference


def test_python(losses, reference):
    assert losses(sys.executable, "-B", "examples/python/fashion.py", PYTHONPATH="bindings/python") == reference


def test_rust(losses, reference, run, build, need):
    need("cargo", "Fashion-MNIST in Rust")
    env = {"MPCORE_DIR": str(build), "CARGO_TARGET_DIR": str(build / "cargo")}
    run("cargo", "build", "--quiet", "--offline", "--manifest-path", "bindings/rust/Cargo.toml", "--example", "fashion",
        env=env)
    assert losses(build / "cargo/debug/examples/fashion") == reference


def test_fortran(losses, reference, run, build, need, tmp_path):
    need("gfortran", "Fashion-MNIST in Fortran")
    modules = [f"bindings/fortran/mpcore{name}.f90" for name in ("_c", "", "_graph", "_autocast", "_described", "_network")]
    run("gfortran", "-O1", "-fcheck=all", f"-J{tmp_path}", *modules, "examples/fortran/fashion.f90", "-o",
        tmp_path / "fashion", f"-L{build}", "-lmpcore")
    assert losses(tmp_path / "fashion") == reference
