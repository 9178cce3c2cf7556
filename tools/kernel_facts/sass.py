"""Which machine instructions a kernel consists of, from nvdisasm."""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.\w+)*)")
SECTION = re.compile(r"^\.text\.(\S+):")
# Name in the table: what the opcode is.  Loads and stores are counted by their width in bits as well.
GROUPS = {
    "HGMMA": "HGMMA", "HMMA": "HMMA", "IMMA": "IMMA",
    "FFMA": "FFMA", "FADD": "FADD", "FMUL": "FMUL", "DFMA": "FP64", "DADD": "FP64", "DMUL": "FP64",
    "LDSM": "LDSM", "LDGSTS": "LDGSTS", "UTMALDG": "UTMALDG", "UTMASTG": "UTMASTG",
    "UTMAREDG": "UTMAREDG", "LDG": "LDG", "STG": "STG", "LDS": "LDS", "STS": "STS", "STSM": "STSM",
    "LDL": "LDL", "STL": "STL", "BAR": "BAR", "SYNCS": "SYNCS", "WARPGROUP": "WARPGROUP",
    "SHFL": "SHFL", "ATOM": "ATOM", "ATOMG": "ATOM", "ATOMS": "ATOM", "RED": "RED", "REDG": "RED",
}
WITH_WIDTH = {"LDG", "STG", "LDS", "STS", "LDL", "STL"}


def find_nvdisasm():
    """Its path; PATH, then the toolkit's usual place."""
    usual = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/nvdisasm")
    return shutil.which("nvdisasm") or (str(usual) if usual.exists() else None)


def group_of(opcode, modifiers):
    group = GROUPS.get(opcode)
    if group not in WITH_WIDTH:
        return group
    width = {"64", "128", "U8", "S8", "U16", "S16"} & set(modifiers.split("."))
    return f"{group}.{width.pop().lstrip('US')}" if width else f"{group}.32"


def count(text):
    """{mangled kernel: Counter of groups, with "all" and "other"} of what nvdisasm -c printed."""
    counts, current = {}, None
    for line in text.splitlines():
        if found := SECTION.match(line):
            current = counts.setdefault(found[1], collections.Counter())
        elif current is not None and (found := INSTRUCTION.match(line)) and found[1] != "NOP":  # padding
            current["all"] += 1
            current[group_of(*found.groups()) or "other"] += 1
    return counts


def disassemble(nvdisasm, cubin):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([nvdisasm, "-c", file.name], text=True, capture_output=True, check=True).stdout
