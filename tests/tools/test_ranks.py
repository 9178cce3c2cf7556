"""Training on several ranks takes the path of training on one.

Compares the losses of mpdemo's perceptron on the host target, with --ranks 1 and 2, step by step.  The
ranks' sums have another order, so that gradients differ by rounding: in FP32 by at most 128 * 2^-24 of
themselves, a sum having 128 terms; in mixed precision each rank rounds its part to fp16, and the sum is
rounded again, against once on one rank: 4 * 2^-11.  To first order such a share of every gradient changes
the loss by that share of what it has fallen so far, at most 2.4 here, and ten times as much with momentum
0.9.  Measured: 1.2e-7 in FP32, 7e-3 in mixed precision.
"""
import pathlib

import pytest

FALLEN, MOMENTUM = 2.4, 10
DATASET = pathlib.Path("/usr/share/datasets/fashion-mnist")


@pytest.fixture(scope="module")
def losses(build, run, tmp_path_factory) -> list:
    """On one rank and on two: of the runs by name, (loss, log2 of S) of each step."""
    for needed, package in ((build / "mpdemo", "zlib1g-dev"), (DATASET, "dataset-fashion-mnist")):
        if not needed.exists():
            pytest.skip(f"mpdemo --ranks: no {needed} (Debian: {package})")
    both = []
    for ranks in (1, 2):
        out = tmp_path_factory.mktemp(f"ranks{ranks}")
        run(build / "mpdemo", "--device", "host", "--net", "mlp", "--epochs", 0.05, "--ranks", ranks, "--out", out)
        both.append({})
        for line in (out / "mlp_standard_training.dat").read_text().splitlines():
            if line.startswith("#"):
                steps = both[-1].setdefault(line[2:].split(":")[0], [])
            elif line:
                steps.append(tuple(float(x) for x in line.split()[1:]))
    return both


@pytest.mark.parametrize("name, error", [
    ("FP32", 128 * 2**-24), ("mixed, backoff", 4 * 2**-11), ("mixed, lognormal", 4 * 2**-11)])
def test_same_path(losses, name, error):
    one, two = (rank[name] for rank in losses)
    assert len(one) == len(two) == 23
    assert max(abs(a[0] - b[0]) for a, b in zip(one, two)) <= FALLEN * MOMENTUM * error
    assert max(abs(a[1] - b[1]) for a, b in zip(one, two)) <= 1
