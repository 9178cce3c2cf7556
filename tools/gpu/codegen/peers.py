"""The main loops of other libraries' GEMM kernels for Hopper beside ours: instructions for each HGMMA.

peers.json holds what main_loop.of found in cubins that the same compiler made of their templates for sm_90a,
with k-tiles of 64; which versions and arguments is said there.  All the instructions between the first and the
last of a loop count, those of waits that come up late too.
"""

import json
import pathlib
import re

FILE = pathlib.Path(__file__).with_suffix(".json")
OURS = re.compile(r"gemm_wgmma<WgmmaTile<(\d+), (\d+), \d+, (true|false)>>")
MORE = 1.1  # so many times a peer's instructions are too many


def read():
    """(version of the compiler, {library: what was compiled}, a dictionary for each main loop)"""
    stored = json.loads(FILE.read_text())
    return stored["toolkit"], stored["libraries"], [dict(zip(stored["columns"], row)) for row in stored["main_loops"]]


def per_product(loop):
    return loop["instructions"] / loop["products"]


def ours(kernel):
    """The same facts of the heaviest of a kernel's main loops; None where the peers have no such kernel."""
    found = OURS.fullmatch(kernel.name)
    if not found or not kernel.main_loop:
        return None
    rows, columns, ping_pong = found.groups()
    return {"library": "mpcore", "schedule": "ping-pong" if ping_pong == "true" else "cooperative",
            "tile": [int(rows), int(columns)], "ops": "any", **kernel.main_loop}


def heavier(kernel, toolkits):
    """A phrase where ours needs more instructions than the peers' with the same tile and schedule."""
    toolkit, _, loops = read()
    loop = ours(kernel)
    if loop is None or toolkits != {toolkit}:
        return
    same = [peer for peer in loops if all(peer[what] == loop[what] for what in ("schedule", "tile"))]
    if not same:
        return
    most = max(same, key=per_product)
    if per_product(loop) > MORE * per_product(most):
        yield (f"has {per_product(loop):.1f} main-loop instructions per HGMMA, "
               f"{most['library']} has {per_product(most):.1f}")


def rows(kernels):
    """Cells of a table: ours and the peers' by tile."""
    loops = [loop for loop in map(ours, kernels) if loop] + read()[2]
    tiles = sorted({tuple(loop["tile"]) for loop in read()[2]}, reverse=True)
    return [[f"{m}x{n} {loop['ops']}", loop["library"], loop["schedule"], str(loop["instructions"]),
             str(loop["products"]), f"{per_product(loop):.1f}"]
            for m, n in tiles for loop in loops if loop["tile"] == [m, n]]
