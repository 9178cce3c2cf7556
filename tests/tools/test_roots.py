"""Tests of tests/roots/run with stubs of debootstrap and unshare that only print their
arguments."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "tests/roots/run"
DEBOOTSTRAP = """#!/bin/bash
echo "debootstrap: $*"
[[ " $* " != *" sid "* ]] || exit 1
for folder; do [[ $folder != /* ]] || mkdir -p "$folder/root"; done
"""
# Prints the arguments of debootstrap and `true`, otherwise the command in the root: `make test`
# fails there.
UNSHARE = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
case $1 in debootstrap | true) exec "$@" ;; esac
echo "in ${5##*/}: $6"
[ -e "$5/root/mpcore/README.md" ] && [ "$6" != "make test" ]
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="chroots require root")


def roots(tmp_path, *arguments, path=None, **commands):
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    for name, text in commands.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    path = path or f"{tools}:{os.environ['PATH']}"
    done = subprocess.run([sys.executable, RUN, "--build", tmp_path, *arguments], env=dict(os.environ, PATH=path),
                          text=True, capture_output=True, check=False)
    return done.stdout + done.stderr, done.returncode


def both(tmp_path, *arguments):
    return roots(tmp_path, *arguments, debootstrap=DEBOOTSTRAP, unshare=UNSHARE)


@needs_root
def test_failed_step_ends_its_root(tmp_path):
    said, code = both(tmp_path, "trixie", "sid")
    assert code == 1
    assert "debootstrap: --variant=minbase --include=git,make,g++,ca-certificates trixie " in said
    assert "trixie: make demo: passed" in said and "trixie: make test: FAILED" in said
    assert "sid: its root: FAILED" in said and "sid: a clone" not in said
    assert "FAILED: trixie: make test\n" in said and "    | in trixie: make test\n" in said
    assert said.endswith("\n3 passed, 2 failed\n")


@needs_root
def test_root_is_cached(tmp_path):
    for is_first in (True, False):
        said, code = both(tmp_path, "--quick", "--keep", "bookworm")
        assert code == 0 and said.endswith("\n5 passed, 0 failed\n")
        assert ("debootstrap: " in said) is is_first
        assert (tmp_path / "roots/bookworm/root/mpcore/README.md").is_file()


@needs_root
def test_ubuntu_has_another_mirror(tmp_path):
    said, _ = both(tmp_path, "--quick", "noble")
    assert ",make,g++,ca-certificates --components=main,universe noble " in said
    assert "/roots/noble http://archive.ubuntu.com/ubuntu\n" in said


@needs_root
def test_reason_of_a_skip_is_printed(tmp_path):
    said, code = roots(tmp_path, path="/nowhere")
    assert (said, code) == ("skipped: roots: there is no debootstrap\n0 passed, 0 failed, 1 skipped\n", 0)
    said, code = roots(tmp_path, debootstrap=DEBOOTSTRAP, unshare="#!/bin/sh\nexit 1\n")
    assert code == 0 and said.startswith("skipped: roots: this container may not create mounts")


def test_invalid_release_is_rejected(tmp_path):
    said, code = roots(tmp_path, "../trixie")
    assert code == 2 and '"../trixie" is not a code name' in said
