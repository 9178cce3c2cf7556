// A bar on stderr that redraws itself, with the time that is left; nothing where stderr is a file.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "common/text.h"

namespace mptune {

class Progress {
 public:
  Progress() : is_terminal_(isatty(STDERR_FILENO)) {}

  /// @param share  of the work that is done, from 0 to 1.
  /// @param what   comes next.
  void show(double share, const std::string &what) const {
    if (!is_terminal_) return;
    constexpr int kWidth = 32;
    const auto filled = static_cast<size_t>(kWidth * share);
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::fprintf(stderr, "\r\033[K[%s] %3.0f %%  %s  %s", bar.c_str(), 100 * share,
                 left(share).c_str(), what.c_str());
    std::fflush(stderr);
  }
  void clear() const {
    if (is_terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  std::string left(double share) const {
    if (share <= 0) return "";
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    const double seconds = passed.count() * (1 - share) / share;
    return seconds < 100 ? mptools::text("%.0f s left", seconds)
                         : mptools::text("%.0f min left", seconds / 60);
  }

  bool is_terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace mptune
