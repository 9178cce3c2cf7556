"""What a kernel that starts early does before it has waited for the kernel ahead of it in the stream.

Such a kernel waits in one instruction (ACQBULK; PTX: griddepcontrol.wait).  On any way from its entry to there,
memory of the device may still be another kernel's.  Found here: accesses to it on such a way.
"""

from . import flow

WAIT = "ACQBULK"
EXIT, ALWAYS = 0x14D, 7  # ALWAYS: the predicate of an instruction that has none
GMEM = ("LDG", "STG", "LD.", "ST.", "LDGSTS", "UTMALDG", "UTMASTG", "ATOMG", "RED")


def accesses_before_wait(instructions, arch):
    """None of a kernel that does not wait."""
    if not any(instruction.group == WAIT for instruction in instructions):
        return None
    targets, seen, ahead, found = flow.leads_to(instructions, arch), set(), [0], 0
    while ahead:
        at = ahead.pop()
        if at in seen or not 0 <= at < len(instructions) or instructions[at].group == WAIT:
            continue
        seen.add(at)
        instruction = instructions[at]
        found += instruction.group.startswith(GMEM)
        leaves = instruction.opcode in (flow.BRA, EXIT) and instruction.low >> 12 & 0xF == ALWAYS
        ahead += [] if leaves else [at + 1]
        ahead += [targets[at]] if instruction.opcode == flow.BRA else []
    return found


def too_early(kernel):
    if kernel.gmem_before_wait:
        yield f"touches gmem {kernel.gmem_before_wait} times before it has waited for the kernel ahead of it"
