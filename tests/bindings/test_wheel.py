"""The Python package as a wheel, in an empty folder.  The tests of the package are bindings/python/tests."""
import pathlib
import subprocess
import sys
import zipfile

import pytest


@pytest.fixture(scope="module")
def make_wheel(root, build, run):
    modules = ["/usr/bin/python3", "-c", "import build, setuptools, wheel"]
    if subprocess.run(modules, cwd="/", check=False).returncode != 0:
        pytest.skip("the wheel (no build, setuptools or wheel for /usr/bin/python3)")
    return lambda out: pathlib.Path(run(root / "tools/package/make_wheel", build / "libmpcore.so", out).strip())


@pytest.fixture(scope="module")
def wheel(make_wheel, tmp_path_factory) -> pathlib.Path:
    return make_wheel(tmp_path_factory.mktemp("wheel"))


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
