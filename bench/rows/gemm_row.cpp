#include "gemm_row.h"

namespace mpbench {

std::string figures_heading() {
  return text("%-11s %-24s %9s %8s %8s %7s %6s %9s %7s %7s %7s %7s  %s", "types", "kernel",
              "time us", "iqr us", "TFLOP/s", "GB/s", "%peak", "peer us", "ratio", "best", "x fp32",
              "x tf32", "rank");
}

std::string figures_text(const GemmRow &row, const std::optional<Peak> &peak) {
  const std::string types = types_text(row.desc.dtype_ab, row.desc.dtype_cd, row.desc.beta);
  return text("%-11s %-24s %9.1f %8.1f %s %7.1f %6s ", types.c_str(), row.kernel.c_str(),
              row.timing.median_us, row.timing.iqr_us(), teraflops_text(teraflops(row)).c_str(),
              row.timing.giga_per_s(row.min_bytes), percent_text(teraflops(row), peak).c_str()) +
         peer_text(row.peer, row.timing) +
         text(" %7s ", best_text(row.peer_best, row.timing).c_str()) +
         baselines_text(row.baselines, row.timing) +
         (row.rank ? rank_text(*row.rank) : std::string());
}

void add_figures(Json &json, const GemmRow &row, const std::optional<Peak> &peak) {
  json["dtype"] = dtype_name(row.desc.dtype_ab);
  json["out_dtype"] = dtype_name(row.desc.dtype_cd);
  add_product(json, row, peak);
}

std::string heading_of(const GemmRow &row) {
  return text("\n%s\n%-2s %7s %7s %7s  ", row.shape.set.c_str(), "op", "m", "n", "k") +
         figures_heading() + '\n';
}

std::string line_of(const GemmRow &row, const std::optional<Peak> &peak) {
  return text("%-2.2s %7lld %7lld %7lld  ", row.shape.name().c_str(),
              static_cast<Long>(row.shape.m), static_cast<Long>(row.shape.n),
              static_cast<Long>(row.shape.k)) +
         figures_text(row, peak) + '\n';
}

Json json_of(const GemmRow &row, const std::optional<Peak> &peak) {
  Json json{{"bench", "gemm"},           {"set", row.shape.set},
            {"shape", row.shape.name()}, {"comment", row.shape.comment},
            {"m", row.shape.m},          {"n", row.shape.n},
            {"k", row.shape.k}};
  add_figures(json, row, peak);
  return json;
}

}  // namespace mpbench
