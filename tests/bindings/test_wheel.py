"""The Python package as a wheel in an empty folder; bindings/python/tests tests the package."""
import os
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

import pytest


@pytest.fixture(scope="module")
def make_wheel(root, build, run):
    """make_wheel(folder, argument..., library=that of the build, code=0): the wheel or the error"""
    modules = ["/usr/bin/python3", "-c", "import build, setuptools, wheel"]
    if subprocess.run(modules, cwd="/", check=False).returncode != 0:
        pytest.skip("the wheel (no build, setuptools or wheel for /usr/bin/python3)")

    def make_it(out, *arguments, library=build / "libmpcore.so", code=0):
        output = run(root / "tools/package/make_wheel", library, out, *arguments, code=code).strip()
        return output if code else pathlib.Path(output)
    return make_it


@pytest.fixture(scope="module")
def wheel(make_wheel, tmp_path_factory) -> pathlib.Path:
    """The library of the build requires libstdc++, so only the tag of this machine fits it."""
    return make_wheel(tmp_path_factory.mktemp("wheel"), f"linux_{platform.machine()}")


def test_the_library_of_the_build_requires_only_one_other_library(root, build, run):
    said = run(root / "tools/package/platform_tag", build / "libmpcore.so", code=1)
    assert "requires libstdc++.so.6, which" in said, "`make wheel` links it statically"


def tag_of(wheel: pathlib.Path) -> str:
    return re.fullmatch(r"mpcore-[\d.]+-py3-none-(\w+)\.whl", wheel.name)[1]


def test_works_unpacked(wheel, run, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    assert run("env", "-u", "MPCORE_DIR", "-u", "LD_LIBRARY_PATH", f"PYTHONPATH={tmp_path}", sys.executable, "-c",
               'import mpcore; print("host" if mpcore.Context("host").on_host else "")', cwd=tmp_path) == "host\n"


def test_pip(wheel, run, tmp_path):
    pytest.importorskip("pip", reason="pip installs the wheel (no pip for this Python)")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", tmp_path, wheel,
        env={"PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    assert (tmp_path / "mpcore/libmpcore.so.0").stat().st_size > 0


# ---------------------------------------------------------------- platform tag


def test_tag_covers_the_symbols_and_bytes_repeat(make_wheel, run, cxx, tmp_path):
    """Reads the symbols for the tag; the tool reads the list of their versions.  Wheels made within
    two seconds may have equal dates by chance, so that the dates are checked too."""
    (tmp_path / "one.cpp").write_text('#include <iostream>\nvoid one() { std::cout << "one"; }\n')
    library = tmp_path / "libmpcore.so.0.1.0"
    run(*cxx, "-shared", "-fPIC", "-static-libstdc++", tmp_path / "one.cpp", "-o", library)
    newest = max(int(minor) for minor in re.findall(r"\*UND\*.*\(GLIBC_2\.(\d+)", run("objdump", "-T", library)))
    wheel = make_wheel(tmp_path, library=library)
    again = tmp_path / "again"
    again.mkdir()
    assert make_wheel(again, library=library).read_bytes() == wheel.read_bytes()
    assert {entry.date_time[0] for entry in zipfile.ZipFile(wheel).infolist()} == {1980}, "all dates are fixed"
    assert tag_of(wheel) == f"manylinux_2_{max(newest, 17)}_{platform.machine()}"
    metadata = zipfile.ZipFile(wheel).read(f"{wheel.name.partition('-py3')[0]}.dist-info/WHEEL").decode()
    assert f"Tag: py3-none-{tag_of(wheel)}\n" in metadata


@pytest.mark.parametrize("needed, versions, said", [
    ("libc.so.6 libgcc_s.so.1", "GLIBC_2.2.5 GLIBC_2.14 GCC_3.0", "manylinux_2_17_x86_64"),
    ("libc.so.6", "GLIBC_2.9 GLIBC_2.34", "manylinux_2_34_x86_64"),
    ("libc.so.6", "GLIBC_2.14 GLIBC_ABI_DT_RELR", "manylinux_2_36_x86_64"),
    ("libc.so.6 libstdc++.so.6", "GLIBC_2.34", "requires libstdc++.so.6, which not every"),
    ("libc.so.6", "GLIBC_2.34 GLIBC_PRIVATE GCC_12.0.0", "requires GLIBC_PRIVATE GCC_12.0.0, which no version"),
])
def test_platform_tag(root, run, tmp_path, needed, versions, said):
    lines = ["one.so: file format elf64-x86-64", *(f"  NEEDED   {name}" for name in needed.split()), "Version References:",
             *(f"    0x09691a75 0x00 02 {version}" for version in versions.split())]
    (tmp_path / "objdump").write_text("#!/bin/sh\ncat <<END\n" + "\n".join(lines) + "\nEND\n")
    (tmp_path / "objdump").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert said in run(root / "tools/package/platform_tag", "one.so", env=path, code=int(said.startswith("requires")))


def test_library_with_dependencies_is_rejected(make_wheel, run, cc, tmp_path):
    (tmp_path / "other.c").write_text("int other(void) { return 1; }\n")
    (tmp_path / "one.c").write_text("int other(void);\nint one(void) { return other(); }\n")
    shared = [*cc, "-shared", "-fPIC", "-Wl,--no-as-needed"]
    run(*shared, "-Wl,-soname,libother.so.3", tmp_path / "other.c", "-o", tmp_path / "libother.so")
    library = tmp_path / "libmpcore.so.0.1.0"
    run(*shared, tmp_path / "one.c", "-L", tmp_path, "-lother", "-o", library)
    assert "requires libother.so.3" in make_wheel(tmp_path, library=library, code=1)
    assert not list(tmp_path.glob("*.whl"))
    assert tag_of(make_wheel(tmp_path, "linux_x86_64", library=library)) == "linux_x86_64", "a tag by hand is taken"
