// Times GEMMs and convolutions together with a peer in the same precision, in FP32 and in TF32.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/rows/figures.h"
#include "bench/rows/report.h"
#include "comparison.h"
#include "problem.h"
#include "suite.h"

namespace mpbench {

/// A problem to time, and factories of its peers.
struct Comparand {
  std::string name;          ///< name of the shape
  bool is_headline = false;  ///< also timed alone, unless options say otherwise
  bool is_bare = false;      ///< has neither FP32 baselines nor --rank
  std::function<Operation()> operation, fp32_operation = {};
  std::string library;  ///< peer library and version; empty = none
  /// Both throw std::runtime_error if the library has no algorithm for the problem.
  std::function<PeerCalls(const Problem &)> make_peer;
  std::function<PeerCalls(const Problem &, PeerMath)> make_fp32_peer = {};
};

/// Times a problem, or, on a software device, only counts it.
class ProblemTimer : BenchState {
 public:
  using BenchState::BenchState;

  /// Times the problem as the options specify; notes report missing peers and wrong results.
  /// @param during  label for the clocks under this load; empty = not reported
  /// @param pace    empty = pace_of() the options
  Figures time(const Comparand &comparand, const std::string &during = {},
               const std::optional<Pace> &pace = {});

 private:
  Figures compare(const Comparand &comparand, Problem &problem, const Pace &pace);
  /// Index of the peer's fastest algorithm.
  size_t best_choice(Problem &problem, const PeerCalls &peers) const;
  /// Adds the same problem with FP32 operands, which it returns; NULL if there is none.
  std::unique_ptr<Problem> add_baselines(const Comparand &comparand, Comparison &comparison,
                                         Baselines &baselines);
  /// Empty if the peer cannot run this problem; a note reports the missing `what`.
  template <typename Make>
  PeerCalls make_peer(const std::string &what, const Comparand &comparand, Make make);

  Stopwatch stopwatch_{machine_};
  RandomPool pool_{machine_, options_.dtype}, fp32_pool_{machine_, MP_FP32};
};

}  // namespace mpbench
