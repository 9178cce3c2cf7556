// GEMMs and convolutions beside a peer in the same precision, in FP32 and in TF32.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/peers/peer_math.h"
#include "bench/rows/figures.h"
#include "bench/rows/report.h"
#include "comparison.h"
#include "problem.h"

namespace mpbench {

/// What is timed, and what makes its peers.
struct Comparand {
  std::string name;          ///< of the shape
  bool is_headline = false;  ///< also timed alone, unless options say otherwise
  std::function<Operation()> operation, fp32_operation;
  std::string library;  ///< of the peers, with its version; empty = there is none
  /// Both throw std::runtime_error where the library has no algorithm for the problem.
  std::function<std::unique_ptr<Peer>(const Problem &)> make_peer;
  std::function<std::unique_ptr<Peer>(const Problem &, PeerMath)> make_fp32_peer;
};

/// Where calls are counted, the counts are all that it finds.
class ProblemTimer {
 public:
  /// @param report  gets the notes on peers that are missing and on results that are wrong
  ProblemTimer(const Options &options, const Machine &machine, Report &report);

  /// As the options ask for it.
  /// @param during  where not empty, the clocks under this load are reported and called so
  Figures time(const Comparand &comparand, const std::string &during = {});
  /// Beside its peer alone.
  Figures time_bare(const Comparand &comparand, const Pace &pace, const std::string &during);

 private:
  /// The same of FP32 operands, and what computes it.
  struct Fp32Side {
    std::optional<Problem> problem;
    std::unique_ptr<Peer> fp32, tf32;
  };

  Figures compare(const Comparand &comparand, Problem &problem, const Pace &pace, bool is_bare);
  Figures count(const Comparand &comparand);
  /// The peer's algorithm that is fastest.
  size_t best_choice(Problem &problem, const Peer &peer) const;
  bool check_agreement(const Comparand &comparand, Problem &problem, const Peer &peer,
                       size_t choice);
  void add_baselines(const Comparand &comparand, Fp32Side &side, Comparison &comparison,
                     Baselines &baselines);
  /// NULL where there is none for this problem; a note says so, and `what` it would have been.
  template <typename Make>
  std::unique_ptr<Peer> make_or_note(const char *what, const Comparand &comparand, Make make);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_, fp32_pool_;
};

}  // namespace mpbench
