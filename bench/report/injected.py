"""Synthetic result of a GPU, for tests: every shape that mptune predicts, with random times, and
all other fields of a run on a GPU."""
import random
import re

CONV = re.compile(r"(\w+) n(\d+) (\d+)x(\d+)x(\d+) k(\d+) (\d+)x(\d+) s(\d+)(?:x(\d+))? p(\d+)(?:x(\d+))?$")


def _extents(row: dict) -> dict:
    """Returns the extents in the name of a shape."""
    if row["bench"] == "gemm":
        m, n, k = map(int, row["shape"].split()[1].split("x"))
        return {"m": m, "n": n, "k": k}
    if row["bench"] == "rnn":
        one, cell, *numbers = row["shape"].split()
        hidden, batch, timesteps = (int(number[1:]) for number in numbers)
        return {"pass": one, "cell": cell, "hidden": hidden, "batch": batch, "timesteps": timesteps,
                "gemm": "made up", "gemm_calls": 1}
    one, *numbers = CONV.match(row["shape"]).groups()
    n, h, w, c, k, r, s, stride_h, stride_w, pad_h, pad_w = (number and int(number) for number in numbers)
    return {"pass": one, "n": n, "h": h, "w": w, "c": c, "k": k, "r": r, "s": s, "stride_h": stride_h,
            "stride_w": stride_h if stride_w is None else stride_w, "pad_h": pad_h,
            "pad_w": pad_h if pad_w is None else pad_w}


def _timed(us: float, prefix: str = "") -> dict:
    return {f"{prefix}median_us": us, f"{prefix}q1_us": 0.98 * us, f"{prefix}q3_us": 1.03 * us}


def _timing(us: float) -> dict:
    return _timed(us) | {"batches": 20, "calls_per_batch": 10, "enqueue_us": 2.5,
                         "gpu_readings": 9, "sm_mhz": 1.5, "least_sm_mhz": 1, "power_w": None, "temperature_c": 2,
                         "power_capped": 0.75, "heat_capped": 0}


def _baseline(name: str, own_us: float, times: float) -> dict:
    return {name: f"made up, {name}", f"speedup_over_{name}": times} | _timed(times * own_us, f"{name}_")


def _peer(own_us: float, ratio: float) -> dict:
    return {"peer": "made-up peer", "peer_agrees": True, "ratio_to_peer": ratio} | _timed(ratio * own_us, "peer_")


def _gemm_or_conv(row: dict, peak: float, rng) -> dict:
    us = row["predicted_us"] * rng.lognormvariate(0.1, 0.3)
    tflops = 1e-6 * row["flop"] / us
    ratio = rng.lognormvariate(0, 0.2)
    own = row | _extents(row) | _timing(us) | _peer(us, ratio) | {
        "comment": "", "dtype": "fp16", "out_dtype": "fp16", "beta": 0, "workspace_bytes": 0, "sets": 2,
        "peer_workspace_bytes": 0, "peer_workspace_limit_bytes": 32 << 20,
        "tflops": tflops, "gb_per_s": 1e-3 * row["min_bytes"] / us, "percent_of_peak": 100 * tflops / peak,
        "rank": rng.choice([1, 1, 1, 2, 3, 9]), "rank_of": 40, "fastest_kernel": row["kernel"],
        "chosen_us": 1.1 * us, "fastest_us": us}
    own |= _baseline("fp32", us, rng.lognormvariate(1.2, 0.4)) | _baseline("tf32", us, rng.lognormvariate(0.6, 0.3))
    if row["bench"] != "conv":
        best = ratio * rng.uniform(0.8, 1)
        own |= {"peer_best_choice": 3, "peer_best_of": 8, "peer_best_agrees": True,
                "ratio_to_peer_best": best} | _timed(best * us, "peer_best_")
    return own


def _in_one_call(bench: str, what: dict, peak: float, rng) -> dict:
    """A GEMM with an epilogue, or a batch: without prediction, rank and FP32 time."""
    shape = {"m": 64, "n": 128, "k": 256}
    base = {"bench": bench, "set": "made up", "kernel": "made_up", "flop": 2.0 * 64 * 128 * 256, "min_bytes": 1e5,
            "predicted_us": 3.0, "shape": f"NT 64x128x256 {next(iter(what.values()))}"}
    row = _gemm_or_conv(base | {"bench": "gemm"}, peak, rng)
    left_out = ("predicted_us", "rank", "fastest_kernel", "chosen_us", "fastest_us", "speedup_over", "fp32", "tf32")
    return {key: value for key, value in row.items() if not key.startswith(left_out)} | shape | what | {"bench": bench}


