// What the rows of GEMM and convolution have in common.
#pragma once

#include "row.h"

namespace mpbench {

/// Of a GEMM or a convolution.
template <typename Row>
double teraflops(const Row &row) {
  return 1e-3 * row.timing.giga_per_s(row.shape.flop());
}

template <typename Row>
void write_product(JsonWriter &json, const Row &row, const std::optional<Ceiling> &ceiling) {
  json.number("beta", static_cast<double>(row.desc.beta));
  json.number("flop", row.shape.flop());
  json.number("min_bytes", row.min_bytes);
  json.string("kernel", row.kernel);
  json.number("predicted_us", row.predicted_us);
  json.number("workspace_bytes", row.workspace_bytes);
  json.number("sets", row.sets);
  write_timing(json, row.timing);
  json.number("tflops", teraflops(row));
  json.number("gb_per_s", row.timing.giga_per_s(row.min_bytes));
  if (ceiling) json.number("percent_of_ceiling", 100 * teraflops(row) / ceiling->tflops);
  write_peer(json, row.peer, row.timing);
  write_best(json, row.peer_best, row.timing);
  write_baselines(json, row.baselines, row.timing);
  write_rank(json, row.rank);
}

}  // namespace mpbench
