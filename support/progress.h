// Progress of a program and its remaining time, on a line of stderr that redraws itself.  Nothing
// is printed if stderr is not a terminal.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "text.h"

namespace mptools {

constexpr const char *kClearLine = "\r\033[K";
/// Disables line wrapping around text that may be wider than the terminal.
constexpr const char *kCutLines = "\033[?7l";
constexpr const char *kWrapLines = "\033[?7h";

/// Jobs of unequal cost.  Costs are estimates in any unit: only their ratios matter.
class WorkLeft {
 public:
  explicit WorkLeft(double total_cost) : total_cost_(total_cost) {}

  /// Records a finished job and its duration.
  void finish(double cost, double seconds) {
    done_cost_ += cost;
    seconds_ += seconds;
  }
  /// Returns the completed fraction, from 0 to 1.
  double share() const {
    return total_cost_ > 0 ? std::clamp(done_cost_ / total_cost_, 0.0, 1.0) : 1.0;
  }
  /// Returns the remaining time at the average time per cost of the finished jobs; empty before the
  /// first one has finished.
  std::optional<double> seconds_left() const {
    if (!(done_cost_ > 0)) return std::nullopt;
    return seconds_ / done_cost_ * std::max(0.0, total_cost_ - done_cost_);
  }

 private:
  double total_cost_, done_cost_ = 0, seconds_ = 0;
};

/// Formats a bar, e.g. "[########........................]  25 %".
inline std::string bar_text(double share) {
  constexpr size_t kWidth = 32;
  const auto filled = static_cast<size_t>(kWidth * share);
  return '[' + std::string(filled, '#') + std::string(kWidth - filled, '.') +
         text("] %3.0f %%", std::floor(100 * share));
}

/// Formats a time, e.g. "40 s left", "12 min left", "3 h 5 min left".
inline std::string left_text(double seconds) {
  if (seconds < 99.5) return text("%.0f s left", seconds);
  const auto minutes = static_cast<long>(seconds / 60 + 0.5);
  if (minutes < 100) return text("%ld min left", minutes);
  return text("%ld h %ld min left", minutes / 60, minutes % 60);
}

/// Returns a text with the completed fraction, the remaining time, and the current job.
inline std::string progress_text(const WorkLeft &work, const std::string &part) {
  const std::optional<double> seconds = work.seconds_left();
  return bar_text(work.share()) + "  " + (seconds ? left_text(*seconds) + "  " : "") + part;
}

class Progress {
 public:
  explicit Progress(double total_cost) : is_terminal_(isatty(STDERR_FILENO)), work_(total_cost) {}

  void start(const std::string &part) {
    start_ = Clock::now();
    if (!is_terminal_) return;
    std::fprintf(stderr, "%s%s%s%s", kClearLine, kCutLines, progress_text(work_, part).c_str(),
                 kWrapLines);
    std::fflush(stderr);
  }
  /// Records the end of the current job.
  void finish(double cost) {
    work_.finish(cost, std::chrono::duration<double>(Clock::now() - start_).count());
  }
  void clear() const {
    if (is_terminal_) std::fputs(kClearLine, stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_terminal_;
  WorkLeft work_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace mptools
