"""Copies each example of README.md, exactly as it stands there, into an empty folder, builds it against an
installed library and runs it."""
import re
import shutil
import sys

import pytest

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]


@pytest.fixture
def flags(prefix, output) -> list:
    if shutil.which("pkg-config"):
        return output("pkg-config", "--cflags", "--libs", "mpcore").split()
    return [f"-I{prefix}/include", f"-L{prefix}/lib", "-lmpcore"]


@pytest.fixture
def copy(root, tmp_path):
    """copy(language, name): the example in that language as a file."""
    def copy_it(language: str, name: str):
        text = (root / "README.md").read_text(encoding="utf-8")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)), encoding="utf-8")
        assert (tmp_path / name).stat().st_size > 0, f"README.md has no example in {language}"
        return tmp_path / name
    return copy_it


@pytest.fixture
def output(run, prefix, library_path, tmp_path, monkeypatch):
    """output(command): what it prints in the folder of the example, with the installed library."""
    for name in ("MPCORE_DIR", "MPCORE_LIBRARY"):
        monkeypatch.delenv(name, raising=False)
    installed = {"LD_LIBRARY_PATH": library_path(prefix / "lib"), "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    return lambda *command, **env: run(*command, cwd=tmp_path, env=installed | env)


def test_c(copy, output, cc, flags):
    assert output(*cc, "-std=c99", *STRICT, copy("c", "example.c"), *flags, "-o", "example") == ""
    assert output("./example") == ""


def test_cpp(copy, output, cxx, flags):
    assert output(*cxx, "-std=c++17", *STRICT, copy("cpp", "example.cpp"), *flags, "-o", "example") == ""
    assert output("./example") == "392\n"


def test_python(copy, output, root):
    pytest.importorskip("numpy", reason="the README's example in Python (no numpy)")
    assert output(sys.executable, "-B", copy("python", "example.py"),
                  PYTHONPATH=str(root / "bindings/python")) == "392\n"


def test_rust(copy, output, root, build, need, tmp_path):
    need("cargo", "the README's example in Rust")
    copy("rust", "src/main.rs")
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "example"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\nmpcore = {{ path = "{root}/bindings/rust" }}\n')
    assert output("cargo", "run", "--quiet", "--offline", CARGO_TARGET_DIR=str(build / "cargo")) == "392\n"


def test_fortran(copy, output, prefix, need):
    need("gfortran", "the README's example in Fortran")
    modules = [prefix / "share/mpcore/fortran" / name for name in ("mpcore_c.f90", "mpcore.f90")]
    output("gfortran", *modules, copy("fortran", "example.f90"), f"-L{prefix}/lib", "-lmpcore", "-o", "example")
    assert output("./example") == "392\n"
