"""Summaries of sets of shapes, one line each."""
import dataclasses
import statistics

from . import results

# Release notes list shapes below this share of the peer's speed, with the reason.
SLOW = 0.85


def geometric_mean(values: list):
    """Returns None for an empty list."""
    return statistics.geometric_mean(values) if values else None


def gemms_and_convs(device) -> list:
    """16-bit rows of GEMM, recurrent layers and convolution; they are compared with FP32."""
    return [row for row in device.rows("gemm", "rnn", "conv") if row["dtype"] != "fp32"]


def products(device) -> list:
    """The same, with epilogues and batches, which have a peer but no FP32 time."""
    return gemms_and_convs(device) + [row for row in device.rows("epilogue", "batched") if row["dtype"] != "fp32"]


def recurrent_layers(device) -> list:
    """Complete layers, in 16 bits; their GEMMs are among the products."""
    return [row for row in device.rows("rnn_layer") if row["dtype"] != "fp32"]


def group_of(row: dict) -> str:
    part = {"epilogue": "epilogue", "batched": "form"}.get(row["bench"], "pass")
    name = f"{row['set']} {row[part]}" if part in row else row["set"]
    return results.recurrent_layer(name) if row["bench"] == "rnn_layer" else name


def by_group(rows: list) -> dict:
    groups = {}
    for row in rows:
        groups.setdefault(group_of(row), []).append(row)
    return groups


def values(rows: list, field: str) -> list:
    return [row[field] for row in rows if field in row]


@dataclasses.dataclass
class Summary:
    name: str
    rows: int
    ratio: float  # geometric means; None if not measured
    ratio_best: float
    speedup_fp32: float
    speedup_tf32: float
    percent_of_peak: float  # median
    slow: int  # rows below SLOW of the peer
    kernels: list


def of_rows(name: str, rows: list, device) -> Summary:
    speedups = [fp32[0] / row["median_us"] for row in rows if (fp32 := device.fp32_time(row))]
    percents = values(rows, "percent_of_peak")
    return Summary(
        name=name, rows=len(rows),
        ratio=geometric_mean(values(rows, "ratio_to_peer")),
        ratio_best=geometric_mean(values(rows, "ratio_to_peer_best")),
        speedup_fp32=geometric_mean(speedups),
        speedup_tf32=geometric_mean(values(rows, "speedup_over_tf32")),
        percent_of_peak=statistics.median(percents) if percents else None,
        slow=sum(ratio < SLOW for ratio in values(rows, "ratio_to_peer")),
        kernels=values(rows, "kernel"))


def compared(device) -> list:
    """Rows that are summarized by set."""
    return products(device) + recurrent_layers(device) + device.rows(*results.TRANSFORMERS)


def of_device(device) -> list:
    return [of_rows(name, own, device) for name, own in by_group(compared(device)).items()]


def of_runs(device) -> list:
    """Returns (run, summary) for each set of each run."""
    groups = by_group(compared(device))
    return [(run, of_rows(name, own, device)) for name, rows in groups.items() for run in device.runs
            if (own := device.rows_of(run, rows))]


# ---------------------------------------------------------------------------- the cost model

FAMILIES = ("wgmma", "wmma", "gemv", "simt", "depthwise")


def family_of(kernel: str) -> str:
    """conv_wgmma_128x128x64_s6 -> wgmma"""
    return next((family for family in FAMILIES if family in kernel.split("_")), "other")


@dataclasses.dataclass
class Predictions:
    """Accuracy of the predicted times of a family's selected kernels."""
    family: str
    ratios: list  # predicted / measured
    ranked: list  # rows with --rank

    @property
    def quartiles(self) -> list:
        return statistics.quantiles(self.ratios, n=4, method="inclusive") if len(self.ratios) > 1 else \
            3 * self.ratios

    @property
    def within_a_quarter(self) -> float:
        """Share of the rows."""
        return sum(abs(ratio - 1) <= 0.25 for ratio in self.ratios) / len(self.ratios)

    @property
    def first_was_fastest(self) -> int:
        return sum(row["rank"] == 1 for row in self.ranked)

    @property
    def worst_place(self):
        """Rank that the model gave to the fastest kernel; None if no row was ranked."""
        return max((row["rank"] for row in self.ranked), default=None)

    @property
    def mean_loss(self):
        """Time of the chosen kernel / of the fastest."""
        return geometric_mean([row["chosen_us"] / row["fastest_us"] for row in self.ranked])


def predictions(device) -> list:
    by_family = {}
    for row in gemms_and_convs(device):
        if "predicted_us" in row:
            by_family.setdefault(family_of(row["kernel"]), []).append(row)
    return [Predictions(family, [row["predicted_us"] / row["median_us"] for row in rows],
                        [row for row in rows if "rank" in row])
            for family, rows in sorted(by_family.items())]
