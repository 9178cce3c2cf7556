"""Loss curves of mpdemo's perceptron, for tests that compare runs of it.

Two runs with another order of sums have gradients that differ by rounding.  To first order, a
relative error of every gradient changes the loss by that fraction of its decrease so far, which
is at most 2.4 in the steps taken here, and by ten times as much with momentum 0.9.
"""
import pathlib

import pytest

DATASET = pathlib.Path("/usr/share/datasets/fashion-mnist")
FALLEN, MOMENTUM = 2.4, 10


def skip_without_demo(build, *arguments, data=DATASET):
    for needed, package in ((build / "mpdemo", "zlib1g-dev"), (data, "dataset-fashion-mnist")):
        if needed and not needed.exists():
            pytest.skip(f"mpdemo {' '.join(map(str, arguments))}: no {needed} (Debian: {package})")


def train(build, run, out, *arguments) -> dict:
    """Returns (loss, log2 of S) of each step, by name of the run."""
    skip_without_demo(build, *arguments)
    run(build / "mpdemo", "--net", "mlp", *arguments, "--out", out)
    curves = {}
    for line in (out / "mlp_standard_training.dat").read_text().splitlines():
        if line.startswith("#"):
            steps = curves.setdefault(line[2:].split(":")[0], [])
        elif line:
            steps.append(tuple(float(x) for x in line.split()[1:]))
    return curves


def check_same_path(one: list, other: list, steps: int, error: float):
    """@param error  relative error of every gradient"""
    assert len(one) == len(other) == steps
    assert max(abs(a[0] - b[0]) for a, b in zip(one, other)) <= FALLEN * MOMENTUM * error
    assert max(abs(a[1] - b[1]) for a, b in zip(one, other)) <= 1
