"""Decodes instructions: scoreboard waits and branch targets.

NVIDIA does not document the control bits of an instruction (105 to 125 of its 128, sm_70 and
newer). Their meaning is from Jia et al., Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking, 2018, section 2.1.  Branch targets were verified with nvdisasm 13.2.
tests/tools/test_kernel_report.py assembles loops with known results.
"""

import dataclasses
import struct

from . import sass

BYTES = 16  # of an instruction
DEPBAR = 0x11A  # waits for scoreboards in its operands, in addition to the wait mask
BRA, BSSY, WARPSYNC, EXIT, RET = 0x147, 0x145, 0x148, 0x14D, 0x150
# Other instructions that end straight-line code: BSYNC, BREAK, CALL, BRX, JMP, EXIT, RET.
ENDS = {BRA, WARPSYNC, 0x141, 0x142, 0x143, 0x144, 0x149, 0x14A, 0x14D, 0x150}
ALWAYS = 7  # predicate PT, in bits 12 to 15 of the low word
VOTE = 20  # bit of the high word of a branch: jumps if the predicate is true in any lane
DEVICE_SCOPE = 13  # bit of the high word of a fence
FAR_BRANCHES_FROM = 90  # from sm_90 on, the low 8 bits of distances are separate


@dataclasses.dataclass(frozen=True)
class Instruction:
    low: int
    high: int

    @property
    def opcode(self):
        return self.low & 0x1FF

    @property
    def group(self):
        """Group in which the instruction is counted."""
        return sass.group_of(self.opcode, self.high >> 9 & 7)

    @property
    def is_unconditional_end(self):
        """True for a branch, exit or return without a predicate: the next instruction is not
        executed after it."""
        return self.opcode in (BRA, EXIT, RET) and self.low >> 12 & 0xF == ALWAYS

    @property
    def is_vote_loop(self):
        """True for BRA.U.ANY, the end of a loop over the active lanes."""
        return self.opcode == BRA and bool(self.high >> VOTE & 1)

    @property
    def is_device_fence(self):
        """True for MEMBAR.ALL.GPU, which waits until the L2 cache has all writes of the thread."""
        return self.group == "MEMBAR" and bool(self.high >> DEVICE_SCOPE & 1)

    @property
    def write_barrier(self):
        """Scoreboard that is released when the result is available."""
        return self.high >> 46 & 7

    @property
    def waits_for(self):
        """Mask of scoreboards to wait for."""
        return self.high >> 52 & 0x3F if self.opcode != DEPBAR else 0x3F

    def distance(self, arch):
        """Returns the bytes from the end of a branch to its target; for BSSY, to the reconvergence
        point."""
        if self.opcode != BRA or arch < FAR_BRANCHES_FROM:
            return 4 * signed(self.low >> 34, 30)
        return 4 * signed((self.low >> 34 | (self.high & 0x3FFFF) << 30) << 8 | self.low >> 16 & 0xFF, 56)


def signed(bits, width):
    return bits - (1 << width) if bits >> (width - 1) else bits


def decode(code):
    """Decodes `code`, the contents of a .text section."""
    return [Instruction(low, high) for low, high in struct.iter_unpack("<QQ", code)]


def leads_to(instructions, arch):
    """Returns {index of a branch: target}; for BSSY, the reconvergence point."""
    return {at: at + 1 + instruction.distance(arch) // BYTES
            for at, instruction in enumerate(instructions) if instruction.opcode in (BRA, BSSY)}


def successors(instruction, at, targets):
    """Yields the indices of the instructions that can follow."""
    if not instruction.is_unconditional_end:
        yield at + 1
    if instruction.opcode == BRA:
        yield targets[at]


def loops(targets):
    """Returns (first, last) of each loop: from the target of a backward branch to the branch."""
    return [(to, at) for at, to in targets.items() if 0 <= to < at]
