"""Rows that are slower than their peer, as text for the notes of a release."""
from . import results


def lines(runs: list, limit: float) -> list:
    """Of GPUs: a heading for each device, then the slowest first."""
    found = []
    for device in results.devices_of([run for run in runs if run["target"] == "cuda"]):
        rows = [row for row in device.rows("gemm", "epilogue", "batched", "rnn", "rnn_layer", "conv", "layers", "step") if "ratio_to_peer" in row]
        slow = sorted((row for row in rows if row["ratio_to_peer"] < limit), key=lambda row: row["ratio_to_peer"])
        found.append(f"{device.name}: {len(slow)} of {len(rows)} rows below {limit:g} of their peer")
        found += [device.estimated_costs] if device.estimated_costs else []
        for row in slow:
            best = f", {row['ratio_to_peer_best']:.2f} of its best of 8" if "ratio_to_peer_best" in row else ""
            found.append(f"- {results.name_of(row)} {results.types_of(row)}".rstrip() +
                         f": {row['ratio_to_peer']:.2f}{best}; {row['median_us']:.1f} us, "
                         f"{row.get('kernel', 'no kernel name')}; {row['peer']} {row['peer_median_us']:.1f} us")
    return found or ["No result of a GPU is there: no row can be below its peer."]
