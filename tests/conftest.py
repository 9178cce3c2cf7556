"""Fixtures of the Python tests: folder of the build, compilers, execution of programs, names of the
library's tests."""
import os
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Not in pytest.ini: pytest 6 of Ubuntu 22.04 does not support these options.
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "bench/suites", "tools/gpu", "bindings/python")]
os.environ.setdefault("MP_LOG", "error")


def pytest_addoption(parser):
    parser.addoption("--build", default="build", help="folder of the build that is tested")


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    return ROOT


@pytest.fixture(scope="session")
def build(request) -> pathlib.Path:
    return (ROOT / request.config.getoption("--build")).resolve()


@pytest.fixture(scope="session")
def target() -> str:
    """Target under test: host or cuda."""
    name = os.environ.get("MP_TEST_DEVICE", "host")
    assert name in ("host", "cuda"), f"MP_TEST_DEVICE = {name}"
    return name


@pytest.fixture(scope="session")
def device(target) -> str:
    """A device of the target, in the syntax of the programs' --device."""
    return "host" if target == "host" else "0"


@pytest.fixture(scope="session")
def library_path():
    """library_path(folder): LD_LIBRARY_PATH with the folder appended, after the software device."""
    return lambda folder: os.pathsep.join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(folder)]))


@pytest.fixture(scope="session")
def catch_tests() -> dict:
    """Tags of all Catch2 tests in the sources, by name."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("tests/**/*.cpp")))
    literals = r'((?:"(?:[^"\\\n]|\\.)*"\s*)+)'
    return {string_of(name): string_of(tags)
            for name, tags in re.findall(rf"\bTEST_CASE\({literals},\s*{literals}\)", text)}


def string_of(literals: str) -> str:
    """Returns the value of adjacent C string literals."""
    return re.sub(r"\\(.)", r"\1", "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)))


@pytest.fixture(scope="session")
def cc() -> list:
    return shlex.split(os.environ.get("CC", "cc"))


@pytest.fixture(scope="session")
def cxx() -> list:
    return shlex.split(os.environ.get("CXX", "c++"))


@pytest.fixture(scope="session")
def run():
    """run(program, argument..., code=0, env={}): its stdout and stderr, merged, after checking that
    its exit code is `code`; None allows any."""
    def run_it(*command, code=0, env=(), cwd=ROOT) -> str:
        done = subprocess.run(list(map(str, command)), cwd=cwd, env=os.environ | dict(env), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
        assert code is None or done.returncode == code, f"exit code {done.returncode}: {done.stdout}"
        return done.stdout
    return run_it


@pytest.fixture(scope="session")
def prefix(build, run, tmp_path_factory) -> pathlib.Path:
    """A folder in which the build is installed."""
    folder = tmp_path_factory.mktemp("prefix") / "usr"
    run(ROOT / "tools/package/install", "--build", build, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def tool(request):
    """Functions and constants of the program whose path is TOOL in the test file."""
    return types.SimpleNamespace(**runpy.run_path(str(ROOT / request.module.TOOL), run_name="tool"))


@pytest.fixture(scope="session")
def need():
    """need(program, what): skips the test if the program is not installed."""
    def need_it(program: str, what: str):
        if shutil.which(program) is None:
            pytest.skip(f"{what} (no {program})")
    return need_it
