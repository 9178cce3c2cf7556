"""The committed baseline, and the gates relative to it.

Spills are not in the baseline, because they are never allowed.  Registers are not a separate gate:
more registers matter only if fewer warps fit on an SM.
"""

import collections
import dataclasses
import json

from . import dependent_launch, instructions, loads_in_flight, main_loop, peers, subtile

COLUMNS = ["registers", "stack", "static_smem", "dynamic_smem", "threads", "loads_in_flight", "main_loop",
           "producer_loop", "store", "instructions"]

MOST_LIBRARY_BYTES = 16_000_000  # with the architectures of the baseline
CODE_CHANGE = 0.1  # relative change of machine code per architecture that is reported


def facts_of(kernel):
    """Returns the facts of a kernel by column, for comparison with the baseline."""
    facts = {column: getattr(kernel, column) for column in COLUMNS}
    return facts | {"instructions": instructions.telling(kernel.instructions)}


def code_bytes_of(facts):
    """Returns {architecture: bytes of machine code}."""
    result = collections.Counter()
    for kernel in facts.kernels:
        result[kernel.arch] += kernel.code_bytes or 0
    return dict(result)


def rows_of(kernels):
    """Returns the rows; architectures with equal facts share one, such as "sm_80,90 name"."""
    rows = collections.defaultdict(list)
    for kernel in kernels:
        rows[kernel.name, json.dumps(list(facts_of(kernel).values()))].append(kernel.arch)
    return [f"{json.dumps('sm_' + ','.join(archs) + ' ' + name)}: {values}" for (name, values), archs in rows.items()]


def kernels_of(baseline):
    """Returns {key of a kernel: facts by column}."""
    rows = [(*key.removeprefix("sm_").split(" ", 1), values) for key, values in baseline["kernels"].items()]
    return {f"sm_{arch} {name}": dict(zip(baseline["columns"], values)) for archs, name, values in rows
            for arch in archs.split(",")}


def write(path, facts):
    lines = [f"    {row}" for row in rows_of(facts.kernels)]
    (toolkit,) = facts.toolkits
    path.write_text(
        f'{{\n  "toolkit": {json.dumps(toolkit)},\n  "code_bytes": {json.dumps(code_bytes_of(facts))},\n'
        f'  "columns": {json.dumps(COLUMNS)},\n'
        '  "kernels": {\n' + ",\n".join(lines) + "\n  }\n}\n")


@dataclasses.dataclass
class Comparison:
    failures: list = dataclasses.field(default_factory=list)
    differences: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)


def check(facts):
    """Checks the gates for every build, independent of compiler and baseline."""
    result = Comparison()
    if not facts.kernels:
        result.failures.append("the ptxas logs contain no kernel")
    for kernel in facts.kernels:
        if kernel.spills:
            result.failures.append(
                f"{kernel.key} spills: {kernel.spill_stores} bytes of stores, {kernel.spill_loads} of loads")
    result.failures += [f"{kernel.key} has no {group}, although it is a tensor-core kernel"
                        for kernel in facts.kernels for group in instructions.missing(kernel)]
    result.failures += [f"{kernel.key} {what}" for kernel in facts.kernels
                        for what in [*loads_in_flight.too_few(kernel), *instructions.generic(kernel),
                                     *main_loop.stopped(kernel), *subtile.slow(kernel),
                                     *dependent_launch.too_early(kernel),
                                     *peers.heavier(kernel, facts.toolkits)]]
    result.failures += facts.warnings
    return result


def compare(facts, path, library_bytes):
    """`library_bytes`: size of the library without symbols and debug information, or None."""
    result = check(facts)
    if not path.exists():
        result.notes.append(f"no baseline {path}; only the gates for every build are checked")
        return result
    baseline = json.loads(path.read_text())
    if facts.toolkits != {baseline["toolkit"]}:
        ours = " and ".join(sorted(facts.toolkits)) or "an unknown compiler"
        result.notes.append(
            f"compiled by {ours}, but the baseline by {baseline['toolkit']}; only the gates for every "
            "build are checked")
        return result

    columns = baseline["columns"]
    unknown = [column for column in COLUMNS if column not in columns]
    if unknown:
        result.notes.append(f"the baseline lacks the columns {', '.join(unknown)}")
    old = kernels_of(baseline)
    archs = {kernel.arch for kernel in facts.kernels}
    known_archs = {key.split()[0].removeprefix("sm_") for key in old}
    for arch in sorted(archs - known_archs):
        result.notes.append(f"sm_{arch} is not in the baseline")
    for arch in sorted(known_archs - archs):
        result.notes.append(f"sm_{arch} of the baseline was not built")

    if archs == known_archs and library_bytes and library_bytes > MOST_LIBRARY_BYTES:
        result.failures.append(f"libmpcore.so has {library_bytes} bytes, more than {MOST_LIBRARY_BYTES}")
    code_bytes = code_bytes_of(facts)
    for arch, before in baseline.get("code_bytes", {}).items():
        now = code_bytes.get(arch, before)
        if abs(now - before) > CODE_CHANGE * before:
            result.differences.append(f"machine code of sm_{arch}: {before} -> {now} bytes")

    new_keys = {kernel.key for kernel in facts.kernels}
    result.differences += [f"gone: {key}" for key in old
                           if key not in new_keys and key.split()[0].removeprefix("sm_") in archs]
    for kernel in facts.kernels:
        if kernel.arch not in known_archs:
            continue
        if kernel.key not in old:
            result.differences.append(f"new: {kernel.key}")
        else:
            compare_kernel(kernel, old[kernel.key], result)
    return result


def compare_kernel(kernel, old, result):
    new = {column: fact for column, fact in facts_of(kernel).items() if column in old}
    if new == old:
        return
    changes = [f"{column} {old[column]} -> {new[column]}"
               for column in new if column != "instructions" and new[column] != old[column]]
    changes += instructions.changes(old["instructions"], new["instructions"])
    what = f"{kernel.key}: {', '.join(changes)}"
    before, now = dataclasses.replace(kernel, **old).occupancy(), kernel.occupancy()
    lost = [*instructions.lost(old["instructions"], new["instructions"]),
            *main_loop.thinner(old.get("main_loop"), kernel.main_loop),
            *main_loop.longer(old.get("producer_loop"), kernel.producer_loop),
            *subtile.longer(old.get("store"), kernel.store)]
    if lost:
        result.failures.append(f"{what}: {', '.join(lost)}")
    elif kernel.stack > old["stack"]:
        result.failures.append(f"{what}: more stack")
    elif (kernel.loads_in_flight or 0) < (old.get("loads_in_flight") or 0):
        result.failures.append(f"{what}: fewer loads in flight")
    elif before and now and now.warps < before.warps:
        result.failures.append(
            f"{what}: {now.warps} warps per SM instead of {before.warps}, limited by {now.limit}")
    else:
        result.differences.append(what)
