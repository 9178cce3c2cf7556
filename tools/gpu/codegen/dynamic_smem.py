"""The dynamic shared memory of the kernels that have some, asked of the constants that launch them; where it
depends on the shape, the most.

The kernel sources compile for the host, too: a program that prints them is made from the names of the
kernels and run.
"""

import os
import pathlib
import re
import subprocess
import tempfile

from .occupancy import SMS

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADERS = ["kernels/gemm/gemm_wmma.h", "kernels/conv/conv_wmma.h", "kernels/layers/softmax_xent_block.h",
           "kernels/rnn/fused_forward.h", "kernels/rnn/fused_backward.h", "kernels/rnn/fused_wgmma_forward.h",
           "kernels/rnn/fused_wgmma_backward.h"]
# How the launch of each (gemm_wmma.h, conv_wmma.h, wgmma_loop.h, softmax_xent.cu, rnn/fused*.h) finds its amount; SMEM: what a
# block of the architecture may have.
CONSTANTS = [
    (re.compile(r"mp::cuda::gemm_wmma(<.*>)$"), r"mp::cuda::GemmWmma\1::kSmemBytes"),
    (re.compile(r"mp::cuda::conv_wmma(<.*>)$"), r"mp::cuda::ConvWmma\1::kSmemBytes"),
    (re.compile(r"mp::cuda::(?:gemm|conv|dgrad)_wgmma<.*(mp::WgmmaTile<.*>)>$"), r"\1::kSmemBytes"),
    (re.compile(r"mp::cuda::rnn_fused_forward(<.*>)$"), r"mp::cuda::FusedForwardTile\1::kSmemBytes"),
    (re.compile(r"mp::cuda::rnn_fused_backward(<.*>)$"), r"mp::cuda::FusedBackwardTile\1::kSmemBytes"),
    (re.compile(r"mp::cuda::rnn_fused_wgmma_forward(<.*>)$"), r"mp::cuda::FusedWgmmaForwardTile\1::Tile::kSmemBytes"),
    (re.compile(r"mp::cuda::rnn_fused_wgmma_backward(<.*>)$"), r"mp::cuda::FusedWgmmaBackwardTile\1::Tile::kSmemBytes"),
    (re.compile(r"mp::cuda::\(anonymous namespace\)::xent_block_per_row(<.*>)$"),
     r"mp::cuda::xent_most_copy_bytes\1(SMEM)"),
]


def constant(function, arch):
    """A C++ expression for the host target, or None for a kernel that is not known to have any."""
    sm = SMS.get(arch.rstrip("af"))
    for pattern, expression in CONSTANTS:
        found = pattern.match(function)
        if found and (sm or "SMEM" not in expression):
            expression = found.expand(expression).replace("mp::cuda::", "mp::host::")
            return expression.replace("SMEM", str(sm and sm.smem_per_block))
    return None


def of(functions):
    """{(function, architecture): bytes} of those that have some."""
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
