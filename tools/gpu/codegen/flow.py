"""Instructions one by one: what each waits for, and where its branches lead to.

The control bits of an instruction (105 to 125 of its 128, from sm_70 on) are not documented by NVIDIA; they are as
in Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, section 2.1.  Where
branches lead to was found by comparison with nvdisasm 13.2.  tests/tools/test_kernel_report.py assembles loops
of which it is known what comes out.
"""

import dataclasses
import struct

from . import sass

BYTES = 16  # of an instruction
DEPBAR = 0x11A  # waits for what it names beside the wait mask
BRA, BSSY, WARPSYNC = 0x147, 0x145, 0x148
# Control goes elsewhere, or comes back from elsewhere: BSYNC, BREAK, CALL, BRX, JMP, EXIT, RET.
ENDS = {BRA, WARPSYNC, 0x141, 0x142, 0x143, 0x144, 0x149, 0x14A, 0x14D, 0x150}
FAR_BRANCHES_FROM = 90  # from this architecture on, the lowest 8 bits of a branch's distance stand elsewhere


@dataclasses.dataclass(frozen=True)
class Instruction:
    low: int
    high: int

    @property
    def opcode(self):
        return self.low & 0x1FF

    @property
    def group(self):
        """What it is counted as."""
        return sass.group_of(self.opcode, self.high >> 9 & 7)

    @property
    def write_barrier(self):
        """The scoreboard that is free again once its result is there."""
        return self.high >> 46 & 7

    @property
    def waits_for(self):
        """A mask of scoreboards."""
        return self.high >> 52 & 0x3F if self.opcode != DEPBAR else 0x3F

    def distance(self, arch):
        """From the end of this branch to where it leads, in bytes; of BSSY: to where threads meet again."""
        if self.opcode != BRA or arch < FAR_BRANCHES_FROM:
            return 4 * signed(self.low >> 34, 30)
        return 4 * signed((self.low >> 34 | (self.high & 0x3FFFF) << 30) << 8 | self.low >> 16 & 0xFF, 56)


def signed(bits, width):
    return bits - (1 << width) if bits >> (width - 1) else bits


def decode(code):
    """`code`: what a .text section holds."""
    return [Instruction(low, high) for low, high in struct.iter_unpack("<QQ", code)]


def leads_to(instructions, arch):
    """{place of a branch: where it leads}; and of a BSSY: where threads meet again."""
    return {at: at + 1 + instruction.distance(arch) // BYTES
            for at, instruction in enumerate(instructions) if instruction.opcode in (BRA, BSSY)}


def loops(targets):
    """(first, last) of each: what lies between a branch and an earlier place that it leads to."""
    return [(to, at) for at, to in targets.items() if 0 <= to < at]
