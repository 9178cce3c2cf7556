"""The tables of one device, as HTML.  Columns are those of markup.table."""
import statistics

from . import compare, results, summary
from .markup import folded, table

MOST_WORST = 10
# Limit of a graph's time relative to the same calls without a graph.
MOST_OF_HAND = 1.03

NAME, TYPES, COMMENT = ("row", results.name_of, ""), ("types", results.types_of, ""), ("", "comment", "")
TIMES = [("µs", "median_us", ".1f"), ("q1", "q1_us", ".1f"), ("q3", "q3_us", ".1f")]
RATES = [("TFLOP/s", "tflops", ".4g"), ("GB/s", "gb_per_s", ".4g")]
PEER = [("peer", "peer", ""), ("peer µs", "peer_median_us", ".1f"), ("ratio", "ratio_to_peer", ".2f")]
COPY = ("% copy", "percent_of_copy", ".0f%")


def _within(outer: str, field: str):
    """Returns a function that reads a field of a part of the row, None without that part."""
    return lambda row: row.get(outer, {}).get(field)


def _mebibytes(heading: str, field: str) -> tuple:
    return heading, lambda row: None if row.get(field) is None else row[field] / 2**20, ".4g"


def _words(heading: str, field: str) -> tuple:
    return heading, lambda row: {True: "yes", False: "no"}.get(row.get(field)), ""


WORKSPACES = [_mebibytes("workspace MiB", "workspace_bytes"), _mebibytes("peer's", "peer_workspace_bytes")]


def _per_peer(rows: list) -> list:
    """Repeats a row for each of its peers."""
    own = ("peer", "ratio_to_peer")
    return [one for row in rows for one in (row, *(
        {field: value for field, value in row.items() if not field.startswith(own)} | other
        for other in row.get("other_peers", ())))]


def _section(title: str, columns: list, rows: list, note: str = "") -> str:
    return f"<h3>{title}</h3>\n{table(columns, rows)}" + (f'<p class="faint">{note}</p>' if note else "") if rows else ""


def _all(title: str, columns: list, rows: list) -> str:
    return folded(f"All {len(rows)} {title}", table(columns, rows)) if rows else ""


def suites(device) -> str:
    """Numbers of rows by suite: a suite, a peer or a baseline that is missing has 0 rows."""
    def count(field: str):
        return lambda bench: sum(field in row for row in device.rows(bench))

    return _section("Rows", [
        ("suite", str, ""), ("rows", lambda bench: len(device.rows(bench)), ""), ("with a peer", count("peer"), ""),
        ("best of 8", count("ratio_to_peer_best"), ""), ("FP32", count("fp32"), ""), ("TF32", count("tf32"), ""),
        ("ranked", count("rank"), ""), ("clocks", count("gpu_readings"), ""),
        ("results differ", lambda bench: sum(row.get("peer_agrees") is False for row in device.rows(bench)), ""),
    ], list(results.BENCHES))


def summaries(device) -> str:
    return _section("Sets", [
        ("set", "name", ""), ("rows", "rows", ""), ("ratio", "ratio", ".2f"), ("best", "ratio_best", ".2f"),
        (f"< {summary.SLOW}", "slow", ""), ("% peak", "percent_of_peak", ".0f%"), ("x FP32", "speedup_fp32", ".2f"),
        ("x TF32", "speedup_tf32", ".2f")], list(map(vars, summary.of_device(device))),
                    "Ratio: time of the reference library / mpcore; best: of its best of 8 choices / mpcore; "
                    f"&lt; {summary.SLOW}: number of rows with a lower ratio; % peak: of the rate of large squares, median; "
                    "x FP32, x TF32: FP32 or TF32 time / mpcore. Ratios and factors are geometric means.")


def percent_of(device, row: dict, peak: str):
    """Percent of "copy", "read" (bytes), "mma.sync" or "wgmma" (operations); None if unknown."""
    known = device.peaks.get(peak)
    rate = row.get("gb_per_s" if peak in ("copy", "read") else "tflops")
    return 100 * rate / known["rate"] if known and rate else None


def peaks(device) -> str:
    """Peaks of the device, and the nearest row to each."""
    measured = summary.products(device) + device.rows("step")

    def nearest(peak: dict):
        shares = [(share, row) for row in measured if (share := percent_of(device, row, peak["name"]))]
        return max(shares, key=lambda one: one[0], default=(None, None))

    return _section("Peaks of the device", [
        ("peak", lambda peak: f"{peak['name']}, {peak['unit']}", ""), ("rate", "rate", ".1f"),
        ("best row", lambda peak: nearest(peak)[0], ".0f%"),
        ("its shape", lambda peak: nearest(peak)[1] and results.name_of(nearest(peak)[1]), ""),
        ("measured by", "how", "")], list(device.peaks.values()))


