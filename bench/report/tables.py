"""The tables of one device, as HTML."""
import statistics

from . import results, summary
from .markup import GAP, figure, folded, percent, table, time

MOST_WORST = 10
PEAKS = ("wgmma", "mma.sync", "read")
# Limit of a graph's time relative to the same calls without a graph.
MOST_OF_HAND = 1.03


def _two(row: dict, field: str) -> str:
    return figure(row.get(field))


def _mebibytes(count) -> str:
    return GAP if count is None else f"{count / 2**20:.4g}"


def _yes(value) -> str:
    return GAP if value is None else "yes" if value else "no"


def summaries(device) -> str:
    rows = [[one.name, one.rows, figure(one.ratio), figure(one.ratio_best), one.slow or "",
             percent(one.percent_of_peak, 0), figure(one.speedup_fp32), figure(one.speedup_tf32)]
            for one in summary.of_device(device)]
    return "<h3>Sets</h3>\n" + table(
        ["set", "rows", "ratio", "best", f"< {summary.SLOW}", "% peak", "x FP32", "x TF32"], rows) + (
        '<p class="faint">Ratio: time of the reference library / mpcore; best: of its best of 8 choices / mpcore; '
        f"< {summary.SLOW}: number of rows with a lower ratio; % peak: of the rate of large squares, median; x FP32, "
        "x TF32: FP32 or TF32 time / mpcore. Ratios and factors are geometric means.</p>") if rows else ""


def percent_of(device, row: dict, peak: str):
    """Percent of "copy", "read" (bytes), "mma.sync" or "wgmma" (operations); None if unknown."""
    known = device.peaks.get(peak)
    rate = row.get("gb_per_s" if peak in ("copy", "read") else "tflops")
    return 100 * rate / known["rate"] if known and rate else None


def peaks(device) -> str:
    """Peaks of the device, and the nearest row to each."""
    measured = summary.products(device) + device.rows("step")
    rows = []
    for name, peak in device.peaks.items():
        shares = [(percent_of(device, row, name), row) for row in measured if percent_of(device, row, name)]
        best, row = max(shares, key=lambda share: share[0], default=(None, None))
        rows.append([f"{name}, {peak['unit']}", f"{peak['rate']:.1f}", percent(best, 0),
                     results.name_of(row) if row else GAP, peak["how"]])
    return "<h3>Peaks of the device</h3>\n" + table(
        ["peak", "rate", "best row", "its shape", "measured by"], rows) if rows else ""


def worst(device) -> str:
    field, rows = results.worst(device.rows("gemm", "epilogue", "conv"), MOST_WORST)
    if not rows:
        return ""
    heading, label, shown = {
        "ratio_to_peer": ("ratio", "ratio to the reference library", figure),
        "percent_of_peak": ("% peak", "percent of the peak (no reference library)", percent)}[field]
    return f"<h3>The {len(rows)} slowest rows, by {label}</h3>\n" + table(
        ["shape", heading, "best of 8", "µs", "kernel", "types"],
        [[results.name_of(row), shown(row[field]), _two(row, "ratio_to_peer_best"), time(row["median_us"]),
          row["kernel"], results.types_of(row)] for row in rows])


def sustained(device) -> str:
    """Rows that were also timed alone, with their times alternating with others."""
    def load(timing: dict) -> list:
        return [GAP if timing.get(field) is None else f"{timing[field]:g}" for field in ("sm_mhz", "power_w")]

    rows = [[results.name_of(row), time(row["median_us"]), _two(row, "ratio_to_peer"),
             time(row["sustained"]["median_us"]), *load(row["sustained"]),
             time(row.get("peer_sustained", {}).get("median_us")), *load(row.get("peer_sustained", {})),
             _two(row, "ratio_to_peer_sustained")]
            for row in summary.products(device) if "sustained" in row]
    return "<h3>Sustained</h3>\n" + table(
        ["shape", "µs, alternating", "ratio", "µs, sustained", "SM MHz", "W", "library µs, sustained", "its SM MHz", "its W",
         "ratio, sustained"], rows) if rows else ""


