"""How many 128-bit loads of global memory a thread has under way at once, read from a kernel's code.

A load names one of six scoreboards; an instruction that needs what was loaded has that scoreboard in its wait
mask.  Between the two the load is in flight.  A loop that streams through memory is as fast as its loads in
flight are many: by Little's law an SM of an H200 needs its share of 4.8 TB/s times the latency,

    4.8 TB/s / 132 SMs x 0.6 to 0.7 us = 22 to 25 KB

at every moment, so twice that at the moments when a thread has just issued its loads and not yet waited.

Counted is the largest number of loads that were issued in one stretch of straight-line code within a loop and
not waited for.  What is in flight when the stretch is entered is not counted; a load under a predicate is,
whether the predicate holds or not.
"""

import re

from . import flow

# Kernels that stream through memory, and how many loads a thread of theirs must have in flight.  What is
# enough depends on the threads of an SM: the report shows the product.
STREAMING = [
    (re.compile(r"(measure_list|measure_master|measure_tensors|accumulate_list|multiply_list|scale_array|copy_list|column_sum)\b"),
     4),
    (re.compile(r"update_list<"), 6),  # of fp32 lists, before the gradient
    (re.compile(r"pointwise_elements<"), 8),  # of fp32: four runs of a, or two each of a and b
]

BYTES = 16  # of a load
WIDE_LOADS = {"LDG.128", "LD.128"}
NO_BARRIER = 7


def most_in_flight(stretch):
    """`stretch`: instructions that come one after the other."""
    most, waited_for = 0, []  # a scoreboard for each load
    for instruction in stretch:
        waited_for = [barrier for barrier in waited_for if not instruction.waits_for >> barrier & 1]
        if instruction.group in WIDE_LOADS and instruction.write_barrier != NO_BARRIER:
            waited_for.append(instruction.write_barrier)
        most = max(most, len(waited_for))
    return most


def stretches(instructions, arch):
    """(first, end) of the straight-line code that lies in loops: nothing jumps into it but to its beginning."""
    targets = flow.leads_to(instructions, arch)
    begins = {0, *targets.values()}
    begins |= {at + 1 for at, instruction in enumerate(instructions) if instruction.opcode in flow.ENDS}
    loops = flow.loops(targets)
    borders = [*sorted(at for at in begins if 0 <= at < len(instructions)), len(instructions)]
    for first, end in zip(borders, borders[1:]):
        if any(to <= first <= at for to, at in loops):
            yield first, end


def of(instructions, arch):
    """`instructions`: of a kernel; `arch`: 75, 80, 90, ..."""
    return max((most_in_flight(instructions[first:end]) for first, end in stretches(instructions, arch)), default=0)


def too_few(kernel):
    """A phrase where a kernel that streams has not enough in flight."""
    for pattern, enough in STREAMING:
        if pattern.match(kernel.name) and kernel.loads_in_flight is not None and kernel.loads_in_flight < enough:
            yield f"has {kernel.loads_in_flight} loads in flight, but a streaming kernel needs {enough}"


def kib_per_sm(kernel):
    """What the threads on an SM have in flight together, or None."""
    fit = kernel.occupancy()
    if fit is None or kernel.loads_in_flight is None:
        return None
    return kernel.loads_in_flight * BYTES * fit.blocks * kernel.threads // 1024
