#include "gemm_row.h"

namespace mpbench {

std::string heading_of(const GemmRow &row) {
  return text("\n%s\n%-2s %7s %7s %7s  ", row.shape.set.c_str(), "op", "m", "n", "k") +
         figures_heading(row.figures) + '\n';
}

std::string line_of(const GemmRow &row, const std::optional<Peak> &peak) {
  return text("%-2.2s %7lld %7lld %7lld  ", row.shape.name().c_str(),
              static_cast<Long>(row.shape.m), static_cast<Long>(row.shape.n),
              static_cast<Long>(row.shape.k)) +
         figures_text(row.figures, peak) + '\n';
}

Json json_of(const GemmRow &row, const std::optional<Peak> &peak) {
  Json json{{"bench", "gemm"},           {"set", row.shape.set},
            {"shape", row.shape.name()}, {"comment", row.shape.comment},
            {"m", row.shape.m},          {"n", row.shape.n},
            {"k", row.shape.k}};
  add_figures(json, row.figures, peak);
  return json;
}

}  // namespace mpbench
