// What the rows of GEMM and convolution have in common.
#pragma once

#include <optional>
#include <string>

#include "row.h"

namespace mpbench {

template <typename ShapeType, typename Desc>
struct ProductRow {
  ShapeType shape;
  Desc desc;
  std::string kernel;
  double predicted_us;  ///< by the cost model that chose the kernel
  int64_t workspace_bytes;
  int64_t sets;      ///< of operands, taken in turn
  double min_bytes;  ///< every operand once
  Timing timing;
  std::optional<PeerResult> peer;  ///< its first choice
  std::optional<BestChoice> peer_best;
  Baselines baselines;
  std::optional<RankResult> rank;
};

/// What is known of it before it is timed.
/// @tparam Problem  GemmProblem or ConvProblem
template <typename ShapeType, typename Desc, typename Problem>
ProductRow<ShapeType, Desc> untimed_row(const ShapeType &shape, const Desc &desc,
                                        const Problem &problem) {
  return {.shape = shape,
          .desc = desc,
          .kernel = problem.kernels().front(),
          .predicted_us = problem.predicted_us(),
          .workspace_bytes = problem.workspace_bytes(),
          .sets = problem.sets(),
          .min_bytes = problem.min_bytes(),
          .timing = {},
          .peer = {},
          .peer_best = {},
          .baselines = {},
          .rank = {}};
}

template <typename Row>
double teraflops(const Row &row) {
  return 1e-3 * row.timing.giga_per_s(row.shape.flop());
}

template <typename Row>
void add_product(Json &json, const Row &row, const std::optional<Peak> &peak) {
  json.update({{"beta", row.desc.beta},
               {"flop", row.shape.flop()},
               {"min_bytes", row.min_bytes},
               {"kernel", row.kernel},
               {"predicted_us", row.predicted_us},
               {"workspace_bytes", row.workspace_bytes},
               {"sets", row.sets}});
  add_timing(json, row.timing);
  json["tflops"] = teraflops(row);
  json["gb_per_s"] = row.timing.giga_per_s(row.min_bytes);
  if (peak) json["percent_of_peak"] = 100 * teraflops(row) / peak->tflops;
  add_peer(json, row.peer, row.timing);
  add_best(json, row.peer_best, row.timing);
  add_baselines(json, row.baselines, row.timing);
  add_rank(json, row.rank);
}

}  // namespace mpbench
