"""What a kernel that starts early does before it has waited for the kernel ahead of it in the stream.

Such a kernel waits in one instruction (ACQBULK; PTX: griddepcontrol.wait).  On any way from its entry to there,
memory of the device may still be another kernel's.  Found here: accesses to it on such a way.

A kernel that lets the next one start (PREEXIT; PTX: griddepcontrol.launch_dependents) behind its wait alone may load what
is settled before it (kernels/simt/sm90_early.h), by TMA.

CUB's kernels, from CUDA 13.5 on, start early by a rule of their own, which is not looked at: the first of a sort waits
before it lets the next one start, so that all that lies ahead of the sort is settled for those that read at once.
"""

import collections

from . import flow

WAIT = "ACQBULK"
OF_CUB = "_ZN3cub"
EXIT, ALWAYS = 0x14D, 7  # ALWAYS: the predicate of an instruction that has none
NEXT, SETTLED = "PREEXIT", "UTMALDG"
GMEM = ("LDG", "STG", "LD.", "ST.", "LDGSTS", "UTMALDG", "UTMASTG", "ATOMG", "RED")


def accesses_before_wait(instructions, arch):
    """None of a kernel that does not wait."""
    if not any(instruction.group == WAIT for instruction in instructions):
        return None
    found = collections.Counter(instruction.group for instruction in before_wait(instructions, arch))
    return sum(number for group, number in found.items()
               if group.startswith(GMEM) and (group != SETTLED or found[NEXT]))


def before_wait(instructions, arch):
    """All that lie on a way from the entry to a wait."""
    targets, seen, ahead = flow.leads_to(instructions, arch), set(), [0]
    while ahead:
        at = ahead.pop()
        if at in seen or not 0 <= at < len(instructions) or instructions[at].group == WAIT:
            continue
        seen.add(at)
        instruction = instructions[at]
        yield instruction
        leaves = instruction.opcode in (flow.BRA, EXIT) and instruction.low >> 12 & 0xF == ALWAYS
        ahead += [] if leaves else [at + 1]
        ahead += [targets[at]] if instruction.opcode == flow.BRA else []


def too_early(kernel):
    if kernel.gmem_before_wait and not kernel.mangled.startswith(OF_CUB):
        yield f"accesses global memory {kernel.gmem_before_wait} times before its grid-dependency wait"
