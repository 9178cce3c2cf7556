"""Counts the machine instructions of a kernel.

On sm_70 and newer an instruction has 16 bytes.  The lowest 9 bits are the opcode, the next 3 bits
the source of an operand, and bits 73 to 75 of a load or store its width.  NVIDIA documents neither;
the numbers match the names that nvdisasm 13.2 prints for all cubins of this library.
tests/tools/test_kernel_report.py assembles PTX with known results.
"""

import collections
import struct

NOP = 0x118
OPCODES = {
    0x1F0: "HGMMA", 0x03C: "HMMA", 0x023: "FFMA", 0x021: "FADD", 0x020: "FMUL",
    0x02B: "FP64", 0x029: "FP64", 0x028: "FP64",
    0x03B: "LDSM", 0x044: "STSM", 0x1B4: "UTMALDG", 0x1B5: "UTMASTG",
    0x11D: "BAR", 0x192: "MEMBAR", 0x1A7: "SYNCS", 0x1B2: "SYNCS", 0x1C5: "WARPGROUP", 0x189: "SHFL",
    0x1A8: "ATOMG", 0x18E: "RED", 0x02E: "ACQBULK", 0x02D: "PREEXIT",
}
# Counted by width in bits.  LD and ST are generic: the address space is resolved at run time.
WITH_WIDTH = {
    0x181: "LDG", 0x186: "STG", 0x180: "LD", 0x185: "ST", 0x1AE: "LDGSTS",
    0x184: "LDS", 0x188: "STS", 0x183: "LDL", 0x187: "STL",
}
WIDTHS = {0: 8, 1: 8, 2: 16, 3: 16, 4: 32, 5: 64, 6: 128}  # 0 and 2: unsigned


def group_of(opcode, width):
    """Returns the group in which an instruction is counted."""
    if opcode in WITH_WIDTH:
        return f"{WITH_WIDTH[opcode]}.{WIDTHS.get(width, '?')}"
    return OPCODES.get(opcode, "other")


def count(code):
    """Returns a Counter of the groups and "all"; `code`: a .text section.  Padding is not
    counted."""
    kinds = collections.Counter((low & 0x1FF, high >> 9 & 7) for low, high in struct.iter_unpack("<QQ", code))
    groups = collections.Counter()
    for (opcode, width), number in kinds.items():
        if opcode != NOP:
            groups["all"] += number
            groups[group_of(opcode, width)] += number
    return groups
