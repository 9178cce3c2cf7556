"""The report as text or JSON."""

import dataclasses
import json

from . import loads_in_flight

HEAD = ["kernel", "threads", "registers", "stack", "spills", "static smem", "dynamic smem", "blocks/SM",
        "occupancy", "limit", "in flight", "KiB/SM", "main loop", "code"]
ABOUT = """\
Registers, stack, spills and static shared memory (bytes) are reported by ptxas; threads per block
(launch bounds) and code size (bytes) by the cubin.  Dynamic shared memory is the maximum that a
launch requests. Blocks per SM, occupancy and its limit are computed, not measured.  "in flight" is
the number of 128-bit global loads that a thread has outstanding in a loop, "KiB/SM" their total
over the threads of an SM (codegen/loads_in_flight.py).  "main loop" is tensor-core instructions /
all instructions (codegen/main_loop.py).
"""


def main_loop_cell(kernel):
    loop = kernel.main_loop
    return f"{loop['products']}/{loop['instructions']}" if loop else ""


def row(kernel):
    facts = [kernel.threads, kernel.registers, kernel.stack, kernel.spills, kernel.static_smem,
             kernel.dynamic_smem]
    found = kernel.occupancy()
    if kernel.is_empty or (found and found.blocks == 0):
        fit = ["0", "", "not supported"]
    elif found is None:
        fit = ["?", "?", "?"]
    else:
        fit = [found.blocks, f"{found.percent:.0f} %", found.limit]
    cells = [kernel.name, *facts, *fit, kernel.loads_in_flight, loads_in_flight.kib_per_sm(kernel),
             main_loop_cell(kernel), kernel.code_bytes]
    return ["?" if cell is None else str(cell) for cell in cells]


def by_arch(kernels):
    groups = {}
    for kernel in kernels:
        groups.setdefault(kernel.arch, []).append(kernel)
    return groups


def aligned(head, rows):
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = []
    for line in [head, *rows]:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def report(facts, with_instructions):
    toolkit = " and ".join(sorted(facts.toolkits)) or "of unknown version"
    text = f"{ABOUT}\nCompiler: CUDA {toolkit}.\n"
    for arch, kernels in by_arch(facts.kernels).items():
        text += f"\nsm_{arch}: {len(kernels)} kernels\n" + aligned(HEAD, [row(kernel) for kernel in kernels])
    counted = [kernel for kernel in facts.kernels if with_instructions and kernel.instructions]
    if counted:
        groups = sorted({group for kernel in counted for group in kernel.instructions} - {"all", "other"})
        groups = ["all", *groups, "other"]
        rows = [[kernel.key, *(str(kernel.instructions[group]) for group in groups)] for kernel in counted]
        text += "\nStatic instruction counts\n" + aligned(["kernel", *groups], rows)
    return text


def as_json(facts):
    kernels = []
    for kernel in facts.kernels:
        occupancy = kernel.occupancy()
        kernels.append(vars(kernel) | {"occupancy": occupancy and dataclasses.asdict(occupancy)})
    return json.dumps({"toolkits": sorted(facts.toolkits), "warnings": facts.warnings, "kernels": kernels}, indent=1) + "\n"
