"""Which machine instructions a kernel consists of, read from its code.

From sm_70 on an instruction is 16 bytes.  Its lowest 9 bits say what it does (the 3 above, where an operand
comes from), bits 73 to 75 of a load or store how wide it is.  NVIDIA documents neither: the numbers are those
to which nvdisasm 13.2 gives these names in all cubins of this library.  tests/tools/test_kernel_report.py assembles
PTX of which it is known what comes out.
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
# Counted by their width in bits.  LD and ST find out at run time which memory an address is of.
WITH_WIDTH = {
    0x181: "LDG", 0x186: "STG", 0x180: "LD", 0x185: "ST", 0x1AE: "LDGSTS",
    0x184: "LDS", 0x188: "STS", 0x183: "LDL", 0x187: "STL",
}
WIDTHS = {0: 8, 1: 8, 2: 16, 3: 16, 4: 32, 5: 64, 6: 128}  # 0 and 2 without a sign


def group_of(opcode, width):
    """What it is counted as."""
    if opcode in WITH_WIDTH:
        return f"{WITH_WIDTH[opcode]}.{WIDTHS.get(width, '?')}"
    return OPCODES.get(opcode, "other")


def count(code):
    """Counter of the groups, with "all"; `code`: what a .text section holds.  Padding is not counted."""
    kinds = collections.Counter((low & 0x1FF, high >> 9 & 7) for low, high in struct.iter_unpack("<QQ", code))
    groups = collections.Counter()
    for (opcode, width), number in kinds.items():
        if opcode != NOP:
            groups["all"] += number
            groups[group_of(opcode, width)] += number
    return groups