def all_rows(device) -> str:
    found = [[results.name_of(row), row["comment"], results.types_of(row), row["kernel"],
              time(row["median_us"]), time(row["q1_us"]), time(row["q3_us"]),
              f"{row['tflops']:.4g}", f"{row['gb_per_s']:.4g}", percent(row.get("percent_of_peak")),
              *(percent(percent_of(device, row, name)) for name in PEAKS),
              row.get("peer", GAP), time(row.get("peer_median_us")), _two(row, "ratio_to_peer"),
              row.get("peer_best_choice", GAP), time(row.get("peer_best_median_us")),
              _two(row, "ratio_to_peer_best"), *map(_mebibytes, (
                  row["workspace_bytes"], row.get("peer_workspace_bytes"), row.get("peer_workspace_limit_bytes")))]
             for row in device.rows("gemm", "epilogue", "batched", "rnn", "conv")]
    layers = [[results.name_of(row), row["comment"], row["dtype"], time(row["median_us"]), time(row["q1_us"]),
               time(row["q3_us"]), f"{row['gb_per_s']:.4g}", percent(row["percent_of_copy"]),
               row.get("peer", GAP), time(row.get("peer_median_us")), _two(row, "ratio_to_peer")]
              for row in device.rows("layers")]
    transformers = [[results.name_of(row), row["comment"], row["dtype"], time(row["median_us"]), time(row["q1_us"]),
                     time(row["q3_us"]), f"{row['tflops']:.4g}" if "tflops" in row else GAP, f"{row['gb_per_s']:.4g}",
                     percent(row.get("percent_of_copy")), _two(row, "time_over_products"), peer.get("peer", GAP),
                     time(peer.get("peer_median_us")), _two(peer, "ratio_to_peer"), _yes(peer.get("peer_deterministic")),
                     *map(_mebibytes, (row["workspace_bytes"], peer.get("peer_workspace_bytes")))]
                    for row in device.rows(*results.TRANSFORMERS) for peer in (row, *row.get("other_peers", ()))]
    steps = [[results.name_of(row), str(row["tensors"]), time(row["median_us"]), time(row["q1_us"]),
              time(row["q3_us"]), f"{row['gb_per_s']:.4g}", percent(row["percent_of_copy"]),
              peer.get("peer", GAP), time(peer.get("peer_median_us")), _two(peer, "ratio_to_peer")]
             for row in device.rows("step") for peer in (row, *row.get("other_peers", ()))]
    peer = ["peer", "peer µs", "ratio"]
    return folded(f"All {len(found)} GEMMs and convolutions", table(
        ["shape", "", "types", "kernel", "µs", "q1", "q3", "TFLOP/s", "GB/s", "% peak", *(f"% {name}" for name in PEAKS), *peer,
         "best of 8 is choice", "its µs", "ratio to it", "workspace MiB", "library's MiB", "its limit"], found)) + \
        folded(f"All {len(layers)} layers", table(
            ["layer", "", "type", "µs", "q1", "q3", "GB/s", "% copy", *peer], layers)) + \
        folded(f"All {len(transformers)} layers of transformers", table(
            ["layer", "", "type", "µs", "q1", "q3", "TFLOP/s", "GB/s", "% copy", "x its GEMM", *peer, "deterministic",
             "workspace MiB", "peer's"], transformers)) + \
        folded(f"All {len(steps)} steps", table(
            ["operation", "tensors", "µs", "q1", "q3", "GB/s", "% copy", *peer], steps))


