#include "conv_row.h"

namespace mpbench {

std::string heading_of(const ConvRow &row) {
  return text("\n%s\n%-42s  ", row.shape.set.c_str(), "convolution") +
         figures_heading(row.figures) + '\n';
}

std::string line_of(const ConvRow &row, const std::optional<Peak> &peak) {
  return text("%-42s  ", row.shape.name().c_str()) + figures_text(row.figures, peak) + '\n';
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
            {"layers", shape.layers}};
  add_figures(json, row.figures, peak);
  return json;
}

}  // namespace mpbench
