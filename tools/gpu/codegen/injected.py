"""Builds that no compiler made, for the tests: logs of ptxas, and objects with cubins beside them."""

import dataclasses
import struct

from . import cubin, flow, sass

TOOLKIT = "13.0.88"


@dataclasses.dataclass
class Injected:
    """A kernel of one source file."""

    mangled: str
    arch: str = "80"
    registers: int = 64
    stack: int = 0
    spill: int = 0
    smem: int = 1024
    threads: int = 256
    uses_dynamic_smem: bool = False
    callee_spill: int = 0
    warning: str = ""
    instructions: dict = dataclasses.field(default_factory=dict)  # as sass.count gives them
    loads_in_flight: int = 0  # of a loop that comes behind them
    main_loop: tuple = ()  # the groups of another


def log(kernels):
    lines = []
    for kernel in kernels:
        lines += [
            f"ptxas info    : Compiling entry function '{kernel.mangled}' for 'sm_{kernel.arch}'",
            f"ptxas info    : Function properties for {kernel.mangled}",
            f"    {kernel.stack} bytes stack frame, {kernel.spill} bytes spill stores, "
            f"{kernel.spill} bytes spill loads",
            f"ptxas info    : Used {kernel.registers} registers, used 1 barriers, {kernel.smem} bytes smem",
            "ptxas info    : Function properties for __internal_accurate_pow",
            f"    0 bytes stack frame, {kernel.callee_spill} bytes spill stores, 0 bytes spill loads",
            *([kernel.warning] if kernel.warning else []),
        ]
    return "\n".join(lines) + "\n"


def elf(sections):
    """`sections`: (name, contents, alignment)."""
    names, contents, headers = b"\0", b"", [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, data, alignment in [*sections, (".shstrtab", None, 1)]:
        at = len(names)
        names += name.encode() + b"\0"
        data = names if data is None else data
        place = 64 + len(contents), len(data)  # behind the ELF header
        headers.append(struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, *place, 0, 0, alignment, 0))
        contents += data
    start = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 1, 190, 1, 0, 0, 64 + len(contents), 0, 64, 0, 0, 64, len(headers), len(headers) - 1)
    return start + contents + b"".join(headers)


def cubin_of(kernels, toolkit):
    sections = [(".note.nv.tkinfo", f"Cuda compilation tools, release 13.0, V{toolkit}\0".encode(), 4)]
    for kernel in kernels:
        threads = struct.pack("<BBHIII", cubin.HAS_VALUE_OF_SIZE, cubin.MAX_THREADS, 12, kernel.threads, 1, 1)
        alignment = cubin.DYNAMIC_SMEM_ALIGNMENT if kernel.uses_dynamic_smem else 4
        sections += [(f".nv.info.{kernel.mangled}", b"\2\x4c\1\0" + threads, 4),
                     (f".nv.shared.{kernel.mangled}", b"", alignment),
                     (f".text.{kernel.mangled}", code_of(kernel), 128)]
    return elf(sections)


def code_of(kernel):
    """Its instructions, filled up to 256 bytes."""
    named = {sass.group_of(opcode, width): (opcode, width << 9)
             for opcode in [*sass.OPCODES, *sass.WITH_WIDTH] for width in sass.WIDTHS}
    words = [named[group] for group, number in kernel.instructions.items() for _ in range(number)]
    words += loop_of(kernel.loads_in_flight)
    words += closed([named.get(group, (0, 0)) for group in kernel.main_loop]) if kernel.main_loop else []
    code = b"".join(struct.pack("<QQ", low, high) for low, high in words)
    return code + bytes(max(0, 256 - len(code)))


def loop_of(loads):
    """So many loads, a use of all of them, and the way back."""
    if not loads:
        return []
    load, scoreboard = 0x181 | 6 << 73, 0
    return closed([(load & (1 << 64) - 1, load >> 64 | scoreboard << 46)] * loads + [(0, 1 << (52 + scoreboard))])


def closed(words):
    """A loop of them."""
    way = -(len(words) + 1) * flow.BYTES
    return [*words, (flow.BRA | (way // 4 & (1 << 30) - 1) << 34, 0)]


def fatbin(kernels, toolkit, is_compressed):
    entries = b""
    for arch in sorted({kernel.arch for kernel in kernels}):
        image = cubin_of([kernel for kernel in kernels if kernel.arch == arch], toolkit)
        image = b"\x28\xb5\x2f\xfd" + image if is_compressed else image
        flags = cubin.ARCH_SPECIFIC if arch.endswith("a") else 0
        entries += struct.pack("<HHIQIIIIQI", cubin.CUBIN, 0x101, 64, len(image), 0, 0, 0x10008,
                               int(arch.rstrip("a")), 0, flags) + bytes(20) + image
    return struct.pack("<IHHQ", cubin.FATBIN_MAGIC, 1, 16, len(entries)) + entries


def build(folder, kernels, toolkit=TOOLKIT, is_compressed=False):
    """Writes FOLDER/cuda/kernels/injected.o and its log."""
    path = folder / "cuda/kernels/injected.o"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(elf([(".nv_fatbin", fatbin(kernels, toolkit, is_compressed), 8)]))
    path.with_name("injected.o.ptxas").write_text(log(kernels))
