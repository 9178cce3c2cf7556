#include "rnn_row.h"

namespace mpbench {

std::string heading_of(const RnnRow &row) {
  return text("\n%s\n%-34s %5s  %-22s ", row.shape.set.c_str(), "layer", "calls", "of") +
         figures_heading(row.figures) + '\n';
}

std::string line_of(const RnnRow &row, const std::optional<Peak> &peak) {
  const Shape gemms = row.shape.gemms();
  return text("%-34s %5lld  %-22s ", row.shape.name().c_str(), static_cast<Long>(gemms.calls),
              gemms.name().c_str()) +
         figures_text(row.figures, peak) + '\n';
}

Json json_of(const RnnRow &row, const std::optional<Peak> &peak) {
  const RnnShape &shape = row.shape;
  Json json{{"bench", "rnn"},
            {"set", shape.set},
            {"shape", shape.name()},
            {"comment", ""},
            {"pass", shape.pass},
            {"cell", shape.cell},
            {"hidden", shape.hidden},
            {"batch", shape.batch},
            {"timesteps", shape.timesteps},
            {"gemm", shape.gemms().name()},
            {"gemm_calls", shape.gemms().calls}};
  add_figures(json, row.figures, peak);
  return json;
}

}  // namespace mpbench
