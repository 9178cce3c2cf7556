"""Tests of source_line and sabotage without the device, and of the list of suites."""
import functools
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE_LINE = ROOT / "tests/device/source_line"
SABOTAGE = ROOT / "tests/device/sabotage"

# PTX as written by nvcc, and with the line table of -lineinfo: the same statements.
PLAIN = """\
.version 9.0
.target sm_80
.entry f(){
\tmov.u32 %r1, 1;
\tadd.s32 %r2, %r1, 1;
\tret;
}
"""
WITH_LINES = """\
.version 9.0
.target sm_80
.entry f(){
\t.loc\t1 10 3
\tmov.u32 %r1, 1;
\t.loc\t1 12 5
\t.loc\t2 40 7, function_name $L__info_string0, inlined_at 1 12 5
\tadd.s32 %r2, %r1, 1;
\tret;
}
\t.file\t1 "{ROOT}/kernels/f.cu"
\t.file\t2 "/elsewhere/vector.h"
"""


def run(*arguments, **options):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False, **options)


def make_tree(tmp_path):
    """Folder with a source, its PTX, and the PTX with line information that source_line would
    create."""
    folder = tmp_path / "build/cuda/kernels/f.ptx"
    folder.mkdir(parents=True)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/f.cu").write_text("")
    (folder / "f.compute_80.ptx").write_text(PLAIN)
    (folder / "f.compute_80.lineinfo").write_text(WITH_LINES.replace("{ROOT}", str(tmp_path)))
    return "build/cuda/kernels/f.ptx/f.compute_80.ptx"


def test_a_line_of_ptx_has_its_source_and_its_callers(tmp_path):
    ptx = make_tree(tmp_path)
    done = run(SOURCE_LINE, f"{ptx}:4", f"{ptx}:5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{ptx}:4  kernels/f.cu:10",
                                        f"{ptx}:5  /elsewhere/vector.h:40, called at kernels/f.cu:12"]


