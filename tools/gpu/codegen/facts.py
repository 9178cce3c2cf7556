"""Facts about the kernels of a build, gathered from ptxas logs and cubins."""

import collections
import dataclasses

from . import cubin, dynamic_smem, names, ptxas
from .occupancy import occupancy


@dataclasses.dataclass
class Kernel:
    """A kernel on one architecture; None: unknown."""

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
    instructions: collections.Counter  # static counts
    loads_in_flight: int  # 128-bit loads of a thread in a loop
    loads_before_products: int  # 128-bit loads after which a product of a tensor core can follow
    main_loop: dict  # of a tensor-core kernel: fields of main_loop.MainLoop
    producer_loop: dict  # of a Hopper kernel: fields of main_loop.ProducerLoop
    store: dict  # of a Hopper kernel: fields of subtile.Store
    gmem_before_wait: int  # accesses of a kernel with PDL
    is_empty: bool  # no code: not supported by the architecture

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
    warnings: list  # of ptxas, with file names
    toolkits: set


def cubins_of(object_file):
    """Returns {architecture without suffix: cubin} from the files of nvcc; those in objects are
    compressed."""
    found = [path.read_bytes() for path in object_file.with_suffix(".ptx").glob("*.cubin")]
    return {str(cubin.architecture(data)): data for data in found}


def amount_of_dynamic_smem(code, known):
    """Returns the dynamic shared memory in bytes, or None if it is unknown."""
    if code is None:
        return known
    return known if code.uses_dynamic_smem else 0


def gather(folder):
    """Gathers the facts of a build; `folder`: BUILD/cuda."""
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
            loads_before_products=code and code.loads_before_products,
            main_loop=code and code.main_loop and dataclasses.asdict(code.main_loop),
            producer_loop=code and code.producer_loop and dataclasses.asdict(code.producer_loop),
            store=code and code.store and dataclasses.asdict(code.store),
            gmem_before_wait=code and code.gmem_before_wait,
            is_empty=bool(known and code and not code.uses_dynamic_smem),
            **dataclasses.asdict(entry)))
    kernels.sort(key=lambda kernel: (int(kernel.arch.rstrip("af")), kernel.name))
    check_names(kernels)
    return Facts(kernels, warnings, toolkits - {None})


def check_names(kernels):
    """One name, one kernel: the baseline identifies kernels by name."""
    seen = {}
    for kernel in kernels:
        other = seen.setdefault(kernel.key, kernel)
        if other is not kernel:
            raise ValueError(f"two kernels are named {kernel.key}: in {other.source} and {kernel.source} "
                             "(or is one left over from an older build?)")
