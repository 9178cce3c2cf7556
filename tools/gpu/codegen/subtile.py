"""The epilogue of a Hopper kernel, determined from machine code.

- A plain subtile, of a tile with alpha = 1 and without bias and activation, is the shortest path
  from one TMA store to the next through stores of matrices to a staging buffer.  It contains no
  multiplication.
- The direct store adds C to fp32 pairs.  Its loads of C in flight before a store hide their
  latency, as in loads_in_flight.py.
"""

import collections
import dataclasses
import re

from . import flow, loads_in_flight

DIRECT_STORE = re.compile(r"(gemm|conv|wgrad)_wgmma<")  # dgrad has a staged store
ENOUGH_LOADS = 16  # two groups of eight pairs
PAIR_LOADS = {"LDG.64", "LD.64"}


@dataclasses.dataclass
class Store:
    subtile: int  # instructions of the shortest plain subtile; 0: no such path
    products: int  # most multiplications of a subtile
    loads_of_c: int


def of(instructions, arch):
    """Returns the epilogue, or None if the kernel has no TMA store."""
    groups = [instruction.group for instruction in instructions]
    if "UTMASTG" not in groups:
        return None
    targets = flow.leads_to(instructions, arch)
    paths = [path for at, group in enumerate(groups) if group == "UTMASTG"
             if (path := _to_next_store(instructions, groups, targets, at))]
    subtile = min(map(len, paths), default=0)
    # Paths into the next tile are longer.
    products = [sum(groups[at] == "FMUL" for at in path) for path in paths if len(path) <= 2 * subtile]
    return Store(subtile, max(products, default=0), _loads_of_c(instructions, groups))


def _to_next_store(instructions, groups, targets, store):
    """Returns the shortest path from a TMA store to the next one behind a store of matrices."""
    came_from, queue = {}, collections.deque([(store, False)])
    while queue:
        place = at, has_matrix = queue.popleft()
        if groups[at] == "UTMASTG" and has_matrix:
            path = [at]
            while (place := came_from[place])[0] != store:
                path.append(place[0])
            return path
        for following in flow.successors(instructions[at], at, targets):
            after = following, has_matrix or groups[at] == "STSM"
            if following < len(groups) and groups[following] != "HGMMA" and after not in came_from:
                came_from[after] = place
                queue.append(after)
    return []


def _loads_of_c(instructions, groups):
    stores = [at for at, group in enumerate(groups) if group == "STG.64"]
    return max((loads_in_flight.most_in_flight(instructions[first + 1:end], PAIR_LOADS)
                for first, end in zip([0, *stores], stores)), default=0)


def slow(kernel):
    """Yields a message for each property that an epilogue lacks."""
    store = kernel.store
    if not store:
        return
    if store["products"]:
        yield f"multiplies {store['products']} times in a subtile with alpha = 1"
    if DIRECT_STORE.match(kernel.name) and store["loads_of_c"] < ENOUGH_LOADS:
        yield f"has {store['loads_of_c']} loads of C in flight before a store, not {ENOUGH_LOADS}"


def longer(old, new):
    """Yields a message if a plain subtile grew by more than 10 %."""
    if old and new and new["subtile"] > 1.1 * old["subtile"]:
        yield f"{new['subtile']} instead of {old['subtile']} instructions in a plain subtile"
