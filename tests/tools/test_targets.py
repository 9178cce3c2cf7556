"""Tests that training on the CUDA target has the loss curve of training on the host target.

Compares the losses of mpdemo's perceptron, 784-256-128-10 in batches of 128, step by step.  The
targets may choose different kernels, and tensor cores sum in a different order, so gradients
differ by rounding.  In FP32 the difference is at most 2^-24 for each term of their sums: 784 +
256 + 128 forward, 10 + 128 + 256 backward and 128 in the batch.  In mixed precision three
activations, three of their gradients and the weight's gradient may each round to the neighbor,
2^-10.  Measured: 4e-7 in FP32, 1.3e-5 in mixed precision.
"""
import pytest

import demo_curves

TERMS = 784 + 256 + 128 + 10 + 128 + 256 + 128


@pytest.fixture(scope="module")
def losses(build, run, target, tmp_path_factory) -> list:
    """Losses on the host target and on the other target."""
    if target == "host":
        pytest.skip("the target under test is that which it is compared with")
    return [demo_curves.train(build, run, tmp_path_factory.mktemp(device), "--device", device, "--epochs", 0.02)
            for device in ("host", target)]


@pytest.mark.parametrize("name, error", [
    ("FP32", TERMS * 2**-24), ("mixed, backoff", 7 * 2**-10), ("mixed, lognormal", 7 * 2**-10)])
def test_losses_match_the_host_target(losses, name, error):
    host, cuda = (device[name] for device in losses)
    demo_curves.check_same_path(host, cuda, 9, error)
    assert host != cuda, "as on one target: did both run there?"
