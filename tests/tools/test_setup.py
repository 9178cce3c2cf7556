"""Tests of tools/setup on simulated machines: folders with a few commands and a compiler with a
few headers."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETUP = ROOT / "tools/setup"
BASIC = ("bash", "cat", "env", "id", "mktemp", "rm", "tail")
# Finds the headers named in $HEADERS, and links with any library.
COMPILER = """#!/bin/bash
read -r line
[[ $line == "int main"* ]] || for header in $HEADERS; do [ "$line" != "#include <$header>" ] || exit 0; done
[[ $line == "int main"* ]]
"""


@pytest.fixture(name="machine")
def machine_fixture(tmp_path):
    """machine("sudo", headers="zlib.h")("demo"): output and exit code of tools/setup."""
    def script(name, text="#!/bin/sh\nexit 0\n"):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    for name in BASIC:
        (tmp_path / name).symlink_to(subprocess.check_output(["which", name], text=True).strip())
    script("make")
    script("g++", COMPILER)

    def make(*commands, headers="source_location", **scripts):
        for name in commands:
            script(name)
        for name, text in scripts.items():
            script(name, text)

        def setup(*arguments, **variables):
            # Without HOME matplotlib first collects the fonts of the machine.
            env = {"PATH": str(tmp_path), "HEADERS": headers, "HOME": os.environ.get("HOME", "/")} | variables
            done = subprocess.run([SETUP, *arguments], env=env, text=True, capture_output=True, check=False)
            assert done.stdout == ""
            return done.stderr, done.returncode
        return setup
    return make


def test_missing_packages_are_listed(machine):
    said, code = machine()("install")
    assert code == 1
    assert "tools/setup: missing: libcli11-dev\n" in said
    assert ("on Debian or Ubuntu:  sudo apt-get install --no-install-recommends libboost-context-dev libcli11-dev "
            "libeigen3-dev nlohmann-json3-dev zlib1g-dev\n") in said


def test_nothing_is_printed_if_nothing_is_missing(machine):
    assert machine(headers="source_location boost/context/detail/fcontext.hpp CLI/Version.hpp nlohmann/json_fwd.hpp "
                           "eigen3/Eigen/Core zlib.h")("build", "install") == ("", 0)


@pytest.mark.parametrize("header, is_enough", [("catch2/catch_test_macros.hpp", True), ("catch2/catch.hpp", True),
                                               ("catch.hpp", False)])
def test_either_version_of_catch2_is_accepted(machine, header, is_enough):
    assert ("missing: catch2\n" in machine(headers=f"source_location {header}")("test")[0]) is not is_enough


def test_an_old_compiler(machine):
    said, code = machine(headers="concepts")("build")
    assert code == 1
    assert '"g++ -std=c++20" fails; GCC 11 or newer or clang 16' in said and "make CXX=g++-12" in said


def test_every_job_of_the_table_exists():
    text = SETUP.read_text(encoding="utf-8")
    jobs = {*re.search("^JOBS='(.*)'", text, re.M)[1].split(), "-"}
    rows = [line.split() for line in re.search("^PACKAGES='(.*?)'", text, re.M | re.S)[1].split("\n") if line]
    assert len(rows) > 25 and all(len(row) == 4 and {*row[2].split(","), *row[3].split(",")} <= jobs for row in rows)


@pytest.mark.skipif(os.geteuid() != 0, reason="apt-get is for root")
def test_a_missing_optional_package_is_skipped(machine):
    apt_get = """#!/bin/bash
case "$*" in *" gnuplot-nox"*) echo "E: Unable to locate package gnuplot-nox"; exit 100 ;; esac
"""
    said, code = machine(**{"apt-get": apt_get})("demo")
    assert code == 0 and "missing (optional): gnuplot-nox\n" in said and "missing: " not in said
    assert "sudo apt-get install --no-install-recommends " in said and "libcli11-dev\n" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="apt-get is for root")
def test_nothing_is_installed_if_setup_is_no(machine, tmp_path):
    apt_get = f"#!/bin/sh\n: > {tmp_path}/apt-get-was-called\n"
    setup = machine(**{"apt-get": apt_get})
    said, code = setup("demo", SETUP="no")
    assert code == 1 and "missing: libcli11-dev\n" in said and "installing" not in said
    assert "sudo apt-get install --no-install-recommends " in said
    assert not (tmp_path / "apt-get-was-called").exists()
    said, code = setup("demo", SETUP="0")
    assert code == 2 and "SETUP = 0: must be yes or no" in said, "other values are rejected"
    assert not (tmp_path / "apt-get-was-called").exists()
    assert setup("demo")[1] == 0 and (tmp_path / "apt-get-was-called").exists()


def test_make_passes_setup_on():
    """SETUP is a variable on make's command line, as in make demo SETUP=no."""
    done = subprocess.run(["make", "-C", ROOT, "-s", "setup-build", "SETUP=maybe", "NVCC="], text=True,
                          capture_output=True, check=False)
    assert done.returncode != 0 and "SETUP = maybe: must be yes or no" in done.stderr


def test_an_unknown_job(machine):
    assert machine()("everything")[1] == 2
