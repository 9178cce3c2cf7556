"""Determines the dynamic shared memory of kernels from the constants that launch them.

If it depends on the shape, the maximum is used.  The constants are printed by a generated program,
because the kernel sources also compile for the host.
"""

import os
import pathlib
import re
import subprocess
import tempfile

from .occupancy import SMS

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADERS = ["mpcore/conv.h", "kernels/layers/softmax_xent_block.h", "kernels/rnn/fused.h"]
# Expressions used by the launches in gemm_wmma.cu, gemm_thin.cu, conv_wmma.cu, wgmma_kernel.h,
# softmax_xent.cu and rnn/fused*.cu.  SMEM: maximum of a block on the architecture.
KERNEL = r"mp::cuda::\(anonymous namespace\)::"
CONSTANTS = [(re.compile(KERNEL + kernel + "$"), expression) for kernel, expression in [
    (r"gemm_wmma<(.*)>", r"\1::smem_bytes(true, true)"),
    (r"conv_wmma<(\(mp_conv_op\)\d), (.*)>", r"\2::smem_bytes(\1 != MP_CONV_WGRAD, \1 == MP_CONV_FPROP)"),
    (r"(?:(?:gemm|conv|dgrad|wgrad)_wgmma|gemm_thin)<(.*)>", r"\1::kSmemBytes"),
    (r"rnn_fused_forward(<.*>)", r"mp::cuda::FusedForwardTile\1::smem_bytes(true, true)"),
    (r"rnn_fused_backward<.*, (\d+, \d+)>", r"mp::cuda::FusedBackwardTile<\1>::smem_bytes(true, false)"),
    (r"rnn_fused_wgmma_forward<(.*), \w+>", r"mp::cuda::FusedWgmmaForwardTile<\1>::kSmemBytes"),
    (r"rnn_fused_wgmma_backward<.*>", r"mp::cuda::FusedWgmmaBackwardTile::kSmemBytes"),
    (r"xent_block_per_row(<.*>)", r"mp::cuda::xent_most_copy_bytes\1(SMEM)"),
]]


def constant(function, arch):
    """Returns a C++ expression for the host target, or None for other kernels."""
    sm = SMS.get(arch.rstrip("af"))
    for pattern, expression in CONSTANTS:
        found = pattern.match(function)
        if found and (sm or "SMEM" not in expression):
            expression = found.expand(expression).replace("mp::cuda::", "mp::host::")
            return expression.replace("SMEM", str(sm and sm.smem_per_block))
    return None


def of(functions):
    """Returns {(function, architecture): bytes} of the kernels with dynamic shared memory."""
    asked = [(function, constant(*function)) for function in functions]
    asked = [(function, expression) for function, expression in asked if expression]
    if not asked:
        return {}
    lines = "".join(f'std::printf("%zu\\n", size_t({expression}));\n' for _, expression in asked)
    program = f"#include <cstdio>\nint main() {{\n{lines}}}\n"
    with tempfile.TemporaryDirectory() as folder:
        includes = [part for header in HEADERS for part in ("-include", header)]
        compiler = os.environ.get("CXX", "g++").split()
        subprocess.run(
            [*compiler, "-std=c++20", "-w", "-I.", "-Iinclude", *includes, "-x", "c++", "-",
             "-o", f"{folder}/print"],
            cwd=ROOT, input=program, text=True, check=True)
        run = subprocess.run([f"{folder}/print"], text=True, capture_output=True, check=True)
    return {function: int(line) for (function, _), line in zip(asked, run.stdout.split())}