def _recurrent_layer(products: dict, peak: float, rng) -> dict:
    """Returns the complete layer for a row of its GEMMs."""
    left_out = ("gemm", "predicted_us", "rank", "fastest_kernel", "chosen_us", "fastest_us", "peer_best",
                "ratio_to_peer_best", "sustained", "peer_sustained", "ratio_to_peer_sustained")
    row = {key: value for key, value in products.items() if not key.startswith(left_out)}
    times = rng.uniform(1, 1.6)
    us = times * products["median_us"]
    tflops = 1e-6 * row["flop"] / us
    torch = {"what": "made up", "torch": "made-up torch", "ratio_to_torch": 1.5} | _timed(us, "mpcore_") | _timed(1.5 * us, "torch_")
    return row | _timing(us) | _peer(us, rng.uniform(0.8, 1.2)) | _timed(us / times, "products_") | _baseline(
        "fp32", us, rng.uniform(1, 5)) | _baseline("tf32", us, rng.uniform(1, 3)) | {
            "bench": "rnn_layer", "kernel": "made_up", "training": True, "reserve_bytes": 7 << 20,
            "peer_reserve_bytes": 5 << 20, "time_over_products": times, "tflops": tflops,
            "gb_per_s": 1e-3 * row["min_bytes"] / us, "percent_of_peak": 100 * tflops / peak, "with_w_ih": torch}


def _step(op: str, layout: str, tensors: int, parameters: int, rng) -> dict:
    percent = rng.uniform(60, 98)
    copy_gb_per_s = 4000.0
    gb_per_s = copy_gb_per_s * percent / 100
    us = 1e-3 * 30 * parameters / gb_per_s
    others = [{"peer": "another made-up peer", "ratio_to_peer": 1.25} | _timed(1.25 * us, "peer_")]
    return {"bench": "step", "op": op, "layout": layout, "tensors": tensors, "parameters": parameters,
            "bytes_per_parameter": 30, "sets": 1, "gb_per_s": gb_per_s, "copy_bytes": 30.0 * parameters,
            "copy_median_us": us, "copy_gb_per_s": copy_gb_per_s,
            "percent_of_copy": 100 * gb_per_s / copy_gb_per_s, "other_peers": others} | _timing(us) | _peer(
                us, rng.uniform(1, 2))


def _layer(op: str, rng) -> dict:
    row = _step(op, "one", 1, 10**6, rng)
    own = {"bench": "layers", "set": "layers", "shape": f"{op} 1000x1000", "comment": "", "dtype": "fp16",
           "min_bytes": 3e7, "workspace_bytes": 0}
    return {key: value for key, value in row.items()
            if key not in ("layout", "tensors", "parameters", "bytes_per_parameter", "other_peers")} | own


def _transformer(bench: str, rng) -> dict:
    us = rng.uniform(10, 100)
    row = {"bench": bench, "set": bench, "shape": f"forward made up {bench}", "comment": "", "pass": "forward", "form": {
        "attention": "causal", "norm": "rms", "linear_xent": "labels", "gated": "swiglu"}[bench], "extents": {"n": 8},
        "deterministic": True, "dtype": "fp16", "out_dtype": "fp16", "beta": 0, "min_bytes": 1e6, "kernel": "not named",
        "workspace_bytes": 0, "sets": 2, "gb_per_s": 1e3 / us, "peer_deterministic": False, "peer_workspace_bytes": 1 << 20,
        "other_peers": [{"peer": "another made-up peer", "ratio_to_peer": 2.0} | _timed(2 * us, "peer_")]}
    if bench != "norm":
        row |= {"flop": 1e9, "tflops": 1e3 / us}
    return row | _timing(us) | _peer(us, rng.uniform(0.8, 1.2))


def _call(name: str, problem: str, us: float) -> dict:
    return {"bench": "calls", "call": name, "problem": problem} | _timing(us)


def rewrite(graph: str, nodes: int, ns_per_node: float) -> dict:
    return {"bench": "autocast", "runs_on": "host", "graph": graph, "nodes": nodes, "tensors": 2 * nodes, "low_nodes": nodes,
            "casts": nodes, "heap_bytes": 64 * nodes + 50, "ns_per_node": ns_per_node,
            "bytes_per_node": 64 + 50 / nodes} | _timing(1e-3 * ns_per_node * nodes)


