"""Parses logs of ptxas -v, one per source file: build/cuda/**/*.o.ptxas."""

import dataclasses
import re

ENTRY = re.compile(r"Compiling entry function '(\S+)' for 'sm_(\w+)'")
FUNCTION = re.compile(r"Function properties for (\S+)")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
CUMULATIVE = re.compile(r"(\d+) bytes cumulative stack size")
SMEM = re.compile(r"(\d+) bytes smem")
# Messages on serialized wgmma (C7510, C7514, C7518 and similar) and ignored setmaxnreg (C7508) do
# not contain the word "warning".
WARNING = re.compile(r"C75\d\d|warning")


@dataclasses.dataclass
class Entry:
    """A kernel on one architecture.  Spills include those of called functions."""

    mangled: str
    arch: str
    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    static_smem: int = 0


def parse(text):
    """Returns (entries, warnings).  Numbers of called functions are added to the kernel."""
    entries, warnings = [], []
    for line in text.splitlines():
        if WARNING.search(line):
            warnings.append(line)
        if found := ENTRY.search(line):
            entries.append(Entry(*found.groups()))
        if not entries:
            continue
        entry = entries[-1]
        if found := FRAME.search(line):
            stack, stores, loads = map(int, found.groups())
            entry.stack = max(entry.stack, stack)
            entry.spill_stores += stores
            entry.spill_loads += loads
        elif found := USED.search(line):
            entry.registers = int(found[1])
            if found := CUMULATIVE.search(line):
                entry.stack = max(entry.stack, int(found[1]))
            if found := SMEM.search(line):
                entry.static_smem = int(found[1])
    return entries, warnings
