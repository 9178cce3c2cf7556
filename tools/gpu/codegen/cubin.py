"""Reads cubins and libraries, which are ELF files.

NVIDIA does not document the sections of cubins.  Attributes of a kernel are in .nv.info.KERNEL
(`cuobjdump -elf` prints them as EIATTR_...).
"""

import collections
import dataclasses
import re
import struct

from . import dependent_launch, flow, loads_in_flight, main_loop, sass, subtile

LOADED = 1  # PT_LOAD
MAX_THREADS = 0x05  # EIATTR_MAX_THREADS: three counts
HAS_VALUE_OF_SIZE = 4  # format of an attribute: followed by a size and that many bytes
# Alignment of dynamic shared memory in MP_DYN_SHARED (kernels/simt/simt.h), used nowhere else.
DYNAMIC_SMEM_ALIGNMENT = 1024
TOOLKIT = re.compile(rb"Cuda compilation tools, release [\d.]+, V([\d.]+)")


@dataclasses.dataclass
class Code:
    """A kernel in a cubin."""

    threads: int = None
    code_bytes: int = None
    instructions: collections.Counter = None  # static counts
    loads_in_flight: int = None  # 128-bit loads of a thread in a loop
    loads_before_products: int = None  # 128-bit loads after which a tensor core product can follow
    main_loop: dict = None  # of a tensor-core kernel: fields of main_loop.MainLoop
    producer_loop: dict = None  # of a Hopper kernel: fields of main_loop.ProducerLoop
    store: dict = None  # of a Hopper kernel: fields of subtile.Store
    gmem_before_wait: int = None  # accesses of a kernel with PDL
    uses_dynamic_smem: bool = False


def fields_of(found):
    """Returns the fields of a dataclass as a dict, or None."""
    return found and dataclasses.asdict(found)


def sections(elf):
    """Yields (name, contents, alignment) of all sections of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    if not headers:
        return
    strings = headers[names][4]
    for name, kind, _, _, offset, length, _, _, alignment, _ in headers:
        text = elf[strings + name : elf.index(b"\0", strings + name)].decode()
        no_bits = kind == 8
        yield text, b"" if no_bits else elf[offset : offset + length], alignment


def loaded_bytes(elf):
    """Returns the size of a 64-bit ELF file up to its last segment.  Symbols and debug information
    follow."""
    (table,), (count,) = struct.unpack_from("<Q", elf, 0x20), struct.unpack_from("<H", elf, 0x38)
    segments = [struct.unpack_from("<IIQQQQ", elf, table + i * 56) for i in range(count)]
    return max(offset + size for kind, _, offset, _, _, size in segments if kind == LOADED)


def attributes(info):
    """Yields (number, value) of each attribute in .nv.info."""
    at = 0
    while at + 4 <= len(info):
        form, number, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == HAS_VALUE_OF_SIZE:
            yield number, info[at : at + size]
            at += size


def architecture(cubin):
    """Returns 75, 80, 90, ...  The ABI version determines its byte in the flags of the ELF
    header."""
    abi = cubin[8]
    (flags,) = struct.unpack_from("<I", cubin, 0x30)
    return flags >> (8 if abi >= 8 else 0) & 0xFF


def kernels(cubin):
    """Returns {mangled name: Code}."""
    found = {}
    arch = architecture(cubin)
    for name, data, alignment in sections(cubin):
        for prefix in (".nv.info.", ".nv.shared.", ".text."):
            if name.startswith(prefix):
                code = found.setdefault(name[len(prefix) :], Code())
        if name.startswith(".nv.info."):
            for number, value in attributes(data):
                if number == MAX_THREADS:
                    x, y, z = struct.unpack("<III", value)
                    code.threads = x * y * z
        elif name.startswith(".nv.shared."):
            code.uses_dynamic_smem = alignment >= DYNAMIC_SMEM_ALIGNMENT
        elif name.startswith(".text."):
            code.code_bytes = len(data)
            code.instructions = sass.count(data)
            instructions = flow.decode(data)
            code.loads_in_flight = loads_in_flight.of(instructions, arch)
            code.loads_before_products = loads_in_flight.before_products(instructions, arch)
            code.main_loop = fields_of(main_loop.of(instructions, arch))
            code.producer_loop = fields_of(main_loop.producer_of(instructions, arch))
            code.store = fields_of(subtile.of(instructions, arch))
            code.gmem_before_wait = dependent_launch.accesses_before_wait(instructions, arch)
    return found


def toolkit(cubin):
    """Returns the version of the compiler, or None."""
    found = TOOLKIT.search(cubin)
    return found[1].decode() if found else None
