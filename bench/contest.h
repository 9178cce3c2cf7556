// mpcore and those it is compared with, timed in turns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rows/row.h"
#include "timing.h"

namespace mpbench {

class Contest {
 public:
  explicit Contest(Work own) : works_{std::move(own)} {}

  /// @param result  filled by run(); where it lies must not change before
  void add(std::optional<PeerResult> &result, std::string name, Work work) {
    works_.push_back(std::move(work));
    entries_.push_back({&result, std::move(name)});
  }

  /// @return mpcore's own time
  Timing run(const Stopwatch &stopwatch, const Pace &pace) {
    const std::vector<Timing> timings = stopwatch.time(works_, pace);
    for (size_t i = 0; i < entries_.size(); ++i)
      *entries_[i].result = peer_result(entries_[i].name, timings[i + 1]);
    return timings.front();
  }

 private:
  struct Entry {
    std::optional<PeerResult> *result;
    std::string name;
  };

  std::vector<Work> works_;  ///< mpcore's own first
  std::vector<Entry> entries_;
};

}  // namespace mpbench