def graph(us: float, ratio: float, **fields) -> dict:
    """A step whose graph takes `ratio` times as long as calls by hand, also on the host."""
    def beside_hand(us: float) -> dict:
        return _timing(us) | _timed(us / ratio, "by_hand_") | {
            "time_over_hand": ratio, "time_over_hand_q1": 0.99 * ratio, "time_over_hand_q3": 1.01 * ratio}

    return {"bench": "graph", "network": "perceptron 8 x 32, batch 16", "layers": 8, "width": 32, "batch": 16, "dtype": "fp16",
            "parameters": 9504, "launches": 29, "synchronous": False, "host": beside_hand(us / 2)} | beside_hand(us) | fields


def run(predictions: list, seed: int = 1) -> dict:
    """@param predictions  of mptune --predict"""
    rng = random.Random(seed)
    peak = 700.0
    rows = [_gemm_or_conv(row, peak, rng) for row in predictions]
    rows += [_recurrent_layer(row, peak, rng) for row in rows if row["bench"] == "rnn"]
    rows += [_in_one_call("epilogue", {"epilogue": name}, peak, rng) for name in ("plain", "bias+GELU+aux")]
    rows += [_in_one_call("batched", {"form": form, "count": 4, "rows": 256}, peak, rng)
             for form in ("strided", "grouped")]
    rows[0] |= {"sustained": _timing(2 * rows[0]["median_us"]), "peer_sustained": _timing(rows[0]["median_us"]),
                "ratio_to_peer_sustained": 0.5}
    rows += [_layer(op, rng) for op in ("batchnorm forward", "softmax_xent, gradient")]
    rows += [_transformer(bench, rng) for bench in ("attention", "norm", "linear_xent", "gated")]
    rows += [_step(op, layout, tensors, parameters, rng) for op in ("scale_step adamw", "grad_stats", "scale_step sgd")
             for parameters in (10**6, 10**8) for layout, tensors in (("one", 1), ("100 equal", 100))]
    rows += [_call("mp_gemm", "empty", 0.1), _call("mp_gemm", "4096x4096x4096", 2.5),
             _call("mp_scale_step", "100 tensors", 4.0) | _peer(4.0, 1.5)]
    phases = [("load", 9e3), ("context", 2e5), ("memory", 4e2), ("first", 1e4), ("total", 219400.0), ("second", 60.0)]
    rows += [{"bench": "startup", "phase": phase, "edge": 1024, "library_bytes": 1} | _timing(us)
             for phase, us in phases]
    rows += [rewrite(graph, nodes, ns) for graph, ns in (("chain", 211.5), ("random", 402.5))
             for nodes in (10**2, 10**4, 10**6)]
    rows += [graph(50, 1.02), graph(40, 1.04, dtype="fp32", launches=28)]
    rows += [{"bench": "allreduce", "set": "deepbench_allreduce", "shape": f"{elements} elements",
              "elements": elements, "dtype": "fp16", "ranks": 4, "transport": "NCCL", "gb_per_s": 100.0 * index,
              "bus_gb_per_s": 150.0 * index} | _timing(0.02 * elements / index)
             for index, elements in enumerate((10**5, 10**6, 10**7), 1)]
    clocks = {"during": "a test", "sm_mhz": 1, "max_sm_mhz": 2, "memory_mhz": 3, "power_w": None,
              "power_limit_w": 4, "temperature_c": 5}
    return {"schema": 1, "device": "made-up <device>", "target": "cuda", "arch": 90, "num_sms": 132,
            "l2_bytes": 50 << 20, "estimated_costs": seed == 1, "commit": "none", "command": f"none, seed {seed}",
            "date": f"2000-01-0{seed}T00:00:00Z", "driver": "0", "cuda": "0.0", "peak_tflops": peak,
            "peak_from": "nobody", "rows": rows, "clocks": [clocks],
            "peaks": [{"name": "copy", "unit": "GB/s", "rate": 2900.0, "how": "made up"},
                         {"name": "read", "unit": "GB/s", "rate": 3000.5, "how": "made up"},
                         {"name": "mma.sync", "unit": "TFLOP/s", "rate": 600.0, "how": "made up"},
                         {"name": "wgmma", "unit": "TFLOP/s", "rate": None, "how": "made up not to be"}],
            "peers": [{"name": "cuBLASLt", "version": "0", "place": "python", "file": "nvidia/none/lib/lib.so"}],
            "notes": ["No figure here was measured."]}