def worst(device) -> str:
    field, rows = results.worst(device.rows("gemm", "epilogue", "conv"), MOST_WORST)
    label = {"ratio_to_peer": "ratio to the reference library", "percent_of_peak": "percent of the peak (no reference library)"}
    return _section(f"The {len(rows)} slowest rows, by {label.get(field)}", [
        NAME, ("ratio", "ratio_to_peer", ".2f"), ("best of 8", "ratio_to_peer_best", ".2f"),
        ("% peak", "percent_of_peak", ".1f%"), *TIMES[:1], ("kernel", "kernel", ""), TYPES], rows)


def sustained(device) -> str:
    """Rows that were also timed alone, with their times alternating with others."""
    alone = [(f"{whose}{heading}", _within(part, field), form) for whose, part in
             (("", "sustained"), ("library: ", "peer_sustained"))
             for heading, field, form in (("µs, sustained", "median_us", ".1f"), ("SM MHz", "sm_mhz", "g"), ("W", "power_w", "g"))]
    return _section("Sustained", [
        NAME, ("µs, alternating", "median_us", ".1f"), ("ratio", "ratio_to_peer", ".2f"), *alone,
        ("ratio, sustained", "ratio_to_peer_sustained", ".2f")],
        [row for row in summary.products(device) if "sustained" in row])


def all_rows(device) -> str:
    shares = [(f"% {name}", lambda row, name=name: percent_of(device, row, name), ".1f%") for name in ("wgmma", "mma.sync", "read")]
    return "\n".join([
        _all("GEMMs and convolutions", [
            NAME, COMMENT, TYPES, ("kernel", "kernel", ""), *TIMES, *RATES, ("% peak", "percent_of_peak", ".1f%"), *shares, *PEER,
            ("best of 8 is choice", "peer_best_choice", ""), ("its µs", "peer_best_median_us", ".1f"),
            ("ratio to it", "ratio_to_peer_best", ".2f"), *WORKSPACES, _mebibytes("its limit", "peer_workspace_limit_bytes")],
            device.rows("gemm", "epilogue", "batched", "rnn", "conv")),
        _all("layers", [NAME, COMMENT, TYPES, *TIMES, *RATES[1:], COPY, *PEER], device.rows("layers")),
        _all("layers of transformers", [
            NAME, COMMENT, TYPES, *TIMES, *RATES, COPY, ("x its GEMM", "time_over_products", ".2f"), *PEER,
            _words("deterministic", "peer_deterministic"), *WORKSPACES], _per_peer(device.rows(*results.TRANSFORMERS))),
        _all("steps", [NAME, ("tensors", "tensors", ""), *TIMES, *RATES[1:], COPY, *PEER], _per_peer(device.rows("step")))])


def mixed(device, theirs: list) -> str:
    ours = {results.name_of(row): row for row in summary.gemms_and_convs(device) + summary.recurrent_layers(device)}

    def own(row, field: str):
        return ours.get(row.name, {}).get(field)

    def fp32(row) -> tuple:
        return (row.name in ours and device.fp32_time(ours[row.name])) or (None, None)

    columns = [
        ("shape", lambda row: row.name, ""),
        ("V100: FP32 / mixed", lambda row: row.speedup, ".2f"),
        ("this device: FP32 / mixed", lambda row: fp32(row)[0] and fp32(row)[0] / own(row, "median_us"), ".2f"),
        ("TF32 / mixed", lambda row: own(row, "speedup_over_tf32"), ".2f"),
        ("V100 FP32 µs", lambda row: row.fp32_us, ".1f"), ("V100 mixed µs", lambda row: row.mixed_us, ".1f"),
        ("FP32 µs", lambda row: fp32(row)[0], ".1f"), ("TF32 µs", lambda row: own(row, "tf32_median_us"), ".1f"),
        ("mpcore mixed µs", lambda row: own(row, "median_us"), ".1f"), ("FP32 is", lambda row: fp32(row)[1], "")]
    measured = sum(row.name in ours for row in theirs)
    return folded(f"All {len(theirs)} rows, {measured} of them measured on this device", table(columns, theirs))


def recurrent(device) -> str:
    """Complete layers with their GEMMs, cuDNN and torch."""
    torch = [(heading, _within("with_w_ih", field), form) for heading, field, form in (
        ("torch", "torch", ""), ("both compute", "what", ""), ("mpcore µs", "mpcore_median_us", ".1f"),
        ("torch µs", "torch_median_us", ".1f"), ("ratio", "ratio_to_torch", ".2f"))]
    return _all("recurrent layers", [
        NAME, TYPES, *TIMES, ("its GEMMs µs", "products_median_us", ".1f"), ("layer / GEMMs", "time_over_products", ".2f"),
        *RATES[:1], ("% peak", "percent_of_peak", ".1f%"), *PEER, *torch, _mebibytes("reserve MiB", "reserve_bytes"),
        _mebibytes("peer's", "peer_reserve_bytes"), *WORKSPACES], device.rows("rnn_layer"))


