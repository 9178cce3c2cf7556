"""What a software device counted of a call, and the bounds that follow for a real one.  None of it is a time."""
import dataclasses

SECTOR = 32  # bytes
LANES = 32  # of a warp
SCHEDULERS = 4  # of a multiprocessor, each of which issues an instruction a clock


@dataclasses.dataclass(frozen=True)
class Peaks:
    """Of a device, as its maker documents them; rates per clock are those of one multiprocessor.

    None of them is a measurement, which would be no limit.  So L2 is not here: of these devices only the white paper of
    the A100 says how many bytes it gives a clock."""
    name: str
    sms: int
    ghz: float  # at which the figure for tensor cores holds
    tensor_flop: int  # FP16 with FP32 sums, dense
    fp32_lanes: int  # that add or multiply
    dram_gb_per_s: float
    sources: str

    @property
    def dram_bytes(self) -> float:
        """A clock, of the whole device."""
        return self.dram_gb_per_s / self.ghz

    @property
    def fp32_instructions(self) -> float:
        """Of warps, a clock.  Where there are 64 lanes this is half of what is issued."""
        return self.fp32_lanes / LANES


# By the architecture of the software device.  One wavefront of shared memory (32 banks, 4 bytes each) a clock; the lanes
# are those of the CUDA C++ Programming Guide, Arithmetic Instructions, 32-bit floating-point add, multiply, multiply-add.
PEAKS = {
    75: Peaks("T4", 40, 1.59, 1024, 64, 320, "data sheet (65 TFLOP/s, 320 GB/s); lanes: programming guide"),
    80: Peaks("A100", 108, 1.41, 2048, 64, 1935, "data sheet (312 TFLOP/s, 1935 GB/s); lanes: programming guide"),
    90: Peaks("H200", 132, 1.83, 4096, 128, 4800, "data sheet (989.5 TFLOP/s, 4.8 TB/s); lanes: programming guide"),
}


@dataclasses.dataclass(frozen=True)
class Totals:
    """Of all kernels of a call."""
    launches: int
    issue_slots: int
    fp32_instructions: int
    tensor_instructions: int
    tensor_flops: int
    sectors: int
    least_sectors: int
    wavefronts: int
    least_wavefronts: int
    barriers: int

    @property
    def tensor_share(self) -> float:
        """Of the issue slots."""
        return self.tensor_instructions / self.issue_slots


def _over_paths(kernel: dict, memory: str, field: str) -> int:
    return sum(path[field] for path in kernel[memory].values())


def totals(row: dict) -> Totals:
    def over_kernels(of_one) -> int:
        return sum(map(of_one, row["counts"]))

    return Totals(
        launches=over_kernels(lambda one: one["launches"]),
        issue_slots=over_kernels(lambda one: one["issue_slots"]),
        fp32_instructions=over_kernels(lambda one: one["classes"].get("fp32", 0)),
        tensor_instructions=over_kernels(lambda one: one["tensor"]["instructions"]),
        tensor_flops=over_kernels(lambda one: one["tensor"]["flops"]),
        sectors=over_kernels(lambda one: _over_paths(one, "global", "sectors")),
        least_sectors=over_kernels(lambda one: _over_paths(one, "global", "least_sectors")),
        wavefronts=over_kernels(lambda one: _over_paths(one, "shared", "wavefronts")),
        least_wavefronts=over_kernels(lambda one: _over_paths(one, "shared", "least_wavefronts")),
        barriers=over_kernels(lambda one: one["waits"]["barriers"]))


def least_bytes(row: dict) -> float:
    """That any kernel moves: each operand once, or the arrays once for every pass of the algorithm."""
    return row["min_bytes"] if "min_bytes" in row else row["bytes_per_parameter"] * row["parameters"]


@dataclasses.dataclass(frozen=True)
class Bound:
    """Clocks for which each unit of a device has work, if all multiprocessors have equally much of it and the device's
    own instructions are PTX's.  The largest is a bound by count; it is not a time."""
    clocks: dict  # by unit
    l2_bytes: int  # of all sectors, if L1 answers nothing

    @property
    def binds(self) -> str:
        return max(self.clocks, key=self.clocks.get)

    @property
    def l2_bytes_per_clock(self) -> float:
        """That L2 has to give for the unit that binds to be what binds."""
        return self.l2_bytes / self.clocks[self.binds]

    @property
    def shares(self) -> dict:
        """Of the clocks of the unit that binds, by unit."""
        most = self.clocks[self.binds]
        return {unit: clocks / most for unit, clocks in self.clocks.items()}


def bound(row: dict, peaks: Peaks) -> Bound:
    of = totals(row)
    clocks = {
        "tensor cores": of.tensor_flops / (peaks.sms * peaks.tensor_flop),
        "issue slots": of.issue_slots / (peaks.sms * SCHEDULERS),
        "FP32": of.fp32_instructions / (peaks.sms * peaks.fp32_instructions),
        "shared memory": of.wavefronts / peaks.sms,
        "DRAM": least_bytes(row) / peaks.dram_bytes,
    }
    return Bound(clocks, of.sectors * SECTOR)


def contradictions(row: dict):
    """What a schema cannot say of counts, a clause each."""
    for kernel in row["counts"]:
        name = kernel["name"]
        if sum(kernel["classes"].values()) != kernel["issue_slots"]:
            yield f"{name}: its classes of instructions are not its issue slots"
        if kernel["tensor"]["instructions"] > kernel["issue_slots"]:
            yield f"{name}: more instructions of tensor cores than issue slots"
        for memory, unit in (("global", "sectors"), ("shared", "wavefronts")):
            for path, count in kernel[memory].items():
                if count[unit] < count[f"least_{unit}"]:
                    yield f"{name}: fewer {unit} by {path} than the least"
    flops = totals(row).tensor_flops
    is_gemm = row["bench"] in ("gemm", "epilogue", "batched", "rnn")
    if is_gemm and 0 < flops < row["flop"]:
        yield f"tensor cores had {flops:g} operations, the shape has {row['flop']:g}"


def kernel_of(row: dict) -> str:
    """The library's name of the kernel; where it gives none, those of the functions that were launched."""
    if "kernel" in row:
        return row["kernel"]
    names = [one["name"].split("(")[0].split("<")[0].split("::")[-1].split()[-1] for one in row["counts"]]
    return ", ".join(dict.fromkeys(names))
