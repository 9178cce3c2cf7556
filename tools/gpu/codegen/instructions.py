"""Gates on the instructions of a kernel."""

import math
import re

# Kernels, and the instructions that they must use.
TENSOR_CORES = [
    (re.compile(r"(gemm|conv|dgrad|wgrad)_wgmma<|gemm_thin<|rnn_fused_wgmma_"), ["HGMMA", "UTMALDG"]),
    (re.compile(r"(gemm|conv)_wmma<"), ["HMMA"]),
]
# Kernels that read the shared memory of other blocks, which is a generic load in machine code, and
# the number of these loads: WgmmaClusterStore has one for each of up to 8 blocks.
CLUSTERS = [(re.compile(r"(gemm_thin|rnn_fused_wgmma_(forward|backward))<"), math.inf),
            (re.compile(r"(gemm|conv|dgrad|wgrad)_wgmma<"), 8)]
# Characteristic instructions: a kernel that used one must not lose it.
SPECIAL = ["HGMMA", "HMMA", "LDSM", "STSM", "LDGSTS.128", "UTMALDG", "UTMASTG"]
# Accesses to global memory, and generic accesses.
GMEM = {"loads": ["LDG", "LD"], "stores": ["STG", "ST"]}
NARROW = [8, 16, 32, 64]
TELLING = SPECIAL + ["FFMA"] + [f"{name}.{width}" for names in GMEM.values() for name in names
                                for width in [128, *reversed(NARROW)]]


def telling(counts):
    """Returns the counts that the baseline stores; None if the code could not be read."""
    return counts and {group: counts[group] for group in TELLING if counts[group]}


def missing(kernel):
    """Yields required instructions that a tensor-core kernel lacks on a supported architecture."""
    occupancy = kernel.occupancy()
    if kernel.instructions and occupancy and occupancy.blocks:
        for pattern, groups in TENSOR_CORES:
            if pattern.match(kernel.name):
                yield from (group for group in groups if not kernel.instructions[group])


def generic(kernel):
    """Yields a message if a kernel has generic accesses that are not allowed."""
    counts = kernel.instructions or {}
    number = sum(_gmem(counts, [names[1]], [128, *NARROW]) for names in GMEM.values())
    for pattern, loads in CLUSTERS:
        if pattern.match(kernel.name):
            number -= min(_gmem(counts, ["LD"], [128]), loads)
    if number:
        yield f"has {number} generic accesses; apply in_gmem() to pointers that are loaded from memory"


def changes(old, new):
    old, new = old or {}, new or {}
    return [f"{group} {old.get(group, 0)} -> {new.get(group, 0)}"
            for group in TELLING if old.get(group) != new.get(group)]


def _gmem(counts, names, widths):
    return sum(counts.get(f"{name}.{width}", 0) for name in names for width in widths)


def lost(old, new):
    """Yields a message per regression.

    Fewer wide accesses alone are not a regression, because unrolling can change.  Fewer wide and
    more narrow accesses mean that wide accesses were split.  Fewer global and more generic accesses
    mean that the compiler lost the address space of a pointer.
    """
    if not old or not new:
        return
    yield from (f"no longer uses {group}" for group in SPECIAL if group in old and group not in new)
    for what, names in GMEM.items():
        wide = [_gmem(counts, names, [128]) for counts in (old, new)]
        narrow = [_gmem(counts, names, NARROW) for counts in (old, new)]
        if wide[1] < wide[0] and narrow[1] > narrow[0]:
            yield (f"{wide[1]} instead of {wide[0]} 128-bit {what} of global memory, "
                   f"{narrow[1]} instead of {narrow[0]} narrower ones")
        own, generic = ([_gmem(counts, [name], [128, *NARROW]) for counts in (old, new)] for name in names)
        if own[1] < own[0] and generic[1] > generic[0]:
            yield (f"{generic[1]} instead of {generic[0]} generic {what}, "
                   f"{own[1]} instead of {own[0]} of global memory")
