// The bar redraws itself after a carriage return; the last state becomes the line of the run.
#include "progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "support/progress.h"

namespace mpdemo {

using mptools::bar_text;
using mptools::kClearLine;

Progress::Progress(std::string run_name, int64_t num_steps)
    : run_name_(std::move(run_name)), num_steps_(num_steps), is_terminal_(isatty(STDERR_FILENO)) {}

void Progress::show(int64_t steps_done, double loss) {
  if (!is_terminal_) return;
  const double share = static_cast<double>(steps_done) / static_cast<double>(num_steps_);
  std::fprintf(stderr, "%s  %-16s  %s  loss %.3f", kClearLine, run_name_.c_str(),
               bar_text(share).c_str(), loss);
  std::fflush(stderr);
}

void Progress::epoch_done(int64_t steps_done, double loss, const std::string &test,
                          double seconds) {
  if (is_terminal_ && steps_done < num_steps_) return;
  std::fprintf(stderr, "%s  %-16s  step %4lld of %lld  loss %.3f  test %s  %.1f s\n",
               is_terminal_ ? kClearLine : "", run_name_.c_str(),
               static_cast<long long>(steps_done), static_cast<long long>(num_steps_), loss,
               test.c_str(), seconds);
}

}  // namespace mpdemo
