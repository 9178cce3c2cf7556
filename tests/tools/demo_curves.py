"""The loss curves of mpdemo's perceptron, for the tests that compare runs of it.

Where two runs sum in another order, gradients differ by rounding.  To first order a relative error of every
gradient changes the loss by that share of what it has fallen so far, at most 2.4 in the steps that are taken
here, and ten times as much with momentum 0.9.
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
    """By the names of the runs, (loss, log2 of S) of each step."""
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
    """@param error  relative, of every gradient"""
    assert len(one) == len(other) == steps
    assert max(abs(a[0] - b[0]) for a, b in zip(one, other)) <= FALLEN * MOMENTUM * error
    assert max(abs(a[1] - b[1]) for a, b in zip(one, other)) <= 1