def mixed(device, theirs: list) -> str:
    ours = {results.name_of(row): row for row in summary.gemms_and_convs(device) + summary.recurrent_layers(device)}
    rows = []
    for row in theirs:
        own = ours.get(row.name)
        fp32 = device.fp32_time(own) if own else None
        rows.append([row.name,
                     figure(row.speedup), figure(fp32[0] / own["median_us"] if fp32 else None),
                     figure(own.get("speedup_over_tf32") if own else None),
                     time(row.fp32_us), time(row.mixed_us),
                     time(fp32[0] if fp32 else None), time(own.get("tf32_median_us") if own else None),
                     time(own["median_us"] if own else None), fp32[1] if fp32 else GAP])
    measured = sum(row.name in ours for row in theirs)
    return folded(f"All {len(theirs)} rows, {measured} of them measured on this device", table(
        ["shape", "V100: FP32 / mixed", "this device: FP32 / mixed", "TF32 / mixed", "V100 FP32 µs", "V100 mixed µs",
         "FP32 µs", "TF32 µs", "mpcore mixed µs", "FP32 is"], rows))


def recurrent(device) -> str:
    """Complete layers with their GEMMs, cuDNN and torch."""
    rows = []
    for row in device.rows("rnn_layer"):
        torch = row.get("with_w_ih", {})
        rows.append([results.name_of(row), results.types_of(row), time(row["median_us"]), time(row["q1_us"]), time(row["q3_us"]),
                     time(row["products_median_us"]), figure(row["time_over_products"]), f"{row['tflops']:.4g}",
                     percent(row.get("percent_of_peak")), row.get("peer", GAP), time(row.get("peer_median_us")),
                     _two(row, "ratio_to_peer"), torch.get("torch", GAP), torch.get("what", GAP),
                     time(torch.get("mpcore_median_us")), time(torch.get("torch_median_us")), _two(torch, "ratio_to_torch"),
                     *map(_mebibytes, (row["reserve_bytes"], row.get("peer_reserve_bytes"), row["workspace_bytes"],
                                       row.get("peer_workspace_bytes")))])
    return folded(f"All {len(rows)} recurrent layers", table(
        ["layer", "types", "µs", "q1", "q3", "its GEMMs µs", "layer / GEMMs", "TFLOP/s", "% peak", "peer", "peer µs", "ratio",
         "torch", "both compute", "mpcore µs", "torch µs", "ratio", "reserve MiB", "peer's", "workspace MiB", "peer's"],
        rows)) if rows else ""


def change(found: list) -> str:
    return folded(f"All {len(found)} rows in both", table(
        ["row", "before µs", "now µs", "now / before", "quartiles", "kernel"],
        [[one.name, time(one.old["median_us"]), time(one.new["median_us"]), figure(one.times_as_slow),
          "overlap" if one.within_noise else "apart", one.kernels] for one in found])) if found else ""


def prediction(device) -> str:
    families = [[one.family, len(one.ratios), *map(figure, one.quartiles), percent(100 * one.within_a_quarter, 0),
                 f"{one.first_was_fastest}/{len(one.ranked)}" if one.ranked else GAP, one.worst_place or GAP,
                 figure(one.mean_loss)]
                for one in summary.predictions(device)]
    rows = [[results.name_of(row), row["kernel"], time(row["predicted_us"]), time(row["median_us"]),
             figure(row["predicted_us"] / row["median_us"]),
             f"{row['rank']} of {row['rank_of']}" if "rank" in row else "not ranked",
             row.get("fastest_kernel", GAP),
             figure(row["chosen_us"] / row["fastest_us"] if "rank" in row else None)]
            for row in summary.gemms_and_convs(device) if "predicted_us" in row]
    if not rows:
        return ""
    return table(["kernels", "rows", "quarter", "half", "three quarters", "within 25 %", "fastest first", "worst rank", "loss"],
                 families) + (
        '<p class="faint">Predicted / measured is below the first three figures in a quarter, half, three quarters of '
        "the rows. Fastest first: rows with --rank whose selected kernel was the fastest; worst rank: the largest that "
        "the model gave to the fastest kernel; loss: time of the selected kernel / of the fastest, geometric mean.</p>") + folded(
        "Predicted and measured, and the rank of the fastest kernel", table(
            ["shape", "selected kernel", "predicted µs", "measured µs", "predicted / measured",
             "rank of the fastest", "fastest kernel", "selected / fastest"], rows))


