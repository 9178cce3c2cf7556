"""Tests of tests/run: exit code, logs and summary of the programs that it runs."""
import re

import pytest


@pytest.mark.parametrize("command, tally", [
    ("echo 3 passed, 0 failed", "3 passed, 0 failed"),
    ("echo 3 passed, 0 failed, 2 skipped", "3 passed, 0 failed, 2 skipped"),
    ("echo 2 passed, 1 failed; exit 1", "2 passed, 1 failed"),
    ("echo 3 passed, 0 failed; exit 9", "3 passed, 1 failed"),
    ("echo 0 passed, 0 failed", "0 passed, 1 failed"),
    ("echo 9 passed, 9 failed; echo 1 passed, 0 failed", "1 passed, 0 failed"),
    ("true", "1 passed, 0 failed"),
    ("false", "0 passed, 1 failed"),
    ("kill -SEGV $$", "0 passed, 1 failed"),
    ("echo 3 passed in 0.10s", "3 passed, 0 failed"),
    ("echo '3 passed, 1 skipped in 0.1s'", "3 passed, 0 failed, 1 skipped"),
    ("echo '1 failed, 2 passed, 1 warning in 0.12s'; exit 1", "2 passed, 1 failed"),
    ("echo '== 2 passed, 2 errors in 61.00s (0:01:01) =='; exit 1", "2 passed, 2 failed"),
    ("echo '1 skipped in 0.01s'", "0 passed, 0 failed, 1 skipped"),
    ("echo 'no tests ran in 0.00s'; exit 5", "0 passed, 1 failed"),
])
def test_tally(root, run, command, tally):
    said = run(root / "tests/run", f"a label::{command}", code=int(" 0 failed" not in tally)).splitlines()
    assert re.fullmatch(rf"a label {{22}}{tally}  \(\d s\)", said[0])
    assert said[-1] == tally


def test_failure_is_shown(root, run, tmp_path):
    said = run(root / "tests/run", "--log", tmp_path, "good::echo hidden", "bad::echo the reason; false", code=1)
    assert said.endswith(f"""
FAILED: bad
    command: echo the reason; false
    log: {tmp_path}/02.log
    | the reason
1 passed, 1 failed
""")
    assert "hidden" not in said and (tmp_path / "01.log").read_text() == "hidden\n"


def test_failures_within_a_run(root, run, tmp_path):
    """The outer run first lists the failed steps of the inner one, so that a truncated log names
    them, and then the end of each output."""
    inner = f"{root}/tests/run --log {tmp_path}/inner 'good::echo noise' 'bad::seq 100; echo the reason; false' 'worse::false'"
    said = run(root / "tests/run", "--log", tmp_path, f"all::{inner}", code=1).splitlines()
    at = said.index("FAILED: all")
    assert said[at + 3:at + 6] == ["    | FAILED: bad", "    | FAILED: worse", "    | FAILED: bad"]
    assert said[at + 36:at + 39] == ["    |     | 100", "    |     | the reason", "    | FAILED: worse"]
    assert not any("noise" in line for line in said[at:] if "command:" not in line)


def test_first_failure_of_a_long_log(root, run, tmp_path):
    """Catch2 reports a failure where it occurs: the test is named regardless of the output after
    it, also in an outer run."""
    (tmp_path / "log").write_text("""---
the test before
---
the test
---
a.cpp:1
...

a.cpp:3: FAILED:
  CHECK( one == two )
with expansion:
  1 == 2

""" + "noise\n" * 200 + "7 passed, 1 failed\n")
    inner = f"{root}/tests/run --log {tmp_path}/inner 'bad::cat {tmp_path}/log; false'"
    for command, margin, headings in (f"cat {tmp_path}/log; false", "    | ", 0), (inner, "    |     | ", 4):
        said = run(root / "tests/run", "--log", tmp_path / "outer", f"all::{command}", code=1).splitlines()
        shown = said[said.index("FAILED: all") + 3 + headings:]
        assert shown[0] == margin + "the test" and shown[5] == margin + "a.cpp:3: FAILED:"
        assert shown[8] == margin + "  1 == 2" and "the test before" not in "".join(shown)
        assert len(shown) < 65 and margin + "7 passed, 1 failed" in shown


def test_reasons_to_skip(root, run):
    said = run(root / "tests/run", "own::echo skipped: no compiler; echo skipped: no compiler; echo 1 passed, 0 failed",
               "pytest::echo 'SKIPPED [2] tests/a.py:3: no compiler'; echo '1 passed, 2 skipped in 1.0s'")
    assert said.count("\n    skipped: no compiler\n") == 1
    assert said.count("\n    SKIPPED [2] tests/a.py:3: no compiler\n") == 1
    assert said.endswith("\n2 passed, 0 failed, 2 skipped\n")


def test_side_by_side(root, run, tmp_path):
    """Two steps that wait for each other finish only if they run in parallel, and are shown in
    order of completion; exclusive steps run alone."""
    meet = f"touch {tmp_path}/%s; while [ ! -e {tmp_path}/%s ]; do sleep 0.01; done; sleep %s; rm {tmp_path}/%s"
    alone = f"test -z \"$(ls {tmp_path})\" && touch {tmp_path}/c && sleep 0.1 && rm {tmp_path}/c"
    steps = ["first::" + meet % ("a", "b", 0.3, "b"), "second::" + meet % ("b", "a", 0.1, "a"),
             f"alone: third::{alone}", f"alone: fourth::{alone}"]
    said = run(root / "tests/run", "--jobs", 2, "--log", tmp_path.parent / "log", *steps)
    assert re.findall(r"^(\w+) +1 passed", said, re.MULTILINE) == ["second", "first", "third", "fourth"]
