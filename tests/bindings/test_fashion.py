"""The perceptron of examples/*/fashion.* in each language: for each type all print the same loss,
on generated images."""
import math
import re

import pytest

STEPS = 60
IMAGES, PIXELS, CLASSES, USED = 60000, 784, 10, STEPS * 100
TYPES = ("fp32", "fp16", "bf16")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files like those of Fashion-MNIST: noisy patterns of each class; unused images are black."""
    numpy = pytest.importorskip("numpy", reason="Fashion-MNIST in five languages (no numpy for this Python)")
    random = numpy.random.default_rng(1)
    patterns = random.integers(0, 256, (CLASSES, PIXELS))
    labels = random.integers(0, CLASSES, IMAGES, dtype=numpy.uint8)
    images = numpy.zeros((IMAGES, PIXELS), numpy.uint8)
    images[:USED] = (patterns[labels[:USED]] + random.integers(0, 512, (USED, PIXELS))) // 3
    path = tmp_path_factory.mktemp("fashion")
    head = numpy.array([0x803, IMAGES, 28, 28], ">i4").tobytes()
    (path / "train-images-idx3-ubyte").write_bytes(head + images.tobytes())
    (path / "train-labels-idx1-ubyte").write_bytes(numpy.array([0x801, IMAGES], ">i4").tobytes() + labels.tobytes())
    return path


@pytest.fixture(scope="module")
def losses(example, folder):
    """losses(language): the output of the example for each type."""
    def losses_of(language: str) -> list:
        fashion = example("fashion", language)
        output = [fashion(folder, low, STEPS) for low in TYPES]
        for low, line in zip(TYPES, output):
            match = re.fullmatch(rf"{low}: loss (\d\.\d{{4}})\n", line)
            assert match and float(match[1]) < math.log(CLASSES), line
        return output
    return losses_of


@pytest.fixture(scope="module")
def reference(losses) -> list:
    return losses("c")


def test_types_differ(reference):
    """Checks that the types have an effect: otherwise the comparisons show nothing."""
    assert len({line.split()[-1] for line in reference}) > 1, reference


@pytest.mark.parametrize("language", ["cpp", "python", "rust", "fortran"])
def test_language(losses, reference, language):
    assert losses(language) == reference