def test_a_line_before_the_first_has_no_source(tmp_path):
    ptx = make_tree(tmp_path)
    done = run(SOURCE_LINE, "--json", f"{ptx}:2", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {f"{ptx}:2": ""}


def test_a_function_that_was_inlined_into_itself(tmp_path):
    ptx = make_tree(tmp_path)
    twice = WITH_LINES.replace("""\t.loc\t2 40 7, function_name $L__info_string0, inlined_at 1 12 5
""", """\t.loc\t2 60 1, function_name $L__info_string0, inlined_at 1 12 5
\t.loc\t1 20 9, function_name $L__info_string1, inlined_at 2 60 1
\t.loc\t2 60 1, function_name $L__info_string0, inlined_at 1 20 9
\t.loc\t2 40 7, function_name $L__info_string2, inlined_at 2 60 1
""")
    (tmp_path / ptx).with_suffix(".lineinfo").write_text(twice.replace("{ROOT}", str(tmp_path)))
    done = run(SOURCE_LINE, f"{ptx}:5", cwd=tmp_path, timeout=60)
    assert done.stdout.split("  ")[1].strip() == (
        "/elsewhere/vector.h:40, called at /elsewhere/vector.h:60, called at kernels/f.cu:20, "
        "called at /elsewhere/vector.h:60, called at kernels/f.cu:12")


def test_a_file_without_a_source_is_named(tmp_path):
    make_tree(tmp_path)
    stray = tmp_path / "stray.ptx"
    stray.write_text(PLAIN)
    done = run(SOURCE_LINE, f"{stray}:4", cwd=tmp_path)
    assert done.returncode == 1 and f"no source of {stray}" in done.stderr


@functools.cache
def steps(*variables: str) -> dict:
    """Commands of the steps in variables of the Makefile, by label."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = run("make", "--no-print-directory", "MP_TEST_DEVICE=host", "NVCC=nvcc", "show",
               f"--eval=show: ; @printf '%s\\n' {' '.join(f'$({name})' for name in variables)}", cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    return dict(line.removeprefix("alone: ").split("::", 1) for line in done.stdout.splitlines())


def python_files(commands) -> set:
    """Test files that the commands pass to pytest, directly or by folder."""
    named = [ROOT / word.partition("::")[0] for word in " ".join(commands).split() if re.match("(tests|bindings|softgpu)/.*", word)]
    return {file.name for path in named for file in ([path] if path.suffix == ".py" else path.glob("test_*.py"))}


def excluded_tags(command: str) -> set:
    """Tags that a command of the library's tests excludes; it may select tests in no other way."""
    chosen = command.partition("/mptests ")[2].strip("' ")
    assert re.fullmatch(r"(~\[[\w.]+\])*", chosen), f"chooses tests by more than excluded tags: {chosen}"
    return set(re.findall(r"~\[([\w.]+)\]", chosen))


def named_in_testing_md() -> set:
    text = (ROOT / "TESTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (.*?) \| .+ \|$", text.partition("## Tests that do not run on")[2].partition("\n## ")[0])
    return {name.strip("`") for row in rows for name in row.split("; ")}


def left_out(on_host: dict, on_device: dict) -> set:
    """Suites that run on the host target, but for some architecture neither on the software
    device nor in TESTING.md."""
    named, missing = named_in_testing_md(), set()
    # Tests tagged [.] are started by other tests.
    tags = {tag for name in named if name.startswith("library: ") for tag in re.findall(r"\[(\w+)\]", name)} | {"."}
    labels = {re.sub(r"\b\d+\b", "N", label) for label in on_host}
    for arch in (90, 80, 75):
        prefix = f"sm_{arch}: "
        here = {label.removeprefix(prefix): command for label, command in on_device.items() if label.startswith(prefix)}
        found = [labels - named - set(here), python_files(on_host.values()) - named - python_files(here.values()),
                 {f"[{tag}]" for tag in excluded_tags(here.get("library", "")) - tags}]
        missing |= {prefix + what for group in found for what in group}
    return missing


def test_every_suite_runs_on_the_device_or_is_named_with_its_reason():
    on_host, on_device = steps("SUITES", "LONG_STEPS"), steps("SOFTGPU_SUITES", "SOFTGPU_OLDER_SUITES")
    assert not left_out(on_host, on_device), "neither runs nor is named in TESTING.md"
    named = named_in_testing_md()
    assert not named & {label.partition(": ")[2] for label in on_device}, "named, though it runs"


@pytest.mark.parametrize("label, old, new, missing", [
    ("sm_80: library", "~[slow]", "~[slow]~[conv]", "sm_80: [conv]"),
    ("sm_75: tools", "tests/tools/test_nvtx.py", "", "sm_75: test_nvtx.py"),
    ("sm_90: Python", "bindings/python/tests", "bindings/python/tests/test_calls.py", "sm_90: test_groups.py"),
])
def test_injected_exclusions_are_found(label, old, new, missing):
    on_host = steps("SUITES", "LONG_STEPS")
    on_device = steps("SOFTGPU_SUITES", "SOFTGPU_OLDER_SUITES").copy()
    assert old in on_device[label]
    on_device[label] = on_device[label].replace(old, new)
    assert missing in left_out(on_host, on_device)
    del on_device[label]
    assert {label, missing} & left_out(on_host, on_device)


def unmatched(specs, catch_tests: dict) -> list:
    """Names, patterns and tags of Catch2 test specifications that match no test."""
    parts = [part for spec in specs for part in re.split(r"(?<!\\),", spec)]
    tags = [tag for part in parts for tag in re.findall(r"\[[\w.-]+\]", part) if part.startswith("[")]
    names = [part.replace("\\,", ",") for part in parts if not part.startswith(("[", "~"))]
    every = "".join(catch_tests.values())
    return [tag for tag in tags if tag not in every] + [
        name for name in names if not any(re.fullmatch(re.escape(name).replace(r"\*", ".*"), test) for test in catch_tests)]


def test_tests_of_sabotage_and_races_exist(catch_tests):
    sabotage_cases = runpy.run_path(str(SABOTAGE.with_name("sabotage_cases.py")))["CASES"]
    assert not unmatched([test.name for case in sabotage_cases for test in case.tests], catch_tests)
    suites = steps("SOFTGPU_RACE_SUITES", "SOFTGPU_SM80", "SOFTGPU_OLDER_CODE", "SOFTGPU_ORDERS").values()
    selected = [command.partition("/mptests ")[2].strip("' ") for command in suites]
    assert sum(map(bool, selected)) > 3
    assert not unmatched(filter(None, selected), catch_tests)
    assert unmatched(["xent: no\\, test*,xent: small batches,[none]"], catch_tests) == ["[none]", "xent: no, test*"]


def test_numbers_of_sabotage_in_testing_md():
    lists = runpy.run_path(str(SABOTAGE.with_name("sabotage_cases.py")))
    section = (ROOT / "TESTING.md").read_text(encoding="utf-8").partition("### Sabotage of kernels")[2].partition("\n###")[0]
    tests = {test for case in lists["CASES"] for test in case.tests}
    limits = [reason.most is not None for reason in lists["REASONS"]]
    text = " ".join(section.split())
    assert f"{len(lists['CASES'])} cases with {len(tests)} different tests" in text
    assert f"{len(limits)} rows of `sabotage_cases.py`" in text
    assert f"{sum(limits)} rows limit the number of changes, {limits.count(False)} apply to all" in text
    assert re.findall(r"\| (\d+) \|\n", section) == [str(len(lists[name])) for name in ("DROPPED", "CHANGED", "DESCRIPTOR")] + ["1"]


# A library whose tests run one kernel, and which detects changes of the marked line.
SABOTAGED = """\
.entry simt(){
\tbar.sync 0;
\t@%p1 bra $L__BB0_2;
\tst.global.u32 [%rd1], %r1;
$L__BB0_2:
\tbar.sync 0;
\t@!%p2 bra $L__BB0_4;
\tld.global.u32 %r1, [%rd1];
$L__BB0_4:
\tret;
}
"""
SUITE = """\
    #!{python}
    import json, os, sys
    edit = os.environ["SOFTGPU_EDIT"]
    counts = [{{"opcode": "bar.sync", "line": 2}}, {{"opcode": "bra", "line": 3}}, {{"opcode": "bar.sync", "line": 6}},
              {{"opcode": "bra", "line": 7}}]
    kernel = {{"name": "simt", "pretty_name": "gemm_simt<f>", "file": "{file}", "issue_slots": 9, "counts": counts}}
    if "SOFTGPU_COUNT" in os.environ:
        json.dump({{"kernels": [kernel]}}, open(os.environ["SOFTGPU_COUNT"], "w"))
    if edit:
        print("softgpu: edit: gemm_simt<f>:", edit, file=sys.stderr)
    if {notices}:
        sys.exit("softgpu: FAULT: as it should")
    """


def sabotage(tmp_path, notices):
    """Outcome of the case that runs gemm_simt, in a library that fails under the condition
    `notices`."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "simt.ptx").write_text(SABOTAGED)
    suite = tmp_path / "tests/mptests"
    suite.write_text(textwrap.dedent(SUITE).format(python=sys.executable, file=tmp_path / "simt.ptx", notices=notices))
    suite.chmod(0o755)
    report = tmp_path / "report.json"
    done = run(SABOTAGE, "--build", tmp_path, "--case", "CUDA cores", "--json", report)
    return done, [(row["line"], row["what"], row["noticed"]) for row in json.loads(report.read_text())]


def test_a_sabotage_that_every_test_survives_fails_the_run(tmp_path):
    done, rows = sabotage(tmp_path, "'bra' in edit or '@1' in edit and os.environ.get('SOFTGPU_SEED')")
    assert rows == [(2, "left out", ""), (3, "stores despite the branch", "as it should"),
                    (6, "left out", "as it should")]
    assert done.returncode == 1 and "2 passed, 1 failed" in done.stdout
    assert "NOT NOTICED" in done.stdout and "as it should (seed 1)" in done.stdout


def test_detected_sabotages_pass(tmp_path):
    done, rows = sabotage(tmp_path, notices="edit")
    assert done.returncode == 0 and len(rows) == 3 and "3 passed, 0 failed" in done.stdout


def test_a_complete_run_breaks_every_kernel_in_every_way(tmp_path):
    (tmp_path / "cuda/kernels").mkdir(parents=True)
    kernels = ".entry _Z4lonev(){\n\tbar.sync 0;\n}\n.entry _Z5plainv(){\n\tret;\n}\n"
    (tmp_path / "cuda/kernels/a.ptx").write_text(kernels)
    lacking = runpy.run_path(str(SABOTAGE))["what_a_whole_run_lacks"](tmp_path, [])
    assert lacking[:2] == ["lone is in no case", "no bar.sync was left out"]
    assert "nothing was changed to: counts to 0" in lacking


def test_sabotage_of_failing_tests_is_rejected(tmp_path):
    (tmp_path / "report.json").write_text("[]")
    done, _ = sabotage(tmp_path, notices="True")
    assert done.returncode == 1 and "fails as it is" in done.stderr
