"""Counts of a software device, and the bounds that they imply for a real device."""
import csv
import dataclasses

SECTOR = 32  # bytes
LANES = 32  # of a warp
SCHEDULERS = 4  # of a multiprocessor, each of which issues an instruction a clock


@dataclasses.dataclass(frozen=True)
class Peaks:
    """Documented peaks of a device; rates per clock are those of one multiprocessor.

    Measured rates are not limits, so none is included.  L2 is missing: only the white paper of the
    A100 has its bytes per clock."""
    name: str
    sms: int
    ghz: float  # clock for the tensor core rate
    tensor_flop: int  # FP16 with FP32 accumulation, dense
    fp32_lanes: int  # that add or multiply
    dram_gb_per_s: float
    sources: str

    @property
    def dram_bytes(self) -> float:
        """Bytes per clock of the device."""
        return self.dram_gb_per_s / self.ghz

    @property
    def fp32_instructions(self) -> float:
        """Warp-instructions per clock: with 64 lanes half of the issued ones."""
        return self.fp32_lanes / LANES


# Peaks by architecture, with one wavefront of shared memory (32 banks of 4 bytes) per clock.
# Lanes: CUDA C++ Programming Guide, Arithmetic Instructions, 32-bit floating-point add, multiply,
# multiply-add.
PEAKS = {
    75: Peaks("T4", 40, 1.59, 1024, 64, 320, "data sheet (65 TFLOP/s, 320 GB/s); lanes: programming guide"),
    80: Peaks("A100", 108, 1.41, 2048, 64, 1935, "data sheet (312 TFLOP/s, 1935 GB/s); lanes: programming guide"),
    90: Peaks("H200", 132, 1.83, 4096, 128, 4800, "data sheet (989.5 TFLOP/s, 4.8 TB/s); lanes: programming guide"),
}


@dataclasses.dataclass(frozen=True)
class Totals:
    """Sums over all kernels of a call."""
    launches: int
    issue_slots: int
    fp32_instructions: int
    tensor_flops: int
    sectors: int
    least_sectors: int
    wavefronts: int
    least_wavefronts: int
    barriers: int


def _over_paths(kernel: dict, memory: str, field: str) -> int:
    return sum(path[field] for path in kernel[memory].values())


def totals(row: dict) -> Totals:
    def over_kernels(of_one) -> int:
        return sum(map(of_one, row["counts"]))

    return Totals(
        launches=over_kernels(lambda one: one["launches"]),
        issue_slots=over_kernels(lambda one: one["issue_slots"]),
        fp32_instructions=over_kernels(lambda one: one["classes"].get("fp32", 0)),
        tensor_flops=over_kernels(lambda one: one["tensor"]["flops"]),
        sectors=over_kernels(lambda one: _over_paths(one, "global", "sectors")),
        least_sectors=over_kernels(lambda one: _over_paths(one, "global", "least_sectors")),
        wavefronts=over_kernels(lambda one: _over_paths(one, "shared", "wavefronts")),
        least_wavefronts=over_kernels(lambda one: _over_paths(one, "shared", "least_wavefronts")),
        barriers=over_kernels(lambda one: one["waits"]["barriers"]))


def least_bytes(row: dict) -> float:
    """Minimum bytes: each operand once, or the arrays once per pass of the algorithm."""
    return row["min_bytes"] if "min_bytes" in row else row["bytes_per_parameter"] * row["parameters"]


@dataclasses.dataclass(frozen=True)
class Bound:
    """Clocks for which each unit is busy, if the work is spread evenly over the multiprocessors and
    the device executes the PTX instructions.  The largest is a lower bound, not a time."""
    clocks: dict  # by unit

    @property
    def binds(self) -> str:
        return max(self.clocks, key=self.clocks.get)


def bound(row: dict, peaks: Peaks) -> Bound:
    of = totals(row)
    clocks = {
        "tensor cores": of.tensor_flops / (peaks.sms * peaks.tensor_flop),
        "issue slots": of.issue_slots / (peaks.sms * SCHEDULERS),
        "FP32": of.fp32_instructions / (peaks.sms * peaks.fp32_instructions),
        "shared memory": of.wavefronts / peaks.sms,
        "DRAM": least_bytes(row) / peaks.dram_bytes,
    }
    return Bound(clocks)


def contradictions(row: dict):
    """Rules for counts that a schema cannot express."""
    for kernel in row["counts"]:
        name = kernel["name"]
        if sum(kernel["classes"].values()) != kernel["issue_slots"]:
            yield f"{name}: the sum of its classes is not its issue slots"
        if kernel["tensor"]["instructions"] > kernel["issue_slots"]:
            yield f"{name}: more tensor core instructions than issue slots"
        for memory, unit in (("global", "sectors"), ("shared", "wavefronts")):
            for path, count in kernel[memory].items():
                if count[unit] < count[f"least_{unit}"]:
                    yield f"{name}: fewer {unit} by {path} than the minimum"
    flops = totals(row).tensor_flops
    is_gemm = row["bench"] in ("gemm", "epilogue", "batched", "rnn")
    if is_gemm and 0 < flops < row["flop"]:
        yield f"tensor cores had {flops:g} operations, the shape has {row['flop']:g}"


def kernel_of(row: dict) -> str:
    """Returns the library's name of the kernel or, without one, the launched functions."""
    if row.get("kernel", "not named") != "not named":
        return row["kernel"]
    names = [one["name"].split("(")[0].split("<")[0].split("::")[-1].split()[-1] for one in row["counts"]]
    return ", ".join(dict.fromkeys(names))


COLUMNS = ["arch", "suite", "set", "shape", "dtype", "kernel", "launches", "issue_slots", "tensor_flop", "bytes_moved", "least_bytes",
           "shared_wavefronts", "least_wavefronts", "barriers", "busiest_unit", "its_clocks"]


def write_table(runs: list, name_of, file):
    """Writes a line per row; `name_of`: results.name_of, for rows without a shape."""
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(COLUMNS)
    for run in runs:
        for row in run["rows"]:
            of, busy = totals(row), bound(row, PEAKS[run["arch"]])
            lines.writerow([run["arch"], row["bench"], row.get("set", ""), row.get("shape") or name_of(row), row.get("dtype", ""),
                            kernel_of(row), of.launches, of.issue_slots, of.tensor_flops, of.sectors * SECTOR, f"{least_bytes(row):.0f}",
                            of.wavefronts, of.least_wavefronts, of.barriers, busy.binds, f"{busy.clocks[busy.binds]:.0f}"])
