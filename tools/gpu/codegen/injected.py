"""Synthetic builds for the tests: ptxas logs and cubins."""

import dataclasses
import shutil
import struct

from . import cubin, flow, sass

TOOLKIT = "13.0.88"
MEMBAR = next(opcode for opcode, group in sass.OPCODES.items() if group == "MEMBAR")


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
    instructions: dict = dataclasses.field(default_factory=dict)  # in the format of sass.count
    loads_in_flight: int = 0  # in a loop after the instructions
    main_loop: tuple = ()  # groups of a second loop
    other_loop: tuple = ()  # groups of a third loop
    vote_branches: int = 0
    device_fences: int = 0

    def changed(self, **values):
        return [dataclasses.replace(self, **values)]


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


def elf(sections, flags):
    """`sections`: (name, contents, alignment)."""
    names, contents, headers = b"\0", b"", [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, data, alignment in [*sections, (".shstrtab", None, 1)]:
        at = len(names)
        names += name.encode() + b"\0"
        data = names if data is None else data
        place = 64 + len(contents), len(data)  # after the ELF header
        headers.append(struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, *place, 0, 0, alignment, 0))
        contents += data
    start = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 1, 190, 1, 0, 0, 64 + len(contents), flags, 64, 0, 0, 64, len(headers),
        len(headers) - 1)
    return start + contents + b"".join(headers)


def cubin_of(kernels, arch, toolkit):
    sections = [(".note.nv.tkinfo", f"Cuda compilation tools, release 13.0, V{toolkit}\0".encode(), 4)]
    for kernel in kernels:
        threads = struct.pack("<BBHIII", cubin.HAS_VALUE_OF_SIZE, cubin.MAX_THREADS, 12, kernel.threads, 1, 1)
        alignment = cubin.DYNAMIC_SMEM_ALIGNMENT if kernel.uses_dynamic_smem else 4
        sections += [(f".nv.info.{kernel.mangled}", b"\2\x4c\1\0" + threads, 4),
                     (f".nv.shared.{kernel.mangled}", b"", alignment),
                     (f".text.{kernel.mangled}", code_of(kernel), 128)]
    return elf(sections, int(arch.rstrip("a")))


def code_of(kernel):
    """Returns the instructions of a kernel, padded to 256 bytes."""
    named = {sass.group_of(opcode, width): (opcode, width << 9)
             for opcode in [*sass.OPCODES, *sass.WITH_WIDTH] for width in sass.WIDTHS}
    words = [named[group] for group, number in kernel.instructions.items() for _ in range(number)]
    arch = int(kernel.arch.rstrip("a"))
    words += loop_of(kernel.loads_in_flight, arch)
    words += [(flow.BRA, 1 << flow.VOTE)] * kernel.vote_branches
    words += [(MEMBAR, 1 << flow.DEVICE_SCOPE)] * kernel.device_fences
    for loop in filter(None, (kernel.main_loop, kernel.other_loop)):
        words += closed([named.get(group, (0, 0)) for group in loop], arch)
    code = b"".join(struct.pack("<QQ", low, high) for low, high in words)
    return code + bytes(max(0, 256 - len(code)))


def loop_of(loads, arch):
    """Returns a loop of `loads` loads and an instruction that uses them."""
    if not loads:
        return []
    load, scoreboard = 0x181 | 6 << 73, 0
    return closed([(load & (1 << 64) - 1, load >> 64 | scoreboard << 46)] * loads + [(0, 1 << (52 + scoreboard))], arch)


def closed(words, arch):
    """Appends a backward branch in the encoding of flow.Instruction.distance."""
    way = -(len(words) + 1) * flow.BYTES // 4
    lowest = 0
    if arch >= flow.FAR_BRANCHES_FROM:
        lowest, way = way & 0xFF, way >> 8
    return [*words, (flow.BRA | lowest << 16 | (way & (1 << 30) - 1) << 34, way >> 30 & 0x3FFFF)]


def build(folder, kernels, toolkit=TOOLKIT, has_cubins=True):
    """Writes the log of FOLDER/cuda/kernels/injected.o and its cubins."""
    path = folder / "cuda/kernels/injected.o"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name("injected.o.ptxas").write_text(log(kernels))
    kept = path.with_suffix(".ptx")
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    for arch in {kernel.arch for kernel in kernels} if has_cubins else ():
        image = cubin_of([kernel for kernel in kernels if kernel.arch == arch], arch, toolkit)
        (kept / f"injected.sm_{arch}.cubin").write_bytes(image)
