"""Copies the examples of README.md and of the guide into an empty folder, builds them against an
installed library and runs them."""
import re
import shutil
import sys

import pytest

LANGUAGES, TEN_MINUTES = "docs/languages.md", "docs/ten-minutes.md"
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]


@pytest.fixture
def flags(prefix, output) -> list:
    if shutil.which("pkg-config"):
        return output("pkg-config", "--cflags", "--libs", "mpcore").split()
    return [f"-I{prefix}/include", f"-L{prefix}/lib", "-lmpcore"]


def first_block(page, language: str) -> str:
    block = re.search(rf"(?ms)^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"))
    assert block, f"{page.name} has no example in {language}"
    return block[1]


@pytest.fixture
def copy(root, tmp_path):
    """copy(page, language, name): the first example in that language as a file."""
    def copy_it(page: str, language: str, name: str):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(first_block(root / page, language), encoding="utf-8")
        return tmp_path / name
    return copy_it


@pytest.fixture
def output(run, prefix, library_path, tmp_path, monkeypatch):
    """output(command): its output in the folder of the example, with the installed library"""
    for name in ("MPCORE_DIR", "MPCORE_LIBRARY"):
        monkeypatch.delenv(name, raising=False)
    installed = {"LD_LIBRARY_PATH": library_path(prefix / "lib"), "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    return lambda *command, **env: run(*command, cwd=tmp_path, env=installed | env)


def expect_fp16(output, *command, **env):
    """The four programs of the guide compute the same product in FP16."""
    assert output(*command, **env) == "392\n"
    assert ", fp16 to " in output(*command, **env, MP_LOG="info"), "the product runs in FP16"


def test_c(copy, output, cc, flags):
    assert output(*cc, "-std=c99", *STRICT, copy("README.md", "c", "example.c"), *flags, "-o", "example") == ""
    assert output("./example") == "392\n"


def test_first_program(copy, output, cc, flags, root):
    assert output(*cc, "-std=c99", *STRICT, copy(TEN_MINUTES, "c", "mine.c"), *flags, "-o", "mine") == ""
    printed, page = output("./mine"), first_block(root / TEN_MINUTES, "text")
    assert without_numbers(printed) == without_numbers(page), printed
    assert int(printed.splitlines()[-1].split()[0]) > 56, printed


def without_numbers(text: str) -> str:
    return re.sub(r"[\d.]+", "0", text)


def test_cpp(copy, output, cxx, flags):
    assert output(*cxx, "-std=c++17", *STRICT, copy(LANGUAGES, "cpp", "example.cpp"), *flags, "-o", "example") == ""
    expect_fp16(output, "./example")


def test_python(copy, output, root):
    pytest.importorskip("numpy", reason="the guide's example in Python (no numpy)")
    expect_fp16(output, sys.executable, "-B", copy(LANGUAGES, "python", "example.py"),
                PYTHONPATH=str(root / "bindings/python"))


def test_rust(copy, output, root, build, need, tmp_path):
    need("cargo", "the guide's example in Rust")
    copy(LANGUAGES, "rust", "src/main.rs")
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "example"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\nmpcore = {{ path = "{root}/bindings/rust" }}\n')
    expect_fp16(output, "cargo", "run", "--quiet", "--offline", CARGO_TARGET_DIR=str(build / "cargo"))


def test_fortran(copy, output, prefix, need):
    need("gfortran", "the guide's example in Fortran")
    modules = [prefix / "share/mpcore/fortran" / name for name in ("mpcore_c.f90", "mpcore.f90")]
    output("gfortran", *modules, copy(LANGUAGES, "fortran", "example.f90"), f"-L{prefix}/lib", "-lmpcore", "-o", "example")
    expect_fp16(output, "./example")
