"""What ptxas says of the kernels, as tools/kernel_report remembers it: known without a GPU."""
import json

from .results import BENCH

FILE = BENCH.parent / "tools" / "kernel_facts" / "baseline.json"


def read():
    """(version of the CUDA toolkit, heading, {architecture: rows})"""
    baseline = json.loads(FILE.read_text(encoding="utf-8"))
    by_arch = {}
    for key, facts in baseline["kernels"].items():
        arch, name = key.split(" ", 1)
        by_arch.setdefault(arch, []).append([name, *facts])
    return baseline["toolkit"], [column.replace("_", " ") for column in baseline["columns"]], by_arch
