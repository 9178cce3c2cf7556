"""Tests of programs whose output cannot be written: an error message, exit code 1, and no
partial file."""
import json
import os
import re
import resource
import signal
import subprocess
import time

import demo_curves
import pytest

MPDEMO = ["--device", "host", "--net", "mlp", "--epochs", "0.001"]
MPBENCH = ["calls", "--quick", "--device", "host", "--limit", "1", "--peer", "none"]


def need(build, program: str):
    if program == "mpdemo":
        demo_curves.skip_without_demo(build)
    if not (build / program).exists():
        pytest.skip(f"no {program} was built")


@pytest.mark.parametrize("program, arguments", [
    ("mpinfo", []), ("mpinfo", ["--json"]), ("mpinfo", ["--help"]), ("mpinfo", ["--json", "doctor"]),
    ("mpdemo", [*MPDEMO, "--json", "--out", "{}"]), ("mpdemo", [*MPDEMO, "--out", "{}"]),
    ("mpbench", [*MPBENCH, "--json", "-"]), ("mpbench", MPBENCH), ("mptune", ["--predict", "sm_80", "--set", "llm"]),
])
def test_standard_output_is_full(build, tmp_path, program, arguments):
    need(build, program)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([build / program, *(each.format(tmp_path) for each in arguments)], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(f"{program}: cannot write to standard output\n")


FILES = [
    ("mpdemo", [*MPDEMO, "--out", "{folder}"], "report.json"),
    ("mpbench", [*MPBENCH, "--json", "{file}"], "result.json"),
    ("mptune", ["--predict", "sm_80", "--set", "llm", "--json", "{file}"], "predicted.json"),
]


def command(build, folder, program: str, arguments: list, name: str) -> list:
    need(build, program)
    return [build / program, *(each.format(folder=folder, file=folder / name) for each in arguments)]


@pytest.mark.parametrize("program, arguments, name", FILES)
def test_a_file_is_unchanged_on_a_full_disk(build, tmp_path, program, arguments, name):
    """A limit of 100 bytes per file simulates a full disk."""
    (tmp_path / name).write_text('{"old": "report"}')
    done = subprocess.run(command(build, tmp_path, program, arguments, name), capture_output=True, text=True, check=False,
                          restore_signals=False,  # Python ignores SIGXFSZ
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    assert done.returncode == 1
    assert re.search(rf"^{program}: cannot write {tmp_path / name}: File too large$", done.stderr, re.MULTILINE)
    assert json.loads((tmp_path / name).read_text()) == {"old": "report"}
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("program, arguments, name", FILES)
def test_a_symbolic_link_is_not_followed(build, run, tmp_path, program, arguments, name):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / name).symlink_to("victim")
    run(*command(build, tmp_path, program, arguments, name))
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / name).is_symlink() and json.loads((tmp_path / name).read_text())
    assert not [file for file in os.listdir(tmp_path) if file.endswith(".part")]


def test_signals_leave_no_partial_file(build, tmp_path):
    """mpbench writes its file after each row."""
    rows = command(build, tmp_path, "mpbench", ["calls", "--quick", "--device", "host", "--peer", "none", "--json", "{file}"],
                   "result.json")
    for number in (signal.SIGTERM, signal.SIGINT) * 3:
        with subprocess.Popen(rows, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
            end = time.monotonic() + 20
            while not (tmp_path / "result.json").exists() and bench.poll() is None and time.monotonic() < end:
                time.sleep(0.001)
            bench.send_signal(number)
        assert os.listdir(tmp_path) == ["result.json"]
        json.loads((tmp_path / "result.json").read_text())
        (tmp_path / "result.json").unlink()
