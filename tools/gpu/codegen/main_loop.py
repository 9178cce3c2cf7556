"""The main loop of a tensor-core kernel: its share of tensor-core instructions ("products") and
stalls.  The producer loop of a Hopper kernel: its instructions per stage.

The main loop is the smallest loop around a product.  If a kernel has several, for different kinds
of operands, it is the loop with the most instructions per product.

- Every instruction uses an issue slot of a warp scheduler, at the expense of products of other
  warps.
- A memory fence (MEMBAR) waits until all earlier accesses of the thread are visible, so a fence
  between products drains the pipeline.
- wgmma requires one fence before the products of a step and one wait after them (WARPGROUP).  More
  of them mean that ptxas serialized the products.
- The producer loop is the smallest loop around a TMA load without products and stores.  If ptxas
  cannot prove that one lane executes a TMA instruction, it generates a loop over the active lanes,
  which ends with BRA.U.ANY.
"""

import dataclasses

from . import flow
from .instructions import CLUSTERS

PRODUCTS = {"HGMMA", "HMMA"}
CONSUMERS = ("HGMMA", "UTMASTG", "STSM", "STG")  # instructions that a producer does not execute


@dataclasses.dataclass
class ProducerLoop:
    instructions: int  # of the longest loop, if there are several
    vote_loops: int  # in the kernel
    device_fences: int  # in the kernel


@dataclasses.dataclass
class MainLoop:
    instructions: int
    products: int
    fences: int
    warpgroup: int

    @property
    def share(self):
        return self.products / self.instructions


def of(instructions, arch):
    """Returns the main loop, or None if there are no products in loops."""
    loops = sorted(flow.loops(flow.leads_to(instructions, arch)), key=lambda loop: loop[1] - loop[0])
    around = set()
    for at, instruction in enumerate(instructions):
        if instruction.group in PRODUCTS:
            around.update([next((loop for loop in loops if loop[0] <= at <= loop[1]), None)])
    found = [_measured(instructions[loop[0]:loop[1] + 1]) for loop in around if loop]
    if not found:
        return None
    heaviest = max(found, key=lambda loop: (loop.instructions / loop.products, loop.instructions))
    return dataclasses.replace(heaviest, fences=max(loop.fences for loop in found),
                               warpgroup=max(loop.warpgroup for loop in found))


def producer_of(instructions, arch):
    """Returns the producer loop, or None if there are no TMA loads in loops."""
    loops = [(to, at) for to, at in flow.loops(flow.leads_to(instructions, arch))
             if not instructions[at].is_vote_loop
             and not any(instruction.group.startswith(CONSUMERS) for instruction in instructions[to:at + 1])]
    lengths = [min((end - begin + 1 for begin, end in loops if begin <= at <= end), default=0)
               for at, instruction in enumerate(instructions) if instruction.group == "UTMALDG"]
    if not any(lengths):
        return None
    return ProducerLoop(max(lengths), sum(instruction.is_vote_loop for instruction in instructions),
                        sum(instruction.is_device_fence for instruction in instructions))


def _measured(instructions):
    groups = [instruction.group for instruction in instructions]
    return MainLoop(len(groups), sum(group in PRODUCTS for group in groups), groups.count("MEMBAR"),
                    groups.count("WARPGROUP"))


def allowed_fences(kernel):
    """Blocks of a cluster that read sums of other blocks need one barrier that orders accesses."""
    return int(any(pattern.match(kernel.name) for pattern, _ in CLUSTERS))


def stopped(kernel):
    """Yields a message for each kind of stall between products."""
    loop = kernel.main_loop or {"fences": 0, "warpgroup": 0}
    if loop["fences"]:
        yield f"has {loop['fences']} MEMBAR in its main loop; each drains the pipeline"
    if loop["warpgroup"] > 2:
        yield f"has {loop['warpgroup']} WARPGROUP in its main loop, not one fence and one wait; wgmma is serialized"
    if not kernel.producer_loop:
        return
    if votes := kernel.producer_loop["vote_loops"]:
        yield f"has loops over active lanes ({votes} BRA.U.ANY); TMA instructions require is_elected_lane()"
    if (fences := kernel.producer_loop["device_fences"]) > allowed_fences(kernel):
        yield f"has {fences} MEMBAR.ALL.GPU; barriers of clusters require cluster_sync_relaxed()"


def thinner(old, new):
    """Yields a message if the instructions per product increased by more than 10 %."""
    if not old or not new:
        return
    before, now = (loop["instructions"] / loop["products"] for loop in (old, new))
    if now > 1.1 * before:
        yield f"{now:.1f} instead of {before:.1f} main-loop instructions per product"


def longer(old, new):
    """Yields a message if the producer loop grew by more than 10 %."""
    if old and new and new["instructions"] > 1.1 * old["instructions"]:
        yield f"{new['instructions']} instead of {old['instructions']} instructions per stage in the producer"
