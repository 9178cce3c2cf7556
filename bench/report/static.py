"""Facts about kernels from the compiler and the cost model, as HTML; they require no GPU."""
from . import kernels
from .markup import escape, folded, table


def _megabytes(sizes: dict) -> str:
    return ", ".join(f"{part} {size / 1e6:.1f} MB" for part, size in sizes.items())


def _kernels() -> str:
    known = kernels.read()
    tables = [folded(f"{arch}: {len(rows)} kernels", table(["kernel", *known.head], rows))
              for arch, rows in known.by_arch.items()]
    return (f"<p>Kernels as CUDA {escape(known.toolkit)} compiles them: registers per thread, bytes of stack and shared "
            "memory, threads per block, and numbers of characteristic instructions. Machine code in libmpcore.so: "
            f"{escape(_megabytes(known.library_bytes))}. tools/gpu/kernel_report prints the same for a build, with "
            "occupancy and all instructions.</p>\n" + "\n".join(tables))


def _costs(device_class: str, predicted: dict) -> str:
    if predicted["is_estimated"]:
        return (f"The cost table of {device_class} is estimated from data sheets "
                "(kernels/gemm/tuning_builtin.inc); few measurements confirm it.")
    return f"Predicted by the cost table of {device_class}, which mptune measured."


def _build(build) -> str:
    parts = []
    if build.library_bytes:
        parts.append(f"<p>libmpcore.so: {escape(_megabytes(build.library_bytes))}.</p>")
    if build.compile_seconds:
        total = sum(sum(phases.values()) for phases in build.compile_seconds.values())
        rows = [[source, f"{sum(phases.values()):.0f}",
                 ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in
                           sorted(phases.items(), key=lambda item: -item[1])[:3])]
                for source, phases in build.compile_seconds.items()]
        parts.append(folded(
            f"nvcc: {len(rows)} files, {total:.0f} s in total over concurrent phases",
            table(["file", "s", "longest phases, s"], rows)))
    for device_class, predicted in build.predictions.items():
        rows = [[f"{row['set']} {row['shape']}", f"{1e-9 * row['flop']:.4g}", f"{1e-6 * row['min_bytes']:.4g}",
                 f"{row['predicted_us']:.1f}", f"{1e-6 * row['flop'] / row['predicted_us']:.4g}", row["kernel"]]
                for row in predicted["predictions"]]
        parts.append(folded(
            f"Prediction, not a measurement: {len(rows)} shapes on {device_class} "
            f"with {predicted['num_sms']} SMs", table(
                ["shape", "GFLOP", "least MB", "predicted µs", "predicted TFLOP/s", "kernel"], rows) +
            f'<p class="faint">{_costs(device_class, predicted)}</p>'))
    return "<h3>This build</h3>\n" + "\n".join(parts) if parts else ""


def section(build) -> str:
    """`build`: build.Build, which may be empty."""
    return f"<h2>Results without a GPU</h2>\n{_kernels()}\n{_build(build)}"
