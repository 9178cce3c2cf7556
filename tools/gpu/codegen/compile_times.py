"""Compile times of `nvcc --time` (FILE.o.times): seconds by source, phase and architecture.

Phases and files are compiled concurrently, so the sum exceeds the duration of the build.
"""

import collections

HEAD = "source file name"
PHASE, ARCH, VALUE = 1, 4, 6


def gather(folder):
    """Returns {source: {phase: seconds}}, slowest first; `folder`: BUILD/cuda."""
    by_source = {}
    for path in sorted(folder.rglob("*.o.times")):
        source = str(path.relative_to(folder)).removesuffix(".o.times") + ".cu"
        phases = collections.Counter()
        for line in path.read_text().splitlines():
            fields = [field.strip() for field in line.split(",")]
            if fields[0] != HEAD and len(fields) > VALUE:
                what = f"{fields[PHASE]} {fields[ARCH]}" if fields[PHASE] in ("cicc", "ptxas") else "other"
                phases[what] += float(fields[VALUE]) / 1e3
        by_source[source] = dict(phases)
    return dict(sorted(by_source.items(), key=lambda item: -sum(item[1].values())))


def by_phase(times):
    """Returns {phase: seconds} of all sources, longest first."""
    total = sum((collections.Counter(phases) for phases in times.values()), collections.Counter())
    return dict(total.most_common())


def line(times):
    """Returns a summary, empty if there are no times."""
    if not times:
        return ""
    phases = by_phase(times)
    source, slowest = next(iter(times.items()))
    longest = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in list(phases.items())[:3])
    return (f"nvcc: {len(times)} files in {sum(phases.values()):.0f} s, summed over concurrent phases "
            f"({longest}); slowest: {source}, {sum(slowest.values()):.0f} s")
