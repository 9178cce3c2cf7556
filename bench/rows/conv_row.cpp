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

void write_row(JsonWriter &json, const ConvRow &row, const std::optional<Peak> &peak) {
  const ConvShape &shape = row.shape;
  json.open('{');
  json.string("bench", "conv");
  json.string("set", shape.set);
  json.string("shape", shape.name());
  json.string("comment", shape.comment);
  json.string("pass", shape.pass());
  json.number("n", shape.n);
  json.number("h", shape.h);
  json.number("w", shape.w);
  json.number("c", shape.c);
  json.number("k", shape.k);
  json.number("r", shape.r);
  json.number("s", shape.s);
  json.number("pad_h", shape.pad_h);
  json.number("pad_w", shape.pad_w);
  json.number("stride_h", shape.stride_h);
  json.number("stride_w", shape.stride_w);
  json.number("layers", shape.layers);
  json.string("dtype", dtype_name(row.desc.dtype));
  json.string("out_dtype", dtype_name(row.desc.dtype_out));
  write_product(json, row, peak);
  json.close('}');
}

}  // namespace mpbench
