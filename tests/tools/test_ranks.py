"""Tests that training on several ranks has the loss curve of training on one rank.

Compares the losses of mpdemo's perceptron on the host target with --ranks 1 and 2, step by step.
The sums of ranks have another order, so gradients differ by rounding: in FP32 by a relative
error of at most 128 * 2^-24, since a sum has 128 terms.  In mixed precision each rank rounds its
part to fp16, and the sum is rounded again, compared with one rounding on a single rank: 4 *
2^-11. Measured: 1.2e-7 in FP32, 7e-3 in mixed precision.
"""
import pytest

import demo_curves


@pytest.fixture(scope="module")
def losses(build, run, tmp_path_factory) -> list:
    """Losses on one rank and on two."""
    return [demo_curves.train(build, run, tmp_path_factory.mktemp(f"ranks{ranks}"), "--device", "host", "--epochs", 0.05,
                              "--ranks", ranks) for ranks in (1, 2)]


@pytest.mark.parametrize("name, error", [
    ("FP32", 128 * 2**-24), ("mixed, backoff", 4 * 2**-11), ("mixed, lognormal", 4 * 2**-11)])
def test_losses_match_a_single_rank(losses, name, error):
    one, two = (rank[name] for rank in losses)
    demo_curves.check_same_path(one, two, 23, error)