def calls(device) -> str:
    rows = [[row["call"], row["problem"], figure(row["median_us"], 3), figure(row["q1_us"], 3),
             figure(row["q3_us"], 3), row.get("peer", GAP), figure(row.get("peer_median_us"), 3)]
            for row in device.rows("calls")]
    return folded(f"All {len(rows)} calls", table(
        ["call", "problem", "µs", "q1", "q3", "peer", "peer µs"], rows)) if rows else ""


def startup(device) -> str:
    rows = [[row["phase"], *(figure(1e-3 * row[field], 3) for field in ("median_us", "q1_us", "q3_us"))]
            for row in device.rows("startup")]
    return table(["phase", "ms", "q1", "q3"], rows) if rows else ""


def autocast(device) -> str:
    rows = [[row["graph"], row["nodes"], figure(row["ns_per_node"], 1), figure(row["bytes_per_node"], 1)]
            for row in sorted(device.rows("autocast"), key=lambda row: (row["graph"], row["nodes"]))]
    return table(["graph", "nodes", "ns per node", "bytes per node"], rows) if rows else ""


def graph(device) -> str:
    """Steps of graphs compared with the same calls by hand."""
    def times(beside: dict) -> list:
        fields = ("time_over_hand", "time_over_hand_q1", "time_over_hand_q3")
        return [time(beside.get("median_us")), time(beside.get("by_hand_median_us")),
                *(figure(beside.get(field), 3) for field in fields)]

    measured = device.rows("graph")
    rows = [[row["network"], row["dtype"], row["launches"], *times(row), *times(row.get("host", {}))]
            for row in measured]
    if not rows:
        return ""
    # The host waits for the launch only; for synchronous calls, this is the complete time.
    within = sum(row.get("host", row)["time_over_hand"] <= MOST_OF_HAND for row in measured)
    return "<h3>Graphs compared with calls by hand</h3>\n" + table(
        ["network", "type", "launches", "graph µs", "by hand µs", "ratio", "q1", "q3",
         "host: graph µs", "by hand µs", "ratio", "q1", "q3"], rows) + (
        f'<p class="faint">In {within} of {len(rows)} rows, a step of a graph costs the host at most '
        f"{100 * (MOST_OF_HAND - 1):.0f} % more than the same calls by hand. Ratio: time of the graph / by hand, median "
        "of alternating rounds. Host: time until the calls return; synchronous calls have none.</p>")


def allreduce(device) -> str:
    rows = [[row["shape"], row["dtype"], row["ranks"], row["transport"], time(row["median_us"]), time(row["q1_us"]),
             time(row["q3_us"]), f"{row['gb_per_s']:.4g}", f"{row['bus_gb_per_s']:.4g}"]
            for row in device.rows("allreduce")]
    return table(["gradients", "type", "ranks", "over", "µs", "q1", "q3", "GB/s", "bus GB/s"], rows) if rows else ""


def clocks(device) -> str:
    """Readings of NVML while the rows of each suite were timed."""
    suites = {}
    for row in device.rows(*{row["bench"] for row, _ in device.latest.values()}):
        if "gpu_readings" in row:
            suites.setdefault(row["bench"], []).append(row)

    def median(rows: list, field: str) -> str:
        known = [row[field] for row in rows if row[field] is not None]
        return f"{statistics.median(known):g}" if known else GAP

    cells = [[bench, len(rows), median(rows, "sm_mhz"), median(rows, "least_sm_mhz"), median(rows, "power_w"),
              median(rows, "temperature_c"), sum(row["power_capped"] > 0 for row in rows),
              sum(row["heat_capped"] > 0 for row in rows)] for bench, rows in suites.items()]
    return folded("Clocks, power and temperature: medians over rows", table(
        ["suite", "rows", "SM MHz", "min SM MHz", "W", "°C", "rows limited by power", "by heat"],
        cells)) if cells else ""
