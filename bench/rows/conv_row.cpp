#include "conv_row.h"

namespace mpbench {

std::string heading_of(const ConvRow &row) {
  return text("\n%s\n%-42s  %-11s %-26s %9s %8s %8s %7s %6s %9s %7s %7s %7s %7s  %s\n",
              row.shape.set.c_str(), "convolution", "types", "kernel", "time us", "iqr us",
              "TFLOP/s", "GB/s", "%peak", "peer us", "ratio", "best", "x fp32", "x tf32", "rank");
}

std::string line_of(const ConvRow &row, const std::optional<Peak> &peak) {
  const std::string types = types_text(row.desc.dtype, row.desc.dtype_out, row.desc.beta);
  return text("%-42s  %-11s %-26s %9.1f %8.1f %s %7.1f %6s ", row.shape.name().c_str(),
              types.c_str(), row.kernel.c_str(), row.timing.median_us, row.timing.iqr_us(),
              teraflops_text(teraflops(row)).c_str(), row.timing.giga_per_s(row.min_bytes),
              percent_text(teraflops(row), peak).c_str()) +
         peer_text(row.peer, row.timing) +
         text(" %7s ", best_text(row.peer_best, row.timing).c_str()) +
         baselines_text(row.baselines, row.timing) +
         (row.rank ? rank_text(*row.rank) : std::string()) + '\n';
}

Json json_of(const ConvRow &row, const std::optional<Peak> &peak) {
  const ConvShape &shape = row.shape;
  Json json{{"bench", "conv"},
            {"set", shape.set},
            {"shape", shape.name()},
            {"comment", shape.comment},
            {"pass", shape.pass()},
            {"n", shape.n},
            {"h", shape.h},
            {"w", shape.w},
            {"c", shape.c},
            {"k", shape.k},
            {"r", shape.r},
            {"s", shape.s},
            {"pad_h", shape.pad_h},
            {"pad_w", shape.pad_w},
            {"stride_h", shape.stride_h},
            {"stride_w", shape.stride_w},
            {"layers", shape.layers},
            {"dtype", dtype_name(row.desc.dtype)},
            {"out_dtype", dtype_name(row.desc.dtype_out)}};
  add_product(json, row, peak);
  return json;
}

}  // namespace mpbench
