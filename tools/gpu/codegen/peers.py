"""Compares main loops of Hopper GEMM kernels with other libraries: instructions per HGMMA.

peers.json contains the results of main_loop.of for their templates, compiled for sm_90a with
k-tiles of 64, and lists versions, compiler and arguments.  All instructions between the first and
the last of a loop count, including rarely executed waits.
"""

import json
import pathlib
import re

FILE = pathlib.Path(__file__).with_suffix(".json")
OURS = re.compile(r"gemm_wgmma<WgmmaTile<(\d+), (\d+), \d+, (true|false)>>")
MORE = 1.1  # limit relative to the instructions of the other library


def read():
    """Returns (compiler version, list of main loops)."""
    stored = json.loads(FILE.read_text())
    return stored["toolkit"], [dict(zip(stored["columns"], row)) for row in stored["main_loops"]]


def per_product(loop):
    return loop["instructions"] / loop["products"]


def ours(kernel):
    """Returns the main loop of a mpcore kernel in the format of peers.json; None for other
    kernels."""
    found = OURS.fullmatch(kernel.name)
    if not found or not kernel.main_loop:
        return None
    rows, columns, ping_pong = found.groups()
    return {"schedule": "ping-pong" if ping_pong == "true" else "cooperative",
            "tile": [int(rows), int(columns)], **kernel.main_loop}


def heavier(kernel, toolkits):
    """Yields a message if a kernel has more instructions than others with equal tile and
    schedule."""
    toolkit, loops = read()
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
