"""The perceptron of examples/c/fashion.c learns in each type, on generated images, and that of
examples/cpp/fashion.cpp prints the same losses."""
import math
import re

import pytest

STEPS = 60
IMAGES, PIXELS, CLASSES, USED = 60000, 784, 10, STEPS * 100
TYPES = ("fp32", "fp16", "bf16")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files like those of Fashion-MNIST: noisy patterns of each class; unused images are black."""
    numpy = pytest.importorskip("numpy", reason="Fashion-MNIST (no numpy for this Python)")
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


def test_loss(example, folder):
    losses = set()
    for low in TYPES:
        output = example("fashion", "c")(folder, low, STEPS)
        match = re.fullmatch(rf"{low}: loss (\d\.\d{{4}})\n", output)
        assert match and float(match[1]) < math.log(CLASSES), output
        assert example("fashion", "cpp")(folder, low, STEPS) == output
        losses.add(match[1])
    assert len(losses) > 1, "the type has an effect"
