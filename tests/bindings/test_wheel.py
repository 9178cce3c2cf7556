"""The Python package as a wheel in an empty folder; bindings/python/tests tests the package."""
import pathlib
import platform
import re
import runpy
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
def platform_tag(root) -> dict:
    return runpy.run_path(str(root / "tools/package/platform_tag"))


@pytest.fixture(scope="module")
def wheel(make_wheel, platform_tag, tmp_path_factory) -> pathlib.Path:
    glibc = platform.libc_ver()[1]
    if platform_tag["numbers"](glibc) > (2, platform_tag["POLICIES"][-1][0]):
        pytest.skip(f"the wheel (no policy is as new as glibc {glibc})")
    return make_wheel(tmp_path_factory.mktemp("wheel"))


def tag_of(wheel: pathlib.Path) -> str:
    return re.fullmatch(r"mpcore-[\d.]+-py3-none-(\w+)\.whl", wheel.name)[1]


def test_same_bytes(make_wheel, wheel, tmp_path):
    assert make_wheel(tmp_path).read_bytes() == wheel.read_bytes()


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


def test_tag_covers_the_symbols_of_the_library(wheel, build, run):
    """Reads the symbols; the tool reads the list of their versions."""
    symbols = run("objdump", "-T", build / "libmpcore.so")
    newest = max(int(minor) for minor in re.findall(r"\*UND\*.*\(GLIBC_2\.(\d+)", symbols))
    tag = tag_of(wheel)
    assert int(re.match(r"manylinux_2_(\d+)_", tag)[1]) >= newest
    metadata = zipfile.ZipFile(wheel).read(f"{wheel.name.partition('-py3')[0]}.dist-info/WHEEL").decode()
    assert f"Tag: py3-none-{tag}\n" in metadata


def test_auditwheel_agrees(wheel, run, need):
    need("auditwheel", "auditwheel's opinion of the wheel")
    output = " ".join(run("auditwheel", "show", wheel).split())
    assert f'is consistent with the following platform tag: "{tag_of(wheel)}"' in output


@pytest.mark.parametrize("versions, x", [
    ("GLIBC_2.2.5 GLIBC_2.14 GCC_3.0 CXXABI_1.3 GLIBCXX_3.4.19", 17),
    ("GLIBC_2.14 GLIBCXX_3.4.20", 24),
    ("GLIBC_2.28", 28),
    ("GLIBC_2.29", 31),
    ("GLIBC_2.34 GLIBCXX_3.4.29", 34),
    ("GLIBC_2.14 CXXABI_1.3.13", 34),
    ("GLIBC_2.34 GLIBCXX_3.4.30", 35),
    ("GLIBC_2.2.5 GCC_12.0.0", 35),
    ("GLIBC_2.9 GLIBC_2.36", 36),
    ("GLIBC_2.14 GLIBC_ABI_DT_RELR", 36),
    ("GLIBC_2.14 GLIBCXX_3.4.31", 39),
])
def test_oldest_policy(platform_tag, versions, x):
    assert platform_tag["policy_of"](set(versions.split())) == x


@pytest.mark.parametrize("versions, culprit", [
    ("GLIBC_2.99 GLIBCXX_3.4.29", "GLIBC_2.99"),
    ("GLIBC_2.34 GLIBCXX_3.4.99", "GLIBCXX_3.4.99"),
    ("GLIBC_2.34 GLIBC_PRIVATE", "GLIBC_PRIVATE"),
])
def test_no_policy(platform_tag, versions, culprit):
    with pytest.raises(platform_tag["NoTag"], match=f"^{re.escape(culprit)}: in no policy"):
        platform_tag["policy_of"](set(versions.split()))


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
