"""Occupancy: the number of blocks of a kernel that an SM can hold, and its limiting resource.

The rules are those of cuda_occupancy.h in the CUDA toolkit.  The limits are from there and from the
table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide.
"""

import dataclasses

KIB = 1024
REGISTERS_PER_SM = 64 * KIB
REGISTERS_PER_BLOCK = 64 * KIB
REGISTER_UNIT = 256  # allocation granularity per warp
SUB_PARTITIONS = 4
WARP_SIZE = 32


@dataclasses.dataclass(frozen=True)
class Sm:
    warps: int
    blocks: int
    smem: int
    smem_per_block: int  # maximum a kernel can opt in to
    smem_reserved: int = 1 * KIB  # per block, for the system
    smem_unit: int = 128


TURING = Sm(32, 16, 64 * KIB, 64 * KIB, smem_reserved=0, smem_unit=256)
SMS = {
    "75": TURING,
    "80": Sm(64, 32, 164 * KIB, 163 * KIB),
    "86": Sm(48, 16, 100 * KIB, 99 * KIB),
    "87": Sm(48, 16, 164 * KIB, 163 * KIB),
    "89": Sm(48, 24, 100 * KIB, 99 * KIB),
    "90": Sm(64, 32, 228 * KIB, 227 * KIB),
    "100": Sm(64, 32, 228 * KIB, 227 * KIB),
    "103": Sm(64, 32, 228 * KIB, 227 * KIB),
    "120": Sm(48, 24, 100 * KIB, 99 * KIB),
}


@dataclasses.dataclass(frozen=True)
class Occupancy:
    blocks: int  # per SM
    warps: int  # per SM
    percent: float  # of the maximum number of warps
    limit: str  # registers, shared memory, warps or blocks


def round_up(count, unit):
    return -(-count // unit) * unit


def occupancy(arch, registers, smem_bytes, threads):
    """Returns the occupancy: 0 blocks if the kernel cannot run, None for an unknown
    architecture."""
    sm = SMS.get(arch.rstrip("af"))
    if sm is None:
        return None
    warps_per_block = round_up(threads, WARP_SIZE) // WARP_SIZE
    registers_per_warp = max(round_up(registers * WARP_SIZE, REGISTER_UNIT), REGISTER_UNIT)
    smem_per_block = round_up(smem_bytes + sm.smem_reserved, sm.smem_unit)
    warps_by_registers = REGISTERS_PER_SM // SUB_PARTITIONS // registers_per_warp * SUB_PARTITIONS
    blocks = {
        "blocks": sm.blocks,
        "warps": sm.warps // warps_per_block,
        "registers": warps_by_registers // warps_per_block,
        "shared memory": sm.smem // smem_per_block if smem_per_block else sm.blocks,
    }
    # The check at launch assumes an equal number of warps in every sub-partition.
    if round_up(warps_per_block, SUB_PARTITIONS) * registers_per_warp > REGISTERS_PER_BLOCK:
        blocks["registers"] = 0
    if smem_bytes > sm.smem_per_block:
        blocks["shared memory"] = 0
    limit = min(blocks, key=blocks.get)
    warps = blocks[limit] * warps_per_block
    return Occupancy(blocks[limit], warps, 100 * warps / sm.warps, limit)
