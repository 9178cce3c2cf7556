#include "rnn_row.h"

namespace mpbench {

std::string heading_of(const RnnRow &row) {
  return text("\n%s\n%-34s %5s  %-22s ", row.shape.set.c_str(), "layer", "calls", "of") +
         figures_heading() + '\n';
}

std::string line_of(const RnnRow &row, const std::optional<Peak> &peak) {
  const Shape &shape = row.products.shape;
  return text("%-34s %5lld  %-22s ", row.shape.name().c_str(), static_cast<Long>(shape.calls),
              shape.name().c_str()) +
         figures_text(row.products, peak) + '\n';
}

void write_row(JsonWriter &json, const RnnRow &row, const std::optional<Peak> &peak) {
  json.open('{');
  json.string("bench", "rnn");
  json.string("set", row.shape.set);
  json.string("shape", row.shape.name());
  json.string("comment", {});
  json.string("pass", row.shape.pass);
  json.string("cell", row.shape.cell);
  json.number("hidden", row.shape.hidden);
  json.number("batch", row.shape.batch);
  json.number("timesteps", row.shape.timesteps);
  json.string("gemm", row.products.shape.name());
  json.number("gemm_calls", row.products.shape.calls);
  write_figures(json, row.products, peak);
  json.close('}');
}

}  // namespace mpbench
