// mpcore and the works that it is compared with, timed interleaved.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/rows/row.h"
#include "bench/timing/timing.h"

namespace mpbench {

/// Returns the fastest choice by a brief timing; the first is known to run, others are skipped if
/// they fail.
inline size_t fastest_choice(const std::vector<Work> &choices, const Stopwatch &stopwatch,
                             const Machine &machine) {
  std::vector<Work> works;
  std::vector<size_t> indices;
  for (size_t i = 0; i < choices.size(); ++i) {
    try {
      choices[i]();
    } catch (const std::exception &) {
      if (i == 0) throw;
      continue;
    }
    works.push_back(choices[i]);
    indices.push_back(i);
  }
  return indices[fastest_of(stopwatch.time(works, brief_pace(machine)))];
}

class Comparison {
 public:
  explicit Comparison(Work own) : works_{std::move(own)} {}

  /// @param result  filled by run(); its address must not change before
  void add(std::optional<PeerResult> &result, std::string name, Work work) {
    works_.push_back(std::move(work));
    entries_.push_back({&result, std::move(name)});
  }

  /// @param other  passed to Stopwatch::time
  /// @return mpcore's time
  Timing run(const Stopwatch &stopwatch, const Pace &pace,
             const std::function<void()> &other = nullptr) {
    const std::vector<Timing> timings = stopwatch.time(works_, pace, other);
    for (size_t i = 0; i < entries_.size(); ++i)
      *entries_[i].result = peer_result(entries_[i].name, timings[i + 1]);
    return timings.front();
  }

 private:
  struct Entry {
    std::optional<PeerResult> *result;
    std::string name;
  };

  std::vector<Work> works_;  ///< the first one is mpcore's
  std::vector<Entry> entries_;
};

}  // namespace mpbench
