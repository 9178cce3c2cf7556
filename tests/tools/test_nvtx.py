"""Tests of NVTX ranges: loads a profiler (nvtx_client.c) into programs and counts the ranges."""
import os
import re
import subprocess

import pytest


@pytest.fixture(scope="module")
def listen(root, build, cc, tmp_path_factory):
    """listen(program, argument...): (ranges of a run under the profiler, output of the program)"""
    folder = tmp_path_factory.mktemp("nvtx")
    client, ranges = folder / "nvtx_client.so", folder / "ranges"
    cuda = os.environ.get("CUDA_HOME")
    compiled = subprocess.run(
        [*cc, "-std=gnu99", "-Wall", "-Wextra", "-Werror", *(["-isystem", f"{cuda}/include"] if cuda else []), "-fPIC",
         "-shared", root / "tests/tools/nvtx_client.c", "-o", client], text=True, capture_output=True, check=False)
    if compiled.returncode != 0:
        # Only missing headers may cause this.
        assert re.search("nvtx3/.*(No such file|not found)", compiled.stderr), compiled.stderr
        pytest.skip("ranges of the profiler (no headers of NVTX)")

    def listen_to(*command) -> tuple:
        ranges.unlink(missing_ok=True)
        done = subprocess.run(list(map(str, command)), cwd=root, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, env=os.environ | {
                                  "NVTX_INJECTION64_PATH": str(client), "MP_TEST_NVTX": str(ranges)})
        assert done.returncode == 0, done.stdout
        if not ranges.exists():
            pytest.skip("ranges of the profiler (the library was built without the headers of NVTX)")
        return ranges.read_text().splitlines(), done.stdout
    return listen_to


def test_payloads(listen, build):
    ranges, _ = listen(build / "examples/gemm")
    assert [line for line in ranges if line.startswith("push mp_gemm|")] == [
        "push mp_gemm|m = 3, n = 2, k = 4, batch = 1, op = NN, fp16 to fp32"]
    assert [line for line in ranges if line.startswith("push mp_memcpy|")] == [
        f"push mp_memcpy|bytes = {size}" for size in (48, 32, 24)]


def test_training(listen, build, device):
    ranges, _ = listen(build / "examples/train", "--device", device, "--steps", 3)
    count = lambda name: sum(line.startswith(f"push {name}|") for line in ranges)  # noqa: E731
    assert count("mp_gemm") == 15, "five products per step"
    assert count("mp_softmax_xent") == 3, "one loss per step"
    assert count("mp_scale_step") == 3, "one update per step"
    assert {line for line in ranges if line.startswith("push mp_scale_step|")} == {
        "push mp_scale_step|tensors = 3, elements = 1056"}


def test_every_function(listen, run, build, root):
    """These tests call every function, mostly with invalid arguments."""
    ranges = []
    for program in (["tests/test_capi"], ["tests/mptests", "[arguments]"]):
        more, said = listen(build / program[0], *program[1:])
        assert " 0 failed" in said, "its checks pass under the profiler"
        ranges += more
    pushed = [line for line in ranges if line.startswith("push ")]
    assert len(pushed) == ranges.count("pop"), "every range ends"
    with_status = set(run(root / "bindings/generate/generate", "--list", "statuses").split())
    assert with_status and with_status <= {line[5:].partition("|")[0] for line in pushed}
