"""A failed device is reported to later callers as failed, not as a device without code in this
build."""
import os
import re
import sys

import pytest

PROGRAM = """\
import mpcore
context = mpcore.Context("cuda")
half = context.zeros((4, 4), "fp16")
try:
    mpcore.gemm(context, half, half)
    context.sync()
except mpcore.Error:
    pass
try:
    mpcore.Context("cuda")
except mpcore.Error as error:
    print(error.status, error)
"""


def test_a_later_context_reports_the_failure(run, root):
    if "SOFTGPU_ARCH" not in os.environ:
        pytest.skip("errors of a device (the software device injects them)")
    said = run(sys.executable, "-B", "-c", PROGRAM, env={"PYTHONPATH": str(root / "bindings/python"),
                                                         "SOFTGPU_FAIL": "launch:1=cudaErrorIllegalAddress"})
    assert re.search("(?m)^41 .*cudaErrorIllegalAddress", said), said  # MP_ERROR_CUDA
