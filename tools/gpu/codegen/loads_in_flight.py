"""Number of 128-bit global loads that a thread has in flight, determined from machine code.

A load names one of six scoreboards; an instruction that uses its result has this scoreboard in its
wait mask.  Between the two instructions the load is in flight.  The speed of a streaming loop is
proportional to its loads in flight: by Little's law an SM of an H200 needs its share of 4.8 TB/s
times the latency,

    4.8 TB/s / 132 SMs x 0.6 to 0.7 us = 22 to 25 KB

at all times, and therefore twice that directly after a thread has issued its loads.

The result is the maximum number of loads that straight-line code in a loop has issued but not yet
waited for.  Loads from before the straight-line code are not counted; predicated loads always are.

A recurrent step reads few bytes per thread, so that latency takes most of its time.  The inputs of
its cell must be loaded before the product, which hides their latency.
"""

import collections
import re

from . import flow

# Streaming kernels, and the loads that a thread must have in flight.  The required number depends
# on the threads of an SM: the report shows the product.
STREAMING = [
    (re.compile(r"(measure_list|measure_master|measure_tensors|accumulate_list|multiply_list|scale_array|copy_list|column_sum)\b"),
     4),
    (re.compile(r"update_list<"), 6),  # FP32 lists, before the gradient
    (re.compile(r"pointwise_elements<"), 8),  # FP32: four vectors of a, or two each of a and b
    # Pixels of a window, and windows of a pixel.
    (re.compile(r"(largest_of_windows|largest_backward|mean_of_windows)\b"), 5),
    (re.compile(r"(indexed|mean)_backward\b"), 3),
]

# Fused recurrent steps, and the loads before their products: p, biases, c and h; backward dh, dy,
# saved gates, dc, c and h.
BEFORE_PRODUCTS = [(re.compile(rf"rnn_fused_(wgmma_)?{step}<{cell}Cell"), enough) for step, cell, enough in [
    ("forward", "Plain", 6), ("forward", "Gru", 19), ("forward", "Lstm", 26),
    ("backward", "Plain", 4), ("backward", "Gru", 8), ("backward", "Lstm", 13)]]
PRODUCTS = ("HGMMA", "HMMA")

BYTES = 16  # per load
WIDE_LOADS = {"LDG.128", "LD.128"}
NO_BARRIER = 7


def most_in_flight(stretch, loads=WIDE_LOADS):
    """Returns the maximum number of `loads` in flight in `stretch`, straight-line code."""
    most, waited_for = 0, []  # scoreboard of each load
    for instruction in stretch:
        waited_for = [barrier for barrier in waited_for if not instruction.waits_for >> barrier & 1]
        if instruction.group in loads and instruction.write_barrier != NO_BARRIER:
            waited_for.append(instruction.write_barrier)
        most = max(most, len(waited_for))
    return most


def stretches(instructions, arch):
    """Yields (first, end) of straight-line code in loops, which is entered only at its
    beginning."""
    targets = flow.leads_to(instructions, arch)
    begins = {0, *targets.values()}
    begins |= {at + 1 for at, instruction in enumerate(instructions) if instruction.opcode in flow.ENDS}
    loops = flow.loops(targets)
    borders = [*sorted(at for at in begins if 0 <= at < len(instructions)), len(instructions)]
    for first, end in zip(borders, borders[1:]):
        if any(to <= first <= at for to, at in loops):
            yield first, end


def of(instructions, arch):
    """Returns the loads in flight of a kernel; `arch`: 75, 80, 90, ..."""
    return max((most_in_flight(instructions[first:end]) for first, end in stretches(instructions, arch)), default=0)


def before_products(instructions, arch):
    """Returns the number of 128-bit loads after which a product can follow; None: no products."""
    targets, came_from = flow.leads_to(instructions, arch), collections.defaultdict(list)
    for at, instruction in enumerate(instructions):
        for following in flow.successors(instruction, at, targets):
            came_from[following].append(at)
    ahead = [at for at, instruction in enumerate(instructions) if instruction.group.startswith(PRODUCTS)]
    if not ahead:
        return None
    seen = set(ahead)
    while ahead:
        new = [at for at in came_from[ahead.pop()] if at not in seen]
        seen.update(new)
        ahead += new
    return sum(instructions[at].group in WIDE_LOADS for at in seen)


def too_few(kernel):
    """Yields a message if a streaming kernel has too few loads in flight, or a recurrent step has
    too few before its product."""
    before = kernel.loads_before_products
    for pattern, enough in BEFORE_PRODUCTS:
        if pattern.match(kernel.name) and before is not None and before < enough:
            yield f"has {before} loads before its products, but a recurrent step needs {enough}"
    for pattern, enough in STREAMING:
        if pattern.match(kernel.name) and kernel.loads_in_flight is not None and kernel.loads_in_flight < enough:
            yield f"has {kernel.loads_in_flight} loads in flight, but a streaming kernel needs {enough}"


def kib_per_sm(kernel):
    """Returns the KiB that the threads of an SM have in flight, or None."""
    fit = kernel.occupancy()
    if fit is None or kernel.loads_in_flight is None:
        return None
    return kernel.loads_in_flight * BYTES * fit.blocks * kernel.threads // 1024
