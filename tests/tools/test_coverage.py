"""Tests of tests/coverage with an instrumented program of two files."""
import json
import shutil

import pytest

CHECK = """#define MP_REQUIRE(condition, why) if (!(condition)) throw why
inline int twice(int x) {
  return 2 * x;
}
"""
GEMM = """#include "check.h"
int f(int x) {
  MP_REQUIRE(x != 1, 1);
  MP_REQUIRE(x != 2, 2);
  if (x == 3)
    return twice(x);
  return x;
}
"""
MAIN = """int f(int);
int main() {
  try {
    f(1);
  } catch (int) {
  }
  return f(0);
}
"""


@pytest.fixture(scope="module")
def folder(root, run, tmp_path_factory):
    """The program after a run, and a copy of tests/coverage."""
    if shutil.which("gcov") is None or shutil.which("g++") is None:
        pytest.skip("coverage (no gcov or g++)")
    folder = tmp_path_factory.mktemp("coverage")
    files = {"capi/check.h": CHECK, "capi/gemm.cpp": GEMM, "capi/unused.cpp": GEMM.replace("int f", "int g"),
             "tests/main.cpp": MAIN}
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(root / "tests/coverage", folder / "tests/coverage")
    (folder / "build").mkdir()
    sources = [name for name in files if name.endswith(".cpp")]
    for source in sources:
        run("g++", "-O1", "-g1", "--coverage", "-c", source, "-o", f"build/{source.replace('/', '_')}.o", cwd=folder)
    run("g++", "--coverage", *(f"build/{name.replace('/', '_')}.o" for name in sources), "-o", "build/main", cwd=folder)
    run("build/main", cwd=folder)
    return folder


@pytest.fixture
def report(folder, run):
    """report(*arguments): output of tests/coverage."""
    return lambda *arguments: run("tests/coverage", *arguments, "build", cwd=folder)


def test_report(report):
    heading, *rows = report().splitlines()
    assert heading.split() == ["lines", "executed", "%", "branches", "taken", "%", "checks", "failed", "folder"]
    (lines, executed, percent, branches, taken, _, checks, failed, folder), = map(str.split, rows)
    assert (checks, failed, folder) == ("4", "1", "capi")
    # In f, both branches of the first check, and one of the two other conditions.
    assert (branches, taken) == ("12", "4")
    assert 3 <= int(executed) <= int(lines) / 2  # g is unused; compilers count lines differently
    assert percent == f"{100 * int(executed) / int(lines):.1f}"


def test_objects_of_removed_sources_do_not_count(report, folder):
    (folder / "capi/unused.cpp").rename(folder / "unused.cpp")
    output = report()
    (folder / "unused.cpp").rename(folder / "capi/unused.cpp")
    (lines, executed, *_, checks, failed, _), = map(str.split, output.splitlines()[1:])
    assert (checks, failed) == ("2", "1") and int(executed) > int(lines) / 2


def test_json(report):
    counts = json.loads(report("--json"))
    assert list(counts) == ["capi"] and counts["capi"]["checks"] == 4 and counts["capi"]["failed"] == 1


def test_list(report):
    output = report("--list", "capi/gemm")
    assert "capi/gemm.cpp: not executed: 6\n" in output
    assert "capi/gemm.cpp: checks that never failed: 4\n" in output
    assert "unused" not in output
