"""Rows that are slower than their peer, as text for release notes."""
from . import results


def lines(runs: list, limit: float) -> list:
    """Returns a heading per GPU and its rows, the slowest first."""
    found = []
    for device in results.devices_of([run for run in runs if run["target"] == "cuda"]):
        rows = [row for row in device.rows("gemm", "epilogue", "batched", "rnn", "rnn_layer", "conv", "layers", "step") if "ratio_to_peer" in row]
        slow = sorted((row for row in rows if row["ratio_to_peer"] < limit), key=lambda row: row["ratio_to_peer"])
        found.append(f"{device.name}: {len(slow)} of {len(rows)} rows below {limit:g} of the reference library")
        found += [device.estimated_costs] if device.estimated_costs else []
        for row in slow:
            best = f", {row['ratio_to_peer_best']:.2f} of its best of 8" if "ratio_to_peer_best" in row else ""
            found.append(f"- {results.name_of(row)} {results.types_of(row)}".rstrip() +
                         f": {row['ratio_to_peer']:.2f}{best}; {row['median_us']:.1f} us, "
                         f"{row.get('kernel', 'kernel not named')}; {row['peer']} {row['peer_median_us']:.1f} us")
    return found or ["There are no results of GPUs."]
