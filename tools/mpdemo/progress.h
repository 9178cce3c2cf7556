// Progress of one run on stderr: on a terminal a bar that redraws itself after a carriage return,
// and whose last state is the line of the run; otherwise one line per epoch.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "support/progress.h"

namespace mpdemo {

class Progress {
 public:
  Progress(std::string run_name, int64_t num_steps)
      : run_name_(std::move(run_name)),
        num_steps_(num_steps),
        is_terminal_(isatty(STDERR_FILENO)) {}

  /// @param loss  most recently fetched loss.
  void show(int64_t steps_done, double loss) const {
    if (!is_terminal_) return;
    const double share = static_cast<double>(steps_done) / static_cast<double>(num_steps_);
    std::fprintf(stderr, "%s  %-16s  %s  loss %.3f", mptools::kClearLine, run_name_.c_str(),
                 mptools::bar_text(share).c_str(), loss);
    std::fflush(stderr);
  }

  void epoch_done(int64_t steps_done, double loss, const std::string &test, double seconds) const {
    if (is_terminal_ && steps_done < num_steps_) return;
    std::fprintf(stderr, "%s  %-16s  step %4lld of %lld  loss %.3f  test %s  %.1f s\n",
                 is_terminal_ ? mptools::kClearLine : "", run_name_.c_str(),
                 static_cast<long long>(steps_done), static_cast<long long>(num_steps_), loss,
                 test.c_str(), seconds);
  }

 private:
  std::string run_name_;
  int64_t num_steps_;
  bool is_terminal_;
};

}  // namespace mpdemo
