#include "epilogue_row.h"

namespace mpbench {

std::string heading_of(const EpilogueRow &row) {
  return text("\n%s\n%-34s  ", row.shape.gemm.set.c_str(), "GEMM and epilogue") +
         figures_heading(row.figures) + '\n';
}

std::string line_of(const EpilogueRow &row, const std::optional<Peak> &peak) {
  return text("%-34s  ", row.shape.name().c_str()) + figures_text(row.figures, peak) + '\n';
}

Json json_of(const EpilogueRow &row, const std::optional<Peak> &peak) {
  const Shape &gemm = row.shape.gemm;
  Json json{{"bench", "epilogue"},
            {"set", gemm.set},
            {"shape", row.shape.name()},
            {"comment", gemm.comment},
            {"epilogue", name_of(row.shape.epilogue)},
            {"m", gemm.m},
            {"n", gemm.n},
            {"k", gemm.k}};
  add_figures(json, row.figures, peak);
  return json;
}

}  // namespace mpbench
