"""A small training in C, C++, Python, Rust and Fortran: all print the same hash of the weights,
which differs between targets."""
import re

import pytest


@pytest.fixture(scope="module")
def weights(example):
    """weights(language, argument...): the last line of the example."""
    def weights_of(language: str, *arguments) -> str:
        output = example("train", language)(*arguments)
        last = output.splitlines()[-1]
        assert re.fullmatch("weights [0-9a-f]{16}", last), output
        return last
    return weights_of


@pytest.fixture(scope="module")
def reference(weights, device) -> str:
    of_target = weights("c", "--device", device)
    if device != "host":
        assert of_target != weights("c", "--device", "host"), "the target has no effect"
    return of_target


def test_c_is_deterministic(weights, reference, device):
    assert weights("c", "--device", device) == reference


@pytest.mark.parametrize("language", ["cpp", "python", "rust", "fortran"])
def test_language(weights, reference, target, language):
    assert weights(language, target) == reference
