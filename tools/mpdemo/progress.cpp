#include "progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace mpdemo {

Progress::Progress(std::string run_name, int64_t num_steps)
    : run_name_(std::move(run_name)), num_steps_(num_steps), is_terminal_(isatty(STDERR_FILENO)) {}

void Progress::show(int64_t steps_done, double loss) {
  if (!is_terminal_) return;
  constexpr int kWidth = 32;
  const int filled = static_cast<int>(kWidth * steps_done / num_steps_);
  const std::string bar = std::string(static_cast<size_t>(filled), '#') +
                          std::string(static_cast<size_t>(kWidth - filled), '.');
  constexpr const char *kClearLine = "\r\033[K";
  std::fprintf(stderr, "%s  %-18s [%s] %3d %%  loss %.3f", kClearLine, run_name_.c_str(),
               bar.c_str(), static_cast<int>(100 * steps_done / num_steps_), loss);
  std::fflush(stderr);
}

void Progress::epoch_done(int64_t epoch, int64_t num_epochs, double loss, double test_accuracy,
                          double seconds) {
  const bool is_last = epoch == num_epochs;
  if (is_terminal_ && !is_last) return;
  std::fprintf(stderr, "%s  %-18s epoch %d/%d  loss %.3f  test %.2f %%  %.1f s\n",
               is_terminal_ ? "\r\033[K" : "", run_name_.c_str(), static_cast<int>(epoch),
               static_cast<int>(num_epochs), loss, 100 * test_accuracy, seconds);
}

}  // namespace mpdemo
