// Products beside cuBLASLt in the same precision, in FP32 and in TF32.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/rows/gemm_row.h"
#include "bench/rows/report.h"
#include "bench/timing/comparison.h"
#include "gemm_problem.h"

namespace mpbench {

class GemmTimer {
 public:
  /// @param report  gets the notes on peers that are missing and on results that are wrong
  GemmTimer(const Options &options, const Machine &machine, Report &report);

  /// A shape as the options ask for it.
  GemmRow time(const Shape &shape);
  /// A shape in the input type alone and beside its peer alone; clocks are asked for under its load
  /// where `during` is not empty.
  GemmRow time_bare(const Shape &shape, const Pace &pace, const std::string &during);

 private:
  enum class Beside { kPeer, kPeerAndBaselines };

  /// The same product of FP32 operands, and what multiplies them.
  struct Fp32Side {
    std::optional<GemmProblem> problem;
    std::unique_ptr<CublasLtGemm> fp32, tf32;
  };

  GemmRow time(const Shape &shape, const mp_gemm_desc_t &desc, GemmProblem &problem,
               const Pace &pace, Beside beside);
  /// NULL where there is none for this problem; a note says so, and `what` it would have been.
  std::unique_ptr<CublasLtGemm> open_peer(const char *what, const Shape &shape,
                                          const mp_gemm_desc_t &desc, PeerMath math);
  /// The fastest of the peer's algorithms.
  size_t best_choice(GemmProblem &problem, const CublasLtGemm &peer) const;
  bool check_agreement(const Shape &shape, GemmProblem &problem, const CublasLtGemm &peer,
                       size_t choice);
  void add_baselines(const Shape &shape, mp_gemm_desc_t desc, Fp32Side &side,
                     Comparison &comparison, Baselines &baselines);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_, fp32_pool_;
  std::optional<CublasLt> library_;
};

}  // namespace mpbench
