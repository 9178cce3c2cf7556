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

namespace mpbench {

/// A problem to time, and factories of its peers.
struct Comparand {
  std::string name;          ///< name of the shape
  bool is_headline = false;  ///< also timed alone, unless options say otherwise
  std::function<Operation()> operation, fp32_operation = {};
  std::string library;  ///< peer library and version; empty = none
  /// Both throw std::runtime_error if the library has no algorithm for the problem.
  std::function<std::unique_ptr<Peer>(const Problem &)> make_peer;
  std::function<std::unique_ptr<Peer>(const Problem &, PeerMath)> make_fp32_peer = {};
};

/// Times a problem, or, on a software device, only counts it.
class ProblemTimer {
 public:
  /// @param report  receives notes on missing peers and on wrong results
  ProblemTimer(const Options &options, const Machine &machine, Report &report);

  /// Times the problem as the options specify.
  /// @param during  label for the clocks under this load; empty = not reported
  Figures time(const Comparand &comparand, const std::string &during = {});
  /// Times the problem and its peer, without FP32 baselines.
  Figures time_bare(const Comparand &comparand, const Pace &pace, const std::string &during);

 private:
  /// The same problem with FP32 operands, and its peers.
  struct Fp32Side {
    std::optional<Problem> problem;
    std::unique_ptr<Peer> fp32, tf32;
  };

  Figures compare(const Comparand &comparand, Problem &problem, const Pace &pace, bool is_bare);
  Figures count(const Comparand &comparand);
  /// Index of the peer's fastest algorithm.
  size_t best_choice(Problem &problem, const Peer &peer) const;
  bool check_agreement(const Comparand &comparand, Problem &problem, const Peer &peer,
                       size_t choice);
  void add_baselines(const Comparand &comparand, Fp32Side &side, Comparison &comparison,
                     Baselines &baselines);
  /// NULL if the peer cannot run this problem; a note reports the missing `what`.
  template <typename Make>
  std::unique_ptr<Peer> make_or_note(const char *what, const Comparand &comparand, Make make);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_, fp32_pool_;
};

}  // namespace mpbench
