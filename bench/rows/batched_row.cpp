#include "batched_row.h"

namespace mpbench {

std::string heading_of(const BatchedRow &row) {
  return text("\n%s\n%-35s  ", row.shape.gemm.set.c_str(), "GEMMs in one call") +
         figures_heading(row.figures) + '\n';
}

std::string line_of(const BatchedRow &row, const std::optional<Peak> &peak) {
  return text("%-35s  ", row.shape.name().c_str()) + figures_text(row.figures, peak) + '\n';
}

Json json_of(const BatchedRow &row, const std::optional<Peak> &peak) {
  const BatchedShape &shape = row.shape;
  Json json{{"bench", "batched"},          {"set", shape.gemm.set},
            {"shape", shape.name()},       {"comment", shape.gemm.comment},
            {"form", name_of(shape.form)}, {"count", shape.count},
            {"rows", shape.rows()},        {"m", shape.gemm.m},
            {"n", shape.gemm.n},           {"k", shape.gemm.k}};
  add_figures(json, row.figures, peak);
  return json;
}

}  // namespace mpbench
