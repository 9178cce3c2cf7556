#!/usr/bin/env python3
"""Compiles Triton kernels ahead of time to PTX.

    PYTHONPATH=PACKAGES triton_kernels.py OUT

Writes OUT/NAME.ptx for each kernel that triton.cpp runs, and OUT/NAME.launch, one line of launch
parameters: kernel name, warps, bytes of dynamic shared memory, and bytes of global scratch memory
per block.
"""
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, M, N, K, row_a, row_b, row_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GROUP: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_of_group = GROUP * tl.cdiv(N, BN)
    first = pid // tiles_of_group * GROUP
    rows = min(tiles_m - first, GROUP)
    tile_m = first + (pid % tiles_of_group) % rows
    tile_n = (pid % tiles_of_group) // rows
    m = (tile_m * BM + tl.arange(0, BM)) % M
    n = (tile_n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    from_a = a + m[:, None] * row_a + k[None, :]
    from_b = b + k[:, None] * row_b + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(from_a, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(from_b, mask=k[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        from_a += BK
        from_b += BK * row_b
    m = tile_m * BM + tl.arange(0, BM)
    n = tile_n * BN + tl.arange(0, BN)
    tl.store(c + m[:, None] * row_c + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_maps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Computes A B^T; each block creates its tensor maps in scratch memory."""
    tile_m = tl.program_id(0)
    tile_n = tl.program_id(1)
    map_a = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    map_b = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    map_c = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = map_a.load([tile_m * BM, step * BK])
        y = map_b.load([tile_n * BN, step * BK])
        acc = tl.dot(x, y.T, acc)
    map_c.store([tile_m * BM, tile_n * BN], acc)


@triton.jit
def attention(q, k, v, o, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Computes attention over heads of T rows of D values; scale includes log2(e)."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1) * T * D
    d = tl.arange(0, D)
    x = tl.load(q + base + m[:, None] * D + d[None, :], mask=m[:, None] < T, other=0.0)
    largest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        n = start + tl.arange(0, BN)
        y = tl.load(k + base + n[:, None] * D + d[None, :], mask=n[:, None] < T, other=0.0)
        p = tl.dot(x, tl.trans(y)) * scale
        p = tl.where(n[None, :] < T, p, float("-inf"))
        larger = tl.maximum(largest, tl.max(p, 1))
        p = tl.exp2(p - larger[:, None])
        old = tl.exp2(largest - larger)
        total = total * old + tl.sum(p, 1)
        acc = acc * old[:, None]
        z = tl.load(v + base + n[:, None] * D + d[None, :], mask=n[:, None] < T, other=0.0)
        acc = tl.dot(p.to(tl.float16), z, acc)
        largest = larger
    tl.store(o + base + m[:, None] * D + d[None, :], acc / total[:, None], mask=m[:, None] < T)


def emit(out: pathlib.Path, name: str, function, arguments: dict, constants: dict, aligned: list, warps: int,
         stages: int, arch=90):
    """Writes the files of a kernel.  aligned: indices of arguments that are multiples of 16."""
    source = ASTSource(function, arguments | {constant: "constexpr" for constant in constants}, constants,
                       {(i,): [["tt.divisibility", 16]] for i in aligned})
    kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32),
                            options={"num_warps": warps, "num_stages": stages})
    about = kernel.metadata
    (out / f"{name}.ptx").write_text(kernel.asm["ptx"], encoding="utf-8")
    (out / f"{name}.launch").write_text(
        f"{about.name} {about.num_warps} {about.shared} {about.global_scratch_size}\n", encoding="utf-8")


def main():
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        sys.exit(__doc__ if len(sys.argv) != 2 else print(__doc__))
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    products = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    with_rows = products | {"row_a": "i32", "row_b": "i32", "row_c": "i32"}
    small = {"BM": 64, "BN": 64, "BK": 32, "GROUP": 2}
    # If N and K are multiples of 16, loads are pipelined with cp.async.
    pointers, rows, n_and_k = [0, 1, 2], [6, 7, 8], [4, 5]
    emit(out, "matmul_128", matmul, with_rows, {"BM": 128, "BN": 128, "BK": 64, "GROUP": 4},
         pointers + n_and_k + rows, 8, 3)
    emit(out, "matmul_64", matmul, with_rows, small, pointers + rows, 4, 4)
    emit(out, "matmul_64_sm80", matmul, with_rows, small, pointers + n_and_k + rows, 4, 3, arch=80)
    emit(out, "matmul_maps", matmul_maps, products, {"BM": 128, "BN": 64, "BK": 64}, pointers + n_and_k, 4, 3)
    emit(out, "attention", attention,
         {"q": "*fp16", "k": "*fp16", "v": "*fp16", "o": "*fp32", "T": "i32", "scale": "fp32"},
         {"BM": 128, "BN": 64, "D": 64}, [0, 1, 2, 3], 4, 2)


if __name__ == "__main__":
    main()
