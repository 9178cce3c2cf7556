"""Each CUDA runtime function that an API call uses fails once: the call reports the error, and
nothing crashes."""
import os
import re
import sys

import pytest

# Names in the software device; a failed launch is reported with the name of the kernel.
FUNCTIONS = ["cudaMalloc", "cudaHostAlloc", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaStreamSynchronize",
             "cudaGetDevice", "launch"]
NAMES = ["steps, adam", "layers", "graph: training of the convolutional network"]
INDICES = [1, 2, 3, 5, 8, 13, 21, 34]
NEVER_APPLIED = "was never applied"


@pytest.fixture(scope="module")
def calls(build, run):
    """calls(name, fault): output of calls of the catalog while the device fails."""
    if "SOFTGPU_ARCH" not in os.environ:
        pytest.skip("errors of a device (the software device injects them)")
    return lambda name, fault: run("sh", "-c", '"$0" "$@"; echo "code $?"', build / "tests/faulttests", "--calls", name,
                                   env={"MP_TEST_DEVICE": "cuda"} | ({"SOFTGPU_FAIL": fault} if fault else {}))


@pytest.mark.parametrize("name", NAMES)
def test_calls_succeed_without_a_fault(calls, name):
    assert calls(name, "") == "code 0\n"


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_a_failed_runtime_call_is_reported(calls, name, function):
    """Increases the index of the failing call until it no longer occurs."""
    said_of = "" if function == "launch" else f".*{function} failed: "
    for call in INDICES:
        said = calls(name, f"{function}:{call}")
        if NEVER_APPLIED in said:
            break
        assert re.search(fr"(?m)^  (mp_\w+) failed without a fault: MP_ERROR_(CUDA|OUT_OF_MEMORY): \1: {said_of}", said), \
            f"{function}:{call}: {said}"
        assert said.endswith("code 3\n"), f"{function}:{call}: {said}"
    assert call > 1 or function == "cudaHostAlloc", f"{name} never calls {function}"


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
    """Not a device without code in this build."""
    if "SOFTGPU_ARCH" not in os.environ:
        pytest.skip("errors of a device (the software device injects them)")
    said = run(sys.executable, "-B", "-c", PROGRAM, env={"PYTHONPATH": str(root / "bindings/python"),
                                                         "SOFTGPU_FAIL": "launch:1=cudaErrorIllegalAddress"})
    assert re.search("(?m)^41 .*cudaErrorIllegalAddress", said), said  # MP_ERROR_CUDA
