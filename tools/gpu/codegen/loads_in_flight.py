"""How many 128-bit loads of global memory a thread has under way at once, read from a kernel's code.

A load names one of six scoreboards; an instruction that needs what was loaded has that scoreboard in its wait
mask.  Between the two the load is in flight.  A loop that streams through memory is as fast as its loads in
flight are many: by Little's law an SM of an H200 needs its share of 4.8 TB/s times the latency,

    4.8 TB/s / 132 SMs x 0.6 to 0.7 us = 22 to 25 KB

at every moment, so twice that at the moments when a thread has just issued its loads and not yet waited.

Counted is the largest number of loads that were issued in one stretch of straight-line code within a loop and
not waited for.  What is in flight when the stretch is entered is not counted; a load under a predicate is,
whether the predicate holds or not.

The control bits of an instruction (105 to 125 of its 128, from sm_70 on) are not documented by NVIDIA; they are as
in Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, section 2.1.  Where
branches lead to was found by comparison with nvdisasm 13.2.  tests/tools/test_kernel_report.py assembles loops
of which the number is known.
"""

import dataclasses
import re
import struct

from . import sass

# Kernels that stream through memory, and how many loads a thread of theirs must have in flight.  What is
# enough depends on the threads of an SM: the report shows the product.
STREAMING = [
    (re.compile(r"(measure_list|measure_master|measure_tensors|accumulate_list|multiply_list|scale_array|copy_list)\b"),
     4),
    (re.compile(r"update_list<"), 6),  # of fp32 lists, before the gradient
]

BYTES = 16  # of an instruction, and of a load
WIDE_LOADS = {"LDG.128", "LD.128"}
NO_BARRIER = 7
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
    def is_wide_load(self):
        return sass.group_of(self.opcode, self.high >> 9 & 7) in WIDE_LOADS

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


def most_in_flight(stretch):
    """`stretch`: instructions that come one after the other."""
    most, waited_for = 0, []  # a scoreboard for each load
    for instruction in stretch:
        waited_for = [barrier for barrier in waited_for if not instruction.waits_for >> barrier & 1]
        if instruction.is_wide_load and instruction.write_barrier != NO_BARRIER:
            waited_for.append(instruction.write_barrier)
        most = max(most, len(waited_for))
    return most


def stretches(instructions, arch):
    """(first, end) of the straight-line code that lies in loops: nothing jumps into it but to its beginning."""
    leads_to = {at: at + 1 + instruction.distance(arch) // BYTES
                for at, instruction in enumerate(instructions) if instruction.opcode in (BRA, BSSY)}
    begins = {0, *leads_to.values()}
    begins |= {at + 1 for at, instruction in enumerate(instructions) if instruction.opcode in ENDS}
    # A loop is what lies between a branch and an earlier place that it leads to.
    loops = [(to, at) for at, to in leads_to.items() if 0 <= to < at]
    borders = [*sorted(at for at in begins if 0 <= at < len(instructions)), len(instructions)]
    for first, end in zip(borders, borders[1:]):
        if any(to <= first <= at for to, at in loops):
            yield first, end


def of(code, arch):
    """`code`: what a .text section holds; `arch`: 75, 80, 90, ..."""
    instructions = [Instruction(low, high) for low, high in struct.iter_unpack("<QQ", code)]
    return max((most_in_flight(instructions[first:end]) for first, end in stretches(instructions, arch)), default=0)


def too_few(kernel):
    """A phrase where a kernel that streams has not enough in flight."""
    for pattern, enough in STREAMING:
        if pattern.match(kernel.name) and kernel.loads_in_flight is not None and kernel.loads_in_flight < enough:
            yield f"has {kernel.loads_in_flight} loads in flight: it streams, and is to have {enough}"


def kib_per_sm(kernel):
    """What the threads on an SM have in flight together, or None."""
    fit = kernel.occupancy()
    if fit is None or kernel.loads_in_flight is None:
        return None
    return kernel.loads_in_flight * BYTES * fit.blocks * kernel.threads // 1024
