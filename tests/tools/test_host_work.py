"""Instructions per multiply-add of GEMM kernels on the host target, counted by Valgrind and so free
of noise.

This complements the checks of GPU machine code (tools/gpu/kernel_report): no test of values
detects a source change after which g++ keeps accumulators in memory.  Such a change once doubled
the instructions of simt_128x128x16.
"""
import os
import re
import shlex
import shutil
import subprocess

import pytest

# Kernel, m, n, k, type; instructions per 1000 multiply-adds, with g++ 12 for x86-64-v3.
WORK = [
    ("simt_128x128x16", 256, 256, 128, "fp32", 1124),
    ("simt_64x64x16", 256, 256, 128, "fp32", 1246),
    ("simt_128x16x16", 256, 16, 512, "fp32", 1719),
    ("simt_16x128x16", 16, 256, 512, "fp32", 1721),
    ("simt_128x128x16", 256, 256, 128, "fp16", 1167),
    ("gemv", 512, 1, 512, "fp32", 5920),
    ("wmma_128x128x32_s3", 256, 256, 128, "fp16", 3380),  # compiled for size, like the next
    ("wmma_64x64x32_s4", 256, 256, 128, "fp16", 4714),
    ("wgmma_128x128x64_s6", 256, 256, 128, "fp16", 1643),
]
MARGIN = 1.35  # compilers differ by less; spilled accumulators cost more


@pytest.fixture(scope="module")
def instructions(root, build, cc, library_path, tmp_path_factory):
    """instructions(kernel, m, n, k, dtype, count): instructions of a process."""
    if shutil.which("valgrind") is None:
        pytest.skip("work of host kernels (no valgrind)")
    flags = (build / "flags").read_text()
    if "-fsanitize" in flags or "-march=x86-64-v3" not in shlex.split(flags):
        pytest.skip("work of host kernels (the build is not a plain one for x86-64-v3)")
    folder = tmp_path_factory.mktemp("host_work")
    program = folder / "host_work"
    subprocess.run([*cc, "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{root}/include", root / "tests/tools/host_work.c",
                    "-o", program, f"-L{build}", "-lmpcore"], check=True)

    def count(*arguments) -> int:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'counts'}", program,
             *map(str, arguments)], text=True, capture_output=True, check=False,
            env=os.environ | {"LD_LIBRARY_PATH": library_path(build), "MP_HOST_THREADS": "1"})
        assert done.returncode == 0, done.stderr
        return int(re.search(r"Collected : (\d+)", done.stderr)[1])
    return count


@pytest.mark.parametrize("kernel, m, n, k, dtype, expected", WORK)
def test_instructions(instructions, kernel, m, n, k, dtype, expected):
    product = (kernel, m, n, k, dtype)
    # The difference excludes process startup and the first call.
    work = (instructions(*product, 3) - instructions(*product, 2)) * 1000 / (m * n * k)
    assert work < expected * MARGIN, f"{work:.0f} instructions per 1000 multiply-adds"
    assert work > expected / MARGIN, f"{work:.0f} instructions per 1000 multiply-adds: write the table anew"
