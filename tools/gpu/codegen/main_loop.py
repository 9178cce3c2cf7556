"""The main loop of a kernel for tensor cores: how much of it is products, and what stops it.

It is the smallest loop around any of them; of a kernel that has several, for operands of several kinds, the one with
the most instructions for a product.  Each of its instructions takes an issue slot of a warp scheduler, those
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


def _measured(instructions):
    groups = [instruction.group for instruction in instructions]
    return MainLoop(len(groups), sum(group in PRODUCTS for group in groups), groups.count("MEMBAR"),
                    groups.count("WARPGROUP"))


def stopped(kernel):
    """A phrase for each thing that stops the products."""
    loop = kernel.main_loop or {"fences": 0, "warpgroup": 0}
    if loop["fences"]:
        yield f"has {loop['fences']} MEMBAR in its main loop; each drains the pipeline"
    if loop["warpgroup"] > 2:
        yield f"has {loop['warpgroup']} WARPGROUP in its main loop, not one fence and one wait; wgmma is serialized"


def thinner(old, new):
    """A phrase where a product costs more than 10 % more instructions than it did."""
    if not old or not new:
        return
    before, now = (loop["instructions"] / loop["products"] for loop in (old, new))
    if now > 1.1 * before:
        yield f"{now:.1f} instead of {before:.1f} main-loop instructions per product"
