"""Facts about the kernels of a build, gathered from ptxas logs and cubins."""

import dataclasses

from . import cubin, dynamic_smem, names, ptxas
from .occupancy import occupancy


@dataclasses.dataclass
class Kernel(cubin.Code, ptxas.Entry):
    """A kernel on one architecture; None: unknown."""

    name: str = ""
    source: str = ""
    dynamic_smem: int = None
    is_empty: bool = False  # no code: not supported by the architecture

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
        kernels.append(Kernel(**vars(entry), **vars(code or cubin.Code()), name=names.readable(function, enums), source=source,
                              dynamic_smem=known if not code or code.uses_dynamic_smem else 0,
                              is_empty=bool(known and code and not code.uses_dynamic_smem)))
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
