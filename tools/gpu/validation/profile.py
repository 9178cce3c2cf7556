"""Command lines of Nsight Compute for one GEMM or convolution, and the metrics to extract."""
import csv
import io
import json
import pathlib
import re

# Demangled names of mpcore kernels contain mp::cuda.  Kernels of reference libraries and the
# kernels that generate benchmark data do not match.
OUR_KERNELS = r"regex:.*mp::cuda::.*(gemm_|conv_|gemv|split_k).*"
MOST_LAUNCHES = 4

# Extracted metrics: (label, names in Nsight Compute, which depend on version and architecture).
# A name that ends with a dot matches all metrics with this prefix that are a percentage of the
# peak.
FIGURES = (
    ("duration", ("gpu__time_duration.sum",)),
    ("SM utilization", ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)),
    ("tensor pipe", ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                     "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                     "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
                     "sm__pipe_tensor.", "sm__inst_executed_pipe_tensor.")),
    ("DRAM throughput", ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                         "dram__throughput.avg.pct_of_peak_sustained_elapsed")),
    ("L2 throughput", ("lts__throughput.avg.pct_of_peak_sustained_elapsed",)),
    ("L2 hit rate", ("lts__t_sector_hit_rate.pct",)),
    ("occupancy", ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    ("registers per thread", ("launch__registers_per_thread",)),
    ("smem bank conflicts", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
                             "l1tex__data_bank_conflicts_pipe_lsu.sum")),
)
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
NO_PERMISSION = "ERR_NVGPUCTRPERM"


def types_of_call(row: dict) -> list:
    """Returns the mpbench flags that reproduce the types of a row.

    mpbench accumulates (beta) only if it selects the output type itself.
    """
    return ["--dtype", row["dtype"], *([] if row["beta"] else ["--out-dtype", row["out_dtype"]])]


def bench_command(mpbench: str, row: dict, name: str) -> list:
    return [mpbench, row["bench"], "--device", "cuda", "--set", row["set"], *types_of_call(row), "--once", name]


def ncu_command(report: pathlib.Path, command) -> list:
    # Clocks are not locked: the machine may be shared, and mpbench does not lock them either.
    return ["ncu", "--set", "full", "--clock-control", "none", "--kernel-name-base", "demangled", "--kernel-name", OUR_KERNELS,
            "--launch-count", str(MOST_LAUNCHES), "--force-overwrite", "--export", str(report), *command]


def import_command(report: pathlib.Path) -> list:
    return ["ncu", "--import", str(report), "--page", "raw", "--csv", "--print-kernel-base", "demangled"]


def kernels_of(text: str) -> list:
    """Parses the output of ncu --page raw --csv into one {metric: (value, unit)} per launch."""
    lines = [line for line in text.splitlines() if line.startswith('"')]  # between messages
    table = list(csv.reader(io.StringIO("\n".join(lines))))
    if len(table) < 3:
        return []
    names, units = table[:2]
    return [dict(zip(names, zip(launch, units))) for launch in table[2:]]


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _values_of(kernel: dict, names):
    """Returns [(metric, value, unit)] of the first name that is present."""
    for name in names:
        found = ([name] if name in kernel else []) if not name.endswith(".") else sorted(
            metric for metric in kernel if metric.startswith(name[:-1]) and "pct_of_peak" in metric)
        if found:
            return [(metric, *kernel[metric]) for metric in found]
    return []


def _top_stalls(kernel: dict, count: int):
    stalls = []
    for metric, (value, _unit) in kernel.items():
        found = STALL.fullmatch(metric)
        if found and value:
            stalls.append((_number(value), found[1]))
    return sorted(stalls, reverse=True)[:count]


def kernel_lines(kernel: dict):
    yield kernel.get("Kernel Name", ("unnamed kernel",))[0]
    for label, names in FIGURES:
        values = _values_of(kernel, names)
        if not values:
            yield f"  {label:<22} not reported"
        for metric, value, unit in values:
            yield f"  {label:<22} {value + ' ' + unit:<18} {metric}"
    stalls = _top_stalls(kernel, 3)
    shown = ", ".join(f"{reason} {ratio:g}" for ratio, reason in stalls)
    yield f"  {'top stalls':<22} {shown or 'not reported'}"


def row_lines(row: dict, name: str, place: int, field: str):
    yield f"{place}. {name}, {row['dtype']}>{row['out_dtype']}" + ("+" if row["beta"] else "")
    yield f"  {field} {row[field]:.4g}, median {row['median_us']:.4g} us, {row['kernel']}"


def read_runs(paths) -> list:
    """Returns the runs that were measured on a GPU, oldest first; skips unreadable files."""
    runs = []
    for path in paths:
        try:
            run = json.loads(path.read_text(encoding="utf-8"))
            if run["target"] == "cuda" and "counted" not in run:
                runs.append((run["date"], path.name, run))
        except (OSError, ValueError, KeyError):
            continue
    return [run for _date, _name, run in sorted(runs, key=lambda entry: entry[:2])]
