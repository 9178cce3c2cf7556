"""Missing suites, peers, baselines, ranks, peaks and clocks of a device, a sentence each."""
from . import results

PEERS = {"gemm": "cuBLASLt", "epilogue": "cuBLASLt", "batched": "cuBLAS", "rnn": "cuBLASLt", "rnn_layer": "cuDNN", "conv": "cuDNN", "layers": "cuDNN", "step": "torch (fused AdamW, GradScaler)"}


def of(device) -> list:
    found = []
    for bench, peer in PEERS.items():
        rows = device.rows(bench)
        with_peer = [row for row in rows if "peer" in row]
        if not rows:
            found.append(f"{bench}: not measured.")
        elif not with_peer:
            found.append(f"{bench}: no ratio, because {peer} was not found.")
        elif bench != "step" and len(with_peer) < len(rows):
            found.append(f"{bench}: {len(rows) - len(with_peer)} of {len(rows)} rows without a ratio.")
        differing = [results.name_of(row) for row in with_peer if row.get("peer_agrees") is False]
        if differing:
            found.append(f"{bench}: no ratio, because results differ from the reference library's: {', '.join(differing)}.")
    for bench, what in (("calls", "Host cost of calls"), ("startup", "Start-up"),
                        ("autocast", "Autocast rewrites"), ("graph", "Graphs compared with calls by hand"),
                        ("allreduce", "All-reduce of gradients")):
        if not device.rows(bench):
            found.append(f"{what}: not measured.")
    multiplied = device.rows("gemm", "rnn", "rnn_layer", "conv")
    without_fp32 = [row for row in multiplied if row["dtype"] != "fp32" and not device.fp32_time(row)]
    if without_fp32:
        found.append(f"{len(without_fp32)} GEMMs, recurrent layers and convolutions without an FP32 time.")
    if multiplied and not any("tf32_median_us" in row for row in multiplied):
        found.append("No TF32 times: they require cuBLASLt or cuDNN on sm_80 or newer.")
    if not any("rank" in row for row in multiplied):
        found.append("No kernel was ranked (--rank).")
    if not device.rows("step") and "read" not in device.peaks:
        found.append("No memory rate: the roofline has no slope.")
    # A later run may have measured what an earlier one could not.
    unmeasured = {f"{one['name']}: {one['how']}" for run in device.runs for one in run.get("peaks", ())
                  if one["name"] not in device.peaks}
    found += [f"Peak, {sentence}." for sentence in sorted(unmeasured)]
    if not any("peaks" in run for run in device.runs):
        found.append("No peaks of the device.")
    layers = device.rows("rnn_layer")
    if device.rows("rnn") and not layers:
        found.append("Recurrent layers: only their GEMMs were timed.")
    if layers and not any("with_w_ih" in row for row in layers):
        found.append("rnn_layer: torch was not found.")
    if not any(run["clocks"] for run in device.runs):
        found.append("No clocks, power or temperature: NVML was not found.")
    # Several runs may have the same note.
    return list(dict.fromkeys(found + [note for run in device.runs for note in run["notes"]]))
