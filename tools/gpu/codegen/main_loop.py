"""The main loop of a kernel for tensor cores: how much of it is products, and what stops it.

It is the smallest loop that has any.  Each of its instructions takes an issue slot of a warp scheduler, those
of other warps' products too; a fence of memory (MEMBAR) waits until all earlier accesses of the thread are
seen, so that one between products empties the pipeline.  wgmma needs one fence of its own before the products of
a step and one wait behind them (WARPGROUP); where ptxas adds others, it has serialised the products.
"""

import dataclasses

from . import flow

PRODUCTS = {"HGMMA", "HMMA"}


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
    """None where nothing is multiplied, or not in a loop."""
    at_product = [at for at, instruction in enumerate(instructions) if instruction.group in PRODUCTS]
    around = [(last - first, first, last) for first, last in flow.loops(flow.leads_to(instructions, arch))
              if any(first <= at <= last for at in at_product)]
    if not around:
        return None
    _, first, last = min(around)
    groups = [instruction.group for instruction in instructions[first : last + 1]]
    return MainLoop(len(groups), sum(group in PRODUCTS for group in groups), groups.count("MEMBAR"),
                    groups.count("WARPGROUP"))


def stopped(kernel):
    """A phrase for each thing that stops the products."""
    loop = kernel.main_loop or {"fences": 0, "warpgroup": 0}
    if loop["fences"]:
        yield f"has {loop['fences']} MEMBAR in its main loop: each empties the pipeline"
    if loop["warpgroup"] > 2:
        yield f"has {loop['warpgroup']} WARPGROUP in its main loop, not a fence and a wait: its wgmma are serialised"


def thinner(old, new):
    """A phrase where a product costs more than 10 % more instructions than it did."""
    if not old or not new:
        return
    before, now = (loop["instructions"] / loop["products"] for loop in (old, new))
    if now > 1.1 * before:
        yield f"{now:.1f} instead of {before:.1f} instructions of the main loop for each product"
