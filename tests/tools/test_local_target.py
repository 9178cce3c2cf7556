"""Tests of the targets and the progress bar of make demo and make test, with scripts as toolkit
and GPUs."""
import os
import pty
import re
import subprocess

import pytest

KNOWN = "sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120"


@pytest.fixture
def chosen(root, tmp_path):
    """chosen(compute capability...): stdout and stderr of tools/local_target."""
    def script(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    nvcc = script("nvcc", f"printf '%s\\n' {KNOWN}")

    def ask(*capabilities, driver_works=True, toolkit=nvcc):
        lines = " ".join(capabilities)
        script("nvidia-smi", f"printf '%s\\n' {lines}" if driver_works else "echo 'NVIDIA-SMI has failed'; exit 9")
        done = subprocess.run([root / "tools/local_target", toolkit], capture_output=True, text=True, check=True,
                              env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
        return done.stdout.strip(), done.stderr
    return ask


def test_targets_match_the_gpus(chosen):
    assert chosen("9.0") == ('ARCHS="90"', 'tools/local_target: building for sm_90 only; "make" builds all architectures\n')
    assert chosen("9.0", "8.0", "9.0")[0] == 'ARCHS="80 90"'
    assert chosen("10.0")[0] == 'ARCHS="100"'
    assert chosen("9.0", toolkit="") == ("NVCC=", "")
    assert chosen("9.0", driver_works=False)[0] == "NVCC="


def test_a_gpu_unknown_to_the_toolkit(chosen):
    target, said = chosen("7.0")
    assert target == "NVCC=" and "supports sm_75 and newer, the GPU is sm_70" in said
    assert chosen("13.0") == ("", ""), "the PTX of all architectures runs there"


def make(root, *arguments, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "NVCC"))}
    return subprocess.run(["make", "-n", *arguments], cwd=root, capture_output=True, text=True, check=True,
                          env={**environment, **variables}).stdout


def test_targets_of_an_existing_build_are_kept(root, tmp_path):
    (tmp_path / "targets").write_text('NVCC= ARCHS="75 80"\n', encoding="utf-8")
    for goal in ("demo", "bench"):
        assert "-gencode" not in make(root, goal, f"BUILD={tmp_path}", "V=1")
        given = make(root, goal, f"BUILD={tmp_path}", "V=1", "NVCC=/none/nvcc")
        assert "/none/nvcc" in given, "the requested target is built"


def on_terminal(command, root):
    """Returns the terminal output and the exit code."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    with subprocess.Popen(command, cwd=root, stdin=theirs, stdout=theirs, stderr=theirs,
                          env={**environment, "TERM": "xterm"}) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    return shown.decode(), process.returncode


STEPS = """\
all: one two
one two:
\t@echo "  CXX  $@.cpp"
\t@echo $@ prints a line
bad: one
\t@echo "  CXX  $@.cpp"
\t@echo bad: error: wrong; exit 3
"""


def test_bar(root, tmp_path):
    (tmp_path / "Makefile").write_text(STEPS, encoding="utf-8")
    shown, code = on_terminal([root / "tools/build_bar", "-C", tmp_path, "all"], root)
    assert code == 0 and "prints a line" not in shown
    assert [int(percent) for percent in re.findall(r"(\d+) %", shown)] == [0, 0, 50]
    shown, code = on_terminal([root / "tools/build_bar", "-C", tmp_path, "bad"], root)
    assert code == 2 and "bad: error: wrong" in shown and "one prints a line" in shown
    plain = subprocess.run([root / "tools/build_bar", "-C", tmp_path, "all"], capture_output=True, text=True, check=True)
    assert "one prints a line" in plain.stdout and "building" not in plain.stdout + plain.stderr
