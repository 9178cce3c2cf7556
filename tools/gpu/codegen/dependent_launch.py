"""Finds global memory accesses before the grid-dependency wait of kernels with programmatic
dependent launch (PDL).

Such a kernel waits in one instruction (ACQBULK; PTX: griddepcontrol.wait).  On all paths from its
entry to the wait, the previous kernel may still be writing device memory.

A kernel that launches its dependents (PREEXIT; PTX: griddepcontrol.launch_dependents) only after
its wait may use TMA before the wait to load data that the previous kernel does not write
(kernels/simt/sm90_tma.h).

CUB kernels of CUDA 13.5 and newer are not checked.  The first kernel of a sort waits before it
launches the next one, so data from before the sort can be read immediately.
"""

import collections

from . import flow

WAIT = "ACQBULK"
OF_CUB = "_ZN3cub"
NEXT, SETTLED = "PREEXIT", "UTMALDG"
GMEM = ("LDG", "STG", "LD.", "ST.", "LDGSTS", "UTMALDG", "UTMASTG", "ATOMG", "RED")


def accesses_before_wait(instructions, arch):
    """Returns the number of accesses, or None for a kernel that does not wait."""
    if not any(instruction.group == WAIT for instruction in instructions):
        return None
    found = collections.Counter(instruction.group for instruction in before_wait(instructions, arch))
    return sum(number for group, number in found.items()
               if group.startswith(GMEM) and (group != SETTLED or found[NEXT]))


def before_wait(instructions, arch):
    """Yields all instructions on paths from the entry to a wait."""
    targets, seen, ahead = flow.leads_to(instructions, arch), set(), [0]
    while ahead:
        at = ahead.pop()
        if at in seen or not 0 <= at < len(instructions) or instructions[at].group == WAIT:
            continue
        seen.add(at)
        yield instructions[at]
        ahead += flow.successors(instructions[at], at, targets)


def too_early(kernel):
    if kernel.gmem_before_wait and not kernel.mangled.startswith(OF_CUB):
        yield f"accesses global memory {kernel.gmem_before_wait} times before its grid-dependency wait"
