"""Tests of softgpu/calibrate without the device: it reports found changes and skipped
ones."""
import json
import pathlib
import subprocess

import pytest

CALIBRATE = pathlib.Path(__file__).resolve().parents[2] / "softgpu/calibrate"


def calibrate(tmp_path, program):
    """Runs it with a shell script as the program cub; returns the outcomes by (case, order)."""
    path = tmp_path / "calibration/cub"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    report = tmp_path / "report.json"
    done = subprocess.run([CALIBRATE, "--build", tmp_path, "--only", "cub", "--json", report], capture_output=True,
                          text=True, check=False)
    outcomes = {(one["case"], one["order"]): one["trouble"] for one in json.loads(report.read_text())}
    return done, outcomes


NOTICED = """if [ -n "$SOFTGPU_EDIT" ]; then
  echo "softgpu: edit: k: dropped it" >&2; echo "WRONG: sum: 1 of 2 differ"; echo "0 passed, 1 failed"; exit 1
fi
"""


def test_correct_results_in_all_orders_pass(tmp_path):
    done, outcomes = calibrate(tmp_path, NOTICED + "echo 'right: sum'; echo '1 passed, 0 failed'")
    assert done.returncode == 0, done.stdout
    assert sum(case == "sum" for case, _ in outcomes) == 6
    assert done.stdout.splitlines()[-1] == f"{len(outcomes)} passed, 0 failed"


@pytest.mark.parametrize("program, case, order", [
    ('[ "$SOFTGPU_SEED" = 2 ] && echo "WRONG: sum: 3 of 9 differ" && echo "0 passed, 1 failed" && exit 1', "sum", "seed 2"),
    ('[ "$SOFTGPU_COMPLETION" = early ] && echo "right: sum" && exit 0', "the program", "early"),
    ('[ "$SOFTGPU_QUANTUM" ] && echo "right: sum" && echo "1 passed, 0 failed" && exit 99', "the program",
     "seed 4, short quanta"),
    ('[ "$SOFTGPU_DIVERGE" ] && echo "0 passed, 0 failed" && exit 0', "the program", "seed 3, diverging"),
], ids=["a wrong case", "no last line", "a complaint of the device", "no cases"])
def test_an_error_in_one_order_fails(tmp_path, program, case, order):
    done, outcomes = calibrate(tmp_path, NOTICED + program + "\necho 'right: sum'; echo '1 passed, 0 failed'")
    assert done.returncode == 1
    assert {where for where, trouble in outcomes.items() if trouble} == {(case, order)}
    assert done.stdout.splitlines()[-1].endswith(" passed, 1 failed")


@pytest.mark.parametrize("said, trouble", [("", "NOT APPLIED"), ("softgpu: edit: k: dropped it", "NOT NOTICED")])
def test_an_undetected_change_fails(tmp_path, said, trouble):
    done, outcomes = calibrate(tmp_path, f"""[ -n "$SOFTGPU_EDIT" ] && echo "{said}" >&2
echo 'right: sum'; echo '1 passed, 0 failed'""")
    assert done.returncode == 1
    changes = [found for (case, _), found in outcomes.items() if case != "sum"]
    assert changes and set(changes) == {trouble}
