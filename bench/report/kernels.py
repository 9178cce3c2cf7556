"""Registers, memory and instructions of the kernels, from the baseline of kernel_report."""
import dataclasses
import json

from .results import BENCH

FILE = BENCH.parent / "tools" / "gpu" / "codegen" / "baseline.json"


@dataclasses.dataclass
class Kernels:
    toolkit: str  # version of CUDA
    library_bytes: dict  # of libmpcore.so, by architecture
    head: list
    by_arch: dict  # {architecture: rows}


def _cell(fact):
    """Counts of instructions as text, the rest as it is."""
    return ", ".join(f"{group} {count}" for group, count in fact.items()) if isinstance(fact, dict) else fact


def read() -> Kernels:
    baseline = json.loads(FILE.read_text(encoding="utf-8"))
    by_arch = {}
    for key, facts in baseline["kernels"].items():
        arch, name = key.split(" ", 1)
        by_arch.setdefault(arch, []).append([name, *map(_cell, facts)])
    head = [column.replace("_", " ") for column in baseline["columns"]]
    return Kernels(baseline["toolkit"], baseline["library_bytes"], head, by_arch)
