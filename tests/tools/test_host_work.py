"""Instructions per multiply-add of GEMM kernels on the host target, counted by Valgrind and so free
of noise.

This complements the checks of GPU machine code (tools/gpu/kernel_report): no test of values
detects a source change after which g++ keeps accumulators in memory.  Such a change once doubled
the instructions of simt_128x128x16.
"""
import re
import shlex
import shutil

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
CALLS = 3  # calls of host_work.c for each product; the first one initializes the library
MARGIN = 1.35  # compilers differ by less; spilled accumulators cost more


@pytest.fixture(scope="module")
def instructions(root, build, run, cc, library_path, tmp_path_factory) -> list:
    """Instructions of the last call of each product."""
    if shutil.which("valgrind") is None:
        pytest.skip("work of host kernels (no valgrind)")
    flags = (build / "flags").read_text()
    if "-fsanitize" in flags or "-march=x86-64-v3" not in shlex.split(flags):
        pytest.skip("work of host kernels (the build is not a plain one for x86-64-v3)")
    folder = tmp_path_factory.mktemp("host_work")
    program = folder / "host_work"
    run(*cc, "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{root}/include", root / "tests/tools/host_work.c",
        "-o", program, f"-L{build}", "-lmpcore")
    # One process, because it starts slowly.  Writes counts.1 after the first call, and so on.
    run("valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'counts'}", "--dump-after=mp_gemm", program,
        *[argument for row in WORK for argument in row[:5]],
        env={"LD_LIBRARY_PATH": library_path(build), "MP_HOST_THREADS": "1"})
    dumps = [folder / f"counts.{CALLS * (row + 1)}" for row in range(len(WORK))]
    return [int(re.search(r"(?m)^(?:summary|totals): (\d+)", dump.read_text())[1]) for dump in dumps]


@pytest.mark.parametrize("row", range(len(WORK)), ids=[f"{row[0]} {row[4]}" for row in WORK])
def test_instructions(instructions, row):
    *_, m, n, k, _, expected = WORK[row]
    work = instructions[row] * 1000 / (m * n * k)
    assert work < expected * MARGIN, f"{work:.0f} instructions per 1000 multiply-adds"
    assert work > expected / MARGIN, f"{work:.0f} instructions per 1000 multiply-adds: write the table anew"