def change(device) -> str:
    found = compare.changes(*({key: row for key, (row, _) in rows.items()} for rows in (device.previous, device.latest)))
    return _all("rows compared with the previous result", [
        ("row", lambda one: one.name, ""), ("before µs", lambda one: one.old["median_us"], ".1f"),
        ("now µs", lambda one: one.new["median_us"], ".1f"), ("now / before", lambda one: one.times_as_slow, ".2f"),
        ("quartiles", lambda one: "overlap" if one.within_noise else "apart", ""), ("kernel", lambda one: one.kernels, "")], found)


def prediction(device) -> str:
    rows = [row for row in summary.gemms_and_convs(device) if "predicted_us" in row]
    families = table([
        ("kernels", lambda one: one.family, ""), ("rows", lambda one: len(one.ratios), ""),
        *((heading, lambda one, i=i: one.quartiles[i], ".2f") for i, heading in enumerate(("quarter", "half", "three quarters"))),
        ("within 25 %", lambda one: 100 * one.within_a_quarter, ".0f%"),
        ("fastest first", lambda one: f"{one.first_was_fastest}/{len(one.ranked)}" if one.ranked else None, ""),
        ("worst rank", lambda one: one.worst_place, ""), ("loss", lambda one: one.mean_loss, ".2f")],
        summary.predictions(device))
    ranks = _all("predicted and measured times, and ranks of the fastest kernels", [
        NAME, ("selected kernel", "kernel", ""), ("predicted µs", "predicted_us", ".1f"), ("measured µs", "median_us", ".1f"),
        ("predicted / measured", lambda row: row["predicted_us"] / row["median_us"], ".2f"),
        ("rank of the fastest", lambda row: f"{row['rank']} of {row['rank_of']}" if "rank" in row else "not ranked", ""),
        ("fastest kernel", "fastest_kernel", ""),
        ("selected / fastest", lambda row: row["chosen_us"] / row["fastest_us"] if "rank" in row else None, ".2f")], rows)
    return families + (
        '<p class="faint">Predicted / measured is below the first three figures in a quarter, half, three quarters of '
        "the rows. Fastest first: rows with --rank whose selected kernel was the fastest; worst rank: the largest that "
        "the model gave to the fastest kernel; loss: time of the selected kernel / of the fastest, geometric mean.</p>") + ranks


def calls(device) -> str:
    milli = [(heading, field, ".3f") for heading, field, _ in TIMES]
    return _all("calls", [("call", "call", ""), ("problem", "problem", ""), *milli, *PEER], device.rows("calls"))


def startup(device) -> str:
    return _section("Start-up", [
        ("phase", "phase", ""), *((heading.replace("µs", "ms"), lambda row, field=field: 1e-3 * row[field], ".3f")
                                  for heading, field, _ in TIMES)], device.rows("startup"),
        'From dlopen to the first result of a process: load, context, memory, first, and their sum "total"; "second" is the '
        "same call again.")


def graph(device) -> str:
    """Steps of graphs compared with the same calls by hand."""
    times = (("graph µs", "median_us", ".1f"), ("by hand µs", "by_hand_median_us", ".1f"),
             ("ratio", "time_over_hand", ".3f"), ("q1", "time_over_hand_q1", ".3f"), ("q3", "time_over_hand_q3", ".3f"))
    rows = device.rows("graph")
    # The host waits for the launch only; for synchronous calls, this is the complete time.
    within = sum(row.get("host", row)["time_over_hand"] <= MOST_OF_HAND for row in rows)
    return _section("Graphs compared with calls by hand", [
        ("network", "network", ""), ("type", "dtype", ""), ("launches", "launches", ""), *times,
        *((f"host: {heading}", _within("host", field), form) for heading, field, form in times)], rows,
        f"In {within} of {len(rows)} rows, a step of a graph costs the host at most {100 * (MOST_OF_HAND - 1):.0f} % more than "
        "the same calls by hand. Ratio: time of the graph / by hand, median of alternating rounds. Host: time until the "
        "calls return; synchronous calls have none.")


def clocks(device) -> str:
    """Readings of NVML while the rows of each suite were timed."""
    watched = {}
    for row, _ in device.latest.values():
        if "gpu_readings" in row:
            watched.setdefault(row["bench"], []).append(row)

    def median(field: str):
        def of(suite: str) -> float:
            known = [row[field] for row in watched[suite] if row[field] is not None]
            return statistics.median(known) if known else None
        return of

    def limited(field: str):
        return lambda suite: sum(row[field] > 0 for row in watched[suite])

    return folded("Clocks, power and temperature: medians over rows", table([
        ("suite", str, ""), ("rows", lambda suite: len(watched[suite]), ""), ("SM MHz", median("sm_mhz"), "g"),
        ("min SM MHz", median("least_sm_mhz"), "g"), ("W", median("power_w"), "g"), ("°C", median("temperature_c"), "g"),
        ("rows limited by power", limited("power_capped"), ""), ("by heat", limited("heat_capped"), "")],
        list(watched))) if watched else ""
