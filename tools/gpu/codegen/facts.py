"""All that a build knows of its kernels, gathered from the logs of ptxas and the cubins beside them."""

import collections
import dataclasses

from . import cubin, dynamic_smem, names, ptxas
from .occupancy import occupancy


@dataclasses.dataclass
class Kernel:
    """A kernel on one architecture; what is None could not be found out."""

    name: str
    arch: str
    source: str
    mangled: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    static_smem: int
    dynamic_smem: int
    threads: int
    code_bytes: int
    instructions: collections.Counter  # in the code, each counted once
    loads_in_flight: int  # of 128 bits, of a thread in a loop
    main_loop: dict  # of a kernel for tensor cores: the fields of main_loop.MainLoop
    gmem_before_wait: int  # accesses, of a kernel that starts early
    is_empty: bool  # compiled to nothing, as the architecture cannot run it

    @property
    def key(self):
        return f"sm_{self.arch} {self.name}"

    @property
    def spills(self):
        return self.spill_stores + self.spill_loads

    def occupancy(self):
        if self.is_empty or self.threads is None or self.dynamic_smem is None:
            return None
        smem_bytes = self.static_smem + self.dynamic_smem
        return occupancy(self.arch, self.registers, smem_bytes, self.threads)


@dataclasses.dataclass
class Facts:
    kernels: list
    warnings: list  # of ptxas, each with the file it is of
    toolkits: set


def cubins_of(object_file):
    """{architecture, without a letter: cubin}, which nvcc left beside the object; those in it are compressed."""
    found = [path.read_bytes() for path in object_file.with_suffix(".ptx").glob("*.cubin")]
    return {str(cubin.architecture(data)): data for data in found}


def amount_of_dynamic_smem(code, known):
    """None: it has some, and nobody knows how much."""
    if code is None:
        return known
    return known if code.uses_dynamic_smem else 0


def gather(folder):
    """`folder`: BUILD/cuda."""
    entries, warnings, toolkits = [], [], set()
    for log in sorted(folder.rglob("*.ptxas")):
        object_file = log.with_suffix("")
        source = str(object_file.relative_to(folder).with_suffix(".cu"))
        found, warned = ptxas.parse(log.read_text())
        warnings += [f"{source}: {line}" for line in warned]
        cubins = cubins_of(object_file) if found else {}
        toolkits |= {cubin.toolkit(image) for image in cubins.values()}
        codes = {arch: cubin.kernels(image) for arch, image in cubins.items()}
        entries += [(source, entry, codes.get(entry.arch.rstrip("af"), {}).get(entry.mangled)) for entry in found]

    enums = names.enumerators()
    functions = [names.without_arguments(signature)
                 for signature in names.demangle([entry.mangled for _, entry, _ in entries])]
    amounts = dynamic_smem.of(sorted({(function, entry.arch) for function, (_, entry, _) in zip(functions, entries)}))
    kernels = []
    for function, (source, entry, code) in zip(functions, entries):
        known = amounts.get((function, entry.arch))
        kernels.append(Kernel(
            name=names.readable(function, enums),
            source=source,
            dynamic_smem=amount_of_dynamic_smem(code, known),
            threads=code and code.threads,
            code_bytes=code and code.code_bytes,
            instructions=code and code.instructions,
            loads_in_flight=code and code.loads_in_flight,
            main_loop=code and code.main_loop and dataclasses.asdict(code.main_loop),
            gmem_before_wait=code and code.gmem_before_wait,
            is_empty=bool(known and code and not code.uses_dynamic_smem),
            **dataclasses.asdict(entry)))
    kernels.sort(key=lambda kernel: (int(kernel.arch.rstrip("af")), kernel.name))
    check_names(kernels)
    return Facts(kernels, warnings, toolkits - {None})


def check_names(kernels):
    """One name, one kernel: the baseline knows them by name."""
    seen = {}
    for kernel in kernels:
        other = seen.setdefault(kernel.key, kernel)
        if other is not kernel:
            raise ValueError(f"two kernels are named {kernel.key}: in {other.source} and {kernel.source} "
                             "(or is one left over from an older build?)")


def library_bytes(library):
    """{"sm_75": bytes, "ptx_80": ..., "host": ...} of a shared library."""
    data = library.read_bytes()
    sizes = {}
    for image in cubin.images(data):
        name = ("sm_" if image.kind == cubin.CUBIN else "ptx_") + image.arch
        sizes[name] = sizes.get(name, 0) + image.size
    sizes["host"] = len(data) - sum(sizes.values())
    return sizes
